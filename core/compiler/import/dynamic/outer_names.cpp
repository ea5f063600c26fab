#include "core/compiler/import/dynamic/outer_names.h"

namespace candela::import {

void collectOuterNames(const onnx_io::Graph& graph, std::set<std::string>& names) {
  std::set<std::string> own;
  for (const onnx_io::ValueInfo& input : graph.inputs) own.insert(input.name);
  for (const onnx_io::Initializer& initializer : graph.initializers) own.insert(initializer.name);
  for (const onnx_io::Node& node : graph.nodes)
    own.insert(node.outputs.begin(), node.outputs.end());
  std::set<std::string> reads;
  for (const onnx_io::Node& node : graph.nodes) {
    reads.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes)
      if (const auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute);
          inner && *inner)
        collectOuterNames(**inner, reads);
  }
  for (const onnx_io::ValueInfo& output : graph.outputs) reads.insert(output.name);
  for (const std::string& name : reads)
    if (!name.empty() && !own.count(name)) names.insert(name);
}

onnx_io::Graph withOuterNames(const onnx_io::Graph& graph,
                              const std::map<std::string, std::string>& names) {
  std::map<std::string, std::string> visible = names;
  for (const onnx_io::ValueInfo& input : graph.inputs) visible.erase(input.name);
  for (const onnx_io::Initializer& initializer : graph.initializers)
    visible.erase(initializer.name);
  for (const onnx_io::Node& node : graph.nodes)
    for (const std::string& output : node.outputs) visible.erase(output);
  const auto rename = [&](std::string& name) {
    if (const auto found = visible.find(name); found != visible.end()) name = found->second;
  };
  onnx_io::Graph renamed = graph;
  for (onnx_io::Node& node : renamed.nodes) {
    for (std::string& input : node.inputs) rename(input);
    for (auto& [name, attribute] : node.attributes)
      if (auto* inner = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute); inner && *inner)
        *inner = std::make_shared<onnx_io::Graph>(withOuterNames(**inner, visible));
  }
  for (onnx_io::ValueInfo& output : renamed.outputs) rename(output.name);
  return renamed;
}

} // namespace candela::import
