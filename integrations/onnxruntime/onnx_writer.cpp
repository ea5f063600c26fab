#include "integrations/onnxruntime/onnx_writer.h"

#include <cstring>
#include <map>

namespace candela::ort {

using namespace abi;

namespace {

/// Protocol buffers forbid more.
constexpr size_t kMostBytes = (size_t(1) << 31) - 1;

/// Fields of onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
namespace model {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8;
} // namespace model
namespace opset {
constexpr uint32_t kDomain = 1, kVersion = 2;
} // namespace opset
namespace graph_field {
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
} // namespace graph_field
namespace node_field {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5, kDomain = 7;
} // namespace node_field
namespace attribute {
constexpr uint32_t kName = 1, kFloat = 2, kInt = 3, kString = 4, kTensor = 5, kGraph = 6,
                   kFloats = 7, kInts = 8, kStrings = 9, kType = 20;
enum Type : uint64_t {
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8
};
} // namespace attribute
namespace tensor {
constexpr uint32_t kDims = 1, kType = 2, kName = 8, kRaw = 9;
} // namespace tensor
namespace value_field {
constexpr uint32_t kName = 1, kType = 2, kTensorType = 1, kElement = 1, kShape = 2, kDim = 1,
                   kDimValue = 1, kDimParam = 2;
} // namespace value_field

/// A message of protocol buffers as it is written.
class Message {
public:
  void number(uint32_t field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void text(uint32_t field, std::string_view value) { bytes(field, value.data(), value.size()); }
  void bytes(uint32_t field, const void* data, size_t size) {
    tag(field, 2);
    varint(size);
    check(size);
    out_.append(static_cast<const char*>(data), size);
  }
  void message(uint32_t field, const Message& value) { text(field, value.out_); }
  void real(uint32_t field, float value) {
    tag(field, 5);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  std::string take() && { return std::move(out_); }

private:
  void check(size_t more) const {
    if (more > kMostBytes || out_.size() > kMostBytes - more)
      throw Failure(ErrorCode::NotImplemented,
                    "the model in memory would be larger than the 2 GiB of a file of ONNX");
  }
  void tag(uint32_t field, uint32_t wire) { varint(uint64_t(field) << 3 | wire); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

Message tensorOf(const Api& api, const std::string& name, const OrtValue* value) {
  const auto info = owned(api, api.get<OrtTensorTypeAndShapeInfo*>(GetTensorTypeAndShape, value),
                          ReleaseTensorTypeAndShapeInfo);
  const auto type = api.get<ElementType>(GetTensorElementType,
                                         static_cast<const OrtTensorTypeAndShapeInfo*>(info.get()));
  if (type == ElementType::String)
    throw Failure(ErrorCode::NotImplemented, "constant '" + name + "' is a tensor of strings");
  Message out;
  for (const int64_t dim : shapeOf(api, value))
    out.number(tensor::kDims, static_cast<uint64_t>(dim));
  out.number(tensor::kType, static_cast<uint64_t>(type));
  out.text(tensor::kName, name);
  const size_t size = api.get<size_t>(GetTensorSizeInBytes, value);
  const void* const data = size > 0 ? api.get<const void*>(GetTensorData, value) : nullptr;
  out.bytes(tensor::kRaw, data ? data : "", size);
  return out;
}

Message valueOf(const std::string& name, const Value& value) {
  using namespace value_field;
  Message out;
  out.text(kName, name);
  if (!value.isTensor) return out;
  Message tensorType;
  tensorType.number(kElement, static_cast<uint64_t>(value.type));
  if (value.isRanked) {
    Message shape;
    for (size_t axis = 0; axis < value.dims.size(); ++axis) {
      const Dim& dim = value.dims[axis];
      Message one;
      if (dim.size >= 0)
        one.number(kDimValue, static_cast<uint64_t>(dim.size));
      else
        one.text(kDimParam, nameOfDim(name, axis, dim));
      shape.message(kDim, one);
    }
    tensorType.message(kShape, shape);
  }
  Message type;
  type.message(kTensorType, tensorType);
  out.message(kType, type);
  return out;
}

template <typename T> std::vector<T> itemsOf(const std::string& content) {
  std::vector<T> items(content.size() / sizeof(T));
  std::memcpy(items.data(), content.data(), items.size() * sizeof(T));
  return items;
}

/// Texts that each end with a zero.
std::vector<std::string> textsOf(const std::string& content) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < content.size(); at += texts.back().size() + 1)
    texts.emplace_back(content.c_str() + at);
  return texts;
}

void writeContent(const std::string& content, AttributeType type, Message& out) {
  switch (type) {
  case AttributeType::Int:
    out.number(attribute::kType, attribute::Int);
    for (const int64_t item : itemsOf<int64_t>(content))
      out.number(attribute::kInt, static_cast<uint64_t>(item));
    break;
  case AttributeType::Ints:
    out.number(attribute::kType, attribute::Ints);
    for (const int64_t item : itemsOf<int64_t>(content))
      out.number(attribute::kInts, static_cast<uint64_t>(item));
    break;
  case AttributeType::Float:
    out.number(attribute::kType, attribute::Float);
    for (const float item : itemsOf<float>(content)) out.real(attribute::kFloat, item);
    break;
  case AttributeType::Floats:
    out.number(attribute::kType, attribute::Floats);
    for (const float item : itemsOf<float>(content)) out.real(attribute::kFloats, item);
    break;
  case AttributeType::String:
    out.number(attribute::kType, attribute::String);
    out.bytes(attribute::kString, content.data(), content.size());
    break;
  default:
    out.number(attribute::kType, attribute::Strings);
    for (const std::string& item : textsOf(content)) out.text(attribute::kStrings, item);
  }
}

Message attributeOf(const Api& api, const OrtOpAttr* from, const std::string& name,
                    AttributeType type) {
  Message out;
  out.text(attribute::kName, name);
  if (type == AttributeType::Tensor) {
    const auto value =
        owned(api, api.get<OrtValue*>(OpAttr_GetTensorAttributeAsOrtValue, from), ReleaseValue);
    out.number(attribute::kType, attribute::Tensor);
    out.message(attribute::kTensor, tensorOf(api, name, value.get()));
  } else {
    writeContent(api.contentOf(from, type), type, out);
  }
  return out;
}

Message nestedGraph(const Api& api, const OrtGraph* graph);

struct Subgraph {
  std::string attribute;
  const OrtGraph* graph;
};

std::vector<Subgraph> subgraphsOf(const Api& api, const OrtNode* node) {
  const size_t count = api.get<size_t>(Node_GetNumSubgraphs, node);
  std::vector<const OrtGraph*> graphs(count);
  std::vector<const char*> names(count);
  if (count > 0) api.call(Node_GetSubgraphs, node, graphs.data(), count, names.data());
  std::vector<Subgraph> out;
  for (size_t i = 0; i < count; ++i) out.push_back({names[i] ? names[i] : "", graphs[i]});
  return out;
}

void writeAttributes(const Api& api, const NodeView& node, Message& out) {
  const std::vector<Subgraph> subgraphs = subgraphsOf(api, node.node);
  for (const Subgraph& subgraph : subgraphs) {
    Message one;
    one.text(attribute::kName, subgraph.attribute);
    one.number(attribute::kType, attribute::Graph);
    one.message(attribute::kGraph, nestedGraph(api, subgraph.graph));
    out.message(node_field::kAttribute, one);
  }
  for (const OrtOpAttr* from : api.list(Node_GetNumAttributes, Node_GetAttributes, node.node)) {
    const char* const name = api.get<const char*>(OpAttr_GetName, from);
    bool isSubgraph = false;
    for (const Subgraph& subgraph : subgraphs)
      isSubgraph = isSubgraph || subgraph.attribute == name;
    if (isSubgraph) continue;
    const auto type = api.get<AttributeType>(OpAttr_GetType, from);
    if (type == AttributeType::Undefined || type == AttributeType::Graph)
      throw Failure(ErrorCode::NotImplemented,
                    textOf(node) + ": attribute '" + name + "' is of a type that cannot be read");
    out.message(node_field::kAttribute, attributeOf(api, from, name, type));
  }
}

Message nodeOf(const Api& api, const NodeView& node) {
  Message out;
  for (const std::string& input : node.inputs) out.text(node_field::kInput, input);
  for (const std::string& output : node.outputs) out.text(node_field::kOutput, output);
  out.text(node_field::kName, node.name);
  out.text(node_field::kOp, node.op);
  out.text(node_field::kDomain, node.domain);
  writeAttributes(api, node, out);
  return out;
}

Message graphOf(const Api& api, const GraphView& graph, const Part& part) {
  Message out;
  for (const size_t node : part.nodes)
    out.message(graph_field::kNode, nodeOf(api, graph.nodes[node]));
  out.text(graph_field::kName, "part");
  for (const std::string& name : part.constants)
    out.message(graph_field::kInitializer, tensorOf(api, name, graph.value(name).constant));
  for (const std::string& name : part.inputs)
    out.message(graph_field::kInput, valueOf(name, graph.value(name)));
  for (const std::string& name : part.outputs)
    out.message(graph_field::kOutput, valueOf(name, graph.value(name)));
  return out;
}

Message nestedGraph(const Api& api, const OrtGraph* graph) {
  const GraphView view = readGraph(api, graph);
  Part all;
  for (size_t node = 0; node < view.nodes.size(); ++node) all.nodes.push_back(node);
  all.inputs = view.inputs;
  all.outputs = view.outputs;
  for (const std::string& name : view.initializers)
    if (view.value(name).constant) all.constants.push_back(name);
  return graphOf(api, view, all);
}

} // namespace

std::string nameOfDim(const std::string& value, size_t axis, const Dim& dim) {
  return dim.name.empty() ? value + "." + std::to_string(axis) : dim.name;
}

Part partOf(const GraphView& graph, const std::vector<size_t>& nodes) {
  Part part;
  part.nodes = nodes;
  const std::set<size_t> inside(nodes.begin(), nodes.end());
  std::set<std::string> made;
  std::set<std::string> seen;
  for (const size_t node : nodes)
    for (const std::string& output : graph.nodes[node].outputs) made.insert(output);
  for (const size_t node : nodes)
    for (const auto* names : {&graph.nodes[node].inputs, &graph.nodes[node].captured})
      for (const std::string& name : *names) {
        if (name.empty() || made.contains(name) || !seen.insert(name).second) continue;
        (graph.value(name).constant ? part.constants : part.inputs).push_back(name);
      }
  std::set<std::string> wanted(graph.outputs.begin(), graph.outputs.end());
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    if (inside.contains(node)) continue;
    for (const auto* names : {&graph.nodes[node].inputs, &graph.nodes[node].captured})
      wanted.insert(names->begin(), names->end());
  }
  for (const size_t node : nodes)
    for (const std::string& output : graph.nodes[node].outputs)
      if (!output.empty() && wanted.contains(output)) part.outputs.push_back(output);
  return part;
}

std::string writeModel(const Api& api, const GraphView& graph, const Part& part) {
  Message out;
  out.number(model::kIrVersion, static_cast<uint64_t>(graph.irVersion));
  out.text(model::kProducer, "onnxruntime");
  out.message(model::kGraph, graphOf(api, graph, part));
  for (const auto& [domain, version] : graph.opsets) {
    Message one;
    one.text(opset::kDomain, domain);
    one.number(opset::kVersion, static_cast<uint64_t>(version));
    out.message(model::kOpset, one);
  }
  return std::move(out).take();
}

} // namespace candela::ort
