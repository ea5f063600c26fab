// Accuracy control: each product is put back to float alone and the error at the outputs measured.
// Nodes go back in the order of what that gains, most first, until the goal is met; those that the
// goal holds without are then quantized again, last first.
#include "core/compiler/quantize/quantizer.h"

#include <fnmatch.h>

#include <algorithm>

namespace candela::quantize {

namespace {

/// Between reals and integers: the host may do that without a multiplication of its own.
bool isBorder(const runtime::bundle::NodePlacement& placed) {
  return placed.op.starts_with("quantize ") || placed.op.starts_with("dequantize ");
}

} // namespace

std::set<std::string> Quantizer::observed() const {
  if (settings_.weightsOnly) return {};
  // With those whose steps are another value's: where that stays float they have their own.
  return makePlan(network_, settings_.plan).values;
}

Result<Quantized> Quantizer::quantizePlainly(const Pins& pins) const {
  Quantized made{network_, makePlan(network_, settings_.plan, pins.keepFloat), {}, {}, {}, {}};
  made.network.model.integerRows = settings_.plan.integerRows;
  if (settings_.weightsOnly) {
    for (size_t i = 0; i < made.plan.quantized.size(); ++i)
      made.plan.quantized[i] = made.plan.quantized[i] && made.plan.roles[i] == Role::product;
    made.plan.values.clear();
  }
  std::set<std::string> int16;
  for (const int node : pins.int16)
    for (const std::string& input : network_.node(node).inputs)
      if (made.plan.values.count(input)) int16.insert(made.plan.root(input));
  CDL_ASSIGN(made.steps, chooseSteps(made.plan, profile_, settings_.activations, int16));
  if (settings_.correctsBias) addBiases(made.network, made.plan);
  CDL_ASSIGN(made.rewritten, rewrite(made.network, made.plan, made.steps, settings_.weights));
  return made;
}

Result<Quantized> Quantizer::quantize(const Pins& pins) const {
  CDL_ASSIGN(Quantized made, quantizePlainly(pins));
  if (settings_.roundsAdaptively) {
    CDL_ASSIGN(made.rounding, roundAdaptively(network_, made.network, samples_, run_, rounded_));
  }
  if (settings_.correctsBias) {
    CDL_ASSIGN(made.biases,
               correctBiases(network_, made.network, made.rewritten.dequantized, samples_, run_));
  }
  return made;
}

Status Quantizer::pinByTarget(Pins& pins, const RunConditions& targets) const {
  std::map<std::string, int> byName;
  for (int i = 0; i < std::ssize(network_.model.graph.nodes); ++i) byName[network_.nodeName(i)] = i;
  std::vector<std::string> outputs;
  for (const import::onnx_io::ValueInfo& output : network_.model.graph.outputs)
    outputs.push_back(output.name);
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    CDL_ASSIGN(const Quantized made, quantizePlainly(pins));
    CDL_ASSIGN(const Observed compiled, Observed::compile(made.network.model, outputs, targets));
    bool changed = false;
    for (const runtime::bundle::NodePlacement& placed : compiled.bundle().placement) {
      const auto at = byName.find(placed.node);
      if (at == byName.end() || placed.cls == runtime::bundle::NodePlacement::Class::native)
        continue;
      if (!made.plan.quantized[static_cast<size_t>(at->second)] || isBorder(placed)) continue;
      const Role role = made.plan.roles[static_cast<size_t>(at->second)];
      const bool movesOnly = role == Role::movement || role == Role::join;
      if (movesOnly) continue; // bytes are less to move than floats, wherever
      changed |= pins.keepFloat.emplace(at->second, placed.op + ": " + placed.why).second;
    }
    if (!changed) return Status::ok();
  }
  return Status::ok();
}

uint64_t macsOf(const Network& network, int index) {
  const import::onnx_io::Node& node = network.node(index);
  const auto result = network.types.find(node.outputs.empty() ? "" : node.outputs[0]);
  if (result == network.types.end() || node.inputs.size() < 2) return 0;
  const auto count = static_cast<uint64_t>(result->second.count());
  if (node.opType == "Conv") {
    const Tensor* weights = network.constant(node.inputs[1]);
    if (!weights || weights->dims.empty() || weights->dims[0] == 0) return 0;
    return count * static_cast<uint64_t>(weights->count() / weights->dims[0]);
  }
  if (node.opType != "Gemm" && node.opType != "MatMul") return 0;
  const auto a = network.types.find(node.inputs[0]);
  if (a == network.types.end() || a->second.rank() == 0) return 0;
  const bool isTurned = attributeOf<int64_t>(node, "transA", 0) != 0;
  return count * static_cast<uint64_t>(a->second.dim(isTurned ? 0 : -1));
}

Result<std::set<int>> matching(const Network& network, const std::string& glob) {
  std::set<int> nodes;
  for (int i = 0; i < std::ssize(network.model.graph.nodes); ++i)
    if (fnmatch(glob.c_str(), network.nodeName(i).c_str(), 0) == 0 ||
        fnmatch(glob.c_str(), network.node(i).opType.c_str(), 0) == 0)
      nodes.insert(i);
  if (nodes.empty()) return badArgument("'{}': no node has such a name or operator", glob);
  return nodes;
}

double worstSnr(const Network& network, const Comparison& comparison) {
  double worst = kExactSnr;
  for (const import::onnx_io::ValueInfo& output : network.model.graph.outputs)
    if (const auto at = comparison.values.find(output.name); at != comparison.values.end())
      worst = std::min(worst, at->second.snr());
  return worst;
}

namespace {

/// Tries sets of pins against a goal.
class Control {
public:
  Control(const Quantizer& quantizer, const Goal& goal, const Samples& samples,
          const std::vector<int64_t>& labels, const RunConditions& options)
      : quantizer_(quantizer), goal_(goal), samples_(samples), labels_(labels), options_(options) {}

  struct Score {
    double snr = 0, loss = 0, right = 0;
  };
  Result<Score> score(const Pins& pins) const {
    CDL_ASSIGN(const Quantized made, quantizer_.quantize(pins));
    CDL_ASSIGN(const Comparison comparison,
               compareModels(quantizer_.network(), made.network.model, {}, samples_,
                             goal_.mostLoss ? samples_.runs() : goal_.runs, labels_, options_, {}));
    Score score;
    score.snr = worstSnr(quantizer_.network(), comparison);
    const auto all = static_cast<double>(std::max<int64_t>(1, comparison.labelled));
    score.right = 100 * static_cast<double>(comparison.quantizedRight) / all;
    score.loss = 100 * static_cast<double>(comparison.floatRight) / all - score.right;
    return score;
  }
  bool isMet(const Score& score) const {
    return (!goal_.mostLoss || score.loss <= *goal_.mostLoss) &&
           (!goal_.leastSnr || score.snr >= *goal_.leastSnr);
  }

private:
  const Quantizer& quantizer_;
  const Goal& goal_;
  const Samples& samples_;
  const std::vector<int64_t>& labels_;
  const RunConditions& options_;
};

void pin(Pins& pins, int node, bool int16) {
  if (int16)
    pins.int16.insert(node);
  else
    pins.keepFloat[node] = "kept float for accuracy";
}

} // namespace

Result<std::vector<Move>> meetGoal(const Quantizer& quantizer, const Goal& goal, bool int16First,
                                   const Samples& samples, const std::vector<int64_t>& labels,
                                   const RunConditions& options, const OnProgress& progress,
                                   Pins& pins) {
  const Control control(quantizer, goal, samples, labels, options);
  const Network& network = quantizer.network();
  const std::string to = int16First ? "int16" : "float";
  std::vector<Move> path;
  CDL_ASSIGN(const Control::Score start, control.score(pins));
  path.push_back({"", "all integers", start.snr, start.right});
  if (control.isMet(start)) return path;
  const Plan plan = makePlan(network, quantizer.settings().plan, pins.keepFloat);
  std::vector<std::pair<double, int>> gains;
  std::vector<int> products;
  for (int i = 0; i < std::ssize(plan.roles); ++i)
    if (plan.roles[static_cast<size_t>(i)] == Role::product) products.push_back(i);
  for (size_t p = 0; p < products.size(); ++p) {
    Pins alone = pins;
    pin(alone, products[p], int16First);
    CDL_ASSIGN(const Control::Score score, control.score(alone));
    gains.emplace_back(score.snr - start.snr, products[p]);
    if (progress) progress(static_cast<double>(p + 1) / static_cast<double>(products.size()));
  }
  std::ranges::stable_sort(gains, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int> taken;
  for (const auto& [gain, node] : gains) {
    pin(pins, node, int16First);
    taken.push_back(node);
    CDL_ASSIGN(const Control::Score score, control.score(pins));
    path.push_back({network.nodeName(node), to, score.snr, score.right});
    if (control.isMet(score)) break;
    if (node == gains.back().second)
      return badArgument("the goal is not met with every product in {}: {:.1f} dB{}", to, score.snr,
                         labels.empty() ? "" : fmt::format(", {:.2f} % right", score.right));
  }
  for (size_t i = taken.size() - 1; i-- > 0;) {
    Pins without = pins;
    without.keepFloat.erase(taken[i]);
    without.int16.erase(taken[i]);
    CDL_ASSIGN(const Control::Score score, control.score(without));
    if (!control.isMet(score)) continue;
    pins = std::move(without);
    path.push_back({network.nodeName(taken[i]), "integers again", score.snr, score.right});
  }
  return path;
}

} // namespace candela::quantize
