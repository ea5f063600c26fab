#include "python/native/requests.h"

#include <algorithm>
#include <cmath>

namespace candela::python {
namespace {

constexpr double kSlice = 0.05; ///< seconds between looks at signals, as Ctrl-C

/// Every session with requests, for the end of the interpreter. Never destroyed.
std::vector<Requests*>& openRequests() {
  static auto* const all = new std::vector<Requests*>;
  return *all;
}

uint64_t nanoseconds(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9)
    throw sdk::Error(CANDELA_INVALID_ARGUMENT,
                     "a time of " + std::to_string(seconds) + " s, expected 0 to 1e9");
  return static_cast<uint64_t>(std::ceil(seconds * 1e9));
}

void checkSignals() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

} // namespace

class Requests::Use {
public:
  explicit Use(Requests& requests) : requests_(requests) {
    checkProcess(requests.generation_, "the session");
    if (requests.closes_) throw sdk::Error(CANDELA_CANCELLED, "the session is closed");
    ++requests_.uses_;
  }
  ~Use() {
    --requests_.uses_;
    requests_.uses_.notify_all();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

private:
  Requests& requests_;
};

// ---- Future

Future::Future(std::shared_ptr<Model> model, std::shared_ptr<Call> call)
    : model_(std::move(model)), call_(std::move(call)), generation_(processGeneration()) {}

Future::~Future() {
  const bool isOfParent = generation_ != processGeneration();
  if (!isOfParent && handle_ && !isDone()) requests_->keep(std::move(call_), std::move(handle_));
}

bool Future::isDone() const {
  checkProcess(generation_, "the request");
  return candela_request_done(handle_.get()) != 0;
}

void Future::cancel() {
  if (isDone()) return;
  const Requests::Use use(*requests_);
  candela_request_cancel(handle_.get());
}

/// A slice at a time: Ctrl-C and the end of the session are noticed between them.
void Future::wait(double seconds) {
  const bool isLimited = seconds >= 0;
  double left = seconds;
  while (!isDone()) {
    if (requests_->closes_) { // which ends it
      const Outside outside;
      requests_->isClosed_.wait(false);
      continue;
    }
    const double slice = isLimited ? std::min(left, kSlice) : kSlice;
    left -= slice;
    candela_status_t status = CANDELA_OK;
    {
      const Requests::Use use(*requests_);
      const Outside outside;
      status = candela_request_wait(handle_.get(), nanoseconds(slice), nullptr, 0);
    }
    checkSignals();
    if (status == CANDELA_TIMEOUT && isLimited && left <= 0 && !isDone())
      throw sdk::Error(CANDELA_TIMEOUT, "the request is not done yet");
  }
}

py::object Future::taken(Call& call) const {
  for (uint32_t i = 0; i < model_->outputs.size(); ++i) {
    if (!call.isAllocated(i)) continue;
    candela_tensor_t output{};
    const candela_status_t status = candela_request_output(handle_.get(), i, &output);
    if (status != CANDELA_OK) throw sdk::Error(status, "no output " + std::to_string(i));
    call.take(i, output, handle_);
  }
  return call.results(*model_);
}

py::object Future::result(double seconds) {
  checkProcess(generation_, "the request");
  if (results_) return results_;
  wait(seconds);
  sdk::detail::check([&](char* error, size_t size) {
    return candela_request_wait(handle_.get(), 0, error, size);
  });
  // Making arrays may let another thread in here.
  if (const std::shared_ptr<Call> call = call_) {
    const py::object results = taken(*call);
    if (!results_) results_ = results;
    call_.reset();
  }
  return results_;
}

// ---- Requests

Requests::Requests(const std::shared_ptr<Model>& model, const sdk::Session::Options& options)
    : model_(model), generation_(processGeneration()) {
  candela_model_t* const compiled = model->get().get();
  candela_session_options_t given = CANDELA_SESSION_OPTIONS_INIT;
  given.capacity = options.capacity;
  given.in_flight = options.inFlight;
  checkOutside([&](char* error, size_t size) {
    return candela_session_create(&compiled, 1, &given, &session_, error, size);
  });
  openRequests().push_back(this);
}

std::shared_ptr<Requests> Requests::create(const std::shared_ptr<Model>& model,
                                           const sdk::Session::Options& options) {
  return std::shared_ptr<Requests>(new Requests(model, options));
}

Requests::~Requests() {
  close();
  std::erase(openRequests(), this);
}

void Requests::close() {
  if (generation_ != processGeneration() || closes_.exchange(true)) return;
  {
    const py::gil_scoped_release release;
    for (uint32_t left = uses_; left != 0; left = uses_) uses_.wait(left);
    candela_session_free(session_);
    isClosed_ = true;
    isClosed_.notify_all();
  }
  session_ = nullptr;
  const std::vector<Kept> kept = std::move(kept_); // their end may run Python that comes here again
  kept_.clear();
}

void Requests::closeAll() {
  std::vector<std::shared_ptr<Requests>> all;
  for (Requests* requests : openRequests()) all.push_back(requests->weak_from_this().lock());
  for (const auto& requests : all)
    if (requests) requests->close();
}

void Requests::keep(std::shared_ptr<Call> call, Future::Handle handle) {
  // One that closes has not ended all of them yet.
  if (!isClosed_) kept_.push_back({std::move(call), std::move(handle)});
}

void Requests::dropDone() {
  checkProcess(generation_, "the session");
  // The end of a call may run Python that comes here again: it is last.
  std::vector<Kept> done;
  std::vector<Kept> open;
  for (Kept& kept : kept_) {
    const bool isDone = candela_request_done(kept.handle.get()) != 0;
    (isDone ? done : open).push_back(std::move(kept));
  }
  kept_ = std::move(open);
}

std::shared_ptr<Future> Requests::submit(std::shared_ptr<Call> call, const SubmitOptions& options) {
  // Both may end calls, and with them run Python that closes the session, which waits for uses.
  dropDone();
  auto future = std::make_shared<Future>(model_, std::move(call));
  const Use use(*this);
  candela_submission_t submission = CANDELA_SUBMISSION_INIT;
  submission.flags = options.waits ? 0 : CANDELA_SUBMIT_REFUSE_WHEN_FULL;
  submission.inputs = future->call_->in.data();
  submission.input_count = static_cast<uint32_t>(future->call_->in.size());
  submission.outputs = future->call_->out.data();
  submission.output_count = static_cast<uint32_t>(future->call_->out.size());
  submission.timeout_ns = nanoseconds(options.timeout);
  candela_request_t* request = nullptr;
  checkOutside([&](char* error, size_t size) {
    return candela_submit(session_, &submission, &request, error, size);
  });
  const uint32_t made = generation_;
  future->handle_ = Future::Handle(request, [made](candela_request_t* owned) {
    if (made == processGeneration()) candela_request_free(owned);
  });
  future->requests_ = shared_from_this();
  return future;
}

std::string Requests::statsJson() {
  const Use use(*this);
  return sdk::detail::taken(candela_session_stats_json(session_));
}

// ---- Session

Session::Session(sdk::Model&& model, const sdk::Session::Options& options,
                 std::shared_ptr<void> keeps)
    : model_(std::make_shared<Model>(std::move(model), std::move(keeps))), options_(options) {}

const std::shared_ptr<Model>& Session::model() const {
  if (!model_) throw sdk::Error(CANDELA_INVALID_ARGUMENT, "the session is closed");
  return model_;
}

py::object Session::run(const py::object& inputs, const py::object& outputs) {
  const std::shared_ptr<Model> model = this->model();
  const sdk::Model& compiled = model->get();
  auto call = std::make_shared<Call>(*model, inputs, outputs);
  if (!call->isOnHost()) return requests()->submit(std::move(call), {})->result(-1);
  std::vector<candela_tensor_t> in;
  std::vector<candela_tensor_t> out;
  for (const candela_argument_t& argument : call->in) in.push_back(argument.tensor);
  for (const candela_argument_t& argument : call->out) out.push_back(argument.tensor);
  {
    const Outside outside;
    compiled.run(in, out);
  }
  for (uint32_t i = 0; i < out.size(); ++i)
    if (call->isAllocated(i))
      call->take(i, out[i], std::shared_ptr<void>(out[i].data, candela_free_data));
  return call->results(*model);
}

std::shared_ptr<Requests> Session::requests() {
  const std::shared_ptr<Model> model = this->model();
  model->get(); // not of a parent
  if (requests_) return requests_;
  const std::shared_ptr<Requests> made = Requests::create(model, options_);
  this->model();                    // another thread may have closed it
  if (!requests_) requests_ = made; // or been faster
  return requests_;
}

std::shared_ptr<Future> Session::submit(const py::object& inputs, const py::object& outputs,
                                        const SubmitOptions& options) {
  const std::shared_ptr<Requests> requests = this->requests();
  return requests->submit(std::make_shared<Call>(*model(), inputs, outputs), options);
}

std::string Session::statsJson() { return requests()->statsJson(); }

void Session::close() {
  model_.reset();
  // Another thread may come here meanwhile.
  if (const std::shared_ptr<Requests> requests = std::move(requests_)) requests->close();
}

} // namespace candela::python
