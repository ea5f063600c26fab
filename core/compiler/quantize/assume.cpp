#include "core/compiler/quantize/assume.h"

#include <algorithm>

#include "core/compiler/quantize/norms.h"
#include "core/support/text/scan.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr Range kUnbounded = {-6, 8}; ///< of what nothing bounds

/// A limit of a Clip, which is an operand, or before opset 11 an attribute.
double limitOf(const Network& network, const Node& clip, const char* attribute, size_t operand,
               double otherwise) {
  const Tensor* limit =
      clip.inputs.size() > operand ? network.constant(clip.inputs[operand]) : nullptr;
  if (limit && limit->elem == Elem::f32_ && limit->count() == 1)
    return static_cast<double>(*limit->as<float>());
  return static_cast<double>(attributeOf<float>(clip, attribute, static_cast<float>(otherwise)));
}

/// Of a node's result, where its operand has the range `operand`.
Range rangeOf(const Network& network, const Node& node, const Range& operand) {
  const std::string& op = node.opType;
  if (text::isOneOf(op, "Sigmoid|HardSigmoid|Softmax")) return {0, 1};
  if (text::isOneOf(op, "Tanh|Erf|Softsign")) return {-1, 1};
  if (text::isOneOf(op, "Relu|Abs|Exp|Sqrt|Softplus")) return {0, kUnbounded.highest};
  if (op == "Clip") {
    const double lowest = limitOf(network, node, "min", 1, operand.lowest),
                 highest = limitOf(network, node, "max", 2, operand.highest);
    return {std::max(operand.lowest, lowest), std::min(operand.highest, highest)};
  }
  if (text::isOneOf(op,
                    "MaxPool|AveragePool|GlobalAveragePool|ReduceMean|Reshape|Transpose|Flatten|"
                    "Squeeze|Unsqueeze|Slice|Identity|Dropout|DepthToSpace|SpaceToDepth"))
    return operand;
  return kUnbounded;
}

Observer seenIn(const Range& range) {
  Observer seen;
  seen.min = seen.averageMin = range.lowest;
  seen.max = seen.averageMax = range.highest;
  seen.count = seen.runs = 1;
  return seen;
}

} // namespace

Profile assumedProfile(const Network& network, const std::set<std::string>& values) {
  std::map<std::string, Range> ranges;
  const auto known = [&](const std::string& value) {
    const auto at = ranges.find(value);
    return at == ranges.end() ? kUnbounded : at->second;
  };
  for (const Node& node : network.model.graph.nodes) {
    const Range range = rangeOf(network, node, known(node.inputs.empty() ? "" : node.inputs[0]));
    for (const std::string& output : node.outputs) ranges[output] = range;
  }
  Profile profile;
  for (const std::string& value : values) profile.values[value] = seenIn(known(value));
  return profile;
}

Result<import::onnx_io::Model> assumedModel(const std::string& path, Scheme scheme,
                                            const RunConditions& shapes) {
  CDL_ASSIGN(Network network, Network::read(path));
  joinNorms(network);
  CDL_TRY(setTypes(network, shapes));
  Settings settings;
  settings.activations.scheme = scheme;
  settings.plan.integerRows = true;
  settings.weights.powerOfTwo = scheme == Scheme::powerOfTwo;
  Quantizer quantizer(std::move(network), settings);
  quantizer.setProfile(assumedProfile(quantizer.network(), quantizer.observed()));
  CDL_ASSIGN(Quantized made, quantizer.quantize({}));
  return std::move(made.network.model);
}

} // namespace candela::quantize
