// Timelines, sessions and requests of async.h.
#include <cstdlib>

#include "core/compiler/driver/report.h"
#include "core/compiler/driver/steady_json.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/objects.h"
#include "core/runtime/requests/dispatcher.h"

using namespace candela;
using namespace runtime::api;
using namespace runtime::requests;
using runtime::session::BufferRef, runtime::session::RunControl, runtime::session::RunStats;

namespace candela::runtime::api {

/// What a request writes for its owner: descriptions of the outputs, and memory of those that the
/// library allocated.
struct Outputs {
  std::vector<candela_tensor_t> tensors;
  std::vector<std::shared_ptr<void>> owned; ///< per output; null where the caller has it
};

} // namespace candela::runtime::api

struct candela_request {
  candela::runtime::requests::Dispatcher*
      dispatcher; ///< it is not asked about requests that are done
  candela::runtime::requests::RequestPtr request;
  std::shared_ptr<const candela::runtime::api::Outputs> outputs;
};

struct candela_session {
  std::vector<candela_model_t*> models;
  std::unique_ptr<candela::runtime::requests::Dispatcher> dispatcher;
};

namespace {

Clock::time_point timeFromNow(uint64_t ns) {
  constexpr uint64_t kLongest = uint64_t(1) << 60; // 36 years
  if (ns >= kLongest) return Clock::time_point::max();
  return Clock::now() + std::chrono::nanoseconds(ns);
}

// ---- Sessions

bool isSamePort(const runtime::bundle::BundleValue& a, const runtime::bundle::BundleValue& b) {
  return a.name == b.name && a.elem == b.elem && a.dims == b.dims;
}

Status checkCopies(std::span<candela_model_t* const> models) {
  const candela_model& first = *models[0];
  for (const candela_model* model : models) {
    bool isCopy = model->inputs() == first.inputs() && model->outputs() == first.outputs();
    for (size_t i = 0; isCopy && i < first.inputs(); ++i)
      isCopy = isSamePort(model->input(i), first.input(i));
    for (size_t o = 0; isCopy && o < first.outputs(); ++o)
      isCopy = isSamePort(model->output(o), first.output(o));
    if (!isCopy) return badArgument("the models of a session differ in their inputs or outputs");
  }
  if (models.size() > 1 && !first.bundle().states.empty())
    return badArgument("a model with states has no copies, {} models were given", models.size());
  return Status::ok();
}

std::string devicesOf(const candela_model& model) {
  std::vector<std::string> names;
  for (const runtime::bundle::BundlePartition& partition : model.bundle().partitions) {
    const std::string& name = partition.backend.empty() ? "soft" : partition.backend;
    if (!std::ranges::count(names, name)) names.push_back(name);
  }
  return names.empty() ? "host" : fmt::format("{}", fmt::join(names, ","));
}

Result<DispatcherOptions> readOptions(const candela_session_options_t* given) {
  candela_session_options_t options = CANDELA_SESSION_OPTIONS_INIT;
  if (given) std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof options));
  if (options.capacity < 1 || options.capacity > (1u << 20))
    return badArgument("a capacity of {} requests, expected 1 to {}", options.capacity, 1u << 20);
  if (options.in_flight < 1 || options.in_flight > 256)
    return badArgument("{} requests in flight, expected 1 to 256", options.in_flight);
  DispatcherOptions read;
  read.capacity = options.capacity;
  read.inFlight = options.in_flight;
  read.traces = options.flags & CANDELA_SESSION_TRACE;
  return read;
}

Status createSession(std::span<candela_model_t* const> models,
                     const candela_session_options_t* given, candela_session_t** out) {
  for (const candela_model* model : models)
    if (!model) return badArgument("a model of the session is NULL");
  CDL_TRY(checkCopies(models));
  CDL_ASSIGN(const DispatcherOptions options, readOptions(given));
  auto made = std::make_unique<candela_session>();
  std::vector<Replica> replicas;
  for (candela_model_t* model : models) {
    made->models.push_back(model);
    replicas.push_back({devicesOf(*model), model->session.get()});
  }
  CDL_ASSIGN(made->dispatcher, Dispatcher::create(std::move(replicas), options));
  *out = made.release();
  return Status::ok();
}

// ---- Submission

/// The bytes of one argument, and what keeps them.
struct Place {
  BufferRef at;
  std::shared_ptr<const void> keeps;
};

/// An argument as a tensor of the port's type where it has none of its own, whose data is not
/// looked at where it lies in a buffer.
Result<candela_tensor_t> tensorOf(const candela_argument_t& argument,
                                  const runtime::bundle::BundleValue& port) {
  candela_tensor_t tensor = argument.tensor;
  if (argument.buffer) {
    if (argument.offset % CANDELA_ALIGNMENT || argument.offset > argument.buffer->bytes)
      return badArgument(
          "'{}' at offset {} of a buffer of {} bytes, expected a multiple of {} in it", port.name,
          argument.offset, argument.buffer->bytes, CANDELA_ALIGNMENT);
    tensor.bytes = argument.buffer->bytes - argument.offset;
    tensor.data = argument.buffer;
    if (tensor.elem == 0) describeType(port.elem, port.dims, tensor);
  }
  return tensor;
}

Place placeOf(const candela_argument_t& argument) {
  if (argument.buffer) return {argument.buffer->from(argument.offset), argument.buffer->host};
  return {BufferRef::onHost(static_cast<const std::byte*>(argument.tensor.data)), nullptr};
}

/// A request in the making.
class Submitter {
public:
  Submitter(const candela_session& session, const candela_submission_t& given)
      : session_(session), model_(*session.models[0]), given_(given),
        outputs_(std::make_shared<Outputs>()) {}

  Result<Submission> make() {
    CDL_TRY(checkCounts(model_, given_.input_count, given_.output_count));
    CDL_TRY(placeInputs());
    CDL_TRY(placeOutputs());
    CDL_TRY(placeMoments());
    if (given_.timeout_ns) submission_.deadline = timeFromNow(given_.timeout_ns);
    if (!model_.session)
      runWhole();
    else if (model_.session->hasStates())
      runInTurn();
    // What is kept ends with the request: this is destroyed when it was told.
    submission_.done = [done = given_.done, context = given_.context, keeps = std::move(keeps_),
                        outputs = outputs_](const Status& status) {
      if (done)
        done(context, static_cast<candela_status_t>(status.code()), status.message().c_str());
    };
    return std::move(submission_);
  }
  std::shared_ptr<const Outputs> outputs() const { return outputs_; }

private:
  Status placeInputs() {
    for (uint32_t i = 0; i < given_.input_count; ++i) {
      CDL_ASSIGN(candela_tensor_t tensor, tensorOf(given_.inputs[i], model_.input(i)));
      const bool goesOn =
          isNowhere(tensor) && model_.isState(&runtime::bundle::BundleState::input, i);
      if (!goesOn) CDL_TRY(checkInput(model_, i, tensor).status());
      Place place = placeOf(given_.inputs[i]);
      tensor.data = place.at.host;
      inputs_.push_back(tensor);
      submission_.inputs.push_back(std::move(place.at));
      if (place.keeps) keeps_.push_back(std::move(place.keeps));
    }
    return Status::ok();
  }

  Status placeOutputs() {
    for (uint32_t o = 0; o < given_.output_count; ++o) {
      const runtime::bundle::BundleValue& port = model_.output(o);
      CDL_ASSIGN(candela_tensor_t tensor, tensorOf(given_.outputs[o], port));
      Place place = placeOf(given_.outputs[o]);
      std::shared_ptr<void> owned;
      const bool isKeptState = isKept(model_, o, tensor);
      if (isNowhere(tensor) && !isKeptState && model_.session) {
        owned =
            std::shared_ptr<void>(std::malloc(std::max<uint64_t>(port.sizeBytes(), 1)), std::free);
        if (!owned)
          return failure(Code::out_of_memory, "output '{}': cannot allocate {} bytes", port.name,
                         port.sizeBytes());
        place.at = BufferRef::onHost(static_cast<const std::byte*>(owned.get()));
      } else if (!isKeptState && model_.session) {
        CDL_TRY(checkRoom(port, tensor, port.sizeBytes()));
      }
      if (model_.session) describeType(port.elem, port.dims, tensor);
      if (model_.session) tensor.bytes = isKeptState ? 0 : port.sizeBytes();
      tensor.data = place.at.host;
      outputs_->tensors.push_back(tensor);
      outputs_->owned.push_back(std::move(owned));
      submission_.outputs.push_back(std::move(place.at));
      if (place.keeps) keeps_.push_back(std::move(place.keeps));
    }
    return Status::ok();
  }

  Status placeMoments() {
    for (uint32_t w = 0; w < given_.wait_count; ++w) {
      if (!given_.waits[w].timeline) return badArgument("wait {} has no timeline", w);
      submission_.waits.push_back({given_.waits[w].timeline->timeline, given_.waits[w].value});
    }
    for (uint32_t s = 0; s < given_.signal_count; ++s) {
      if (!given_.signals[s].timeline) return badArgument("signal {} has no timeline", s);
      submission_.signals.push_back(
          {given_.signals[s].timeline->timeline, given_.signals[s].value});
    }
    return Status::ok();
  }

  /// A flow or the oracle: on tensors that the host sees.
  void runWhole() {
    submission_.whole = [models = session_.models, inputs = std::move(inputs_),
                         outputs = outputs_](size_t replica, RunControl&, RunStats&) -> Status {
      const auto isHidden = [](const candela_tensor_t& t) { return !t.data && t.bytes; };
      if (std::ranges::any_of(inputs, isHidden) || std::ranges::any_of(outputs->tensors, isHidden))
        return failure(Code::unsupported,
                       "a buffer that the host does not see, of a model that the host runs");
      std::vector<candela_tensor_t> made = outputs->tensors;
      CDL_TRY(runTensors(*models[replica], inputs.data(), made.data()));
      for (size_t o = 0; o < made.size(); ++o)
        if (!outputs->tensors[o].data && made[o].data)
          outputs->owned[o] = std::shared_ptr<void>(made[o].data, std::free);
      outputs->tensors = std::move(made);
      return Status::ok();
    };
  }

  /// Runs of a model with states take turns, from their beginning to their end.
  void runInTurn() {
    submission_.whole = [models = session_.models, inputs = std::move(submission_.inputs),
                         outputs = std::move(submission_.outputs)](
                            size_t replica, RunControl& control, RunStats& stats) {
      return models[replica]->session->runAt(inputs, outputs, &control, &stats);
    };
  }

  const candela_session& session_;
  const candela_model& model_;
  const candela_submission_t& given_;
  Submission submission_;
  std::vector<candela_tensor_t> inputs_;
  std::vector<std::shared_ptr<const void>> keeps_;
  std::shared_ptr<Outputs> outputs_;
};

Status checkSubmission(const candela_submission_t& given) {
  const auto isThere = [](const void* list, uint32_t count) { return list || count == 0; };
  if (!isThere(given.inputs, given.input_count) || !isThere(given.outputs, given.output_count))
    return badArgument("{} inputs and {} outputs were given, without their tensors",
                       given.input_count, given.output_count);
  if (!isThere(given.waits, given.wait_count) || !isThere(given.signals, given.signal_count))
    return badArgument("{} waits and {} signals were given, without their values", given.wait_count,
                       given.signal_count);
  return Status::ok();
}

Status submit(candela_session& session, const candela_submission_t& submission,
              candela_request_t** out) {
  candela_submission_t given = CANDELA_SUBMISSION_INIT;
  std::memcpy(&given, &submission, std::min<size_t>(submission.struct_size, sizeof given));
  CDL_TRY(checkSubmission(given));
  for (const candela_model* model : session.models) CDL_TRY(model->checkFiles());
  auto handle = std::make_unique<candela_request>();
  handle->dispatcher = session.dispatcher.get();
  Submitter submitter(session, given);
  CDL_ASSIGN(Submission made, submitter.make());
  handle->outputs = submitter.outputs();
  const bool refuses = given.flags & CANDELA_SUBMIT_REFUSE_WHEN_FULL;
  CDL_ASSIGN(handle->request, session.dispatcher->submit(
                                  std::move(made), refuses ? WhenFull::refuse : WhenFull::wait));
  if (out) *out = handle.release();
  return Status::ok();
}

driver::SteadyJson statsJson(const Dispatcher& dispatcher) {
  const Counters c = dispatcher.counters();
  driver::SteadyJson copies = driver::SteadyJson::array();
  for (const ReplicaHealth& health : dispatcher.health())
    copies.push_back({{"devices", health.name},
                      {"lost", health.isLost},
                      {"why", health.why},
                      {"requests", health.requests},
                      {"active", health.active},
                      {"busy_ms", double(health.busyNs) / 1e6},
                      {"memory_bytes", health.memoryBytes}});
  return {{"schema", "candela.session/1"},
          {"submitted", c.submitted},
          {"succeeded", c.succeeded},
          {"failed", c.failed},
          {"cancelled", c.cancelled},
          {"timed_out", c.timedOut},
          {"repeated", c.repeated},
          {"open", c.open},
          {"most_open", c.mostOpen},
          {"native_instructions", c.stats.nativeInstrs},
          {"emulated_instructions", c.stats.emulatedInstrs},
          {"host_instructions", c.stats.hostInstrs},
          {"staged_bytes", c.stats.stagedBytes},
          {"device_copies", c.stats.deviceCopies},
          {"device_copied_bytes", c.stats.deviceCopiedBytes},
          {"copies", std::move(copies)}};
}

} // namespace

extern "C" {

candela_status_t candela_timeline_create(candela_timeline_t** timeline) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!timeline) return badArgument("nowhere to put the timeline");
    *timeline = nullptr;
    auto made = std::make_unique<candela_timeline>();
    made->timeline = std::make_shared<Timeline>();
    *timeline = made.release();
    return Status::ok();
  });
}

void candela_timeline_free(candela_timeline_t* timeline) { delete timeline; }

uint64_t candela_timeline_value(const candela_timeline_t* timeline) {
  return timeline ? timeline->timeline->value() : 0;
}

candela_status_t candela_timeline_signal(candela_timeline_t* timeline, uint64_t value) {
  return guarded(nullptr, 0, [&] {
    return timeline ? timeline->timeline->signal(value) : badArgument("no timeline");
  });
}

candela_status_t candela_timeline_fail(candela_timeline_t* timeline, candela_status_t status,
                                       const char* message) {
  return guarded(nullptr, 0, [&]() -> Status {
    const bool isFailure = status > CANDELA_OK && status <= CANDELA_BAD_MODEL;
    if (!timeline || !isFailure) return badArgument("no timeline, or no failure");
    timeline->timeline->fail(Status(static_cast<Code>(status), message ? message : "failed"));
    return Status::ok();
  });
}

candela_status_t candela_timeline_wait(const candela_timeline_t* timeline, uint64_t value,
                                       uint64_t timeout_ns, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    return timeline ? timeline->timeline->wait(value, timeFromNow(timeout_ns))
                    : badArgument("no timeline");
  });
}

candela_status_t candela_session_create(candela_model_t* const* models, uint32_t count,
                                        const candela_session_options_t* options,
                                        candela_session_t** session, char* error,
                                        size_t error_size) {
  if (session) *session = nullptr;
  return guarded(error, error_size, [&]() -> Status {
    if (!models || count == 0 || !session)
      return badArgument("no models, or nowhere to put the session");
    return createSession({models, count}, options, session);
  });
}

void candela_session_free(candela_session_t* session) { delete session; }

candela_status_t candela_submit(candela_session_t* session, const candela_submission_t* submission,
                                candela_request_t** request, char* error, size_t error_size) {
  if (request) *request = nullptr;
  return guarded(error, error_size, [&]() -> Status {
    if (!session || !submission) return badArgument("no session, or no submission");
    return submit(*session, *submission, request);
  });
}

candela_status_t candela_request_wait(candela_request_t* request, uint64_t timeout_ns, char* error,
                                      size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!request) return badArgument("no request");
    if (request->request->isDone()) return request->request->status();
    return request->dispatcher->wait(request->request, timeFromNow(timeout_ns));
  });
}

int candela_request_done(const candela_request_t* request) {
  return request && request->request->isDone() ? 1 : 0;
}

void candela_request_cancel(candela_request_t* request) {
  if (!request || request->request->isDone()) return;
  guarded(nullptr, 0, [&] {
    request->dispatcher->cancel(request->request, Status(Code::cancelled, "cancelled"));
    return Status::ok();
  });
}

candela_status_t candela_request_output(const candela_request_t* request, uint32_t index,
                                        candela_tensor_t* output) {
  return guarded(nullptr, 0, [&]() -> Status {
    if (!request || !output) return badArgument("no request, or nowhere to describe its output");
    if (!request->request->isDone() || !request->request->status())
      return badArgument("the request is not done, or failed");
    if (index >= request->outputs->tensors.size())
      return badArgument("output {} of {}", index, request->outputs->tensors.size());
    *output = request->outputs->tensors[index];
    return Status::ok();
  });
}

void candela_request_free(candela_request_t* request) { delete request; }

char* candela_session_stats_json(const candela_session_t* session) {
  if (!session) return nullptr;
  return guardedText([&] { return text::shownJson(statsJson(*session->dispatcher).dump(1)); });
}

char* candela_session_trace_json(candela_session_t* session) {
  if (!session) return nullptr;
  return guardedText([&] { return driver::traceJson({}, session->dispatcher->takeTrace()); });
}

} // extern "C"
