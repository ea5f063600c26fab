// Adaptive rounding of weights, after Frantar, Ashkboos, Hoefler, Alistarh: "GPTQ: Accurate
// Post-Training Quantization for Generative Pre-trained Transformers", ICLR 2023, itself after
// "Optimal Brain Compression", NeurIPS 2022.
//
// The results of an output channel with weights w, rounded to w + d, differ by d^T x for inputs x,
// whose mean square is d^T H d with H = E[x x^T]. To round each weight to the nearest makes the
// diagonal of that least; where inputs are correlated, weights rounded up make up for others
// rounded down. With H = L L^T the error is the sum over i of (L_ii d_i + sum_{j>i} L_ji d_j)^2, so
// that going from the last weight to the first each one is rounded to the nearest of what makes its
// own term vanish: Babai's nearest plane, which is what GPTQ does with the inverse of H (Chen et
// al.: "The Geometry of LLM Quantization", 2025). The weights with the largest inputs come last in
// the order, and are rounded first, while the others can still make up for them. A share of the
// diagonal's mean is added to H, for data that is too little or always the same.
//
// Neither is the least of all. So the better of that and the nearest, for each output channel, is
// where single weights then go up or down by one step as long as that makes the error less
// (coordinate descent on the same d^T H d). Hence never worse than the nearest on the data.
#include "core/compiler/quantize/round_adaptive.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "core/compiler/quantize/moments.h"
#include "core/support/threads.h"

namespace candela::quantize {
namespace {

using import::onnx_io::Node;

constexpr double kDamping = 0.01; ///< share of the diagonal's mean, as in GPTQ
constexpr int kMostDescents = 8;  ///< over all weights of a channel
constexpr size_t kChannelsAtOnce = 16;

/// Symmetric, row by row.
struct Matrix {
  size_t size = 0;
  std::vector<double> values;
  double* row(size_t i) { return &values[i * size]; }
  const double* row(size_t i) const { return &values[i * size]; }
};

/// In four sums, which a compiler does at once; the order of additions is fixed.
double dot(const double* a, const double* b, size_t count) {
  double sums[4] = {0, 0, 0, 0};
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// L of H = L L^T, below the diagonal and on it. H is positive definite.
void factorize(Matrix& matrix) {
  for (size_t i = 0; i < matrix.size; ++i) {
    for (size_t j = 0; j < i; ++j)
      matrix.row(i)[j] =
          (matrix.row(i)[j] - dot(matrix.row(i), matrix.row(j), j)) / matrix.row(j)[j];
    const double rest = matrix.row(i)[i] - dot(matrix.row(i), matrix.row(i), i);
    matrix.row(i)[i] = std::sqrt(std::max(rest, std::numeric_limits<double>::min()));
  }
}

/// Of one output channel, in the order of its terms.
struct Channel {
  std::vector<double> weights, steps;
  std::vector<double> nearest, rounded; ///< integers
  double nearestError = 0, error = 0;

  /// d: what these integers have more than the weight.
  double difference(const std::vector<double>& integers, size_t term) const {
    return integers[term] * steps[term] - weights[term];
  }
};

struct Limits {
  double least = 0, most = 0;
};

/// Rounds the output channels of one group, whose inputs have the moments `H`.
class GroupRounder {
public:
  GroupRounder(const Matrix& moments, Limits limits) : moments_(moments), limits_(limits) {
    order_.resize(moments.size);
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::ranges::stable_sort(order_, {}, [&](size_t i) { return moments.row(i)[i]; });
    double mean = 0;
    for (size_t i = 0; i < moments.size; ++i)
      mean += moments.row(i)[i] / static_cast<double>(moments.size);
    isSilent_ = mean == 0; // no input was ever anything but 0
    if (isSilent_) return;
    factor_ = {moments.size, std::vector<double>(moments.values.size())};
    for (size_t i = 0; i < moments.size; ++i) {
      for (size_t j = 0; j <= i; ++j) factor_.row(i)[j] = moments.row(order_[i])[order_[j]];
      factor_.row(i)[i] += kDamping * mean;
    }
    factorize(factor_);
  }

  void round(std::vector<Channel>& channels) const {
    for (Channel& channel : channels) channel.rounded = channel.nearest;
    if (isSilent_) return;
    for (size_t first = 0; first < channels.size(); first += kChannelsAtOnce) {
      const size_t count = std::min(channels.size() - first, kChannelsAtOnce);
      const std::span<Channel> near = std::span(channels).subspan(first, count);
      feedBack(near);
      settle(near);
    }
  }

private:
  /// Rounds from the last term to the first; the factor's rows are read once for all channels.
  void feedBack(std::span<Channel> channels) const {
    const size_t count = moments_.size;
    std::vector<std::vector<double>> carried(channels.size(), std::vector<double>(count, 0));
    for (size_t i = count; i-- > 0;)
      for (size_t c = 0; c < channels.size(); ++c) {
        Channel& channel = channels[c];
        std::vector<double>& carry = carried[c];
        const size_t term = order_[i];
        const double* line = factor_.row(i);
        const double wanted = channel.weights[term] - carry[i] / line[i];
        channel.rounded[term] = limited(std::nearbyint(wanted / channel.steps[term]));
        const double difference = channel.difference(channel.rounded, term);
        for (size_t j = 0; j < i; ++j) carry[j] += line[j] * difference;
      }
  }

  double limited(double integer) const { return std::clamp(integer, limits_.least, limits_.most); }

  /// H d of these integers of each channel; the rows of H are read once for all channels.
  std::vector<std::vector<double>> slopes(std::span<const Channel> channels,
                                          std::vector<double> Channel::* integers) const {
    std::vector<std::vector<double>> slopes(channels.size(), std::vector<double>(moments_.size, 0));
    for (size_t i = 0; i < moments_.size; ++i)
      for (size_t c = 0; c < channels.size(); ++c) {
        const double difference = channels[c].difference(channels[c].*integers, i);
        if (difference == 0) continue;
        const double* line = moments_.row(i);
        for (size_t j = 0; j < moments_.size; ++j) slopes[c][j] += line[j] * difference;
      }
    return slopes;
  }
  /// d^T H d.
  static double errorOf(const Channel& channel, const std::vector<double>& integers,
                        const std::vector<double>& slope) {
    double error = 0;
    for (size_t i = 0; i < slope.size(); ++i) error += slope[i] * channel.difference(integers, i);
    return std::max(0.0, error);
  }

  /// Takes the better one of both for each channel, and goes down from there.
  void settle(std::span<Channel> channels) const {
    const auto ofNearest = slopes(channels, &Channel::nearest);
    auto ofRounded = slopes(channels, &Channel::rounded);
    for (size_t c = 0; c < channels.size(); ++c) {
      Channel& channel = channels[c];
      std::vector<double>& slope = ofRounded[c];
      channel.nearestError = errorOf(channel, channel.nearest, ofNearest[c]);
      if (errorOf(channel, channel.rounded, slope) >= channel.nearestError) {
        channel.rounded = channel.nearest;
        slope = ofNearest[c];
      }
      for (int descent = 0; descent < kMostDescents; ++descent)
        if (!descend(channel, slope)) break;
      channel.error = errorOf(channel, channel.rounded, slope);
      if (channel.error <= channel.nearestError) continue;
      channel.rounded = channel.nearest; // they differ by the rounding of doubles alone
      channel.error = channel.nearestError;
    }
  }

  /// Moves each weight by a step where that makes the error less; whether any moved.
  bool descend(Channel& channel, std::vector<double>& slope) const {
    constexpr double kLeastGain = 1e-9; ///< share of the term that a step adds by itself
    bool moved = false;
    for (size_t i = 0; i < moments_.size; ++i) {
      const double towards = slope[i] > 0 ? -1 : 1, integer = limited(channel.rounded[i] + towards),
                   change = (integer - channel.rounded[i]) * channel.steps[i],
                   own = change * change * moments_.row(i)[i];
      if (2 * change * slope[i] + own >= -kLeastGain * own) continue;
      channel.rounded[i] = integer;
      const double* line = moments_.row(i);
      for (size_t j = 0; j < moments_.size; ++j) slope[j] += line[j] * change;
      moved = true;
    }
    return moved;
  }

  const Matrix& moments_;
  Limits limits_;
  std::vector<size_t> order_; ///< of the terms: those with the largest inputs last
  Matrix factor_;             ///< of the moments in that order
  bool isSilent_ = false;
};

/// A product whose weights are rounded anew.
struct RoundedLayer {
  int node = -1, dequantize = -1; ///< of the float network; of the quantized one
  TermReader reader;
  Tensor weights, nearest, scales;
  std::optional<Moments> moments; ///< while its batch is worked on
  Tensor adaptive;
  AdaptedLayer done;
};

int64_t signedOf(const Tensor& integers, int64_t element) {
  return static_cast<int64_t>(
      integerOf(integers.elem, loadElement(integers.elem, integers.bytes.data(), element)));
}

void roundLayer(RoundedLayer& layer, const Node& dequantize) {
  const WeightView& view = layer.reader.view;
  const auto terms = static_cast<size_t>(view.terms());
  const bool isNarrow = layer.nearest.elem == Elem::i4_;
  constexpr Limits kNarrow = {-8, 7}, kByte = {-127, 127};
  const Limits limits = isNarrow ? kNarrow : kByte;
  std::optional<StepOf> stepOf;
  if (layer.scales.count() > 1 || !layer.scales.dims.empty())
    stepOf.emplace(layer.nearest.dims,
                   static_cast<int>(attributeOf<int64_t>(dequantize, "axis", 1)),
                   attributeOf<int64_t>(dequantize, "block_size", 0));
  layer.adaptive = *Tensor::zeros(layer.nearest.elem, layer.nearest.dims);
  std::byte* stored = layer.adaptive.bytes.mutableData();
  for (int64_t group = 0; group < view.groups.count; ++group) {
    const auto element = [&](size_t output, size_t term) {
      const auto t = static_cast<int64_t>(term);
      return view.at(group, static_cast<int64_t>(output), t / view.taps.count, t % view.taps.count);
    };
    std::vector<Channel> channels(static_cast<size_t>(view.outputs.count));
    for (size_t output = 0; output < channels.size(); ++output)
      for (size_t term = 0; term < terms; ++term) {
        const int64_t at = element(output, term), step = stepOf ? (*stepOf)(at) : 0;
        channels[output].weights.push_back(static_cast<double>(layer.weights.as<float>()[at]));
        channels[output].steps.push_back(static_cast<double>(layer.scales.as<float>()[step]));
        channels[output].nearest.push_back(static_cast<double>(signedOf(layer.nearest, at)));
      }
    const Matrix matrix{terms, std::move(layer.moments->ofGroup(group))};
    GroupRounder(matrix, limits).round(channels);
    for (size_t output = 0; output < channels.size(); ++output) {
      layer.done.nearest += channels[output].nearestError;
      layer.done.adaptive += channels[output].error;
      for (size_t term = 0; term < terms; ++term)
        storeElement(layer.adaptive.elem, stored, element(output, term),
                     static_cast<uint64_t>(static_cast<int64_t>(channels[output].rounded[term])) &
                         elemMask(layer.adaptive.elem));
    }
  }
}

class Rounder {
public:
  Rounder(const Network& network, Network& quantized, RoundedLayers& known)
      : network_(network), quantized_(quantized), known_(known) {}

  Result<AdaptiveRounding> run(const Samples& samples, const RunConditions& options) {
    if (samples.runs() == 0) return badArgument("adaptive rounding needs data");
    result_.runs = std::min(samples.runs(), kMostRoundingRuns);
    std::vector<RoundedLayer> batch;
    int64_t held = 0;
    for (int i = 0; i < std::ssize(network_.model.graph.nodes); ++i) {
      std::optional<RoundedLayer> layer = layerOf(i);
      if (!layer || takeKnown(*layer)) continue;
      const int64_t size = sizeOf(layer->reader);
      if (held + size > kMomentsAtOnce) {
        CDL_TRY(round(batch, samples, options));
        batch.clear();
        held = 0;
      }
      held += size;
      batch.push_back(std::move(*layer));
    }
    CDL_TRY(round(batch, samples, options));
    quantized_.index();
    quantized_.dropUnused();
    return std::move(result_);
  }

private:
  static int64_t sizeOf(const TermReader& reader) {
    return reader.view.groups.count * reader.view.terms() * reader.view.terms();
  }

  /// The node as a layer; nullopt where its weights are not rounded, or stay the nearest.
  std::optional<RoundedLayer> layerOf(int index) {
    const Node& node = network_.node(index);
    const bool isProduct =
        node.opType == "Conv" || node.opType == "Gemm" || node.opType == "MatMul";
    if (!isProduct || !node.domain.empty()) return std::nullopt;
    const Tensor* weights = network_.constant(node.inputs[1]);
    const int product = quantized_.producer(node.outputs[0]);
    if (!weights || product < 0) return std::nullopt;
    const int from = quantized_.producer(quantized_.node(product).inputs[1]);
    if (from < 0 || quantized_.node(from).opType != "DequantizeLinear") return std::nullopt;
    const auto leaveOut = [&](std::string why) {
      result_.leftOut.push_back({network_.nodeName(index), std::move(why)});
      return std::nullopt;
    };
    Result<TermReader> reader = TermReader::of(network_, index);
    if (!reader) return leaveOut(reader.status().message());
    const int64_t terms = reader->view.terms();
    if (terms > kMostTerms)
      return leaveOut(fmt::format("its sums have {} terms, more than {}", terms, kMostTerms));
    if (sizeOf(*reader) > kMostMoments)
      return leaveOut(fmt::format("its {} groups have sums of {} terms, too much to hold",
                                  reader->view.groups.count, terms));
    const Node& dequantize = quantized_.node(from);
    RoundedLayer layer;
    layer.node = index;
    layer.dequantize = from;
    layer.reader = std::move(*reader);
    layer.weights = *weights;
    layer.nearest = *quantized_.constant(dequantize.inputs[0]);
    layer.scales = *quantized_.constant(dequantize.inputs[1]);
    layer.done.node = network_.nodeName(index);
    return layer;
  }

  static bool isSame(const Tensor& a, const Tensor& b) {
    return a.elem == b.elem && a.dims == b.dims &&
           std::equal(a.bytes.data(), a.bytes.data() + a.sizeBytes(), b.bytes.data());
  }

  /// Whether it was rounded before, from the same integers and scales.
  bool takeKnown(const RoundedLayer& layer) {
    const auto before = known_.find(layer.node);
    if (before == known_.end() || !isSame(before->second.nearest, layer.nearest) ||
        !isSame(before->second.scales, layer.scales))
      return false;
    write(layer.dequantize, before->second);
    return true;
  }

  void write(int dequantize, const RoundedBefore& rounded) {
    Node& node = quantized_.model.graph.nodes[static_cast<size_t>(dequantize)];
    node.inputs[0] = quantized_.addConstant(node.inputs[0] + "_adapted", rounded.adaptive);
    result_.layers.push_back(rounded.layer);
  }

  Status round(std::vector<RoundedLayer>& batch, const Samples& samples,
               const RunConditions& options) {
    if (batch.empty()) return Status::ok();
    CDL_TRY(observe(batch, samples, options));
    forEach(batch, [&](RoundedLayer& layer) {
      layer.moments->finish();
      if (layer.moments->isFinite()) roundLayer(layer, quantized_.node(layer.dequantize));
      layer.moments.reset();
    });
    for (const RoundedLayer& layer : batch) {
      if (layer.adaptive.elem == Elem::none) {
        result_.leftOut.push_back({layer.done.node, "its inputs are not finite"});
        continue;
      }
      known_[layer.node] = {layer.nearest, layer.scales, layer.adaptive, layer.done};
      write(layer.dequantize, known_[layer.node]);
    }
    return Status::ok();
  }

  /// Each is of one thread: the order of additions, and so the result, is always the same.
  static void forEach(std::vector<RoundedLayer>& batch,
                      const std::function<void(RoundedLayer&)>& body) {
    const size_t threads = std::max(1u, std::min(16u, std::thread::hardware_concurrency()));
    std::atomic<size_t> next = 0;
    onThreads(std::min(threads, batch.size()), [&](size_t) {
      for (size_t i = next++; i < batch.size(); i = next++) body(batch[i]);
    });
  }

  /// The moments of the float model's values that the layers read.
  Status observe(std::vector<RoundedLayer>& batch, const Samples& samples,
                 const RunConditions& options) {
    std::set<std::string> read;
    for (RoundedLayer& layer : batch) {
      read.insert(network_.node(layer.node).inputs[0]);
      layer.moments.emplace(layer.reader);
    }
    const std::vector<Port> ports = network_.ports();
    for (const Port& port : ports) read.erase(port.name);
    const std::vector<std::string> values(read.begin(), read.end());
    std::optional<Observed> model;
    if (!values.empty()) {
      CDL_ASSIGN(model, Observed::compile(network_.model, values, options));
    }
    for (int64_t run = 0; run < result_.runs; ++run) {
      CDL_ASSIGN(const std::vector<Tensor> in, samples.run(run * samples.runs() / result_.runs));
      std::vector<Tensor> out;
      if (model) {
        CDL_ASSIGN(out, model->run(in));
      }
      std::map<std::string, Tensor> tensors;
      for (size_t i = 0; i < ports.size(); ++i) tensors[ports[i].name] = in[i];
      for (size_t i = 0; i < values.size(); ++i) tensors[values[i]] = out[i];
      forEach(batch, [&](RoundedLayer& layer) {
        layer.moments->add(tensors.at(network_.node(layer.node).inputs[0]), result_.runs);
      });
    }
    return Status::ok();
  }

  const Network& network_;
  Network& quantized_;
  RoundedLayers& known_;
  AdaptiveRounding result_;
};

} // namespace

Result<AdaptiveRounding> roundAdaptively(const Network& network, Network& quantized,
                                         const Samples& samples, const RunConditions& options,
                                         RoundedLayers& known) {
  return Rounder(network, quantized, known).run(samples, options);
}

} // namespace candela::quantize
