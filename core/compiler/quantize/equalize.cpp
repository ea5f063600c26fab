// Cross-layer equalization, after Nagel, van Baalen, Blankevoort, Welling: "Data-Free Quantization
// Through Weight Equalization and Bias Correction", ICCV 2019, section 4.1.
//
// For f with f(s x) = s f(x), s > 0, the network W2 f(W1 x + b1) is the same as
// (W2 S) f(S^-1 W1 x + S^-1 b1) for any diagonal S > 0. One step for all weights of a layer suits
// them best where the channels have the same range. With r1 the largest magnitude of the weights
// that make channel i, and r2 that of the weights that read it, s_i = sqrt(r1 / r2) makes both
// sqrt(r1 r2). A layer belongs to a pair with what is before it and to one with what follows, so
// that all pairs are gone over in the order of the nodes until no factor is far from 1.
//
// The largest magnitude over the taps of a kernel is all that a factor depends on, so that the
// sweeps work on these alone; weights are scaled once, at the end, in double precision.
#include "core/compiler/quantize/equalize.h"

#include <algorithm>
#include <cmath>

#include "core/compiler/quantize/weights.h"
#include "core/support/text/scan.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr int kMostSweeps = 200;
constexpr double kConverged = 1e-4; ///< the most that a factor of a last sweep differs from 1
/// Channels whose weights are smaller than this share of the layer's largest do nothing; scaled up
/// they would take the ranges of the others with their biases.
constexpr double kLeastShare = 0x1p-20;

bool isLayer(const Node& node) {
  return node.domain.empty() && (node.opType == "Conv" || node.opType == "Gemm");
}

/// A Conv or Gemm with what its channels are scaled by.
struct ScaledLayer {
  int node = -1;
  WeightView view;
  std::vector<double> magnitudes;        ///< [outputChannels][inputs]: the largest over the taps
  std::vector<double> ofInput, ofOutput; ///< factors of channels so far

  double& magnitude(int64_t output, int64_t input) {
    return magnitudes[static_cast<size_t>(output * view.inputs.count + input)];
  }
};

/// A pair of layers by their index.
struct LayerPair {
  size_t first = 0, second = 0;
  std::vector<bool> isScaled; ///< by channel
};

/// What follows a layer by channels.
struct Follower {
  int node = -1;
  int64_t taps = 1; ///< elements of a channel that became inputs of their own
  std::string why;  ///< there is none
};

class Equalizer {
public:
  explicit Equalizer(Network& network) : network_(network) {}

  Equalization run() {
    for (int i = 0; i < std::ssize(network_.model.graph.nodes); ++i)
      if (isLayer(network_.node(i))) addPair(i);
    if (pairs_.empty()) return std::move(result_);
    double farthest = 1;
    while (farthest > kConverged && result_.sweeps < kMostSweeps) {
      farthest = 0;
      for (const LayerPair& pair : pairs_) farthest = std::max(farthest, scale(pair));
      ++result_.sweeps;
    }
    for (const LayerPair& pair : pairs_) report(pair);
    for (const ScaledLayer& layer : layers_) write(layer);
    network_.index();
    network_.dropUnused();
    return std::move(result_);
  }

private:
  /// Null, or why the node's weights cannot be scaled.
  const char* whyFixed(const Node& node) const {
    const Tensor* weights = network_.constant(node.inputs[1]);
    if (!weights || weights->elem != Elem::f32_) return "its weights are no constant of f32";
    if (weights->count() == 0 || !viewOf(node, *weights))
      return "its weights have dims that are not a layer's";
    return nullptr;
  }
  /// Null, or why the node's bias cannot be scaled by channel.
  const char* whyFixedBias(const Node& node) const {
    if (node.inputs.size() < 3 || node.inputs[2].empty()) return nullptr;
    const Tensor* bias = network_.constant(node.inputs[2]);
    const int64_t channels = viewOf(node, *network_.constant(node.inputs[1]))->outputChannels();
    if (!bias || bias->elem != Elem::f32_) return "its bias is no constant of f32";
    if (bias->dims.empty() || bias->count() != channels || bias->dims.back() != channels)
      return "its bias is not one value a channel";
    return nullptr;
  }

  /// Whether the node takes a positive factor of a channel to that factor of its result, and keeps
  /// channels apart.
  static bool isHomogeneous(const Network& network, const Node& node) {
    const std::string& op = node.opType;
    if (text::isOneOf(op, "Relu|LeakyRelu|Identity|AveragePool|GlobalAveragePool|GlobalMaxPool"))
      return true;
    if (op == "PRelu") return network.constant(node.inputs[1]) != nullptr;
    if (op == "MaxPool") return node.outputs.size() == 1;
    if (op == "Dropout") return node.outputs.size() == 1 && node.inputs.size() < 3;
    return op == "Flatten" && attributeOf<int64_t>(node, "axis", 1) == 1;
  }

  /// The one that reads the node's channels, through what keeps them.
  Follower followerOf(int node) const {
    Follower found;
    std::string value = network_.node(node).outputs[0];
    for (;;) {
      if (network_.isOutput(value)) return {-1, 1, "its result is one of the model"};
      const std::vector<int>& users = network_.users(value);
      if (users.size() != 1) return {-1, 1, fmt::format("{} nodes read its result", users.size())};
      const Node& user = network_.node(users[0]);
      const std::string name = network_.nodeName(users[0]);
      if (std::ranges::count(user.inputs, value) != 1 || user.inputs[0] != value)
        return {-1, 1, fmt::format("node '{}' ({}) follows", name, user.opType)};
      if (isLayer(user)) {
        found.node = users[0];
        return found;
      }
      if (user.domain.empty() && user.opType == "Clip")
        return {
            -1, 1,
            fmt::format("node '{}' (Clip) has limits that would have to differ by channel", name)};
      if (!user.domain.empty() || !isHomogeneous(network_, user))
        return {-1, 1, fmt::format("node '{}' ({}) follows", name, user.opType)};
      if (user.opType == "Flatten") found.taps *= tapsOf(value);
      value = user.outputs[0];
    }
  }

  /// Elements of each channel of [N,C,...].
  int64_t tapsOf(const std::string& value) const {
    const auto type = network_.types.find(value);
    if (type == network_.types.end()) return 0;
    int64_t taps = 1;
    for (int d = 2; d < type->second.rank(); ++d) taps *= type->second.dim(d);
    return taps;
  }

  void addPair(int node) {
    const std::string name = network_.nodeName(node);
    const Node& first = network_.node(node);
    const auto leaveOut = [&](const std::string& why) { result_.leftOut.push_back({name, why}); };
    if (const char* why = whyFixed(first)) return leaveOut(why);
    if (const char* why = whyFixedBias(first)) return leaveOut(why);
    const Follower follower = followerOf(node);
    if (follower.node < 0) return leaveOut(follower.why);
    const Node& second = network_.node(follower.node);
    if (const char* why = whyFixed(second))
      return leaveOut(fmt::format("node '{}' follows: {}", network_.nodeName(follower.node), why));
    const Tensor& weights = *network_.constant(second.inputs[1]);
    const auto reader = viewOf(second, weights, follower.taps);
    const int64_t channels = viewOf(first, *network_.constant(first.inputs[1]))->outputChannels();
    const bool isTurned = second.opType == "Gemm" && attributeOf<int64_t>(second, "transA", 0) != 0;
    if (!reader || reader->inputChannels() != channels || isTurned)
      return leaveOut(fmt::format("node '{}' reads its channels in another order",
                                  network_.nodeName(follower.node)));
    LayerPair pair{layerOf(node, 1), layerOf(follower.node, follower.taps), {}};
    const std::vector<double> made = madeBy(pair), read = readBy(pair);
    const double mostMade = *std::ranges::max_element(made),
                 mostRead = *std::ranges::max_element(read);
    for (size_t c = 0; c < made.size(); ++c)
      pair.isScaled.push_back(made[c] > mostMade * kLeastShare && read[c] > mostRead * kLeastShare);
    pairs_.push_back(std::move(pair));
  }

  /// The layer of the node; a new one where there is none yet. A layer is a follower before it has
  /// one itself: nodes are in order.
  size_t layerOf(int node, int64_t taps) {
    const auto at = std::ranges::find(layers_, node, &ScaledLayer::node);
    if (at != layers_.end()) return static_cast<size_t>(at - layers_.begin());
    const Node& product = network_.node(node);
    const Tensor& weights = *network_.constant(product.inputs[1]);
    ScaledLayer layer;
    layer.node = node;
    layer.view = *viewOf(product, weights, taps);
    const WeightView& view = layer.view;
    layer.ofInput.assign(static_cast<size_t>(view.inputChannels()), 1);
    layer.ofOutput.assign(static_cast<size_t>(view.outputChannels()), 1);
    for (int64_t group = 0; group < view.groups.count; ++group)
      for (int64_t output = 0; output < view.outputs.count; ++output)
        for (int64_t input = 0; input < view.inputs.count; ++input) {
          float most = 0;
          for (int64_t tap = 0; tap < view.taps.count; ++tap)
            most =
                std::max(most, std::abs(weights.as<float>()[view.at(group, output, input, tap)]));
          layer.magnitudes.push_back(static_cast<double>(most));
        }
    layers_.push_back(std::move(layer));
    return layers_.size() - 1;
  }

  /// The input of the group of this output channel.
  static size_t inputChannel(const WeightView& view, int64_t output, int64_t input) {
    return static_cast<size_t>(output / view.outputs.count * view.inputs.count + input);
  }

  /// By channel: the largest of the weights that make it.
  std::vector<double> madeBy(const LayerPair& pair) {
    ScaledLayer& layer = layers_[pair.first];
    std::vector<double> ranges(layer.ofOutput.size(), 0);
    for (int64_t output = 0; output < layer.view.outputChannels(); ++output)
      for (int64_t input = 0; input < layer.view.inputs.count; ++input)
        ranges[static_cast<size_t>(output)] =
            std::max(ranges[static_cast<size_t>(output)], layer.magnitude(output, input));
    return ranges;
  }
  /// By channel: the largest of the weights that read it.
  std::vector<double> readBy(const LayerPair& pair) {
    ScaledLayer& layer = layers_[pair.second];
    std::vector<double> ranges(layer.ofInput.size(), 0);
    for (int64_t output = 0; output < layer.view.outputChannels(); ++output)
      for (int64_t input = 0; input < layer.view.inputs.count; ++input) {
        const size_t channel = inputChannel(layer.view, output, input);
        ranges[channel] = std::max(ranges[channel], layer.magnitude(output, input));
      }
    return ranges;
  }

  /// Makes both ranges of each channel the same; returns how far the farthest factor was from 1.
  double scale(const LayerPair& pair) {
    const std::vector<double> made = madeBy(pair), read = readBy(pair);
    std::vector<double> factors(made.size(), 1);
    double farthest = 0;
    for (size_t c = 0; c < made.size(); ++c) {
      if (!pair.isScaled[c]) continue;
      factors[c] = std::sqrt(made[c] / read[c]);
      farthest = std::max(farthest, std::abs(std::log(factors[c])));
    }
    ScaledLayer& first = layers_[pair.first];
    ScaledLayer& second = layers_[pair.second];
    for (size_t c = 0; c < factors.size(); ++c) {
      first.ofOutput[c] /= factors[c];
      second.ofInput[c] *= factors[c];
    }
    for (int64_t output = 0; output < first.view.outputChannels(); ++output)
      for (int64_t input = 0; input < first.view.inputs.count; ++input)
        first.magnitude(output, input) /= factors[static_cast<size_t>(output)];
    for (int64_t output = 0; output < second.view.outputChannels(); ++output)
      for (int64_t input = 0; input < second.view.inputs.count; ++input)
        second.magnitude(output, input) *= factors[inputChannel(second.view, output, input)];
    return farthest;
  }

  void report(const LayerPair& pair) {
    const std::vector<double>& factors = layers_[pair.first].ofOutput;
    result_.pairs.push_back(
        {network_.nodeName(layers_[pair.first].node), network_.nodeName(layers_[pair.second].node),
         *std::ranges::min_element(factors), *std::ranges::max_element(factors)});
  }

  /// Gives the layer weights and a bias of its own, for others may have read the same ones.
  void write(const ScaledLayer& layer) {
    Node& node = network_.model.graph.nodes[static_cast<size_t>(layer.node)];
    const Tensor& weights = *network_.constant(node.inputs[1]);
    const WeightView& view = layer.view;
    std::vector<float> scaled(static_cast<size_t>(weights.count()));
    for (int64_t output = 0; output < view.outputChannels(); ++output)
      for (int64_t input = 0; input < view.inputs.count; ++input) {
        const double factor = layer.ofOutput[static_cast<size_t>(output)] *
                              layer.ofInput[inputChannel(view, output, input)];
        for (int64_t tap = 0; tap < view.taps.count; ++tap) {
          const int64_t at =
              view.at(output / view.outputs.count, output % view.outputs.count, input, tap);
          scaled[static_cast<size_t>(at)] =
              static_cast<float>(static_cast<double>(weights.as<float>()[at]) * factor);
        }
      }
    const Shape dims = weights.dims;
    node.inputs[1] =
        network_.addConstant(node.inputs[1] + "_equalized", Tensor::of(Elem::f32_, dims, scaled));
    const bool isFirst =
        std::ranges::any_of(layer.ofOutput, [](double factor) { return factor != 1; });
    if (!isFirst || node.inputs.size() < 3 || node.inputs[2].empty()) return;
    const Tensor& bias = *network_.constant(node.inputs[2]);
    std::vector<float> row;
    for (size_t c = 0; c < layer.ofOutput.size(); ++c)
      row.push_back(
          static_cast<float>(static_cast<double>(bias.as<float>()[c]) * layer.ofOutput[c]));
    const Shape rowDims = bias.dims;
    node.inputs[2] =
        network_.addConstant(node.inputs[2] + "_equalized", Tensor::of(Elem::f32_, rowDims, row));
  }

  Network& network_;
  std::vector<ScaledLayer> layers_;
  std::vector<LayerPair> pairs_;
  Equalization result_;
};

} // namespace

Equalization equalize(Network& network) { return Equalizer(network).run(); }

} // namespace candela::quantize
