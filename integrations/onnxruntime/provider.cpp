#include "integrations/onnxruntime/provider.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "integrations/onnxruntime/context.h"

namespace candela::ort {

using namespace abi;

namespace {

/// The first release that tells parts of nested graphs from those around them: in 1.23 and early
/// 1.24 parts of different graphs get one name, and no session comes about.
constexpr uint32_t kApiVersionOfNestedParts = 25;

std::vector<std::string> namesOf(const std::vector<const OrtValueInfo*>& infos, const Api& api) {
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos)
    names.emplace_back(info ? api.get<const char*>(GetValueInfoName, info) : "");
  return names;
}

std::string outputsOf(const GraphView& graph) {
  std::string outputs;
  for (const std::string& name : graph.outputs) outputs += name + '\n';
  return outputs;
}

/// The whole graph as a part, whose outputs are those of the fused node.
Part wholeOf(const GraphView& graph, const std::vector<std::string>& outputs) {
  std::vector<size_t> all(graph.nodes.size());
  for (size_t node = 0; node < all.size(); ++node) all[node] = node;
  Part part = partOf(graph, all);
  // In the order in which the part was asked for, where it is the same.
  if (std::set<std::string>(outputs.begin(), outputs.end()) !=
      std::set<std::string>(part.outputs.begin(), part.outputs.end()))
    part.outputs = outputs;
  return part;
}

} // namespace

Provider::Provider(const Api& api, const ProviderOptions& options, const OrtLogger* logger)
    : OrtEp{}, api_(api), options_(options), logger_(logger), compiler_(api, options_) {
  checkBackends(options_);
  // How far ONNX Runtime looks into this record: an older one refuses versions later than its own.
  ort_version_supported =
      api.version() >= kApiVersionOfProfiles ? kApiVersionOfProfiles : kApiVersion;
  GetName = [](const OrtEp*) -> const char* { return kProviderName; };
  GetCapability = [](OrtEp* ep, const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
    auto* const self = static_cast<Provider*>(ep);
    return guarded(self->api_, [&] { self->claim(graph, support); });
  };
  Compile = [](OrtEp* ep, const OrtGraph** graphs, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** infos, OrtNode** contexts) {
    auto* const self = static_cast<Provider*>(ep);
    return guarded(self->api_, [&] {
      for (size_t i = 0; i < count; ++i)
        infos[i] = self->compile({graphs[i], fused[i], i == 0}, contexts ? &contexts[i] : nullptr)
                       .release();
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp* ep, OrtNodeComputeInfo** infos, size_t count) {
    auto* const self = static_cast<Provider*>(ep);
    quietly(self->api_, [&] { self->release(infos, count); });
  };
  GetCompiledModelCompatibilityInfo = [](OrtEp* ep, const OrtGraph*) -> const char* {
    return static_cast<Provider*>(ep)->compatibility_.c_str();
  };
  CreateProfiler = [](OrtEp* ep, OrtEpProfilerImpl** profiler) {
    auto* const self = static_cast<Provider*>(ep);
    *profiler = nullptr;
    return guarded(self->api_, [&] { *profiler = self->recorder_.profiler(self->api_); });
  };
  compatibility_ = compatibilityOf(options_.compile.backends);
}

void Provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* support) {
  const GraphView view = readGraph(api_, graph);
  claimContexts(view, support);
  const bool isNested = api_.get<const OrtNode*>(Graph_GetParentNode, graph) != nullptr;
  if (view.nodes.empty() || !mayClaim(view) || isInsideTaken(graph, view)) return;
  const Capability capability = capabilityOf(compiler_, options_, view);
  OrtNodeFusionOptions fusion{};
  fusion.ort_version_supported = kApiVersion;
  fusion.drop_constant_initializers = true; // the compiled part has its own
  for (const Part& part : capability.parts) {
    std::vector<const OrtNode*> nodes;
    for (const size_t node : part.nodes) nodes.push_back(view.nodes[node].node);
    api_.call(EpGraphSupportInfo_AddNodesToFuse, support, nodes.data(), nodes.size(), &fusion);
  }
  if (!capability.parts.empty()) claimed_ = outputsOf(view);
  tell(view, capability, isNested);
}

/// Whether parts of this graph get names that no others have. Where they may not, it is the
/// outermost graph that has parts: one that reads nothing of a graph around it.
bool Provider::mayClaim(const GraphView& graph) {
  if (api_.version() >= kApiVersionOfNestedParts) return true;
  for (const auto& [name, value] : graph.values)
    if (value.isOuter) return false;
  return claimed_.empty() || claimed_ == outputsOf(graph);
}

void Provider::claimContexts(const GraphView& graph, OrtEpGraphSupportInfo* support) {
  for (const NodeView& node : graph.nodes) {
    if (!isContext(node) || !isOwnContext(api_, node)) continue;
    api_.call(EpGraphSupportInfo_AddNodesToFuse, support, &node.node, size_t(1), nullptr);
  }
}

/// Whether a node around the graph goes to Candela with all that is in it.
bool Provider::isInsideTaken(const OrtGraph* graph, const GraphView& view) {
  const OrtGraph* around = graph;
  while (around) {
    const auto* parent = api_.get<const OrtNode*>(Graph_GetParentNode, around);
    if (!parent) return false;
    if (takesWhole(api_, compiler_, options_, parent, view)) return true;
    around = api_.get<const OrtGraph*>(Node_GetGraph, parent);
  }
  return false;
}

void Provider::tell(const GraphView& graph, const Capability& capability, bool isNested) const {
  size_t taken = 0;
  size_t asked = 0;
  for (const Part& part : capability.parts) taken += part.nodes.size();
  std::vector<std::string> lines;
  for (const NodeView& node : graph.nodes) {
    if (isContext(node)) continue;
    ++asked;
    const auto left = capability.left.find(node.name);
    if (left != capability.left.end())
      lines.push_back("Candela leaves " + textOf(node) + " to ONNX Runtime: " + left->second);
  }
  if (asked == 0) return;
  // That everything stays is rarely what was meant: another device, a file of pins for another
  // model.
  const bool isWarning = taken == 0 && !isNested;
  api_.log(logger_, isWarning ? Severity::Warning : Severity::Info,
           "Candela (" + options_.compile.backends + "): " + std::to_string(taken) + " of " +
               std::to_string(asked) + " nodes in " + std::to_string(capability.parts.size()) +
               " parts" + (isWarning ? ". " + lines.at(0) : ""));
  for (const std::string& line : lines) api_.log(logger_, Severity::Info, line);
}

std::unique_ptr<NodeCompute> Provider::compile(const Fused& fused, OrtNode** context) {
  const GraphView view = readGraph(api_, fused.graph);
  const auto inputs = namesOf(api_.list(Node_GetNumInputs, Node_GetInputs, fused.node), api_);
  const auto outputs = namesOf(api_.list(Node_GetNumOutputs, Node_GetOutputs, fused.node), api_);
  if (view.nodes.size() == 1 && isContext(view.nodes[0]))
    return computeOf(loadContext(api_, options_, view.modelPath, view.nodes[0]), inputs, outputs);
  const Part part = wholeOf(view, outputs);
  auto node = computeOf(compiler_.compile(view, part), inputs, outputs);
  if (options_.makesContext && context) {
    const std::string name = api_.get<const char*>(Node_GetName, fused.node);
    *context = makeContext(api_, options_, view.modelPath, {name, inputs, outputs, fused.isFirst},
                           store(node->model(), [&] { return writeModel(api_, view, part); }));
  }
  return node;
}

std::unique_ptr<NodeCompute> Provider::computeOf(Compiled model,
                                                 const std::vector<std::string>& inputs,
                                                 const std::vector<std::string>& outputs) {
  // Later it may be running, when only its steps are to be had.
  if (recorder_.isWanted()) model->profile(true);
  return std::make_unique<NodeCompute>(api_, recorder_, std::move(model), inputs, outputs);
}

void Provider::release(OrtNodeComputeInfo** infos, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const std::unique_ptr<NodeCompute> node(static_cast<NodeCompute*>(infos[i]));
    if (node && !options_.trace.empty()) quietly(api_, [&] { writeTrace(node->model()); });
  }
}

/// The first part's trace has the name that the session says, the others a number before its end.
void Provider::writeTrace(const sdk::Model& model) {
  std::filesystem::path path = options_.trace;
  if (traces_ > 0)
    path.replace_filename(path.stem().string() + "-" + std::to_string(traces_) +
                          path.extension().string());
  ++traces_;
  std::ofstream file(path, std::ios::binary);
  file << model.traceJson();
  file.close();
  if (!file)
    api_.log(logger_, Severity::Warning, "Candela: " + path.string() + " cannot be written");
}

std::string compatibilityOf(const std::string& backends) {
  return std::string("candela ") + candela_version() + " " + backends;
}

bool isCompatible(const std::string& compatibility) {
  return compatibility.rfind(std::string("candela ") + candela_version() + " ", 0) == 0;
}

} // namespace candela::ort
