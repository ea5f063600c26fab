// Bias correction, after Nagel, van Baalen, Blankevoort, Welling: "Data-Free Quantization Through
// Weight Equalization and Bias Correction", ICCV 2019, section 4.2.
//
// Rounded weights W' = W + D shift the outputs of a layer by E[D x], which is another shift for
// each output channel, and the more of one the fewer weights a channel has: a depthwise one has
// nine. That mean is measured here rather than computed: all layers of the quantized model, with
// rounded inputs, weights and biases, are put beside those of the float one and read the same
// values, so that one pass over the samples gives all means, with borders and clamped inputs as
// they are. To first order the shifts of layers add up, and each layer takes back its own.
#include "core/compiler/quantize/correct_bias.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/quantize/weights.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr double kMostSteps = 0x1p30; ///< of a bias in integers: leaves room for the sum

bool hasOperand(const Node& node, size_t index) {
  return node.inputs.size() > index && !node.inputs[index].empty();
}

/// A product of the float network with constant weights, and the same of the quantized one.
struct ShiftedLayer {
  int node = -1, quantized = -1;
  int64_t channels = 0;
  int channelDim = 1;          ///< of the result; -1: the last
  std::vector<double> sums;    ///< of differences, by channel
  std::vector<int64_t> counts; ///< of elements, by channel
  double mean(size_t channel) const {
    return counts[channel] ? sums[channel] / static_cast<double>(counts[channel]) : 0;
  }
};

/// The float network with the quantized one's layers beside its own.
class Probe {
public:
  Probe(const Network& network, const Network& quantized,
        const std::map<std::string, std::string>& dequantized)
      : network_(network), quantized_(quantized) {
    for (const auto& [value, real] : dequantized) valueOf_[real] = value;
  }

  Status raise() { return raiseOpset(network_, quantized_.opset()); }

  /// Returns the name of what the quantized layer gives.
  std::string add(const ShiftedLayer& layer) {
    Node node = quantized_.node(layer.quantized);
    node.inputs[0] = input(node.inputs[0]);
    for (size_t operand = 1; operand < node.inputs.size(); ++operand)
      if (hasOperand(node, operand)) node.inputs[operand] = constant(node.inputs[operand]);
    return append(node);
  }

  const import::onnx_io::Model& model() {
    network_.model.irVersion = quantized_.model.irVersion;
    return network_.model;
  }

private:
  std::string append(Node node) {
    node.name = network_.takeName(node.name + "_probe");
    node.outputs = {network_.takeName(node.outputs[0] + "_probe")};
    network_.model.graph.nodes.push_back(node);
    return node.outputs[0];
  }

  /// The float network's value, rounded where the quantized one rounds it.
  std::string input(const std::string& real) {
    const auto value = valueOf_.find(real);
    if (value == valueOf_.end()) return real;
    const auto [copy, isNew] = copies_.emplace(real, "");
    if (!isNew) return copy->second;
    Node dequantize = quantized_.node(quantized_.producer(real));
    Node quantize = quantized_.node(quantized_.producer(dequantize.inputs[0]));
    quantize.inputs[0] = value->second;
    for (Node* node : {&quantize, &dequantize})
      for (size_t operand = 1; operand < node->inputs.size(); ++operand)
        node->inputs[operand] = constant(node->inputs[operand]);
    dequantize.inputs[0] = append(quantize);
    copy->second = append(dequantize);
    return copy->second;
  }

  /// A constant of the quantized network, or what it dequantizes of one.
  std::string constant(const std::string& name) {
    const auto [copy, isNew] = copies_.emplace(name, "");
    if (!isNew) return copy->second;
    std::string made;
    if (const Tensor* tensor = quantized_.constant(name)) {
      made = network_.addConstant(name + "_probe", *tensor);
    } else {
      Node dequantize = quantized_.node(quantized_.producer(name));
      for (std::string& operand : dequantize.inputs) operand = constant(operand);
      made = append(dequantize);
    }
    copies_[name] = made;
    return made;
  }

  Network network_;
  const Network& quantized_;
  std::map<std::string, std::string> valueOf_; ///< by what is dequantized: of the float network
  std::map<std::string, std::string> copies_;  ///< by name in the quantized network
};

class Corrector {
public:
  Corrector(const Network& network, Network& quantized,
            const std::map<std::string, std::string>& dequantized)
      : network_(network), quantized_(quantized), dequantized_(dequantized) {}

  Result<BiasCorrection> run(const Samples& samples, const RunConditions& options) {
    findLayers();
    if (layers_.empty()) return std::move(result_);
    CDL_TRY(measure(samples, options));
    for (const ShiftedLayer& layer : layers_) correct(layer);
    quantized_.index();
    quantized_.dropUnused();
    return std::move(result_);
  }

private:
  void findLayers() {
    for (int i = 0; i < std::ssize(network_.model.graph.nodes); ++i) {
      const Node& node = network_.node(i);
      const bool isProduct =
          node.opType == "Conv" || node.opType == "Gemm" || node.opType == "MatMul";
      if (!isProduct || !node.domain.empty()) continue;
      const Tensor* weights = network_.constant(node.inputs[1]);
      const int quantized = quantized_.producer(node.outputs[0]);
      if (!weights || quantized < 0 || quantized_.constant(quantized_.node(quantized).inputs[1]))
        continue; // its weights are not rounded
      const size_t channelDim = static_cast<size_t>(axesOf(node, *weights).channel);
      ShiftedLayer layer{i,  quantized, weights->dims[channelDim], node.opType == "Conv" ? 1 : -1,
                         {}, {}};
      layer.sums.assign(static_cast<size_t>(layer.channels), 0);
      layer.counts.assign(static_cast<size_t>(layer.channels), 0);
      layers_.push_back(std::move(layer));
    }
  }

  Status measure(const Samples& samples, const RunConditions& options) {
    if (samples.runs() == 0) return badArgument("bias correction needs data");
    Probe probe(network_, quantized_, dequantized_);
    CDL_TRY(probe.raise());
    std::vector<std::string> values;
    for (const ShiftedLayer& layer : layers_) {
      values.push_back(network_.node(layer.node).outputs[0]);
      values.push_back(probe.add(layer));
    }
    CDL_ASSIGN(const Observed observed, Observed::compile(probe.model(), values, options));
    result_.runs = std::min(samples.runs(), kMostBiasRuns);
    for (int64_t run = 0; run < result_.runs; ++run) {
      CDL_ASSIGN(const std::vector<Tensor> in, samples.run(run * samples.runs() / result_.runs));
      CDL_ASSIGN(const std::vector<Tensor> out, observed.run(in));
      for (size_t i = 0; i < layers_.size(); ++i) add(layers_[i], out[2 * i], out[2 * i + 1]);
    }
    return Status::ok();
  }

  static void add(ShiftedLayer& layer, const Tensor& want, const Tensor& got) {
    int64_t inner = 1;
    for (size_t d = 2; layer.channelDim == 1 && d < want.dims.size(); ++d) inner *= want.dims[d];
    for (int64_t i = 0; i < want.count(); ++i) {
      const auto channel = static_cast<size_t>(i / inner % layer.channels);
      layer.sums[channel] +=
          static_cast<double>(got.as<float>()[i]) - static_cast<double>(want.as<float>()[i]);
      ++layer.counts[channel];
    }
  }

  /// The operand of a node of the quantized network that holds the layer's bias.
  struct Place {
    int node = -1;
    size_t operand = 0;
  };
  std::optional<Place> placeOf(const ShiftedLayer& layer) const {
    const Node& node = quantized_.node(layer.quantized);
    if (node.opType != "MatMul") {
      if (hasOperand(node, 2)) return Place{layer.quantized, 2};
      return std::nullopt;
    }
    const std::vector<int>& users = quantized_.users(node.outputs[0]);
    if (users.size() != 1 || quantized_.isOutput(node.outputs[0])) return std::nullopt;
    const Node& add = quantized_.node(users[0]);
    if (add.opType != "Add" || !add.domain.empty()) return std::nullopt;
    for (const size_t side : {0, 1})
      if (quantized_.constant(add.inputs[side])) return Place{users[0], side};
    return std::nullopt;
  }

  void correct(const ShiftedLayer& layer) {
    const std::string name = network_.nodeName(layer.node);
    const auto leaveOut = [&](const char* why) { result_.leftOut.push_back({name, why}); };
    for (size_t channel = 0; channel < layer.sums.size(); ++channel)
      if (!std::isfinite(layer.mean(channel))) return leaveOut("its results are not finite");
    const std::optional<Place> place = placeOf(layer);
    if (!place) return leaveOut("it has no bias");
    const Node& node = quantized_.node(layer.quantized);
    const double beta = static_cast<double>(attributeOf<float>(node, "beta", 1));
    if (beta == 0) return leaveOut("it takes nothing of its bias");
    const std::string bias = quantized_.node(place->node).inputs[place->operand];
    const int from = quantized_.producer(bias);
    const bool isStored = !quantized_.constant(bias) && from >= 0 &&
                          quantized_.node(from).opType == "DequantizeLinear";
    const bool isCorrected =
        isStored ? correctIntegers(layer, from) : correctReals(layer, *place, bias, beta);
    if (!isCorrected) return leaveOut("its bias is not one value a channel");
    result_.nodes.push_back(name);
  }

  static bool isRow(const Tensor& bias, const ShiftedLayer& layer) {
    return !bias.dims.empty() && bias.count() == layer.channels &&
           bias.dims.back() == layer.channels;
  }

  /// A bias in steps of its own: node `from` dequantizes it.
  bool correctIntegers(const ShiftedLayer& layer, int from) {
    Node& dequantize = quantized_.model.graph.nodes[static_cast<size_t>(from)];
    const Tensor* integers = quantized_.constant(dequantize.inputs[0]);
    const Tensor* scales = quantized_.constant(dequantize.inputs[1]);
    if (!integers || !scales || integers->elem != Elem::i32_ || !isRow(*integers, layer) ||
        !isRow(*scales, layer))
      return false;
    std::vector<int32_t> row;
    for (size_t c = 0; c < layer.sums.size(); ++c) {
      const double stored = static_cast<double>(integers->as<int32_t>()[c]),
                   step = static_cast<double>(scales->as<float>()[c]),
                   most = std::max(kMostSteps, std::abs(stored));
      row.push_back(static_cast<int32_t>(
          std::clamp(std::nearbyint(stored - layer.mean(c) / step), -most, most)));
    }
    const Tensor corrected = Tensor::of(Elem::i32_, integers->dims, row);
    dequantize.inputs[0] = quantized_.addConstant(dequantize.inputs[0] + "_corrected", corrected);
    return true;
  }

  bool correctReals(const ShiftedLayer& layer, const Place& place, const std::string& bias,
                    double beta) {
    const Tensor* reals = quantized_.constant(bias);
    if (!reals || reals->elem != Elem::f32_ || !isRow(*reals, layer)) return false;
    std::vector<float> row;
    for (size_t c = 0; c < layer.sums.size(); ++c)
      row.push_back(
          static_cast<float>(static_cast<double>(reals->as<float>()[c]) - layer.mean(c) / beta));
    const Tensor corrected = Tensor::of(Elem::f32_, reals->dims, row);
    quantized_.model.graph.nodes[static_cast<size_t>(place.node)].inputs[place.operand] =
        quantized_.addConstant(bias + "_corrected", corrected);
    return true;
  }

  const Network& network_;
  Network& quantized_;
  const std::map<std::string, std::string>& dequantized_;
  std::vector<ShiftedLayer> layers_;
  BiasCorrection result_;
};

} // namespace

void addBiases(Network& network, const Plan& plan) {
  for (int i = 0; i < std::ssize(network.model.graph.nodes); ++i) {
    Node& node = network.model.graph.nodes[static_cast<size_t>(i)];
    const bool takesBias = node.opType == "Conv" || node.opType == "Gemm";
    if (!takesBias || !plan.quantized[static_cast<size_t>(i)] || hasOperand(node, 2)) continue;
    const Tensor* weights = network.constant(node.inputs[1]);
    const int64_t channels = weights->dims[static_cast<size_t>(axesOf(node, *weights).channel)];
    node.inputs.resize(3);
    node.inputs[2] = network.addConstant(
        network.nodeName(i) + "_bias",
        Tensor::of(Elem::f32_, {channels}, std::vector<float>(static_cast<size_t>(channels), 0)));
  }
  network.index();
}

Result<BiasCorrection> correctBiases(const Network& network, Network& quantized,
                                     const std::map<std::string, std::string>& dequantized,
                                     const Samples& samples, const RunConditions& options) {
  return Corrector(network, quantized, dequantized).run(samples, options);
}

} // namespace candela::quantize
