// From a model and the caller's options to a compiled model.
#include "core/runtime/api/compile.h"

#include <algorithm>

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/report.h"
#include "core/runtime/api/arguments.h"
#include "core/runtime/api/objects.h"
#include "core/support/text/scan.h"

namespace candela::runtime::api {
namespace {

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
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices; ///< in their place
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

Status takeDevices(const candela_options_t& options, Request& request) {
  if (options.device_count == 0) return Status::ok();
  if (!options.devices) return badArgument("{} devices were given, and none", options.device_count);
  if (options.backends)
    return badArgument("backends '{}' and {} open devices: one of them", options.backends,
                       options.device_count);
  for (uint32_t d = 0; d < options.device_count; ++d) {
    if (!options.devices[d]) return badArgument("device {} of the options is NULL", d);
    request.devices.push_back(options.devices[d]->device);
  }
  return Status::ok();
}

Result<Request> parseOptions(const candela_options_t* given) {
  candela_options_t options = CANDELA_OPTIONS_INIT;
  if (given) std::memcpy(&options, given, std::min<size_t>(given->struct_size, sizeof(options)));
  Request request;
  request.flags = options.flags;
  CDL_TRY(takeDevices(options, request));
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
    CDL_ASSIGN(const auto option, splitOption(*o));
    const auto& [key, value] = option;
    const size_t name = key.find('.') + 1; // 0 where there is no dot
    request.options[key.substr(0, name ? name - 1 : 0)][key.substr(name)] = value;
  }
  CDL_TRY(takeImportOptions(request));
  for (const char* const* s = options.states; s && *s; ++s) request.states.emplace_back(*s);
  request.compile.states = request.states;
  request.import.bindAtRun = options.flags & CANDELA_FLAG_BIND_AT_RUN;
  request.compile.toPrimitives = options.flags & CANDELA_FLAG_TO_PRIMITIVES;
  request.compile.keepValues = options.flags & CANDELA_FLAG_KEEP_VALUES;
  request.compile.stack = !(options.flags & CANDELA_FLAG_UNSTACKED);
  request.compile.schedule.rematerialize = options.flags & CANDELA_FLAG_REMATERIALIZE;
  request.compile.groups = !(options.flags & CANDELA_FLAG_NO_GROUPS);
  if (options.partition) {
    CDL_ASSIGN(request.compile.policy, lowering::partition::parsePolicy(options.partition));
  }
  if (options.pin_file) request.compile.pinFile = options.pin_file;
  if (options.precision) {
    CDL_ASSIGN(request.compile.precision, driver::parsePrecision(options.precision));
  }
  if (const auto call = options.progress) {
    void* const context = options.progress_context;
    request.compile.progress = [call, context](const char* stage, double fraction) {
      call(context, stage, fraction);
    };
  }
  return request;
}

Result<std::vector<std::shared_ptr<runtime::plugin::Device>>> openDevices(const Request& request) {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices = request.devices;
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

/// Whether the caller says more about where nodes go than the order of backends.
bool isPlaced(const Request& request) {
  return request.compile.policy != lowering::partition::Policy::preference ||
         !request.compile.pinFile.empty();
}

Status compileParts(candela_model& model, const Source& source, const Request& request) {
  const std::string& path = source.path;
  const bool reference = std::ranges::find(request.backends, "reference") != request.backends.end();
  if (reference && isPlaced(request))
    return badArgument("the reference runs nodes where it is: no policy and no pins place them");
  if (reference && request.compile.precision != driver::Precision::model)
    return badArgument("the reference computes in the model's types: it takes no precision");
  if (reference && std::ranges::find(request.backends, "soft") != request.backends.end())
    return badArgument("the reference runs alone, or beside plugins that claim ops of their own");
  // Backends first: a wrong name is told before a large model is read. Those beside the reference
  // claim ops, no more.
  CDL_ASSIGN(const auto devices, openDevices(request));
  import::ImportOptions options = request.import;
  CDL_ASSIGN(options.claim, driver::claimBy(devices, reference));
  std::optional<runtime::session::Span> span(std::in_place, "load", path);
  CDL_ASSIGN(driver::Loaded loaded, source.load(options));
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
    if (isPlaced(request))
      return badArgument("{}: a program runs on one backend: no policy and no pins place it", path);
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

} // namespace

Status compileModel(candela_model& model, const Source& source, const candela_options_t* given) {
  const std::string& path = source.path;
  CDL_ASSIGN(const Request request, parseOptions(given));
  CDL_TRY(compileParts(model, source, request));
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

Status openBundle(candela_model& made, runtime::bundle::Bundle bundle, const std::string& path) {
  if (bundle.flow) {
    CDL_ASSIGN(made.flow, driver::FlowModel::load(std::move(bundle)));
    made.described = made.flow->described();
    CDL_TRY(runtime::bundle::verifyStates(made.described).context(path));
    return made.states.init(made.described);
  }
  CDL_ASSIGN(made.session, runtime::session::Session::create(std::move(bundle)));
  return Status::ok();
}

} // namespace candela::runtime::api
