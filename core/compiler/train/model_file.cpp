#include "core/compiler/train/model_file.h"

#include <algorithm>

#include "core/compiler/import/formats.h"
#include "core/compiler/import/onnx_io/write.h"
#include "core/support/file.h"

namespace candela::train {
namespace {

using import::onnx_io::Model;
using GraphNode = import::onnx_io::Node;

/// From this version on an initializer need not be an input too.
constexpr int64_t kFreeInitializers = 4;

/// What a Constant node of floats of one or more dims holds; null: it is none.
const Tensor* weightOf(const GraphNode& node) {
  if (node.opType != "Constant" || !node.domain.empty() || node.outputs.size() != 1) return nullptr;
  const auto value = node.attributes.find("value");
  if (value == node.attributes.end()) return nullptr;
  const auto* tensor = std::get_if<Tensor>(&value->second);
  return tensor && tensor->elem == Elem::f32_ && !tensor->dims.empty() ? tensor : nullptr;
}

/// Where `isMoved` says so of the node's output.
template <typename IsMoved> Model moved(const Model& model, IsMoved&& isMoved) {
  Model changed = model;
  std::vector<GraphNode>& nodes = changed.graph.nodes;
  for (const GraphNode& node : nodes)
    if (const Tensor* weight = weightOf(node); weight && isMoved(node.outputs[0])) {
      changed.graph.initializers.push_back({node.outputs[0], *weight});
      changed.irVersion = std::max(changed.irVersion, kFreeInitializers);
    }
  std::erase_if(nodes,
                [&](const GraphNode& node) { return weightOf(node) && isMoved(node.outputs[0]); });
  return changed;
}

} // namespace

Model withConstantsAsInitializers(const Model& model) {
  const auto parameters = parametersOf(moved(model, [](const std::string&) { return true; }), {});
  if (!parameters) return model;
  return moved(model, [&](const std::string& name) {
    return std::ranges::count(*parameters, name, &Parameter::name) > 0;
  });
}

Result<ModelFile> readModelFile(const std::string& path) {
  CDL_ASSIGN(Bytes content, mapFile(path));
  return parseModelFile(std::move(content), path);
}

Result<ModelFile> parseModelFile(Bytes content, const std::string& path) {
  const import::Format& format = import::formatOf(content);
  if (format.extension != ".onnx")
    return failure(Code::unsupported, "{}: a model of {}: only those of ONNX are trained", path,
                   format.name);
  if (path.ends_with(".cdl"))
    return failure(Code::unsupported, "{}: a text of the IR: only models of ONNX are trained",
                   path);
  ModelFile file{std::move(content), {}};
  CDL_ASSIGN(const Model read, import::onnx_io::parseModel(file.content, path));
  file.model = withConstantsAsInitializers(read);
  return file;
}

Status writeTrained(const ModelFile& file, const std::vector<Parameter>& parameters,
                    const std::string& path) {
  return import::onnx_io::writeModel(withValues(file.model, parameters), file.content, path);
}

} // namespace candela::train
