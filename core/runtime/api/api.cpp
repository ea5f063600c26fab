// candela.h over the pipeline and the runtime. Nothing throws across.
#include <candela/candela.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/compiler/driver/report.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/compile.h"
#include "core/support/worker_pool.h"

using namespace candela;
using namespace runtime::api;

namespace candela::runtime::api {

candela_status_t report(Code code, const char* message, char* error, size_t size) {
  if (error && size) {
    const size_t length = std::min(size - 1, std::strlen(message));
    std::memcpy(error, message, length);
    error[length] = '\0';
  }
  return static_cast<candela_status_t>(code);
}

char* duplicate(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy) std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

} // namespace candela::runtime::api

namespace {

static_assert(int(CANDELA_BAD_MODEL) == int(CDL_BAD_MODEL) && int(CANDELA_BOOL) == int(CDL_BOOL));

/// A run of a session: on the caller's memory, and without an allocation once a run before it left
/// what it needs.
class SessionRun {
public:
  explicit SessionRun(const candela_model& model) : model_(model), call_(model.calls.take()) {
    if (!call_) call_ = std::make_unique<candela_model::Call>();
    call_->inputs.clear();
    call_->outputs.clear();
  }
  ~SessionRun() { model_.calls.put(std::move(call_)); }
  SessionRun(const SessionRun&) = delete;
  SessionRun& operator=(const SessionRun&) = delete;

  Status run(const candela_tensor_t* inputs, candela_tensor_t* outputs) {
    CDL_TRY(placeInputs(inputs));
    OutputMemory memory(outputs);
    CDL_TRY(placeOutputs(outputs, memory));
    CDL_TRY(runTraced());
    memory.keep();
    for (uint32_t o = 0; o < model_.outputs(); ++o) {
      const bool kept = isKept(model_, o, outputs[o]);
      describeType(model_.output(o).elem, model_.output(o).dims, outputs[o]);
      outputs[o].bytes = kept ? 0 : model_.output(o).sizeBytes();
    }
    return Status::ok();
  }

private:
  Status placeInputs(const candela_tensor_t* inputs) {
    for (uint32_t i = 0; i < model_.inputs(); ++i) {
      const bool goesOn =
          isNowhere(inputs[i]) && model_.isState(&runtime::bundle::BundleState::input, i);
      if (!goesOn) CDL_TRY(checkInput(model_, i, inputs[i]).status());
      call_->inputs.push_back(
          runtime::session::BufferRef::onHost(static_cast<const std::byte*>(inputs[i].data)));
    }
    return Status::ok();
  }

  Status placeOutputs(candela_tensor_t* outputs, OutputMemory& memory) {
    for (uint32_t o = 0; o < model_.outputs(); ++o) {
      candela_tensor_t& output = outputs[o];
      const uint64_t bytes = model_.output(o).sizeBytes();
      if (!isKept(model_, o, output)) {
        if (isNowhere(output)) CDL_TRY(memory.make(o, bytes).context(model_.output(o).name));
        CDL_TRY(checkRoom(model_.output(o), output, bytes));
      }
      call_->outputs.push_back(
          runtime::session::BufferRef::onHost(static_cast<const std::byte*>(output.data)));
    }
    return Status::ok();
  }

  Status runTraced() {
    runtime::session::Trace trace(model_.profiles, std::move(call_->events));
    Status status;
    {
      const runtime::session::Span span("run");
      status = model_.session->runAt(call_->inputs, call_->outputs);
    }
    call_->events = trace.take();
    if (!status) return status;
    const std::lock_guard lock(model_.traceMutex);
    std::swap(model_.ran, call_->events);
    return status;
  }

  const candela_model& model_;
  std::unique_ptr<candela_model::Call> call_;
};

} // namespace

extern "C" {

const char* candela_version(void) { return CANDELA_VERSION; }

candela_status_t candela_set_threads(uint32_t count) {
  if (count > WorkerPool::kMostThreads) return CANDELA_INVALID_ARGUMENT;
  WorkerPool::ofProcess().setThreads(count);
  return CANDELA_OK;
}

uint32_t candela_threads(void) { return WorkerPool::ofProcess().threads(); }

candela_status_t candela_compile(const char* path, const candela_options_t* options,
                                 candela_model_t** model, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, path, [&](candela_model& made) {
      const auto load = [&](const import::ImportOptions& how) {
        return driver::loadAny(path, how);
      };
      return compileModel(made, {path, load}, options);
    });
  });
}

candela_status_t candela_compile_memory(const void* data, size_t bytes, const char* name,
                                        const candela_options_t* options, candela_model_t** model,
                                        char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, data ? name : nullptr, [&](candela_model& made) {
      const auto load = [&](const import::ImportOptions& how) {
        return driver::loadContent(Bytes::copyOf(data, bytes), name, how);
      };
      return compileModel(made, {name, load}, options);
    });
  });
}

candela_status_t candela_load(const char* path, candela_model_t** model, char* error,
                              size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, path, [&](candela_model& made) -> Status {
      CDL_ASSIGN(runtime::bundle::Bundle bundle, runtime::bundle::loadBundle(path));
      return openBundle(made, std::move(bundle), path);
    });
  });
}

candela_status_t candela_load_memory(const void* data, size_t bytes, const char* name,
                                     candela_model_t** model, char* error, size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, data ? name : nullptr, [&](candela_model& made) -> Status {
      CDL_ASSIGN(runtime::bundle::Bundle bundle,
                 runtime::bundle::parseBundle(Bytes::copyOf(data, bytes), name));
      return openBundle(made, std::move(bundle), name);
    });
  });
}

candela_status_t candela_save(const candela_model_t* model, const char* path, char* error,
                              size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!model || !path) return badArgument("no model or no path");
    CDL_TRY(model->checkFiles());
    if (model->flow) return model->flow->save(path);
    if (!model->session) return failure(Code::unsupported, "the reference makes no bundle");
    return model->session->save(path);
  });
}

void candela_free(candela_model_t* model) { delete model; }

uint32_t candela_input_count(const candela_model_t* model) {
  return model ? static_cast<uint32_t>(model->inputs()) : 0;
}
uint32_t candela_output_count(const candela_model_t* model) {
  return model ? static_cast<uint32_t>(model->outputs()) : 0;
}
const char* candela_input(const candela_model_t* model, uint32_t index,
                          candela_tensor_t* description) {
  return index < candela_input_count(model) ? describePort(model->input(index), description)
                                            : nullptr;
}
const char* candela_output(const candela_model_t* model, uint32_t index,
                           candela_tensor_t* description) {
  return index < candela_output_count(model) ? describePort(model->output(index), description)
                                             : nullptr;
}

candela_status_t candela_run(const candela_model_t* model, const candela_tensor_t* inputs,
                             uint32_t input_count, candela_tensor_t* outputs, uint32_t output_count,
                             char* error, size_t error_size) {
  return guarded(error, error_size, [&]() -> Status {
    if (!model) return badArgument("no model");
    if ((!inputs && input_count) || (!outputs && output_count))
      return badArgument("{} inputs and {} outputs were given, without their tensors", input_count,
                         output_count);
    CDL_TRY(checkCounts(*model, input_count, output_count));
    CDL_TRY(model->checkFiles());
    std::unique_lock turn(model->turn, std::defer_lock);
    if (!model->bundle().states.empty()) turn.lock();
    return model->session ? SessionRun(*model).run(inputs, outputs)
                          : runTensors(*model, inputs, outputs);
  });
}

const char* candela_report_json(const candela_model_t* model) {
  return model ? model->report.c_str() : nullptr;
}

void candela_profile(candela_model_t* model, int on) {
  if (model) model->profiles = on != 0;
}

char* candela_trace_json(const candela_model_t* model) {
  if (!model) return nullptr;
  return guardedText([&] {
    const std::lock_guard lock(model->traceMutex);
    return driver::traceJson(model->compiled, model->ran);
  });
}

char* candela_backends_json(const char* const* paths) {
  return guardedText([&] {
    std::vector<std::string> list;
    for (const char* const* path = paths; path && *path; ++path) list.emplace_back(*path);
    return driver::backendsJson(list);
  });
}

void candela_free_text(char* text) { std::free(text); }
void candela_free_data(void* data) { std::free(data); }

} // extern "C"
