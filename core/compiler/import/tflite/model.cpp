#include "core/compiler/import/tflite/model.h"

#include <algorithm>
#include <cstring>

#include "core/compiler/import/tflite/graph_writer.h"

namespace candela::import::tflite {
namespace {

// Of what is written: opset 21 has all that the operators of this room need.
constexpr int64_t kOpset = 21, kIrVersion = 10;
constexpr const char* kBatch = "batch"; // a free dim 0, whose value inputs share

using Signature = flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>;

/// The signature of the main subgraph; null where it has none, or several.
const schema::SignatureDef* signatureOf(const File& file) {
  const schema::SignatureDef* found = nullptr;
  if (!file.model().signature_defs()) return found;
  for (const schema::SignatureDef* signature : *file.model().signature_defs()) {
    if (signature->subgraph_index() != 0) continue;
    if (found) return nullptr;
    found = signature;
  }
  return found;
}

/// What the signature calls a tensor; else its own name.
std::string portName(const Signature* signature, const Subgraph& subgraph, int tensor) {
  const std::string& own = subgraph.tensors[static_cast<size_t>(tensor)].name;
  if (!signature) return own;
  for (const schema::TensorMap* entry : *signature) {
    if (static_cast<int64_t>(entry->tensor_index()) != tensor || !entry->name()) continue;
    const std::string name = entry->name()->str();
    const bool isPlain = std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7f; });
    if (isPlain && !name.empty()) return name;
  }
  return own;
}

onnx_io::ValueInfo valueInfo(const std::string& name, const TensorInfo& info) {
  onnx_io::ValueInfo value;
  value.name = name;
  value.elem = info.elem;
  value.what = info.refusal;
  value.hasShape = true;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    onnx_io::Dim dim;
    dim.value = info.dims[i];
    if (dim.value < 0) dim.name = i == 0 ? kBatch : fmt::format("{}_{}", name, i);
    value.dims.push_back(std::move(dim));
  }
  return value;
}

void writeModel(ModelWriter& writer, onnx_io::Graph& graph) {
  const Subgraph& main = writer.file.subgraphs().front();
  graph.name = main.name;
  const schema::SignatureDef* signature = signatureOf(writer.file);
  std::vector<Name> inputs;
  for (const int tensor : main.inputs) {
    const std::string name =
        writer.unique(portName(signature ? signature->inputs() : nullptr, main, tensor));
    const TensorInfo& info = main.tensors[static_cast<size_t>(tensor)];
    if (!info.refusal.empty())
      writer.diagnostics.add(failure(Code::unsupported, "input '{}': {}", info.name, info.refusal));
    graph.inputs.push_back(valueInfo(name, info));
    inputs.push_back(name);
  }
  std::vector<Name> ports; // taken before values inside get them
  for (const int tensor : main.outputs)
    ports.push_back(
        writer.unique(portName(signature ? signature->outputs() : nullptr, main, tensor)));
  GraphWriter body(writer, main, graph, "");
  body.bind(inputs);
  body.write();
  const std::vector<Name> values = body.outputs();
  for (size_t i = 0; i < values.size(); ++i) {
    onnx_io::Node node;
    node.name = ports[i];
    node.opType = "Identity";
    node.inputs = {values[i]};
    node.outputs = {ports[i]};
    graph.nodes.push_back(std::move(node));
    onnx_io::ValueInfo port =
        valueInfo(ports[i], main.tensors[static_cast<size_t>(main.outputs[i])]);
    // What comes out may have any extent there: free dims of outputs have no names.
    for (onnx_io::Dim& dim : port.dims) dim.name.clear();
    graph.outputs.push_back(std::move(port));
  }
}

void collectReads(const onnx_io::Graph& graph, std::set<Name>& reads) {
  for (const onnx_io::ValueInfo& output : graph.outputs) reads.insert(output.name);
  for (const onnx_io::Node& node : graph.nodes) {
    reads.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute))
        collectReads(**inner, reads);
  }
}

/// Channels that moved to the end, and that nothing wanted there.
void dropUnreadTransposes(onnx_io::Graph& graph) {
  std::set<Name> reads;
  collectReads(graph, reads);
  std::erase_if(graph.nodes, [&](const onnx_io::Node& node) {
    const bool isTranspose = node.domain.empty() && node.opType == "Transpose";
    return isTranspose && !reads.count(node.outputs[0]);
  });
}

} // namespace

bool isModel(const Bytes& content) {
  constexpr size_t kMarkAt = 4;
  const std::string_view mark = "TFL3";
  if (content.size() < kMarkAt + mark.size()) return false;
  uint32_t root = 0; // where the first table lies: behind the mark, which a file of another kind
  std::memcpy(&root, content.data(), sizeof root); // that has these letters there hardly says
  return std::memcmp(content.data() + kMarkAt, mark.data(), mark.size()) == 0 &&
         root < content.size();
}

Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path) {
  const Result<File> file = File::open(content);
  CDL_TRY(file.status().context(path));
  onnx_io::Model model;
  model.path = path;
  model.isOnnx = false;
  model.irVersion = kIrVersion;
  model.opsets = {{"", kOpset}, {"com.microsoft", 1}, {kDomain, 1}};
  if (const auto* description = file->model().description())
    model.producer = "TensorFlow Lite: " + description->str();
  const bool isPlain =
      std::ranges::all_of(model.producer, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!isPlain) model.producer = "TensorFlow Lite";
  ModelWriter writer{*file};
  try {
    writeModel(writer, model.graph);
  } catch (const Refusal& refusal) {
    writer.diagnostics.add(refusal.status);
  }
  CDL_TRY(writer.diagnostics.status(path));
  dropUnreadTransposes(model.graph);
  return model;
}

} // namespace candela::import::tflite
