// From a model and the caller's options to a compiled model.
#include "core/runtime/api/compile.h"

#include <algorithm>

#include "core/compiler/driver/custom_ops.h"
#include "core/compiler/driver/report.h"
#include "core/runtime/api/options.h"

namespace candela::runtime::api {
namespace {

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
bool isPlaced(const CompileRequest& request) {
  return request.compile.policy != lowering::partition::Policy::preference ||
         !request.compile.pinFile.empty();
}

Status compileParts(candela_model& model, const Source& source, const CompileRequest& request) {
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
  CDL_ASSIGN(const CompileRequest request, parseOptions(given));
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
