#include <algorithm>
#include <map>
#include <set>

#include "core/conform/onnx_tier.h"

namespace candela::conform {
namespace {

/// Operands of ONNX operators whose values decide the shape of a result, or how often a body runs.
const std::map<std::string, std::vector<size_t>>& shapeOperands() {
  static const std::map<std::string, std::vector<size_t>> table = {{"AffineGrid", {1}},
                                                                   {"BlackmanWindow", {0}},
                                                                   {"CenterCropPad", {1}},
                                                                   {"Col2Im", {1, 2}},
                                                                   {"ConstantOfShape", {0}},
                                                                   {"CumSum", {1}},
                                                                   {"DFT", {1, 2}},
                                                                   {"Dropout", {1, 2}},
                                                                   {"Expand", {1}},
                                                                   {"HammingWindow", {0}},
                                                                   {"HannWindow", {0}},
                                                                   {"If", {0}},
                                                                   {"Loop", {0, 1}},
                                                                   {"MaxUnpool", {2}},
                                                                   {"MelWeightMatrix", {0, 1, 2, 3, 4}},
                                                                   {"NonMaxSuppression", {2, 3, 4}},
                                                                   {"OneHot", {1}},
                                                                   {"Pad", {1, 2, 3}},
                                                                   {"Range", {0, 1, 2}},
                                                                   {"ReduceL1", {1}},
                                                                   {"ReduceL2", {1}},
                                                                   {"ReduceLogSum", {1}},
                                                                   {"ReduceLogSumExp", {1}},
                                                                   {"ReduceMax", {1}},
                                                                   {"ReduceMean", {1}},
                                                                   {"ReduceMin", {1}},
                                                                   {"ReduceProd", {1}},
                                                                   {"ReduceSum", {1}},
                                                                   {"ReduceSumSquare", {1}},
                                                                   {"Reshape", {1}},
                                                                   {"Resize", {1, 2, 3}},
                                                                   {"STFT", {1, 3}},
                                                                   {"Slice", {1, 2, 3, 4}},
                                                                   {"Split", {1}},
                                                                   {"SplitToSequence", {1}},
                                                                   {"Squeeze", {1}},
                                                                   {"Tile", {1}},
                                                                   {"TopK", {1}},
                                                                   {"Trilu", {1}},
                                                                   {"Unsqueeze", {1}},
                                                                   {"Upsample", {1}}};
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
