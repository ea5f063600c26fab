#include "tests/fuzz/stacked_graphs.h"

#include <algorithm>

#include "conformance/judge/bounds.h"
#include "conformance/random/random_ops.h"
#include "core/compiler/driver/pipeline.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using graph::OpKind;

/// Nodes are named by what they compute; a node that cannot be judged is not taken, and gives
/// kAbsent.
class StackMaker {
public:
  explicit StackMaker(uint64_t seed) : random_(seed) {}

  random::Recipe make() {
    switch (random_.below(5)) {
    case 0: chain(head(Elem::f32_), random_.between(2, 20)); break;
    case 1: integers(); break;
    case 2: quantized(); break;
    case 3: summed(); break;
    default: normalized(); break;
    }
    if (random_.oneIn(3)) reduced(last_);
    chooseOutputs();
    recipe_.prune();
    return std::move(recipe_);
  }

private:
  struct Known {
    graph::Value* value = nullptr;
    judge::Interval interval;
  };
  using Id = int;

  const Known& known(Id id) const { return known_.at(id); }
  const graph::TensorType& typeOf(Id id) const { return known(id).value->type; }

  Id leaf(Tensor tensor, bool constant) {
    const Id id = recipe_.addLeaf(tensor, constant);
    graph::Value* value = constant ? graph_.addConstant(tensor)
                                   : graph_.addInput(fmt::format("x{}", id),
                                                     graph::TensorType(tensor.elem, tensor.dims));
    known_[id] = {value, judge::Interval::of(tensor).orAbort()};
    return id;
  }
  Id data(Elem elem, const Shape& dims, bool constant) {
    return leaf(random::randomData(elem, dims,
                                   random_.oneIn(2) ? random::Data::steps : random::Data::calm,
                                   random_),
                constant);
  }
  Id number(Elem elem, double value) {
    Tensor tensor = Tensor::zeros(elem, {}).orAbort();
    const uint64_t bits =
        isFloat(elem) ? fromReal(elem, value) : static_cast<uint64_t>(static_cast<int64_t>(value));
    storeElement(elem, tensor.bytes.mutableData(), 0, bits & elemMask(elem));
    return leaf(std::move(tensor), true);
  }
  Id numbers(const std::vector<int32_t>& values) {
    return leaf(Tensor::of<int32_t>(Elem::i32_, {static_cast<int64_t>(values.size())}, values),
                true);
  }

  Id node(OpKind kind, std::vector<Id> ids, graph::Attrs attrs = {}) {
    std::vector<graph::Value*> operands;
    std::vector<const judge::Interval*> bounds;
    for (const Id id : ids) {
      if (id == kRefused) return kRefused;
      operands.push_back(id == random::Recipe::kAbsent ? nullptr : known(id).value);
      bounds.push_back(id == random::Recipe::kAbsent ? nullptr : &known(id).interval);
    }
    auto made = graph_.addNode(kind, operands, attrs);
    if (!made) return kRefused;
    auto intervals = judge::analyze(**made, bounds, driver::hostTarget());
    if (!intervals || (*intervals)[0].tight() * 20 < (*intervals)[0].count() * 19) {
      graph_.erase(*made);
      return kRefused;
    }
    const Id id = recipe_.nextId++;
    known_[id] = {(*made)->result(), std::move((*intervals)[0])};
    recipe_.steps.push_back({kind, std::move(ids), std::move(attrs), {id}});
    return last_ = id;
  }

  // ---- Where chains begin
  Shape shape() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 5, 7, 16, 33};
    Shape dims;
    for (int64_t i = random_.between(1, 4); i > 0; --i) dims.push_back(random_.of(kExtents));
    while (*elementCount(dims) > 1500) dims.pop_back();
    return dims;
  }
  Id image(Elem elem, int64_t channels) {
    return data(elem,
                {random_.between(1, 2), channels, random_.between(2, 6), random_.between(2, 6)},
                false);
  }
  Id head(Elem elem) {
    const int64_t channels = random_.of(kChannels), outs = random_.of(kChannels);
    switch (random_.below(5)) {
    case 0: {
      const int64_t k = random_.between(1, 9), m = random_.between(1, 9), b = random_.between(1, 3);
      return node(OpKind::Matmul,
                  {data(elem, {b, m, k}, false), data(elem, {k, outs}, random_.oneIn(2))});
    }
    case 1: {
      const int64_t kernel = random_.oneIn(2) ? 1 : 2;
      const Id bias = random_.oneIn(2) ? data(elem, {outs}, true) : random::Recipe::kAbsent;
      return node(OpKind::Conv, {image(elem, channels),
                                 data(elem, {outs, channels, kernel, kernel}, true), bias});
    }
    case 2:
      return node(random_.oneIn(2) ? OpKind::MaxPool : OpKind::AveragePool, {image(elem, channels)},
                  {{"kernel_shape", std::vector<int64_t>{2, 2}}});
    case 3: return reduced(data(elem, shape(), false));
    default: return data(elem, shape(), false);
    }
  }

  // ---- What follows element by element
  /// Something to compute with x: of its shape, broadcast to it, a number, or what was computed
  /// before.
  Id mate(Id x) {
    const graph::TensorType type = typeOf(x); // copied: new leaves move what is known
    const int64_t how = random_.below(6);
    if (how == 0)
      return number(type.elem,
                    static_cast<double>(random_.between(-4, 4)) / (isFloat(type.elem) ? 2 : 1));
    if (how <= 2) { // shared values and residuals
      std::vector<Id> fitting;
      for (const auto& [id, each] : known_)
        if (each.value->type.elem == type.elem && each.value->type.shape() == type.shape())
          fitting.push_back(id);
      return random_.of(fitting);
    }
    Shape dims = type.shape();
    if (how <= 4)
      for (int64_t& dim : dims)
        if (random_.oneIn(2)) dim = 1;
    while (how == 4 && !dims.empty() && dims[0] == 1) dims.erase(dims.begin());
    return data(type.elem, dims, random_.oneIn(2));
  }

  Id step(Id x) {
    static constexpr OpKind kBinary[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Max,
                                         OpKind::Min};
    static constexpr OpKind kUnary[] = {OpKind::Neg,  OpKind::Abs,     OpKind::Relu,  OpKind::Exp,
                                        OpKind::Tanh, OpKind::Sigmoid, OpKind::Floor, OpKind::Erf};
    const bool isReal = isFloat(typeOf(x).elem);
    switch (random_.below(isReal ? 8 : 5)) {
    case 0:
    case 1:
    case 2:
    case 3: {
      const Id other = mate(x);
      return random_.oneIn(2) ? node(random_.of(kBinary), {x, other})
                              : node(random_.of(kBinary), {other, x});
    }
    case 4: {
      const Id low = mate(x), condition = node(OpKind::Less, {x, low});
      return node(OpKind::Select, {condition, x, mate(x)});
    }
    case 5: return node(OpKind::Sqrt, {node(OpKind::Abs, {x})});
    default: return node(random_.of(kUnary), {x});
    }
  }
  Id chain(Id x, int64_t steps) {
    for (; steps > 0 && x != kRefused; --steps) {
      // Now and then from further back: trees, and values of several users.
      const Id next = step(x);
      if (next != kRefused) x = random_.oneIn(6) ? x : next;
    }
    return x;
  }

  // ---- Reductions
  Id reduced(Id x) {
    if (x == kRefused || typeOf(x).rank() == 0) return kRefused;
    static constexpr OpKind kReductions[] = {OpKind::ReduceSum, OpKind::ReduceMax,
                                             OpKind::ReduceMin, OpKind::ReduceMean};
    std::vector<int64_t> axes{typeOf(x).rank() - 1};
    if (axes[0] > 0 && random_.oneIn(3)) axes.insert(axes.begin(), axes[0] - 1);
    if (axes[0] > 0 && random_.oneIn(3)) axes = {0};
    const OpKind kind = kReductions[random_.below(isFloat(typeOf(x).elem) ? 4 : 3)];
    return node(kind, {x}, {{"axes", axes}, {"keepdims", random_.below(2)}});
  }
  Id alongLast(OpKind kind, Id x) {
    if (x == kRefused) return kRefused;
    return node(kind, {x},
                {{"axes", std::vector<int64_t>{typeOf(x).rank() - 1}}, {"keepdims", int64_t(1)}});
  }

  /// Softmax, layer and RMS normalisation in small steps, behind a chain and before one.
  void normalized() {
    Id x = chain(data(Elem::f32_, shape(), false), random_.between(0, 3));
    const Id before = x;
    switch (random_.below(3)) {
    case 0: {
      const Id e = node(OpKind::Exp, {node(OpKind::Sub, {x, alongLast(OpKind::ReduceMax, x)})});
      x = node(OpKind::Div, {e, alongLast(OpKind::ReduceSum, e)});
      break;
    }
    case 1: {
      const Id d = node(OpKind::Sub, {x, alongLast(OpKind::ReduceMean, x)});
      const Id v = alongLast(OpKind::ReduceMean, node(OpKind::Mul, {d, d}));
      x = node(OpKind::Div,
               {d, node(OpKind::Sqrt, {node(OpKind::Add, {v, number(Elem::f32_, 1e-3)})})});
      break;
    }
    default: {
      const Id v = alongLast(OpKind::ReduceMean, node(OpKind::Mul, {x, x}));
      x = node(OpKind::Div,
               {x, node(OpKind::Sqrt, {node(OpKind::Add, {v, number(Elem::f32_, 1e-3)})})});
    }
    }
    chain(x == kRefused ? before : x, random_.between(1, 6));
  }

  /// Reals, integers, or bytes that become either, element by element; their sums or extremes, and
  /// what follows these.
  void summed() {
    const Elem byte = random_.oneIn(2) ? Elem::u8_ : Elem::i8_;
    Id x;
    switch (random_.below(4)) {
    case 0: x = data(Elem::i32_, shape(), false); break;
    case 1:
      x = node(OpKind::Cast, {data(byte, shape(), false)},
               {{"to", random_.oneIn(2) ? Elem::i32_ : Elem::f32_}});
      break;
    case 2:
      x = node(OpKind::Dequantize,
               {data(byte, shape(), false), number(Elem::f32_, 0.0625),
                leaf(random::randomData(byte, {}, random::Data::steps, random_), true)});
      break;
    default: x = data(Elem::f32_, shape(), false); break;
    }
    for (int64_t i = random_.between(1, 3); i > 0 && x != kRefused; --i) {
      const Id y = reduced(chain(x, random_.between(1, 8)));
      x = chain(y, random_.between(0, 3));
    }
  }

  // ---- Integers
  Id rescaled(Id x, bool perChannel, size_t channelsFromEnd) {
    if (x == kRefused) return kRefused;
    const graph::TensorType type = typeOf(x);
    const bool isWide = elemBits(type.elem) > 8;
    std::vector<int32_t> multipliers(1), shifts(1);
    Shape dims;
    if (perChannel && type.dims.size() >= channelsFromEnd) {
      dims.assign(channelsFromEnd, 1);
      dims[0] = type.dim(-static_cast<int>(channelsFromEnd));
      multipliers.resize(static_cast<size_t>(dims[0])), shifts.resize(multipliers.size());
    }
    for (size_t i = 0; i < multipliers.size(); ++i) {
      multipliers[i] = static_cast<int32_t>(random_.between(1 << 23, (1 << 24) - 1));
      shifts[i] = static_cast<int32_t>(isWide ? random_.between(27, 34) : random_.between(22, 25));
    }
    const Id m = leaf(Tensor::of<int32_t>(Elem::i32_, dims, multipliers), true),
             s = leaf(Tensor::of<int32_t>(Elem::i32_, dims, shifts), true),
             z = number(Elem::i32_, random_.between(-9, 9));
    const Elem to = random_.oneIn(8) ? Elem::i32_ : random_.oneIn(2) ? Elem::u8_ : Elem::i8_;
    graph::Attrs attrs{{"to", to}};
    if (random_.oneIn(4)) attrs["clamp_min"] = random_.between(0, 5);
    if (random_.oneIn(4)) attrs["clamp_max"] = random_.between(60, 120);
    return node(OpKind::Rescale, {x, m, s, z}, std::move(attrs));
  }
  void integers() {
    const Elem byte = random_.oneIn(2) ? Elem::u8_ : Elem::i8_;
    const int64_t channels = random_.of(kChannels), outs = random_.of(kChannels);
    const Id zero = random_.oneIn(2)
                        ? leaf(random::randomData(byte, {1}, random::Data::steps, random_), true)
                        : random::Recipe::kAbsent;
    Id x;
    size_t behind = 1;
    const int64_t how = random_.below(4);
    if (how == 0) {
      const int64_t m = random_.between(1, 9);
      x = node(OpKind::MatmulInteger,
               {data(byte, {m, channels}, false), data(Elem::i8_, {channels, outs}, true), zero});
    } else if (how == 3) {
      x = data(random_.oneIn(2) ? Elem::i32_ : byte, shape(), false);
    } else {
      const bool isDepthwise = random_.oneIn(3);
      const int64_t kernel = random_.oneIn(2) ? 1 : 2;
      const Id bias = random_.oneIn(2) ? data(Elem::i32_, {isDepthwise ? channels : outs}, true)
                                       : random::Recipe::kAbsent;
      const Id w =
          data(Elem::i8_,
               {isDepthwise ? channels : outs, isDepthwise ? 1 : channels, kernel, kernel}, true);
      graph::Attrs attrs{{"group", isDepthwise ? channels : int64_t(1)}};
      if (random_.oneIn(3)) attrs["pads"] = std::vector<int64_t>{1, 1, 1, 1};
      x = node(OpKind::ConvInteger, {image(byte, channels), w, bias, zero}, std::move(attrs));
      behind = 3;
    }
    if (random_.oneIn(4)) x = chain(x, random_.between(1, 3));
    for (int64_t i = random_.between(1, 4); i > 0 && x != kRefused; --i) {
      const Id next = rescaled(x, random_.oneIn(2), behind);
      if (next == kRefused) break;
      x = next;
      if (random_.oneIn(3)) { // a residual: a RESCALE of two
        const Id other = data(typeOf(x).elem, typeOf(x).shape(), false);
        const Id m = numbers({static_cast<int32_t>(random_.between(1 << 23, (1 << 24) - 1))});
        const Id s = numbers({static_cast<int32_t>(random_.between(24, 26))});
        if (elemBits(typeOf(x).elem) == 8)
          x = node(OpKind::Rescale, {x, m, s, numbers({0}), other, m}, {{"to", typeOf(x).elem}});
      }
      if (random_.oneIn(4)) x = chain(x, random_.between(1, 3));
    }
  }

  /// Integers to reals, some steps, and back.
  void quantized() {
    const Elem byte = random_.oneIn(2) ? Elem::u8_ : Elem::i8_;
    Id x = data(byte, shape(), false);
    for (int64_t i = random_.between(1, 2); i > 0 && x != kRefused; --i) {
      const Id scale = number(Elem::f32_, 0.0625),
               point = leaf(random::randomData(byte, {}, random::Data::steps, random_), true);
      const Id real = node(OpKind::Dequantize, {x, scale, point});
      if (real == kRefused) return;
      const Id y = chain(real, random_.between(1, 8));
      x = node(OpKind::Quantize, {y, number(Elem::f32_, 0.125), point});
    }
  }

  void chooseOutputs() {
    std::vector<Id> rest;
    for (const random::Recipe::Step& each : recipe_.steps)
      (known(each.results[0]).value->users().empty() ? recipe_.outputs : rest)
          .push_back(each.results[0]);
    while (recipe_.outputs.size() > 4) recipe_.outputs.erase(recipe_.outputs.begin());
    // others see it too
    if (!rest.empty() && random_.oneIn(4)) recipe_.outputs.push_back(random_.of(rest));
    if (recipe_.outputs.empty())
      recipe_.outputs.push_back(node(OpKind::Neg, {data(Elem::f32_, {3}, false)}));
  }

  static constexpr Id kRefused = -2;
  static constexpr int64_t kChannels[] = {1, 3, 4, 8, 16, 20};
  random::Random random_;
  graph::Graph graph_;
  random::Recipe recipe_;
  std::map<Id, Known> known_;
  Id last_ = kRefused;
};

} // namespace

random::Recipe stackedGraph(uint64_t seed) { return StackMaker(seed).make(); }

} // namespace candela::conformance
