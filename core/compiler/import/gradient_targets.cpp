#include "core/compiler/import/gradient_targets.h"

#include <algorithm>

namespace candela::import {

const std::vector<onnx_io::Node>& withGradientTargets(const std::vector<onnx_io::Node>& nodes,
                                                      std::vector<onnx_io::Node>& rewritten) {
  const auto isGradient = [](const onnx_io::Node& node) {
    return node.opType == "Gradient" && node.domain == "ai.onnx.preview.training";
  };
  if (std::ranges::none_of(nodes, isGradient)) return nodes;
  rewritten = nodes;
  for (onnx_io::Node& node : rewritten) {
    if (!isGradient(node)) continue;
    const auto y = node.attributes.find("y");
    const auto* name = y == node.attributes.end() ? nullptr : std::get_if<std::string>(&y->second);
    if (name) node.inputs.push_back(*name);
  }
  return rewritten;
}

} // namespace candela::import
