// candela.h over the pipeline and the runtime. Nothing throws across.
#include <candela/candela.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/flow_model.h"
#include "core/compiler/driver/report.h"
#include "core/reference/interpreter/interp.h"
#include "core/reference/reference.h"
#include "core/support/mapped_file.h"
#include "core/support/out_of_memory.h"
#include "core/support/text/scan.h"
#include "core/support/text/shown.h"
#include "core/support/worker_pool.h"

using namespace candela;

struct candela_model {
  // A session, or a flow of them, or the oracle on an IR, of which the bundle tells only what it
  // is.
  std::unique_ptr<runtime::session::Session> session;
  std::unique_ptr<driver::FlowModel> flow;
  driver::Ir ir;
  runtime::bundle::Bundle described;

  const runtime::bundle::Bundle& bundle() const { return session ? session->bundle() : described; }
  size_t inputs() const { return bundle().inputs.size(); }
  size_t outputs() const { return bundle().outputs.size(); }
  const runtime::bundle::BundleValue& input(size_t i) const {
    return bundle().values[bundle().inputs[i]];
  }
  const runtime::bundle::BundleValue& output(size_t i) const {
    return bundle().values[bundle().outputs[i]];
  }

  mutable runtime::session::States states; ///< of a flow and of the oracle; a session has its own
  /// held by a run of a model with states until its outputs are written
  mutable std::mutex turn;
  /// Whether a state goes through that input or output.
  bool isState(uint32_t runtime::bundle::BundleState::* port, uint32_t i) const {
    return std::ranges::count(bundle().states, i, port) > 0;
  }

  /// What a call of candela_run on a session needs, kept for the next one.
  struct Call {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::vector<runtime::session::TraceEvent> events;
  };
  mutable runtime::session::Pool<Call> calls;

  // What compiling and the newest run did.
  mutable std::mutex traceMutex;
  mutable std::vector<runtime::session::TraceEvent> compiled, ran;
  std::atomic<bool> profiles = false;
  mutable std::mutex filesMutex;
  mutable FileWatch::Files files; ///< that it still reads
  Status checkFiles() const {
    const std::lock_guard lock(filesMutex);
    return checkUnchanged(files);
  }
  void keepWatching(const FileWatch::Files& read) const {
    const std::lock_guard lock(filesMutex);
    files.insert(files.end(), read.begin(), read.end());
  }
  bool flatShapes = false; ///< ports come from a Program, whose buffers have sizes but no dims
  std::string report;
};

namespace {

using driver::kUnranked;

static_assert(int(CANDELA_BAD_MODEL) == int(CDL_BAD_MODEL) && int(CANDELA_BOOL) == int(CDL_BOOL));

/// Takes no memory: there may be none.
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

/// Runs `body` and turns what it throws (out of memory, a defect in a library) into a status.
template <typename F> candela_status_t guarded(char* error, size_t size, F&& body) {
  const auto tell = [&](Code code, const char* message) {
    return report(code, message, error, size);
  };
  try {
    const Status status = body();
    return tell(status.code(), text::shownText(status.message()).c_str());
  } catch (const OutOfMemory& e) {
    return tell(Code::out_of_memory, e.what());
  } catch (const std::bad_alloc&) {
    return tell(Code::out_of_memory, "out of memory");
  } catch (const std::exception& e) {
    return tell(Code::internal, e.what());
  } catch (...) {
    return tell(Code::internal, "an exception of unknown type");
  }
}

/// The same for what returns a text that the caller frees: NULL where there is none.
template <typename F> char* guardedText(F&& body) {
  try {
    return duplicate(body());
  } catch (...) {
    return nullptr;
  }
}

Result<int64_t> parseDim(std::string_view text, std::string_view whole) {
  const auto value = text::parseNumber<int64_t>(text);
  if (!value || *value < 0) return badArgument("'{}': '{}' is no dimension", whole, text);
  return *value;
}

Result<std::pair<std::string, std::string>> parseKeyValue(const char* text, const char* example) {
  const std::string_view view = text;
  const size_t equals = view.rfind('=');
  if (equals == 0 || equals == std::string_view::npos)
    return badArgument("'{}' is not of the form {}", text, example);
  return std::pair(std::string(view.substr(0, equals)), std::string(view.substr(equals + 1)));
}

/// The options in the caller's words, checked.
struct Request {
  std::vector<std::string> backends;
  import::ImportOptions import;
  std::map<std::string, runtime::plugin::Options> options; ///< by backend; "" is for all
  uint32_t flags = 0;
  std::vector<std::string> states;
  driver::CompileOptions compile;
};

/// "import.key=value" is for no backend, but for how a model is read.
Status takeImportOptions(Request& request) {
  const auto given = request.options.extract("import");
  if (given.empty()) return Status::ok();
  for (const auto& [key, value] : given.mapped()) {
    if (key != "random_seed")
      return badArgument("option 'import.{}': known is import.random_seed", key);
    request.import.randomSeed = text::parseNumber<uint64_t>(value);
    if (!request.import.randomSeed)
      return badArgument("option 'import.{}': '{}' is no number", key, value);
  }
  return Status::ok();
}

Result<Request> parseOptions(const candela_options_t* given) {
  candela_options_t options = CANDELA_OPTIONS_INIT;
  if (given) std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof(options)));
  Request request;
  request.flags = options.flags;
  request.backends =
      text::split(options.backends && *options.backends ? options.backends : "soft", ',');
  for (const std::string& name : request.backends)
    if (name.empty())
      return badArgument("an empty name in the list of backends '{}'", options.backends);
  for (const char* const* d = options.dims; d && *d; ++d) {
    CDL_ASSIGN(const auto pair, parseKeyValue(*d, "NAME=1"));
    CDL_ASSIGN(const int64_t value, parseDim(pair.second, *d));
    if (!request.import.dims.emplace(pair.first, value).second)
      return badArgument("dim '{}' is given twice", pair.first);
  }
  for (const char* const* s = options.shapes; s && *s; ++s) {
    CDL_ASSIGN(const auto pair, parseKeyValue(*s, "NAME=1x3x224x224"));
    Shape shape;
    if (!pair.second.empty() && pair.second != "scalar")
      for (const std::string& text : text::split(pair.second, 'x')) {
        CDL_ASSIGN(const int64_t dim, parseDim(text, *s));
        shape.push_back(dim);
      }
    if (!request.import.shapes.emplace(pair.first, shape).second)
      return badArgument("shape of '{}' is given twice", pair.first);
  }
  for (const char* const* o = options.options; o && *o; ++o) {
    const std::string_view text = *o;
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return badArgument("option '{}' is not of the form key=value", text);
    const std::string key(text.substr(0, equals));
    const size_t name = key.find('.') + 1; // 0 where there is no dot
    request.options[key.substr(0, name ? name - 1 : 0)][key.substr(name)] = text.substr(equals + 1);
  }
  CDL_TRY(takeImportOptions(request));
  for (const char* const* s = options.states; s && *s; ++s) request.states.emplace_back(*s);
  request.import.bindAtRun = options.flags & CANDELA_FLAG_BIND_AT_RUN;
  request.compile.toPrimitives = options.flags & CANDELA_FLAG_TO_PRIMITIVES;
  request.compile.keepValues = options.flags & CANDELA_FLAG_KEEP_VALUES;
  request.compile.stack = !(options.flags & CANDELA_FLAG_UNSTACKED);
  request.compile.schedule.rematerialize = options.flags & CANDELA_FLAG_REMATERIALIZE;
  request.compile.groups = !(options.flags & CANDELA_FLAG_NO_GROUPS);
  if (const auto call = options.progress) {
    void* const context = options.progress_context;
    request.compile.progress = [call, context](const char* stage, double fraction) {
      call(context, stage, fraction);
    };
  }
  return request;
}

Result<std::vector<std::shared_ptr<runtime::plugin::Device>>> openDevices(const Request& request) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  std::set<std::string> served;
  for (const std::string& name : request.backends) {
    if (name == "soft" || name == "reference") continue;
    CDL_ASSIGN(const runtime::plugin::FoundDevice found, runtime::plugin::findDevice(name));
    runtime::plugin::Options options;
    for (const std::string& key : {std::string(), found.plugin->name(), found.id()}) {
      const auto at = request.options.find(key);
      if (at == request.options.end()) continue;
      served.insert(key);
      for (const auto& [option, value] : at->second) options[option] = value;
    }
    CDL_ASSIGN(std::shared_ptr<runtime::plugin::Device> device, found.open(options));
    devices.push_back(std::move(device));
  }
  for (const auto& [backend, options] : request.options)
    if (!served.count(backend) && !options.empty())
      return badArgument("option '{}{}{}' is for no backend in this run", backend,
                         backend.empty() ? "" : ".", options.begin()->first);
  return devices;
}

/// `require_native`: the nodes that are not, all of them.
Status requireNative(const runtime::bundle::Bundle& bundle) {
  std::string list;
  size_t count = 0;
  for (const runtime::bundle::NodePlacement& node : bundle.placement) {
    if (node.cls == runtime::bundle::NodePlacement::Class::native) continue;
    list += fmt::format("\n  {} ({}) on {}: {}", node.node, node.op, node.on, node.why);
    ++count;
  }
  if (count == 0) return Status::ok();
  return failure(Code::refused, "{} of {} nodes are not native:{}", count, bundle.placement.size(),
                 list);
}

/// The oracle on a graph counts as host work, node by node.
runtime::bundle::Bundle describeReference(const graph::Graph& graph, const std::string& path) {
  runtime::bundle::Bundle bundle = driver::describeModel(graph, path);
  const auto add = [&](std::vector<uint32_t>& ports, const std::string& name,
                       const graph::TensorType& type) {
    ports.push_back(static_cast<uint32_t>(bundle.values.size()));
    bundle.values.push_back({name, type.elem, type.shape()});
  };
  for (const graph::Value* value : graph.inputs()) add(bundle.inputs, value->name, value->type);
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    add(bundle.outputs, graph.outputNames()[i], graph.outputs()[i]->type);
  for (const auto& node : graph.nodes())
    if (node->kind != graph::OpKind::Constant)
      bundle.placement.push_back(
          {node->userName(), std::string(graph::opName(node->kind)), "reference", "the oracle",
           runtime::bundle::NodePlacement::Class::host, driver::macs(*node), 0});
  return bundle;
}

Status compileReference(candela_model& model, const std::string& path, bool keepValues) {
  if (const auto* program = std::get_if<program::Program>(&model.ir)) {
    // The ports are those of the session that soft would have.
    CDL_ASSIGN(const auto session, driver::compileProgram(*program, path, nullptr));
    model.described = session->bundle();
    return Status::ok();
  }
  auto& graph = std::get<graph::Graph>(model.ir);
  std::vector<runtime::bundle::KeptValue> kept;
  if (keepValues) kept = driver::keepValues(graph);
  model.described = describeReference(graph, path);
  model.described.kept = std::move(kept);
  return Status::ok();
}

Status compileParts(candela_model& model, const std::string& path, const Request& request) {
  const bool reference = std::ranges::find(request.backends, "reference") != request.backends.end();
  if (reference && std::ranges::find(request.backends, "soft") != request.backends.end())
    return badArgument("the reference runs alone, or beside plugins that claim ops of their own");
  // Backends first: a wrong name is told before a large model is read. Those beside the reference
  // claim ops, no more.
  CDL_ASSIGN(const auto devices, openDevices(request));
  import::ImportOptions options = request.import;
  CDL_ASSIGN(options.claim, driver::claimBy(devices, reference));
  std::optional<runtime::session::Span> span(std::in_place, "load", path);
  CDL_ASSIGN(driver::Loaded loaded, driver::loadAny(path, options));
  span.reset();
  if (auto* script = std::get_if<import::Script>(&loaded)) {
    CDL_ASSIGN(model.flow, driver::FlowModel::create(std::move(*script), path, devices,
                                                     request.compile, reference));
    model.described = model.flow->described();
    return request.flags & CANDELA_FLAG_REQUIRE_NATIVE ? requireNative(model.described)
                                                       : Status::ok();
  }
  if (auto* parsed = std::get_if<program::Program>(&loaded))
    model.ir = std::move(*parsed);
  else
    model.ir = std::get<graph::Graph>(std::move(loaded));
  auto* program = std::get_if<program::Program>(&model.ir);
  model.flatShapes = program;
  if (reference) return compileReference(model, path, request.compile.keepValues);
  if (program) {
    if (devices.size() > 1)
      return badArgument("{}: a program runs on one backend, {} are given", path, devices.size());
    CDL_ASSIGN(model.session, driver::compileProgram(std::move(*program), path,
                                                     devices.empty() ? nullptr : devices[0]));
  } else {
    CDL_ASSIGN(model.session, driver::compile(std::get<graph::Graph>(std::move(model.ir)), path,
                                              devices, request.compile));
  }
  return request.flags & CANDELA_FLAG_REQUIRE_NATIVE ? requireNative(model.bundle()) : Status::ok();
}

Status compileModel(candela_model& model, const std::string& path, const candela_options_t* given) {
  CDL_ASSIGN(const Request request, parseOptions(given));
  CDL_TRY(compileParts(model, path, request));
  if (request.states.empty()) return Status::ok();
  if (model.session) return model.session->bindStates(request.states).context(path);
  if (model.flow) {
    CDL_TRY(model.flow->bindStates(request.states).context(path));
    model.described = model.flow->described();
  } else {
    CDL_TRY(runtime::bundle::addStates(model.described, request.states).context(path));
  }
  return model.states.init(model.described);
}

/// A type as the interface says it.
void describeType(Elem elem, const Shape& dims, candela_tensor_t& out) {
  out.elem = static_cast<candela_elem_t>(elem);
  out.rank = dims == kUnranked ? CANDELA_UNKNOWN_RANK : static_cast<uint32_t>(dims.size());
  std::fill(std::begin(out.dims), std::end(out.dims), 0);
  if (dims != kUnranked) std::copy(dims.begin(), dims.end(), out.dims);
}

const char* describePort(const runtime::bundle::BundleValue& port, candela_tensor_t* out) {
  if (out) {
    describeType(port.elem, port.dims, *out);
    out->data = nullptr;
    out->bytes = port.sizeBytes();
  }
  return port.name.c_str();
}

/// Whether there is nothing there: a state goes on, an output is the library's to allocate.
bool isNowhere(const candela_tensor_t& tensor) { return !tensor.data && !tensor.bytes; }

/// An input's dims as the model counts them, and whether its bytes are enough.
Result<std::span<const int64_t>> checkInput(const candela_model& model, uint32_t index,
                                            const candela_tensor_t& given) {
  const runtime::bundle::BundleValue& port = model.input(index);
  if (given.rank > CANDELA_MAX_RANK || !isValidElem(given.elem))
    return badArgument("input '{}': rank {} or element type {} is out of range", port.name,
                       given.rank, int(given.elem));
  const auto elem = static_cast<Elem>(given.elem);
  std::span<const int64_t> dims(given.dims, given.rank);
  const auto elements = elementCount(dims);
  if (!elements) return badArgument("input '{}': impossible shape {}", port.name, shapeText(dims));
  if (model.flatShapes && elements == elementCount(port.dims)) dims = port.dims;
  if (!model.flow) CDL_TRY(port.checkInput(elem, dims));
  const uint64_t bytes = elemBytes(elem, *elements);
  if (given.bytes < bytes || (!given.data && bytes))
    return badArgument("input '{}' needs {} bytes, {} were given", port.name, bytes,
                       given.data ? given.bytes : 0);
  return dims;
}

Status checkCounts(const candela_model& model, uint32_t inputs, uint32_t outputs) {
  if (outputs != model.outputs())
    return badArgument("{} outputs were given, the model has {}", outputs, model.outputs());
  if (inputs != model.inputs())
    return badArgument("{} inputs were given, the model has {}", inputs, model.inputs());
  return Status::ok();
}

Result<std::vector<Tensor>> readInputs(const candela_model& model, const candela_tensor_t* inputs) {
  std::vector<Tensor> tensors;
  for (uint32_t i = 0; i < model.inputs(); ++i) {
    const candela_tensor_t& given = inputs[i];
    if (isNowhere(given) && model.isState(&runtime::bundle::BundleState::input, i)) {
      tensors.emplace_back();
      continue;
    }
    CDL_ASSIGN(const std::span<const int64_t> dims, checkInput(model, i, given));
    Tensor tensor{static_cast<Elem>(given.elem), Shape(dims.begin(), dims.end()), {}};
    tensor.bytes = Bytes::wrap(given.data, tensor.sizeBytes(), nullptr);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// A state that nobody wants to see.
bool isKept(const candela_model& model, uint32_t index, const candela_tensor_t& output) {
  return isNowhere(output) && output.rank != CANDELA_UNKNOWN_RANK &&
         model.isState(&runtime::bundle::BundleState::output, index);
}

Status checkRoom(const runtime::bundle::BundleValue& port, const candela_tensor_t& output,
                 uint64_t bytes) {
  if (output.bytes >= bytes && (output.data || !bytes)) return Status::ok();
  return badArgument("output '{}' needs {} bytes, there are {}", port.name, bytes, output.bytes);
}

/// Memory of outputs that is made for the caller, and taken back when not all of them could be
/// written.
class OutputMemory {
public:
  explicit OutputMemory(candela_tensor_t* outputs) : outputs_(outputs) {}
  ~OutputMemory() {
    for (const uint32_t i : made_) {
      std::free(outputs_[i].data);
      outputs_[i].data = nullptr;
      outputs_[i].bytes = 0;
    }
  }
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;

  Status make(uint32_t i, uint64_t bytes) {
    made_.push_back(i);
    outputs_[i].data = std::malloc(std::max<uint64_t>(bytes, 1));
    if (!outputs_[i].data) return failure(Code::out_of_memory, "cannot allocate {} bytes", bytes);
    outputs_[i].bytes = bytes;
    return Status::ok();
  }
  void keep() { made_.clear(); }

private:
  candela_tensor_t* outputs_;
  std::vector<uint32_t> made_;
};

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
      call_->inputs.push_back(static_cast<const std::byte*>(inputs[i].data));
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
      call_->outputs.push_back(static_cast<std::byte*>(output.data));
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

/// A run of a flow or of the oracle, which say at its end what the outputs are.
Status runTensors(const candela_model& model, const candela_tensor_t* inputs,
                  candela_tensor_t* outputs) {
  FileWatch watch; // a part that waited for its shapes reads its weights now
  CDL_ASSIGN(const std::vector<Tensor> in, readInputs(model, inputs));
  const auto once = [&](std::span<const Tensor> all) -> Result<std::vector<Tensor>> {
    const auto* graph = std::get_if<graph::Graph>(&model.ir);
    if (model.flow) return model.flow->runTensors(all);
    return graph ? reference::run(*graph, all)
                 : reference::interpret(std::get<program::Program>(model.ir), all);
  };
  runtime::session::Trace trace(model.profiles);
  std::optional<runtime::session::Span> span(std::in_place, "run");
  CDL_ASSIGN(const std::vector<Tensor> out, model.states.run(in, once));
  span.reset();
  model.keepWatching(watch.take());
  {
    const std::lock_guard lock(model.traceMutex);
    model.ran = trace.take();
  }
  OutputMemory memory(outputs);
  for (uint32_t o = 0; o < model.outputs(); ++o) {
    const runtime::bundle::BundleValue& port = model.output(o);
    candela_tensor_t& output = outputs[o];
    const uint64_t bytes = out[o].sizeBytes();
    const bool kept = isKept(model, o, output);
    if (!kept) {
      if (isNowhere(output)) CDL_TRY(memory.make(o, bytes).context(port.name));
      CDL_TRY(checkRoom(port, output, bytes));
      if (bytes) std::memcpy(output.data, out[o].bytes.data(), bytes);
    }
    describeType(out[o].elem, model.flatShapes ? port.dims : out[o].dims, output);
    output.bytes = kept ? 0 : bytes;
  }
  memory.keep();
  return Status::ok();
}

Status createModel(candela_model_t** out, const char* path,
                   const std::function<Status(candela_model&)>& fill) {
  if (out) *out = nullptr;
  if (!path || !out) return badArgument("no path, or nowhere to put the model");
  auto model = std::make_unique<candela_model>();
  FileWatch watch;
  runtime::session::Trace trace(false);
  {
    const runtime::session::Span span("compile");
    CDL_TRY(fill(*model));
  }
  model->compiled = trace.take();
  const runtime::bundle::Bundle& bundle = model->bundle();
  for (const auto* ports : {&bundle.inputs, &bundle.outputs})
    for (const uint32_t port : *ports)
      if (const size_t rank = bundle.values[port].dims.size(); rank > CANDELA_MAX_RANK)
        return failure(Code::unsupported, "'{}' has rank {}, above {}", bundle.values[port].name,
                       rank, CANDELA_MAX_RANK);
  model->report = driver::placementJson(bundle);
  model->files = watch.take();
  CDL_TRY(model->checkFiles());
  *out = model.release();
  return Status::ok();
}

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
    return createModel(model, path,
                       [&](candela_model& made) { return compileModel(made, path, options); });
  });
}

candela_status_t candela_load(const char* path, candela_model_t** model, char* error,
                              size_t error_size) {
  return guarded(error, error_size, [&] {
    return createModel(model, path, [&](candela_model& made) -> Status {
      CDL_ASSIGN(runtime::bundle::Bundle bundle, runtime::bundle::loadBundle(path));
      if (bundle.flow) {
        CDL_ASSIGN(made.flow, driver::FlowModel::load(std::move(bundle)));
        made.described = made.flow->described();
        CDL_TRY(runtime::bundle::verifyStates(made.described).context(path));
        return made.states.init(made.described);
      }
      CDL_ASSIGN(made.session, runtime::session::Session::create(std::move(bundle)));
      return Status::ok();
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
