#include "tests/fuzz/quantized_graphs.h"

#include <cmath>

#include "conformance/random/random_ops.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using graph::OpKind;
using Ints = std::vector<int64_t>;
using Id = int;

/// real = scale * (stored - zero).
struct Steps {
  Elem elem = Elem::i8_;
  double scale = 1;
  int64_t zero = 0;
};

/// A value of the network: integers, and the reals that they stand for.
struct Known {
  Id stored, real;
  Steps steps;
  Shape dims;
};

Tensor integers(Elem elem, const Shape& dims, const std::vector<int64_t>& values) {
  Tensor tensor = Tensor::zeros(elem, dims).orAbort();
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(elem, tensor.bytes.mutableData(), static_cast<int64_t>(i),
                 static_cast<uint64_t>(values[i]) & elemMask(elem));
  return tensor;
}
Tensor reals(const Shape& dims, const std::vector<double>& values) {
  return Tensor::of(Elem::f32_, dims, std::vector<float>(values.begin(), values.end()));
}

class Maker {
public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  random::Recipe make() {
    const bool isImage = random_.oneIn(2);
    const int64_t batch = random_.between(1, 2);
    const Shape dims =
        isImage ? Shape{batch, random_.of(kWidths), random_.between(3, 9), random_.between(3, 9)}
                : Shape{batch, random_.of(kWidths), random_.of(kWidths)};
    addInput(dims);
    if (random_.oneIn(3)) addInput(dims);
    for (int64_t left = random_.between(3, 10); left > 0; --left) isImage ? onImage() : onTokens();
    recipe_.outputs = {known_.back().stored};
    if (random_.oneIn(2)) recipe_.outputs.push_back(pick().stored);
    recipe_.prune();
    return std::move(recipe_);
  }

private:
  static constexpr int64_t kWidths[] = {1, 3, 4, 8, 16, 17, 32};

  Id constant(Tensor tensor) { return recipe_.addLeaf(std::move(tensor), true); }
  Id node(OpKind kind, std::vector<Id> operands, graph::Attrs attrs = {}) {
    const Id id = recipe_.nextId++;
    recipe_.steps.push_back({kind, std::move(operands), std::move(attrs), {id}});
    return id;
  }
  /// Of the latest values more than of the others.
  const Known& pick() {
    const auto count = static_cast<int64_t>(known_.size());
    return known_[static_cast<size_t>(random_.between(std::max<int64_t>(0, count - 3), count - 1))];
  }

  Steps anySteps(double scale) {
    static constexpr double kFactors[] = {0.25, 0.5, 0.9, 1, 1.7, 4};
    Steps steps;
    steps.elem = random_.oneIn(2) ? Elem::i8_ : Elem::u8_;
    steps.scale = static_cast<double>(static_cast<float>(scale * random_.of(kFactors)));
    if (random_.oneIn(8)) steps.scale = std::exp2(std::round(std::log2(steps.scale)));
    if (steps.elem == Elem::u8_) steps.zero = random_.oneIn(2) ? 128 : random_.between(0, 255);
    if (steps.elem == Elem::i8_ && random_.oneIn(3)) steps.zero = random_.between(-40, 40);
    return steps;
  }
  std::vector<Id> parameters(const Steps& steps) {
    return {constant(reals({}, {steps.scale})), constant(integers(steps.elem, {}, {steps.zero}))};
  }
  void add(Id stored, const Steps& steps, Shape dims) {
    const std::vector<Id> p = parameters(steps);
    known_.push_back({stored, node(OpKind::Dequantize, {stored, p[0], p[1]}), steps, dims});
  }
  void addInput(const Shape& dims) {
    const Steps steps = anySteps(0.05);
    add(recipe_.addLeaf(random::randomData(steps.elem, dims, random::Data::bits, random_), false),
        steps, dims);
  }
  /// A result in steps of its own.
  void quantize(Id real, const Steps& steps, Shape dims) {
    const std::vector<Id> p = parameters(steps);
    add(node(OpKind::Quantize, {real, p[0], p[1]}), steps, std::move(dims));
  }

  struct Weights {
    Id real;
    std::vector<double> scales; ///< one, or one of each channel
  };
  Weights weights(const Shape& dims, size_t channelDim) {
    const int64_t channels = dims[channelDim];
    const bool isPerChannel = random_.oneIn(2);
    Weights made;
    for (int64_t c = 0; c < (isPerChannel ? channels : 1); ++c)
      made.scales.push_back(static_cast<double>(static_cast<float>(0.002 + 0.02 * random_.unit())));
    const Id stored = constant(random::randomData(Elem::i8_, dims, random::Data::bits, random_));
    const Id scale = constant(reals(isPerChannel ? Shape{channels} : Shape{}, made.scales));
    graph::Attrs attrs;
    if (isPerChannel) attrs["axis"] = static_cast<int64_t>(channelDim);
    made.real = node(OpKind::Dequantize, {stored, scale}, attrs);
    return made;
  }
  /// A bias in steps of the sums, as quantizers write it.
  Id bias(int64_t channels, const Weights& w, double xScale) {
    std::vector<double> scales;
    for (int64_t c = 0; c < channels; ++c)
      scales.push_back(static_cast<double>(static_cast<float>(
          xScale * w.scales[w.scales.size() == 1 ? 0 : static_cast<size_t>(c)])));
    std::vector<int64_t> steps;
    for (int64_t c = 0; c < channels; ++c) steps.push_back(random_.between(-9000, 9000));
    return node(
        OpKind::Dequantize,
        {constant(integers(Elem::i32_, {channels}, steps)), constant(reals({channels}, scales))},
        {{"axis", int64_t(0)}});
  }
  /// A limit that joins the instruction before it, or none.
  Id limited(Id real, double scale) {
    switch (random_.below(4)) {
    case 0: return node(OpKind::Relu, {real});
    case 1:
      return node(OpKind::Clip,
                  {real, constant(reals({}, {-20 * scale})), constant(reals({}, {50 * scale}))});
    default: return real;
    }
  }

  // ---- Both

  void function() {
    const Known x = pick();
    static constexpr OpKind kFunctions[] = {OpKind::Sigmoid, OpKind::Tanh, OpKind::Gelu,
                                            OpKind::Erf,     OpKind::Neg,  OpKind::Abs,
                                            OpKind::Relu};
    Steps steps = anySteps(x.steps.scale);
    if (steps.elem != x.steps.elem) steps = {x.steps.elem, steps.scale, 0}; // a table has one type
    quantize(node(random_.of(kFunctions), {x.real}), steps, x.dims);
  }
  void arithmetic() {
    const Known a = pick();
    Known b = a;
    for (const Known& other : known_)
      if (other.dims == a.dims && random_.oneIn(2)) b = other;
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Add, OpKind::Sub, OpKind::Mul};
    const OpKind kind = random_.of(kKinds);
    const double scale = kind == OpKind::Mul ? 50 * a.steps.scale * b.steps.scale
                                             : std::max(a.steps.scale, b.steps.scale);
    quantize(limited(node(kind, {a.real, b.real}), scale), anySteps(scale), a.dims);
  }
  void join(int64_t axis) {
    const Known a = pick();
    Known b = a;
    for (const Known& other : known_)
      if (other.dims == a.dims && random_.oneIn(2)) b = other;
    Shape dims = a.dims;
    if (dims[static_cast<size_t>(axis)] > 40) return;
    dims[static_cast<size_t>(axis)] *= 2;
    quantize(node(OpKind::Concat, {a.real, b.real}, {{"axis", axis}}), anySteps(a.steps.scale),
             dims);
  }

  // ---- Images

  void onImage() {
    switch (random_.below(8)) {
    case 0:
    case 1:
    case 2: return convolution();
    case 3: return pool();
    case 4: return join(1);
    case 5: return function();
    default: return arithmetic();
    }
  }
  void convolution() {
    const Known x = pick();
    const int64_t channels = x.dims[1];
    const bool isDepthwise = random_.oneIn(3);
    const int64_t kernel = random_.oneIn(2) ? 1 : 3, stride = random_.between(1, 2);
    if (kernel > x.dims[2] || kernel > x.dims[3]) return;
    const int64_t pad = kernel == 3 && random_.oneIn(2) ? 1 : 0;
    const int64_t outs = isDepthwise ? channels : random_.of(kWidths);
    const Weights w = weights({outs, isDepthwise ? 1 : channels, kernel, kernel}, 0);
    std::vector<Id> operands{x.real, w.real};
    if (random_.oneIn(2)) operands.push_back(bias(outs, w, x.steps.scale));
    const Id y = node(OpKind::Conv, operands,
                      {{"group", isDepthwise ? channels : int64_t(1)},
                       {"strides", Ints{stride, stride}},
                       {"pads", Ints(4, pad)}});
    const auto out = [&](int64_t dim) { return (dim + 2 * pad - kernel) / stride + 1; };
    const int64_t taps = kernel * kernel * (isDepthwise ? 1 : channels);
    const double scale = 70 * x.steps.scale * w.scales[0] * std::sqrt(static_cast<double>(taps));
    quantize(limited(y, scale), anySteps(scale), {x.dims[0], outs, out(x.dims[2]), out(x.dims[3])});
  }
  void pool() {
    const Known x = pick();
    if (x.dims[2] < 2 || x.dims[3] < 2) return;
    const graph::Attrs window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
    const Shape halved{x.dims[0], x.dims[1], x.dims[2] / 2, x.dims[3] / 2};
    switch (random_.below(3)) {
    case 0: return quantize(node(OpKind::MaxPool, {x.real}, window), x.steps, halved);
    case 1:
      return quantize(node(OpKind::AveragePool, {x.real}, window), anySteps(x.steps.scale), halved);
    default:
      return quantize(node(OpKind::GlobalAveragePool, {x.real}), anySteps(x.steps.scale),
                      {x.dims[0], x.dims[1], 1, 1});
    }
  }

  // ---- Tokens [batch, rows, width]

  void onTokens() {
    switch (random_.below(10)) {
    case 0:
    case 1: return product();
    case 2: return scores();
    case 3: return softmax();
    case 4: return layerNorm();
    case 5: return turn();
    case 6: return join(2);
    case 7: return function();
    case 8: return mean();
    default: return arithmetic();
    }
  }
  void product() {
    const Known x = pick();
    const int64_t width = x.dims[2], outs = random_.of(kWidths);
    const Weights w = weights({width, outs}, 1);
    const double scale = 70 * x.steps.scale * w.scales[0] * std::sqrt(static_cast<double>(width));
    quantize(limited(node(OpKind::Matmul, {x.real, w.real}), scale), anySteps(scale),
             {x.dims[0], x.dims[1], outs});
  }
  /// Rows of a value with rows of it or of another one.
  void scores() {
    const Known a = pick();
    Known b = a;
    for (const Known& other : known_)
      if (other.dims == a.dims && random_.oneIn(2)) b = other;
    const Id turned = node(OpKind::Transpose, {b.real}, {{"perm", Ints{0, 2, 1}}});
    const double scale =
        70 * a.steps.scale * b.steps.scale * std::sqrt(static_cast<double>(a.dims[2]));
    quantize(node(OpKind::Matmul, {a.real, turned}), anySteps(scale),
             {a.dims[0], a.dims[1], a.dims[1]});
  }
  void softmax() {
    const Known x = pick();
    const int64_t axis = random_.between(1, 2);
    const Steps steps =
        random_.oneIn(2) ? Steps{Elem::u8_, 1.0 / 256, 0} : Steps{Elem::i8_, 1.0 / 256, -128};
    quantize(node(OpKind::Softmax, {x.real}, {{"axis", axis}, {"integers", int64_t(1)}}), steps,
             x.dims);
  }
  void layerNorm() {
    const Known x = pick();
    std::vector<Id> operands{x.real};
    for (const double middle : {1.0, 0.0}) {
      std::vector<double> values;
      for (int64_t i = 0; i < x.dims[2]; ++i)
        values.push_back(middle + 0.5 * (random_.unit() - 0.5));
      operands.push_back(constant(reals({x.dims[2]}, values)));
    }
    static constexpr double kEpsilons[] = {1e-12, 1e-5, 1e-3};
    quantize(
        node(OpKind::LayerNorm, operands,
             {{"axis", int64_t(-1)}, {"epsilon", random_.of(kEpsilons)}, {"integers", int64_t(1)}}),
        anySteps(0.03), x.dims);
  }
  void turn() {
    const Known x = pick();
    quantize(node(OpKind::Transpose, {x.real}, {{"perm", Ints{0, 2, 1}}}), x.steps,
             {x.dims[0], x.dims[2], x.dims[1]});
  }
  void mean() {
    const Known x = pick();
    quantize(node(OpKind::ReduceMean, {x.real}, {{"axes", Ints{2}}}), anySteps(x.steps.scale),
             {x.dims[0], x.dims[1], 1});
  }

  random::Random random_;
  random::Recipe recipe_;
  std::vector<Known> known_;
};

} // namespace

random::Recipe quantizedGraph(uint64_t seed) { return Maker(seed).make(); }

} // namespace candela::conformance
