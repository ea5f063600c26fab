#include "integrations/onnxruntime/graph_view.h"

#include <algorithm>
#include <set>

namespace candela::ort {

using namespace abi;

namespace {

std::vector<Dim> dimsOf(const Api& api, const OrtTensorTypeAndShapeInfo* info) {
  const size_t rank = api.get<size_t>(GetDimensionsCount, info);
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> names(rank);
  if (rank > 0) {
    api.call(GetDimensions, info, sizes.data(), rank);
    api.call(GetSymbolicDimensions, info, names.data(), rank);
  }
  std::vector<Dim> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    dims[i].size = sizes[i] < 0 ? -1 : sizes[i];
    if (sizes[i] < 0 && names[i]) dims[i].name = names[i];
  }
  return dims;
}

/// Whether a value has a rank. Before the API that says so, none and a scalar look alike.
bool isRanked(const Api& api, const OrtTensorTypeAndShapeInfo* info, size_t rank) {
  if (api.version() >= kApiVersionOfRanks) return api.call(TensorTypeAndShape_HasShape, info);
  return rank > 0;
}

Value readValue(const Api& api, const OrtValueInfo* info) {
  Value value;
  const auto* type = api.get<const OrtTypeInfo*>(GetValueInfoTypeInfo, info);
  value.isTensor = type && api.get<ValueKind>(GetOnnxTypeFromTypeInfo, type) == ValueKind::Tensor;
  if (value.isTensor) {
    const auto* tensor = api.get<const OrtTensorTypeAndShapeInfo*>(CastTypeInfoToTensorInfo, type);
    value.type = api.get<ElementType>(GetTensorElementType, tensor);
    value.dims = dimsOf(api, tensor);
    value.isRanked = isRanked(api, tensor, value.dims.size());
  }
  value.isOuter = api.get<bool>(ValueInfo_IsFromOuterScope, info);
  if (api.get<bool>(ValueInfo_IsConstantInitializer, info))
    value.constant = api.get<const OrtValue*>(ValueInfo_GetInitializerValue, info);
  if (value.constant) value.isRanked = true;
  return value;
}

/// The names of values, which are read where they are new. An absent one has no name.
std::vector<std::string> namesOf(const Api& api, const std::vector<const OrtValueInfo*>& infos,
                                 std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  for (const OrtValueInfo* info : infos) {
    const char* name = info ? api.get<const char*>(GetValueInfoName, info) : "";
    names.emplace_back(name ? name : "");
    if (!names.back().empty() && !values.contains(names.back()))
      values.emplace(names.back(), readValue(api, info));
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

std::string orEmpty(const char* text) { return text ? text : ""; }

void readOpsets(const Api& api, const OrtGraph* graph, GraphView& view) {
  const size_t count = api.get<size_t>(Graph_GetNumOperatorSets, graph);
  std::vector<const char*> domains(count);
  std::vector<int64_t> versions(count);
  if (count > 0) api.call(Graph_GetOperatorSets, graph, domains.data(), versions.data(), count);
  for (size_t i = 0; i < count; ++i) view.opsets[orEmpty(domains[i])] = versions[i];
}

/// Producers first; among nodes that wait for nothing the order of the graph.
void sortNodes(std::vector<NodeView>& nodes) {
  std::map<std::string, size_t> producers;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs)
      if (!output.empty()) producers[output] = i;
  std::vector<size_t> waitsFor(nodes.size());
  std::vector<std::vector<size_t>> consumers(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (const auto* names : {&nodes[i].inputs, &nodes[i].captured})
      for (const std::string& name : *names) {
        const auto producer = producers.find(name);
        if (producer == producers.end()) continue;
        ++waitsFor[i];
        consumers[producer->second].push_back(i);
      }
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waitsFor[i] == 0) ready.insert(i);
  std::vector<NodeView> sorted;
  while (!ready.empty()) {
    const size_t next = *ready.begin();
    ready.erase(ready.begin());
    for (const size_t consumer : consumers[next])
      if (--waitsFor[consumer] == 0) ready.insert(consumer);
    sorted.push_back(std::move(nodes[next]));
  }
  if (sorted.size() != waitsFor.size())
    throw Failure(ErrorCode::InvalidGraph, "the graph has a cycle");
  nodes = std::move(sorted);
}

/// Names that say which node is meant, in a model whose own names need not.
void makeNamesUnique(std::vector<NodeView>& nodes) {
  std::set<std::string> taken;
  for (NodeView& node : nodes) {
    std::string base = node.name;
    if (base.empty()) base = node.op + "_" + (node.outputs.empty() ? "" : node.outputs[0]);
    node.name = base;
    for (size_t i = 1; !taken.insert(node.name).second; ++i)
      node.name = base + "_" + std::to_string(i);
  }
}

} // namespace

bool Value::isStatic() const {
  return isRanked &&
         std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size >= 0; });
}

const Value& GraphView::value(const std::string& name) const {
  static const Value none;
  const auto found = values.find(name);
  return found == values.end() ? none : found->second;
}

NodeView readNode(const Api& api, const OrtNode* node, std::map<std::string, Value>& values) {
  NodeView view;
  view.node = node;
  view.name = orEmpty(api.get<const char*>(Node_GetName, node));
  view.op = orEmpty(api.get<const char*>(Node_GetOperatorType, node));
  view.domain = orEmpty(api.get<const char*>(Node_GetDomain, node));
  view.inputs = namesOf(api, api.list(Node_GetNumInputs, Node_GetInputs, node), values);
  view.outputs = namesOf(api, api.list(Node_GetNumOutputs, Node_GetOutputs, node), values);
  view.captured =
      namesOf(api, api.list(Node_GetNumImplicitInputs, Node_GetImplicitInputs, node), values);
  return view;
}

GraphView readGraph(const Api& api, const OrtGraph* graph) {
  GraphView view;
  view.modelPath = orEmpty(api.get<const char*>(Graph_GetModelPath, graph));
  view.irVersion = api.get<int64_t>(Graph_GetOnnxIRVersion, graph);
  readOpsets(api, graph, view);
  view.inputs = namesOf(api, api.list(Graph_GetNumInputs, Graph_GetInputs, graph), view.values);
  view.outputs = namesOf(api, api.list(Graph_GetNumOutputs, Graph_GetOutputs, graph), view.values);
  view.initializers =
      namesOf(api, api.list(Graph_GetNumInitializers, Graph_GetInitializers, graph), view.values);
  for (const OrtNode* node : api.list(Graph_GetNumNodes, Graph_GetNodes, graph))
    view.nodes.push_back(readNode(api, node, view.values));
  sortNodes(view.nodes);
  makeNamesUnique(view.nodes);
  return view;
}

std::string textOf(const NodeView& node) { return node.op + " '" + node.name + "'"; }

std::vector<int64_t> shapeOf(const Api& api, const OrtValue* value) {
  const auto info = owned(api, api.get<OrtTensorTypeAndShapeInfo*>(GetTensorTypeAndShape, value),
                          ReleaseTensorTypeAndShapeInfo);
  std::vector<int64_t> dims(api.get<size_t>(
      GetDimensionsCount, static_cast<const OrtTensorTypeAndShapeInfo*>(info.get())));
  if (!dims.empty())
    api.call(GetDimensions, static_cast<const OrtTensorTypeAndShapeInfo*>(info.get()), dims.data(),
             dims.size());
  return dims;
}

} // namespace candela::ort
