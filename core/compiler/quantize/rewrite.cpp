#include "core/compiler/quantize/rewrite.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/compiler/quantize/exact_multiplier.h"
#include "core/compiler/quantize/weights.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr int64_t kPerChannelOpset = 13, kNarrowOpset = 21;
constexpr int64_t kNarrowIr = 10;
constexpr double kMostBias = 0x1p29; ///< steps of a sum: leaves room for the sum itself

/// Weights as integers; scales along `axis`, or of blocks along it.
struct Stored {
  Tensor integers, scales;
  std::vector<double> channelScales; ///< of axes without blocks: one or one a channel
  std::vector<double> ownScales;     ///< by scale: what its weights alone ask for; 0 of zeros
  int axis = -1;
  int64_t block = 0;
};

/// The scale of the largest magnitude, or of a smaller one where that costs least error.
double scaleOf(const std::vector<float>& values, double most, bool searches, bool powerOfTwo) {
  double largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  double best = largest / most;
  if (searches && largest > 0) {
    double least = std::numeric_limits<double>::infinity();
    constexpr int kShares = 24, kLeastShare = 12;
    for (int share = kLeastShare; share <= kShares; ++share) {
      const double scale = largest * share / kShares / most;
      double cost = 0;
      for (const float value : values) {
        const double stored = std::clamp(std::nearbyint(value / scale), -most - 1, most);
        cost += (value - stored * scale) * (value - stored * scale);
      }
      if (cost < least) {
        least = cost;
        best = scale;
      }
    }
  }
  if (powerOfTwo && best > 0) best = std::exp2(std::ceil(std::log2(best)));
  return best;
}

/// What the product around the weights asks of their scales.
struct ScaleLimits {
  std::vector<double> least;         ///< for each channel, or one for all; none: empty
  std::optional<StepsAround> around; ///< of a product that is rescaled to bytes
};

/// `best`, moved to where nothing is rounded twice if that costs less than kMostGrowth.
double exactScale(double best, double least, double most, const StepsAround& around) {
  constexpr double kMostGrowth = 1.0625; // a tenth of a bit
  // Below it the largest weight would be cut by more than half a step.
  const double nearest = best * (1 - 1 / (2 * most + 1));
  const auto exact = stepOfExactMultiplier(std::max(nearest, least), best * kMostGrowth, around);
  return exact ? static_cast<double>(*exact) : best;
}

/// f32 numbers that the file can hold. `own`: of each group of weights, 0 for a group of zeros.
std::vector<float> limitScales(const std::vector<double>& own, double mostInteger,
                               const ScaleLimits& limits) {
  const double largest = own.empty() ? 0 : *std::ranges::max_element(own);
  std::vector<float> scales;
  for (size_t g = 0; g < own.size(); ++g) {
    // Zeros have any step: one like the others', by which their sums are rescaled likewise.
    double scale = own[g] == 0 ? largest : own[g];
    double least = 0;
    if (!limits.least.empty()) least = limits.least[limits.least.size() == 1 ? 0 : g];
    scale = std::max(scale, least);
    if (scale < static_cast<double>(FLT_MIN)) scale = scale == 0 ? 1 : static_cast<double>(FLT_MIN);
    if (limits.around) scale = exactScale(scale, least, mostInteger, *limits.around);
    scales.push_back(static_cast<float>(scale));
  }
  return scales;
}

Result<Stored> store(const Tensor& weights, const Node& product, const WeightOptions& options,
                     const ScaleLimits& limits) {
  const WeightAxes axes = axesOf(product, weights);
  const bool isNarrow = options.elem == Elem::i4_;
  const bool isBlocked = options.block > 0 && product.opType != "Conv";
  const bool isWhole = !options.perChannel || (weights.dims.size() > 2 && product.opType != "Conv");
  const double most = isNarrow ? 7 : 127;
  Stored stored;
  if (isBlocked)
    stored.axis = axes.sum;
  else if (!isWhole)
    stored.axis = axes.channel;
  stored.block = isBlocked ? options.block : 0;
  const int64_t count = weights.count();
  std::vector<int64_t> steps(static_cast<size_t>(count), 0);
  Shape scaleDims;
  if (stored.axis >= 0) {
    const StepOf stepOf(weights.dims, stored.axis, stored.block);
    for (int64_t i = 0; i < count; ++i) steps[static_cast<size_t>(i)] = stepOf(i);
    scaleDims = isBlocked ? weights.dims : Shape{weights.dims[static_cast<size_t>(stored.axis)]};
    if (isBlocked) scaleDims[static_cast<size_t>(stored.axis)] = stepOf.blocks();
  }
  std::vector<std::vector<float>> groups(static_cast<size_t>(*elementCount(scaleDims)));
  for (int64_t i = 0; i < count; ++i)
    groups[static_cast<size_t>(steps[static_cast<size_t>(i)])].push_back(weights.as<float>()[i]);
  for (const std::vector<float>& group : groups)
    stored.ownScales.push_back(scaleOf(group, most, isNarrow, options.powerOfTwo));
  const std::vector<float> scales = limitScales(stored.ownScales, most, limits);
  for (const float scale : scales) stored.channelScales.push_back(static_cast<double>(scale));
  CDL_ASSIGN(stored.integers, Tensor::zeros(options.elem, weights.dims));
  for (int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(weights.as<float>()[i]) /
                         stored.channelScales[static_cast<size_t>(steps[static_cast<size_t>(i)])];
    const auto integer =
        static_cast<int64_t>(std::clamp(std::nearbyint(value), isNarrow ? -most - 1 : -most, most));
    storeElement(options.elem, stored.integers.bytes.mutableData(), i,
                 static_cast<uint64_t>(integer) & elemMask(options.elem));
  }
  stored.scales = Tensor::of(Elem::f32_, scaleDims, scales);
  return stored;
}

Tensor integerScalar(Elem elem, int64_t value) {
  if (elem == Elem::i16_) return Tensor::of<int16_t>(elem, {}, {static_cast<int16_t>(value)});
  return Tensor::of<uint8_t>(elem, {}, {static_cast<uint8_t>(value)});
}

/// What masks all that has these steps.
double leastOfMask(const MaskedScores& masked, const Quantization& scores) {
  return scores.lowest() - scores.highest() - masked.depth();
}

class Rewriter {
public:
  Rewriter(Network& network, const Plan& plan, const std::map<std::string, Quantization>& steps,
           const WeightOptions& weights)
      : network_(network), plan_(plan), steps_(steps), weights_(weights) {}

  Result<Rewritten> run() {
    CDL_TRY(raise());
    for (const import::onnx_io::ValueInfo& input : network_.model.graph.inputs) addPair(input.name);
    const std::vector<Node>& nodes = network_.model.graph.nodes;
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node node = nodes[i];
      for (std::string& input : node.inputs)
        if (const auto at = result_.dequantized.find(input); at != result_.dequantized.end())
          if (plan_.quantized[i] || isKeptBack(input)) input = at->second;
      if (plan_.quantized[i] && plan_.roles[i] == Role::product)
        CDL_TRY(storeWeights(node, nodes[i]).context(fmt::format("node '{}'", node.name)));
      if (const auto constant = plan_.constantOperand.find(static_cast<int>(i));
          plan_.quantized[i] && constant != plan_.constantOperand.end())
        CDL_TRY(storeConstant(node.inputs[constant->second], nodes[i].outputs[0]));
      const bool givesOutput = isRoundedOutput(static_cast<int>(i));
      if (givesOutput) node.outputs[0] = network_.takeName(node.outputs[0] + "_unrounded");
      made_.push_back(std::move(node));
      if (givesOutput)
        addPair(nodes[i].outputs[0], made_.back().outputs[0], nodes[i].outputs[0]);
      else
        for (const std::string& output : nodes[i].outputs) addPair(output);
    }
    network_.model.graph.nodes = std::move(made_);
    network_.index();
    network_.dropUnused();
    return std::move(result_);
  }

private:
  Status raise() {
    bool isNarrow = weights_.elem == Elem::i4_ || weights_.block > 0;
    for (const auto& [value, step] : steps_) isNarrow |= step.elem == Elem::i16_;
    CDL_TRY(raiseOpset(network_, isNarrow ? kNarrowOpset : kPerChannelOpset));
    if (isNarrow) network_.model.irVersion = std::max(network_.model.irVersion, kNarrowIr);
    return Status::ok();
  }

  /// Whether float readers take the rounded value too: that of a node in integers, which then has
  /// no other result.
  bool isKeptBack(const std::string& value) const {
    const int from = producerOf(value);
    return from >= 0 && plan_.quantized[static_cast<size_t>(from)];
  }
  int producerOf(const std::string& value) const { return network_.producer(value); }

  /// Whether the node's result is one of the model that is rounded; sums of products are where they
  /// are a state.
  bool isRoundedOutput(int node) const {
    const auto at = static_cast<size_t>(node);
    const std::string& output = network_.node(node).outputs[0];
    const bool isState = std::ranges::any_of(
        plan_.states, [&](const auto& state) { return state.second == output; });
    return plan_.quantized[at] && (plan_.roles[at] != Role::product || isState) &&
           network_.isOutput(output) && steps_.count(output) > 0;
  }

  void addPair(const std::string& value) {
    if (steps_.count(value)) addPair(value, value, network_.takeName(value + "_dequantized"));
  }
  /// `real`: what the pair gives of `from`, with the steps of `value`.
  void addPair(const std::string& value, const std::string& from, const std::string& real) {
    const auto step = steps_.find(value);
    const std::string scale = network_.addConstant(
        value + "_scale", Tensor::of<float>(Elem::f32_, {}, {step->second.scale}));
    const std::string zero =
        network_.addConstant(value + "_zero", integerScalar(step->second.elem, step->second.zero));
    const std::string stored = network_.takeName(value + "_quantized");
    made_.push_back(make("QuantizeLinear", value + "_quantize", {from, scale, zero}, stored));
    made_.push_back(make("DequantizeLinear", value + "_dequantize", {stored, scale, zero}, real));
    result_.dequantized[value] = real;
  }

  static Node make(const std::string& op, const std::string& name, std::vector<std::string> inputs,
                   const std::string& output) {
    Node node;
    node.opType = op;
    node.name = name;
    node.inputs = std::move(inputs);
    node.outputs = {output};
    return node;
  }

  /// The scale of the product's input; 0 where that is not rounded.
  double inputScale(const Node& original) const {
    const auto step = steps_.find(original.inputs[0]);
    return step == steps_.end() ? 0 : static_cast<double>(step->second.scale);
  }

  /// Of a product of bytes that is rescaled to bytes by multipliers that are no powers of two.
  std::optional<StepsAround> stepsAround(const Node& product) const {
    const auto input = steps_.find(product.inputs[0]);
    const auto result = steps_.find(rescaledValue(product));
    if (input == steps_.end() || result == steps_.end()) return std::nullopt;
    const bool isBlocked = weights_.block > 0 && product.opType != "Conv";
    if (weights_.elem != Elem::i8_ || weights_.powerOfTwo || isBlocked) return std::nullopt;
    if (elemBits(input->second.elem) > 8 || elemBits(result->second.elem) > 8) return std::nullopt;
    return StepsAround{input->second.scale, result->second.scale};
  }
  /// What the product's sums become, behind limits and a bias.
  std::string rescaledValue(const Node& product) const {
    std::string value = product.outputs[0];
    while (!steps_.count(value)) {
      const std::vector<int>& users = network_.users(value);
      if (users.size() != 1 || network_.isOutput(value)) break;
      const auto user = static_cast<size_t>(users[0]);
      if (!plan_.quantized[user] || plan_.roles[user] != Role::activation) break;
      value = network_.node(users[0]).outputs[0];
    }
    return value;
  }

  Status storeWeights(Node& node, const Node& original) {
    const Tensor* found = network_.constant(original.inputs[1]);
    if (!found) return Status::ok();
    const Tensor weights = *found; // copies, for constants are added
    const double x = inputScale(original);
    const Tensor* row = original.inputs.size() > 2 && !original.inputs[2].empty()
                            ? network_.constant(original.inputs[2])
                            : nullptr;
    const Tensor bias = row ? *row : Tensor();
    const bool isPlain = attributeOf<float>(node, "alpha", 1) == 1 &&
                         attributeOf<float>(node, "beta", 1) == 1 && weights_.block == 0;
    const bool storesBias = row && x > 0 && isPlain && bias.dims.size() == 1;
    ScaleLimits limits;
    if (storesBias) limits.least = leastScales(bias, x);
    limits.around = stepsAround(original);
    CDL_ASSIGN(const Stored stored, store(weights, original, weights_, limits));
    result_.weightBytesBefore += weights.sizeBytes();
    result_.weightBytes += stored.integers.sizeBytes() + stored.scales.sizeBytes();
    noteRaised(original, stored, limits.least);
    CDL_ASSIGN(node.inputs[1], addWeights(original.inputs[1], stored));
    return storesBias ? storeBias(node, original, bias, stored, x) : Status::ok();
  }

  /// Puts integers in the place of a constant that arithmetic reads. Masks end where they mask.
  Status storeConstant(std::string& input, const std::string& result) {
    const Tensor constant = *network_.constant(input); // a copy, for constants are added
    const double least = leastOfConstant(input, result);
    std::vector<float> values;
    for (int64_t i = 0; i < constant.count(); ++i)
      values.push_back(std::max(constant.as<float>()[i], static_cast<float>(least)));
    for (const float value : values)
      if (!std::isfinite(value))
        return badArgument("constant '{}' is NaN or infinite: keep the node that reads it float",
                           input);
    constexpr double kMost = 127;
    const double own = scaleOf(values, kMost, false, weights_.powerOfTwo);
    const auto scale =
        static_cast<float>(own < static_cast<double>(FLT_MIN) ? 1.0 : own); // zeros have any step
    std::vector<int8_t> integers;
    for (const float value : values)
      integers.push_back(static_cast<int8_t>(std::clamp(
          std::nearbyint(static_cast<double>(value) / static_cast<double>(scale)), -kMost, kMost)));
    Stored stored;
    stored.integers = Tensor::of(Elem::i8_, constant.dims, integers);
    stored.scales = Tensor::of<float>(Elem::f32_, {}, {scale});
    CDL_ASSIGN(input, addWeights(input, stored));
    return Status::ok();
  }
  double leastOfConstant(const std::string& constant, const std::string& result) const {
    const auto masked = plan_.masked.find(result);
    if (masked == plan_.masked.end() || masked->second.mask != constant) return -INFINITY;
    const auto scores = steps_.find(masked->second.scores);
    return scores == steps_.end() ? -INFINITY : leastOfMask(masked->second, scores->second);
  }

  /// Below these a bias would not fit its 32 bits.
  std::vector<double> leastScales(const Tensor& bias, double x) const {
    std::vector<double> least;
    for (int64_t c = 0; c < bias.count(); ++c)
      least.push_back(std::abs(static_cast<double>(bias.as<float>()[c])) / (x * kMostBias));
    if (!weights_.perChannel && !least.empty()) least = {*std::ranges::max_element(least)};
    return least;
  }

  void noteRaised(const Node& node, const Stored& stored, const std::vector<double>& least) {
    size_t raised = 0;
    for (size_t c = 0; c < least.size() && c < stored.ownScales.size(); ++c)
      raised += stored.ownScales[c] > 0 && stored.ownScales[c] < least[c];
    if (raised)
      result_.notes.push_back(fmt::format(
          "node '{}': the bias of {} channels needs larger steps of the weights to fit 32 bits",
          node.name, raised));
  }

  Result<std::string> addWeights(const std::string& key, const Stored& stored) {
    // Readers that turn signed weights into unsigned ones look for a zero point.
    CDL_ASSIGN(Tensor zeros, Tensor::zeros(stored.integers.elem, stored.scales.dims));
    const std::string integers = network_.addConstant(key + "_quantized", stored.integers),
                      scale = network_.addConstant(key + "_scale", stored.scales),
                      zero = network_.addConstant(key + "_zero", std::move(zeros)),
                      real = network_.takeName(key + "_dequantized");
    Node node = make("DequantizeLinear", real, {integers, scale, zero}, real);
    if (stored.axis >= 0) node.attributes["axis"] = int64_t(stored.axis);
    if (stored.block) node.attributes["block_size"] = stored.block;
    made_.push_back(std::move(node));
    return real;
  }

  Status storeBias(Node& node, const Node& original, const Tensor& bias, const Stored& stored,
                   double x) {
    std::vector<int32_t> steps;
    std::vector<float> scales;
    for (int64_t c = 0; c < bias.count(); ++c) {
      const size_t at = stored.channelScales.size() == 1 ? 0 : static_cast<size_t>(c);
      const auto scale = static_cast<float>(x * stored.channelScales[at]);
      if (!std::isnormal(scale)) return Status::ok(); // it stays float
      scales.push_back(scale);
      steps.push_back(static_cast<int32_t>(
          std::nearbyint(static_cast<double>(bias.as<float>()[c]) / static_cast<double>(scale))));
    }
    const std::string key = original.inputs[2] + (original.name.empty() ? "" : "_" + original.name);
    const std::string integers = network_.addConstant(key + "_quantized",
                                                      Tensor::of(Elem::i32_, bias.dims, steps)),
                      scale = network_.addConstant(key + "_scale",
                                                   Tensor::of(Elem::f32_, bias.dims, scales)),
                      real = network_.takeName(key + "_dequantized");
    Node made = make("DequantizeLinear", real, {integers, scale}, real);
    made.attributes["axis"] = int64_t(0);
    made_.push_back(std::move(made));
    node.inputs[2] = real;
    return Status::ok();
  }

  Network& network_;
  const Plan& plan_;
  const std::map<std::string, Quantization>& steps_;
  const WeightOptions& weights_;
  std::vector<Node> made_;
  Rewritten result_;
};

/// Whether the value is a mask or the sum with one, which may be infinite.
bool isBehindMask(const Plan& plan, const std::string& value) {
  return std::ranges::any_of(plan.masked, [&](const auto& each) {
    return each.first == value || each.second.mask == value;
  });
}

/// The roots that have the steps of this one: its own, and of a state that of the other end.
std::set<std::string> sharingSteps(const Plan& plan, const std::string& root) {
  std::set<std::string> group{root};
  for (const auto& [input, output] : plan.states) {
    const std::string last = plan.root(output);
    if (input == root || last == root) group.insert({input, last});
  }
  return group;
}

bool containsAny(const std::set<std::string>& values, const std::set<std::string>& group) {
  return std::ranges::any_of(group, [&](const auto& each) { return values.count(each) > 0; });
}

/// What was seen of all of them together.
Result<Observer> seenOf(const Plan& plan, const Profile& profile,
                        const std::set<std::string>& group) {
  Observer all;
  for (const std::string& value : group) {
    const auto seen = profile.values.find(value);
    if (seen == profile.values.end())
      return badArgument("the profile does not have value '{}'", value);
    if (seen->second.notFinite && !isBehindMask(plan, value))
      return badArgument("value '{}' was NaN or infinite {} times: keep the nodes around it float "
                         "(--keep-float), or leave those samples out",
                         value, seen->second.notFinite);
    if (group.size() == 1) return seen->second;
    all.merge(seen->second);
  }
  return all;
}

using OptionsByValue = std::map<std::string, CalibrationOptions>;

/// Steps of a sum with a mask, and of the mask, that reach no further down than they have to.
void cutBelow(const Plan& plan, const Profile& profile, const OptionsByValue& options,
              std::map<std::string, Quantization>& steps) {
  const auto cut = [&](const std::string& value, double lowest, bool isOpen) {
    const auto own = options.find(value);
    if (own == options.end()) return;
    Range range = calibrate(profile.values.at(value), own->second);
    range.lowest = isOpen ? lowest : std::max(range.lowest, lowest);
    steps[value] = quantizationOf(range, own->second.scheme, own->second.elem);
  };
  // What is infinite counts in no range, and a mask that masked nothing in the data may do so
  // later.
  const auto isOpen = [&](const std::string& sum, const std::string& mask) {
    const auto seen = profile.values.find(mask);
    const bool masksNothing = seen != profile.values.end() && seen->second.min >= 0;
    return masksNothing || profile.values.at(plan.root(sum)).notFinite > 0;
  };
  std::map<std::string, double> least; // of a mask, which several sums may have
  std::set<std::string> open;
  for (const auto& [sum, masked] : plan.masked) {
    const auto scores = steps.find(masked.scores);
    const auto mask = profile.values.find(masked.mask);
    const bool leavesNothingIn = mask != profile.values.end() && mask->second.max < 0;
    if (scores == steps.end() || leavesNothingIn) continue;
    const Quantization known = scores->second;
    const bool opens = isOpen(sum, masked.mask);
    if (opens) open.insert(masked.mask);
    const auto at = least.emplace(masked.mask, 0).first;
    at->second = std::min(at->second, leastOfMask(masked, known));
    cut(sum, known.lowest() - masked.depth(), opens);
  }
  for (const auto& [mask, lowest] : least) cut(mask, lowest, open.count(mask) > 0);
}

} // namespace

Result<std::map<std::string, Quantization>> chooseSteps(const Plan& plan, const Profile& profile,
                                                        const CalibrationOptions& options,
                                                        const std::set<std::string>& int16) {
  std::map<std::string, Quantization> steps;
  OptionsByValue chosen;
  for (const std::string& value : plan.values) {
    const std::string root = plan.root(value);
    if (steps.count(root)) {
      steps[value] = steps[root];
      continue;
    }
    const std::set<std::string> group = sharingSteps(plan, root);
    CDL_ASSIGN(const Observer seen, seenOf(plan, profile, group));
    CalibrationOptions own = options;
    const bool isCentred = options.scheme != Scheme::asymmetric;
    if (containsAny(plan.leftFactors, group) && !isCentred) own.scheme = Scheme::symmetricUint8;
    // A state begins with zeros.
    const bool isState = group.size() > 1;
    if ((containsAny(plan.rightFactors, group) || isState) && own.scheme != Scheme::powerOfTwo)
      own.scheme = Scheme::symmetric;
    if (int16.count(value) || containsAny(int16, group)) own.elem = Elem::i16_;
    for (const std::string& each : group) {
      chosen[each] = own;
      steps[each] = chooseQuantization(seen, own);
    }
    steps[value] = steps[root];
  }
  // A table has one element type.
  for (const auto& [value, source] : plan.functionOf) {
    if (!steps.count(value) || !steps.count(source)) continue;
    const Elem elem = steps[source].elem;
    if (elem == steps[value].elem || elem == Elem::i16_) continue;
    const Range range = calibrate(profile.values.at(plan.root(value)), options);
    steps[value] = elem == Elem::i8_ ? quantizationOf(range, Scheme::symmetric, Elem::i8_)
                                     : quantizationOf(range, Scheme::asymmetric, Elem::u8_);
  }
  for (const std::string& value : plan.values) steps[value] = steps[plan.root(value)];
  cutBelow(plan, profile, chosen, steps);
  return steps;
}

Result<Rewritten> rewrite(Network& network, const Plan& plan,
                          const std::map<std::string, Quantization>& steps,
                          const WeightOptions& weights) {
  return Rewriter(network, plan, steps, weights).run();
}

} // namespace candela::quantize
