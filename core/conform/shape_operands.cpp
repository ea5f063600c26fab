#include <algorithm>
#include <map>
#include <set>

#include "core/conform/onnx_tier.h"

namespace candela::conform {
namespace {

/// Operands of ONNX operators whose values decide the shape of a result, or how often a body runs.
const std::map<std::string, std::vector<size_t>>& shapeOperands() {
  static const std::map<std::string, std::vector<size_t>> table = [] {
    const std::pair<std::vector<size_t>, std::vector<std::string>> byOperands[] = {
        {{0}, {"BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "If"}},
        {{1},
         {"AffineGrid",      "CenterCropPad",   "CumSum",    "Expand",          "OneHot",    "ReduceL1",   "ReduceL2",
          "ReduceLogSum",    "ReduceLogSumExp", "ReduceMax", "ReduceMean",      "ReduceMin", "ReduceProd", "ReduceSum",
          "ReduceSumSquare", "Reshape",         "Split",     "SplitToSequence", "Squeeze",   "Tile",       "TopK",
          "Trilu",           "Unsqueeze",       "Upsample"}},
        {{2}, {"MaxUnpool"}},
        {{0, 1}, {"Loop"}},
        {{1, 2}, {"Col2Im", "DFT", "Dropout"}},
        {{1, 3}, {"STFT"}},
        {{0, 1, 2}, {"Range"}},
        {{1, 2, 3}, {"Pad", "Resize"}},
        {{2, 3, 4}, {"NonMaxSuppression"}},
        {{1, 2, 3, 4}, {"Slice"}},
        {{0, 1, 2, 3, 4}, {"MelWeightMatrix"}}};
    std::map<std::string, std::vector<size_t>> made;
    for (const auto& [operands, operators] : byOperands)
      for (const std::string& name : operators) made[name] = operands;
    return made;
  }();
  return table;
}

} // namespace

std::vector<std::string> shapeOperandInputs(const onnx_io::Graph& graph) {
  std::set<std::string> wanted;
  // Nodes stand behind what they read, so one walk backwards follows every chain.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool feeds =
        std::any_of(node->outputs.begin(), node->outputs.end(), [&](const std::string& o) { return wanted.count(o); });
    // Shape and Size say nothing of their operand's values.
    if (feeds && node->opType != "Shape" && node->opType != "Size")
      wanted.insert(node->inputs.begin(), node->inputs.end());
    const auto at = shapeOperands().find(node->opType);
    if (at == shapeOperands().end() || !node->domain.empty()) continue;
    for (const size_t i : at->second)
      if (i < node->inputs.size() && !node->inputs[i].empty()) wanted.insert(node->inputs[i]);
  }
  std::vector<std::string> names;
  for (const onnx_io::ValueInfo& input : graph.inputs)
    if (wanted.count(input.name)) names.push_back(input.name);
  return names;
}

} // namespace candela::conform
