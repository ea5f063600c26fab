#include "tests/fuzz/rewrite_graphs.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "conformance/judge/element_rule.h"
#include "conformance/random/random_ops.h"
#include "core/compiler/graph/loop.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

using graph::Attrs, graph::OpKind;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

/// Where the numbers of a tensor lie.
enum class Range : uint8_t {
  calm,    ///< between -2 and 2
  steps,   ///< small whole numbers and halves
  far,     ///< close together, far from zero
  high,    ///< near the largest numbers of the type
  low,     ///< about the least normal number
  wide,    ///< of any magnitude
  corners, ///< infinities, NaN and zeros of both signs among calm ones
};

/// The exponents of the type's normal numbers.
struct Exponents {
  int lowest, highest;
};
Exponents exponentsOf(Elem elem) {
  if (elem == Elem::f16_) return {-14, 15};
  // The judge computes in f64 itself: beyond its range it would know nothing.
  if (elem == Elem::f64_) return {-500, 500};
  return {-126, 127};
}

class RewriteMaker {
public:
  explicit RewriteMaker(uint64_t seed) : random_(seed), elem_(anyReal()), range_(anyRange()) {}

  random::Recipe make(std::string_view pass);

private:
  using Id = int;
  static constexpr Id kRefused = -2, kAbsent = random::Recipe::kAbsent;
  struct Motif {
    std::string_view pass;
    void (RewriteMaker::*build)();
  };
  static const std::vector<Motif>& motifs();
  friend std::span<const std::string_view> candela::conformance::rewritePasses();

  // ---- Numbers

  Elem anyReal() {
    static constexpr Elem kReals[] = {Elem::f16_, Elem::f16_, Elem::f16_, Elem::bf16_, Elem::bf16_,
                                      Elem::f32_, Elem::f32_, Elem::f32_, Elem::f32_,  Elem::f64_};
    return random_.of(kReals);
  }
  Elem anyInteger() {
    static constexpr Elem kWhole[] = {Elem::i8_,  Elem::u8_,  Elem::i16_, Elem::u16_, Elem::i32_,
                                      Elem::i32_, Elem::u32_, Elem::i64_, Elem::u64_};
    return random_.of(kWhole);
  }
  Range anyRange() {
    static constexpr Range kRanges[] = {Range::calm,  Range::calm, Range::calm,   Range::steps,
                                        Range::steps, Range::far,  Range::far,    Range::high,
                                        Range::low,   Range::wide, Range::corners};
    return random_.of(kRanges);
  }
  double sign() { return random_.oneIn(2) ? -1 : 1; }
  /// A number of this exponent.
  double digits(int exponent) { return sign() * std::ldexp(1 + random_.unit(), exponent); }
  int between(int lo, int hi) { return static_cast<int>(random_.between(lo, hi)); }

  double real(Elem elem, Range range, double centre) {
    const Exponents e = exponentsOf(elem);
    switch (range) {
    case Range::calm: break;
    case Range::steps:
      return static_cast<double>(random_.between(-8, 8)) / (random_.oneIn(4) ? 2 : 1);
    case Range::far: return centre + random_.unit() * 2 - 1;
    case Range::high: return digits(between(e.highest - 5, e.highest));
    case Range::low: return digits(between(e.lowest - 9, e.lowest + 4));
    case Range::wide: return digits(between(e.lowest - 4, e.highest));
    case Range::corners: {
      static constexpr double kCorners[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0};
      if (random_.oneIn(6)) return random_.of(kCorners);
    }
    }
    return random_.unit() * 4 - 2;
  }
  int64_t whole(Elem elem, Range range) {
    const IntegerRange limits = integerRange(elem);
    const auto lowest = static_cast<int64_t>(limits.lowest),
               highest = static_cast<int64_t>(limits.highest);
    if (range == Range::wide || range == Range::far) return static_cast<int64_t>(random_.bits());
    if (range == Range::high || range == Range::corners)
      return random_.oneIn(2) ? highest - random_.below(4) : lowest + random_.below(4);
    return random_.between(isSigned(elem) ? -8 : 0, 9);
  }
  static void put(Tensor& tensor, int64_t i, double value) {
    uint64_t bits = fromReal(tensor.elem, value);
    // The largest numbers stay numbers.
    if (std::isfinite(value) && std::isinf(toReal(tensor.elem, bits))) --bits;
    storeElement(tensor.elem, tensor.bytes.mutableData(), i, bits);
  }
  Tensor numbers(Elem elem, const Shape& dims, Range range) {
    Tensor tensor = Tensor::zeros(elem, dims).orAbort();
    const double centre = digits(between(2, 9));
    for (int64_t i = 0; i < tensor.count(); ++i) {
      if (isFloat(elem))
        put(tensor, i, real(elem, range, centre));
      else
        storeElement(
            elem, tensor.bytes.mutableData(), i,
            static_cast<uint64_t>(elem == Elem::bool_ ? random_.below(2) : whole(elem, range)) &
                elemMask(elem));
    }
    return tensor;
  }
  Tensor tensorOf(Elem elem, const Shape& dims, const Doubles& values) {
    Tensor tensor = Tensor::zeros(elem, dims).orAbort();
    for (int64_t i = 0; i < tensor.count(); ++i) {
      const double value = values[values.size() == 1 ? 0 : static_cast<size_t>(i)];
      if (isFloat(elem))
        put(tensor, i, value);
      else
        storeElement(elem, tensor.bytes.mutableData(), i,
                     static_cast<uint64_t>(static_cast<int64_t>(value)) & elemMask(elem));
    }
    return tensor;
  }
  /// What scales: powers of two and others, near 1 and near the ends of the type.
  double factor(Elem elem) {
    const Exponents e = exponentsOf(elem);
    static constexpr double kUsual[] = {3.0,        0.1,    1.0 / 3, -1.0, 0.125,
                                        0.17677669, 1024.0, 1e-3,    -2.5};
    switch (random_.below(7)) {
    case 0: return std::ldexp(1, between(-6, 6));
    case 1: return sign() * std::ldexp(1, between(e.lowest - 2, e.highest));
    case 2:
      return 1 + sign() * judge::unitOf(elem) * 2 * static_cast<double>(random_.between(1, 3));
    case 3: return digits(between(-14, 14));
    case 4: return digits(between(e.lowest, e.highest));
    default: return random_.of(kUsual);
    }
  }
  /// The number, or one beside it.
  double nearly(Elem elem, double number) {
    static constexpr double kBeside[] = {1e-7, 5e-7, 1e-6, 1e-5, 3e-4, 1e-3, 2.5e-3, 3.9e-3, 5e-3};
    if (!random_.oneIn(3)) return number;
    const double step = random_.oneIn(2)
                            ? 2 * judge::unitOf(elem) * static_cast<double>(random_.between(1, 3))
                            : random_.of(kBeside);
    return number * (1 + sign() * step);
  }

  // ---- Values

  const graph::TensorType& typeOf(Id id) const { return known_.at(id)->type; }
  Shape shapeOf(Id id) const { return typeOf(id).shape(); }
  Elem elemOf(Id id) const { return typeOf(id).elem; }
  int64_t rankOf(Id id) const { return typeOf(id).rank(); }

  Id leaf(Tensor tensor, bool constant) {
    const Id id = recipe_.addLeaf(tensor, constant);
    known_[id] = constant ? graph_.addConstant(tensor)
                          : graph_.addInput(fmt::format("x{}", id),
                                            graph::TensorType(tensor.elem, tensor.dims));
    return id;
  }
  Id number(Elem elem, double value) { return leaf(tensorOf(elem, {}, {value}), true); }
  Id constant(Elem elem, const Shape& dims, Range range) {
    return leaf(numbers(elem, dims, range), true);
  }
  Id constantOf(Elem elem, const Shape& dims, const Doubles& values) {
    return leaf(tensorOf(elem, dims, values), true);
  }
  /// An input, or what an earlier motif computed.
  Id source(Elem elem, const Shape& dims) {
    std::vector<Id> fitting;
    for (const random::Recipe::Step& step : recipe_.steps)
      for (const Id id : step.results)
        if (elemOf(id) == elem && shapeOf(id) == dims) fitting.push_back(id);
    if (!fitting.empty() && random_.oneIn(2)) return random_.of(fitting);
    return leaf(numbers(elem, dims, range_), false);
  }
  Id source() { return source(elem_, anyShape()); }
  Shape anyShape(int64_t least = 1, int64_t most = 4) {
    Shape dims;
    for (int64_t i = random_.between(least, most); i > 0; --i)
      dims.push_back(random_.oneIn(5) ? 1 : random_.between(2, 4));
    return dims;
  }
  std::vector<Id> nodeOf(OpKind kind, const std::vector<Id>& ids, const Attrs& attrs, int results) {
    std::vector<graph::Value*> operands;
    for (const Id id : ids) {
      if (id == kRefused) return {kRefused};
      operands.push_back(id == kAbsent ? nullptr : known_.at(id));
    }
    const auto made = graph_.addNode(kind, operands, attrs, {}, nullptr, results);
    if (!made) return {kRefused};
    return keep(**made, ids, nullptr);
  }
  std::vector<Id> keep(const graph::Node& node, const std::vector<Id>& ids,
                       std::shared_ptr<const graph::Graph> body) {
    random::Recipe::Step step{node.kind, ids, node.attrs, {}, std::move(body)};
    for (graph::Value* result : node.results()) {
      step.results.push_back(recipe_.nextId++);
      known_[step.results.back()] = result;
    }
    recipe_.steps.push_back(step);
    return step.results;
  }
  Id node(OpKind kind, const std::vector<Id>& ids, const Attrs& attrs = {}) {
    return nodeOf(kind, ids, attrs, 1)[0];
  }
  /// Either order of operands.
  Id either(OpKind kind, Id a, Id b) {
    return random_.oneIn(2) ? node(kind, {a, b}) : node(kind, {b, a});
  }
  Id cast(Id x, Elem to) { return node(OpKind::Cast, {x}, {{"to", to}}); }
  void emit(Id id) {
    if (id == kRefused || recipe_.leaf(id) || std::ranges::count(recipe_.outputs, id)) return;
    recipe_.outputs.push_back(id);
  }

  // ---- canonicalize

  void neutral() {
    const Elem elem = random_.oneIn(3) ? anyInteger() : elem_;
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Div};
    static constexpr double kNumbers[] = {0.0, -0.0, 1.0, -1.0};
    Id x = source(elem, anyShape());
    for (int64_t i = random_.between(1, 3); i > 0 && x != kRefused; --i) {
      const double value =
          isFloat(elem) ? random_.of(kNumbers) : static_cast<double>(random_.below(2));
      const Id c = random_.oneIn(2) ? number(elem, value) : constantOf(elem, shapeOf(x), {value});
      x = random_.oneIn(4) ? node(random_.of(kKinds), {c, x}) : node(random_.of(kKinds), {x, c});
    }
    emit(x);
  }
  void casts() {
    static constexpr Elem kElems[] = {Elem::f16_, Elem::bf16_, Elem::f32_, Elem::f64_,
                                      Elem::i8_,  Elem::u8_,   Elem::i16_, Elem::u16_,
                                      Elem::i32_, Elem::u32_,  Elem::i64_, Elem::bool_};
    const Elem from = random_.oneIn(2) ? elem_ : random_.of(kElems);
    Id x = source(from, anyShape());
    for (int64_t i = random_.between(2, 3); i > 0; --i)
      x = cast(x, random_.oneIn(3) ? from : random_.of(kElems));
    emit(x);
  }
  Ints permutation(int64_t rank) {
    Ints perm(static_cast<size_t>(rank));
    std::iota(perm.begin(), perm.end(), 0);
    for (size_t i = perm.size(); i > 1; --i)
      std::swap(perm[i - 1], perm[static_cast<size_t>(random_.below(int64_t(i)))]);
    return perm;
  }
  Shape refactored(const Shape& dims) {
    int64_t count = *elementCount(dims);
    Shape shape;
    for (const int64_t divisor : {2, 3, 4})
      if (count % divisor == 0 && random_.oneIn(2)) shape.push_back(divisor), count /= divisor;
    shape.insert(shape.begin() + random_.below(static_cast<int64_t>(shape.size()) + 1), count);
    return shape;
  }
  Id moved(Id x) {
    if (x == kRefused) return x;
    switch (random_.below(4)) {
    case 0: return node(OpKind::Reshape, {x}, {{"shape", refactored(shapeOf(x))}});
    case 1:
    case 2: return node(OpKind::Transpose, {x}, {{"perm", permutation(rankOf(x))}});
    default: return slice(x);
    }
  }
  void movements() {
    Id x = source(random_.oneIn(3) ? anyInteger() : elem_, anyShape());
    for (int64_t i = random_.between(2, 4); i > 0; --i) x = moved(x);
    emit(x);
  }
  Id clip(Id x, std::optional<double> low, std::optional<double> high) {
    if (x == kRefused) return x;
    const Elem elem = elemOf(x);
    return node(OpKind::Clip,
                {x, low ? number(elem, *low) : kAbsent, high ? number(elem, *high) : kAbsent});
  }
  std::optional<double> anyBound() {
    if (random_.oneIn(4)) return std::nullopt;
    return static_cast<double>(random_.between(-4, 4)) / 4;
  }
  void clips() {
    Id x = source();
    for (int64_t i = random_.between(2, 3); i > 0; --i)
      x = random_.oneIn(3) ? node(OpKind::Relu, {x}) : clip(x, anyBound(), anyBound());
    emit(x);
  }
  void selects() {
    const Id x = source(), y = source(elem_, shapeOf(x));
    emit(node(OpKind::Select, {constantOf(Elem::bool_, random_.oneIn(2) ? Shape{} : shapeOf(x),
                                          {double(random_.below(2))}),
                               x, random_.oneIn(3) ? x : y}));
  }
  void idempotent() {
    static constexpr OpKind kKinds[] = {OpKind::Relu, OpKind::Abs, OpKind::Floor, OpKind::Ceil,
                                        OpKind::Neg};
    const OpKind kind = random_.of(kKinds);
    const Id x = node(kind, {source()});
    emit(node(random_.oneIn(4) ? random_.of(kKinds) : kind, {x}));
  }
  void broadcasts() {
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Min,
                                        OpKind::Max};
    const Elem elem = random_.oneIn(3) ? anyInteger() : elem_;
    const Id x = source(elem, anyShape());
    Shape dims = shapeOf(x);
    for (int64_t& dim : dims)
      if (random_.oneIn(2)) dim = 1;
    const Id y = node(OpKind::Expand, {source(elem, dims)}, {{"shape", shapeOf(x)}});
    const Id z = constantOf(elem, shapeOf(x), {static_cast<double>(random_.between(0, 3))});
    emit(node(random_.of(kKinds), {either(random_.of(kKinds), x, y), z}));
  }

  // ---- algebra

  void negations() {
    const Elem elem = random_.oneIn(4) ? (random_.oneIn(2) ? Elem::i8_ : Elem::i32_) : elem_;
    const Id x = source(elem, anyShape()), y = node(OpKind::Neg, {source(elem, shapeOf(x))});
    emit(either(random_.oneIn(2) ? OpKind::Add : OpKind::Sub, x,
                random_.oneIn(4) ? node(OpKind::Neg, {y}) : y));
  }
  Id scaled(Id x, double by, bool byDivision = false) {
    if (x == kRefused) return x;
    const Id c = number(elemOf(x), by);
    return byDivision ? node(OpKind::Div, {x, c}) : either(OpKind::Mul, x, c);
  }
  void factors() {
    Id x = source();
    for (int64_t i = random_.between(2, 3); i > 0; --i)
      x = scaled(x, factor(elem_), random_.oneIn(5));
    emit(x);
  }
  void quotients() {
    const Id x = source();
    if (random_.oneIn(3)) return emit(node(OpKind::Div, {number(elem_, nearly(elem_, 1)), x}));
    Doubles each;
    const bool perElement = random_.oneIn(2);
    for (int64_t i = perElement ? typeOf(x).count() : 1; i > 0; --i)
      each.push_back(
          std::ldexp(sign(), between(random_.oneIn(3) ? exponentsOf(elem_).lowest - 3 : -5,
                                     random_.oneIn(3) ? exponentsOf(elem_).highest : 5)));
    if (random_.oneIn(3)) each[0] = nearly(elem_, each[0]);
    emit(node(OpKind::Div, {x, constantOf(elem_, perElement ? shapeOf(x) : Shape{}, each)}));
  }
  void powers() {
    static constexpr double kExponents[] = {2, -1, 1, 0.5, 3};
    emit(node(OpKind::Pow, {source(), number(elem_, nearly(elem_, random_.of(kExponents)))}));
  }
  Id slice(Id x) {
    if (x == kRefused) return x;
    Ints starts, counts, steps;
    for (const int64_t dim : shapeOf(x)) {
      const int64_t step = random_.oneIn(2)   ? 1
                           : random_.oneIn(2) ? -1
                                              : random_.between(1, 2) * (random_.oneIn(2) ? 1 : -1);
      const int64_t start = step > 0 ? random_.below(std::min<int64_t>(dim, 2))
                                     : dim - 1 - random_.below(std::min<int64_t>(dim, 2));
      const int64_t room = step > 0 ? (dim - 1 - start) / step + 1 : start / -step + 1;
      starts.push_back(start), counts.push_back(random_.between((room + 1) / 2, room)),
          steps.push_back(step);
    }
    return node(OpKind::Slice, {x}, {{"starts", starts}, {"counts", counts}, {"steps", steps}});
  }
  void slices() {
    Id x = source(random_.oneIn(3) ? anyInteger() : elem_, anyShape());
    for (int64_t i = random_.between(2, 3); i > 0; --i) x = slice(x);
    emit(x);
  }
  OpKind anyReduction() {
    static constexpr OpKind kKinds[] = {OpKind::ReduceSum, OpKind::ReduceMean, OpKind::ReduceMax,
                                        OpKind::ReduceMin, OpKind::ReduceProd};
    return random_.of(kKinds);
  }
  void trivialReductions() {
    Shape dims = anyShape(2, 4);
    const int64_t axis = random_.below(static_cast<int64_t>(dims.size()));
    if (!random_.oneIn(5)) dims[static_cast<size_t>(axis)] = 1;
    emit(node(anyReduction(), {source(elem_, dims)},
              {{"axes", Ints{axis}}, {"keepdims", random_.below(2)}}));
  }

  // ---- sink-movement

  void transposed() {
    const Id x = source(elem_, anyShape(2, 4));
    const Ints perm = permutation(rankOf(x));
    Ints back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i)
      back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    const bool reshapes = random_.oneIn(4);
    const Id y = reshapes ? node(OpKind::Reshape, {x}, {{"shape", refactored(shapeOf(x))}})
                          : node(OpKind::Transpose, {x}, {{"perm", perm}});
    const Id z = withoutAxis(y, x, perm, reshapes);
    if (z != kRefused && !reshapes && rankOf(z) == std::ssize(back) && !random_.oneIn(3))
      return emit(node(OpKind::Transpose, {z}, {{"perm", back}}));
    emit(z);
  }
  /// What does not care for the order of elements, or is told of it.
  Id withoutAxis(Id y, Id x, const Ints& perm, bool reshapes) {
    if (y == kRefused) return y;
    const int64_t axis = random_.below(rankOf(y));
    const auto movedAlike = [&] {
      const Id other = source(elem_, shapeOf(x));
      return reshapes ? node(OpKind::Reshape, {other}, {{"shape", shapeOf(y)}})
                      : node(OpKind::Transpose, {other}, {{"perm", perm}});
    };
    switch (random_.below(8)) {
    case 0: {
      Shape row = shapeOf(y);
      for (int64_t& dim : row)
        if (random_.oneIn(2)) dim = 1;
      row.erase(row.begin(), row.begin() + random_.below(std::ssize(row)));
      return either(random_.oneIn(2) ? OpKind::Add : OpKind::Mul, y,
                    constant(elem_, row, Range::calm));
    }
    case 1: return node(OpKind::Concat, {y, movedAlike()}, {{"axis", axis}});
    case 2: {
      const OpKind kind = anyReduction();
      return node(
          kind, {y},
          {{"axes", random_.oneIn(2) || rankOf(y) < 2 ? Ints{axis} : Ints{0, rankOf(y) - 1}},
           {"keepdims", int64_t(!random_.oneIn(4))}});
    }
    case 3: return slice(y);
    case 4: {
      Ints lo(static_cast<size_t>(rankOf(y)), 0), hi = lo;
      lo[static_cast<size_t>(axis)] = 1, hi[static_cast<size_t>(random_.below(rankOf(y)))] = 2;
      return node(OpKind::Pad, {y, number(elem_, 1.5)}, {{"lo", lo}, {"hi", hi}});
    }
    case 5: return node(OpKind::Sub, {y, movedAlike()});
    case 6: return clip(y, -0.5, 0.75);
    default: return node(random_.oneIn(2) ? OpKind::Sigmoid : OpKind::Neg, {y});
    }
  }

  // ---- raise-composites

  void gelu() {
    const Id x = source();
    const bool divides = random_.oneIn(2);
    const double inner = nearly(elem_, divides ? std::numbers::sqrt2 : std::numbers::sqrt2 / 2);
    const Id gate = either(OpKind::Add, node(OpKind::Erf, {scaled(x, inner, divides)}),
                           number(elem_, nearly(elem_, 1)));
    const Id half = number(elem_, nearly(elem_, 0.5));
    switch (random_.below(3)) {
    case 0: return emit(either(OpKind::Mul, either(OpKind::Mul, x, gate), half));
    case 1: return emit(either(OpKind::Mul, either(OpKind::Mul, x, half), gate));
    default: return emit(either(OpKind::Mul, either(OpKind::Mul, gate, half), x));
    }
  }
  void sigmoid() {
    const Id x = source(), exp = node(OpKind::Exp, {node(OpKind::Neg, {x})});
    const Id sum = either(OpKind::Add, exp, number(elem_, nearly(elem_, 1)));
    emit(random_.oneIn(2) ? node(OpKind::Reciprocal, {sum})
                          : node(OpKind::Div, {number(elem_, nearly(elem_, 1)), sum}));
  }
  void softmax() {
    Id x = source(elem_, anyShape(1, 3));
    const int64_t axis = random_.below(rankOf(x)),
                  other = random_.oneIn(6) ? random_.below(rankOf(x)) : axis;
    if (random_.oneIn(3)) x = node(OpKind::Add, {x, mask(shapeOf(x))});
    if (x == kRefused) return;
    if (random_.oneIn(2))
      x = node(OpKind::Sub, {x, node(OpKind::ReduceMax, {x}, {{"axes", Ints{other}}})});
    const Id exp = node(OpKind::Exp, {x});
    emit(node(OpKind::Div, {exp, node(OpKind::ReduceSum, {exp}, {{"axes", Ints{axis}}})}));
  }
  /// 0 and what hides a place; whole rows now and then.
  Id mask(const Shape& dims) {
    static constexpr double kHidden[] = {-INFINITY, -10000.0, -1e9, -65504.0};
    const double hidden = random_.of(kHidden);
    const int64_t most = random_.oneIn(6) ? 1 : 3;
    Doubles values;
    for (int64_t i = *elementCount(dims); i > 0; --i)
      values.push_back(random_.oneIn(most) ? hidden : 0);
    return random_.oneIn(2) ? constantOf(elem_, dims, values)
                            : leaf(tensorOf(elem_, dims, values), false);
  }
  void attention() {
    const int64_t b = random_.between(1, 2), s = random_.between(1, 4), t = random_.between(1, 4),
                  d = random_.of(kDepths);
    Id q = source(elem_, {b, s, d}),
       k = source(elem_, random_.oneIn(3) ? Shape{b, d, t} : Shape{b, t, d});
    const Id v = source(elem_, {b, t, random_.between(1, 4)});
    const double scale = random_.oneIn(3)   ? 1 / std::sqrt(static_cast<double>(d))
                         : random_.oneIn(2) ? std::ldexp(1, between(-10, -2))
                                            : factor(elem_);
    const int64_t where = random_.below(4); // of the factor
    if (where == 0) q = scaled(q, scale, random_.oneIn(3));
    if (where == 1 || (where == 0 && random_.oneIn(3))) k = scaled(k, scale, random_.oneIn(3));
    if (k == kRefused) return;
    if (shapeOf(k) != Shape{b, d, t}) k = node(OpKind::Transpose, {k}, {{"perm", Ints{0, 2, 1}}});
    Id scores = node(OpKind::Matmul, {q, k});
    if (where >= 2) scores = scaled(scores, scale, random_.oneIn(3));
    if (scores == kRefused) return;
    if (random_.oneIn(2))
      scores = either(OpKind::Add, scores, mask(random_.oneIn(3) ? Shape{t} : shapeOf(scores)));
    const Id weights =
        node(OpKind::Softmax, {scores}, {{"axis", int64_t(random_.oneIn(8) ? 1 : 2)}});
    if (random_.oneIn(8)) emit(scores);
    emit(node(OpKind::Matmul, {weights, v}));
  }
  void norm() {
    const Id x = source(elem_, anyShape(1, 3));
    const int64_t rank = rankOf(x), first = random_.below(rank);
    Ints axes;
    for (int64_t d = first; d < rank; ++d) axes.push_back(d);
    if (random_.oneIn(6)) axes = {0};
    const Attrs rows{{"axes", axes}};
    const Id n = random_.oneIn(2) ? x : node(OpKind::Sub, {x, node(OpKind::ReduceMean, {x}, rows)});
    const Id squares = random_.oneIn(2) ? node(OpKind::Mul, {n, n})
                                        : node(OpKind::Pow, {n, number(elem_, nearly(elem_, 2))});
    static constexpr double kEpsilons[] = {1e-5, 1e-12, 1e-3, 0.5, 0.0, -0.25};
    const Id sum = either(OpKind::Add, node(OpKind::ReduceMean, {squares}, rows),
                          number(elem_, random_.of(kEpsilons)));
    const Id spread = node(OpKind::Sqrt, {sum});
    Id y = random_.oneIn(2) ? node(OpKind::Div, {n, spread})
                            : either(OpKind::Mul, n, node(OpKind::Reciprocal, {spread}));
    const Shape dims = shapeOf(x), row(dims.begin() + random_.between(first, rank - 1), dims.end());
    if (random_.oneIn(2)) y = either(OpKind::Mul, y, constant(elem_, row, anyRange()));
    if (random_.oneIn(2))
      y = either(OpKind::Add, y,
                 random_.oneIn(2) ? constant(elem_, row, range_) : source(elem_, row));
    emit(y);
  }

  // ---- fold-batch-norm, fold-padding

  /// Of channels: near 1, or at the ends of the type.
  Id channels(int64_t count, const Shape& dims, Range range) {
    return leaf(numbers(elem_, dims.empty() ? Shape{count} : dims, range), true);
  }
  Id batchNorm(Id x) {
    if (x == kRefused) return x;
    const int64_t c = typeOf(x).dim(1);
    Doubles variance;
    const int spread = random_.oneIn(4) ? 10 : 1;
    for (int64_t i = 0; i < c; ++i) variance.push_back(std::abs(digits(between(-spread, spread))));
    static constexpr double kEpsilons[] = {1e-5, 1e-3, 1e-12};
    return node(OpKind::BatchNorm,
                {x, channels(c, {}, random_.oneIn(3) ? anyRange() : Range::calm),
                 channels(c, {}, Range::calm),
                 channels(c, {}, random_.oneIn(2) ? Range::far : Range::calm),
                 constantOf(elem_, {c}, variance)},
                {{"epsilon", random_.of(kEpsilons)}});
  }
  void loneBatchNorm() {
    const Shape dims = anyShape(2, 4);
    emit(batchNorm(source(elem_, dims)));
  }
  void scaledChannels() {
    const Range weights = random_.oneIn(3)   ? Range::low
                          : random_.oneIn(4) ? Range::wide
                                             : Range::calm;
    const int64_t outs = random_.between(1, 3) * 2;
    Id y = kRefused;
    const bool conv = random_.oneIn(2);
    const Id bias = random_.oneIn(2)
                        ? constant(elem_, {outs}, random_.oneIn(3) ? Range::far : Range::calm)
                        : kAbsent;
    if (conv) {
      const int64_t group = random_.between(1, 2), c = group * random_.between(1, 2);
      const Id x = source(elem_, {1, c, random_.between(2, 3), random_.between(1, 3)});
      y = node(OpKind::Conv,
               {x, constant(elem_, {outs, c / group, random_.between(1, 2), 1}, weights), bias},
               {{"group", group}});
    } else {
      const int64_t k = random_.between(1, 4), transB = random_.below(2);
      static constexpr double kBetas[] = {1.0, 1.0, 2.0, 0.5, 0.0};
      y = node(
          OpKind::Gemm,
          {source(elem_, {random_.between(1, 3), k}),
           constant(elem_, transB ? Shape{outs, k} : Shape{k, outs}, weights), bias},
          {{"transB", transB}, {"alpha", random_.of(kBetas) + 0.25}, {"beta", random_.of(kBetas)}});
    }
    if (y == kRefused) return;
    if (random_.oneIn(10)) emit(y);
    for (int64_t i = random_.between(1, 3); i > 0 && y != kRefused; --i) {
      if (random_.oneIn(3)) {
        y = batchNorm(y);
        continue;
      }
      Shape dims(static_cast<size_t>(rankOf(y) - 1), 1);
      dims[0] = outs;
      const bool mul = random_.oneIn(2);
      const Id c = random_.oneIn(3) ? number(elem_, factor(elem_))
                   : random_.oneIn(8)
                       ? constant(elem_, shapeOf(y), Range::calm)
                       : constant(elem_, dims, random_.oneIn(2) ? Range::calm : anyRange());
      y = either(mul ? OpKind::Mul : OpKind::Add, y, c);
    }
    emit(y);
  }
  void padded() {
    const bool integer = random_.oneIn(4);
    const Elem elem = integer ? (random_.oneIn(2) ? Elem::i8_ : Elem::u8_) : elem_;
    const int64_t c = random_.between(1, 2);
    const Id x = source(elem, {1, c, random_.between(2, 4), random_.between(2, 4)});
    Ints lo{0, 0, random_.between(0, 2), random_.between(0, 2)},
        hi{0, 0, random_.between(0, 2), random_.between(0, 2)};
    if (random_.oneIn(8)) lo[static_cast<size_t>(random_.below(4))] = random_.oneIn(2) ? 1 : -1;
    const int64_t kind = integer ? 0 : random_.below(3);
    static constexpr double kFills[] = {0.0, 0.0, -0.0, 1.0};
    const double zero = integer ? static_cast<double>(random_.below(3)) : 0;
    const double fill = kind == 2 ? (random_.oneIn(4) ? 0 : -INFINITY)
                        : integer ? (random_.oneIn(4) ? 1 : zero)
                                  : random_.of(kFills);
    static constexpr const char* kModes[] = {"constant", "constant", "constant",
                                             "constant", "constant", "edge"};
    const std::string mode = random_.of(kModes);
    const Id pad =
        node(OpKind::Pad, {x, random_.oneIn(6) || mode == "edge" ? kAbsent : number(elem, fill)},
             {{"lo", lo}, {"hi", hi}, {"mode", mode}});
    const Ints own{random_.below(2), 0, 0, random_.below(2)}, kernel{2, random_.between(1, 2)},
        strides{1, random_.between(1, 2)};
    if (pad == kRefused) return;
    const int64_t depth = typeOf(pad).dim(1);
    if (kind == 2 || kind == 1) {
      Attrs attrs{{"kernel_shape", kernel},
                  {"pads", own},
                  {"strides", strides},
                  {"ceil_mode", int64_t(random_.oneIn(4))}};
      if (kind == 1) attrs["count_include_pad"] = int64_t(!random_.oneIn(4));
      return emit(node(kind == 1 ? OpKind::AveragePool : OpKind::MaxPool, {pad}, attrs));
    }
    const Shape weights{2, depth, kernel[0], kernel[1]};
    const Attrs attrs{{"pads", own}, {"strides", strides}};
    if (!integer)
      return emit(node(OpKind::Conv, {pad, constant(elem, weights, Range::calm)}, attrs));
    emit(node(OpKind::ConvInteger,
              {pad, constant(Elem::i8_, weights, Range::wide), kAbsent,
               zero == 0 && random_.oneIn(2) ? kAbsent : constantOf(elem, {1}, {zero})},
              attrs));
  }

  // ---- fold-constants, common-subexpressions, dead-code

  void constants() {
    const Elem elem = random_.oneIn(2) ? anyInteger() : elem_;
    const Shape dims = anyShape(1, 3);
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Max,
                                        OpKind::Div};
    Id c = constant(elem, dims, anyRange());
    for (int64_t i = random_.between(1, 3); i > 0 && c != kRefused; --i) switch (random_.below(5)) {
      case 0: c = cast(c, random_.oneIn(2) ? anyInteger() : anyReal()); break;
      case 1: c = moved(c); break;
      case 2:
        c = node(OpKind::Expand, {random_.oneIn(2) ? number(elemOf(c), 1) : c},
                 {{"shape", shapeOf(c)}});
        break;
      default:
        c = node(random_.of(kKinds),
                 {c, constant(elemOf(c), random_.oneIn(2) ? Shape{} : shapeOf(c), anyRange())});
      }
    if (c == kRefused) return;
    emit(either(OpKind::Add, source(elemOf(c), shapeOf(c)), c));
  }
  void gathered() {
    const Elem elem = random_.oneIn(2) ? elem_ : anyInteger(),
               places = random_.oneIn(2) ? Elem::i64_ : Elem::i32_;
    const bool isConstant = random_.oneIn(2);
    const Id x = isConstant && random_.oneIn(2) ? constant(elem, anyShape(), Range::calm)
                                                : source(elem, anyShape());
    const int64_t axis = random_.below(rankOf(x)), extent = typeOf(x).dim(static_cast<int>(axis));
    Tensor index = Tensor::zeros(places, anyShape(1, 2)).orAbort();
    for (int64_t i = 0; i < index.count(); ++i) {
      int64_t place = random_.below(extent);
      if (!isConstant && random_.oneIn(4)) place = random_.between(-extent - 1, extent + 1);
      if (!isConstant && random_.oneIn(6))
        place =
            places == Elem::i64_ ? int64_t{1} << random_.between(31, 62) : (int64_t{1} << 31) - 1;
      if (!isConstant && random_.oneIn(8)) place = -place;
      storeElement(places, index.bytes.mutableData(), i,
                   static_cast<uint64_t>(place) & elemMask(places));
    }
    const Id at = leaf(std::move(index), isConstant);
    const Id picked = node(OpKind::Gather, {x, at}, {{"axis", axis}});
    emit(random_.oneIn(2) ? picked : moved(picked));
  }
  void twice() {
    const Id x = source(), y = source(elem_, shapeOf(x));
    static constexpr double kNumbers[] = {0.0, -0.0, 1.0, 2.0};
    static constexpr OpKind kKinds[] = {OpKind::Mul, OpKind::Add, OpKind::Div, OpKind::Min};
    const auto one = [&] { return node(kKinds[kind_], {x, number(elem_, random_.of(kNumbers))}); };
    kind_ = static_cast<size_t>(random_.below(4));
    const Id a = one(), b = one();
    const Id c = random_.oneIn(3) ? node(OpKind::Softmax, {y}, {{"axis", int64_t{0}}})
                                  : node(OpKind::Sub, {a, y});
    const Id d = random_.oneIn(3) ? node(OpKind::Softmax, {y}, {{"axis", rankOf(y) - 1}})
                                  : node(OpKind::Sub, {b, y});
    emit(node(OpKind::Sub, {node(OpKind::Exp, {c}), node(OpKind::Exp, {d})}));
    emit(a);
    if (random_.oneIn(2)) emit(b);
  }
  void unused() {
    const Id x = source();
    emit(node(OpKind::Tanh, {x}));
    node(OpKind::Add, {node(OpKind::Exp, {x}), x});
  }

  // ---- simplify-loops

  void loop() {
    graph::LoopForm form;
    form.trips = random_.oneIn(3) ? 1 : random_.between(2, 4);
    const Elem elem = random_.oneIn(4) ? Elem::i32_ : elem_;
    const Shape dims = anyShape(1, 2);
    Shape scanned = dims;
    scanned.insert(scanned.begin(), form.trips);
    std::vector<Id> ids{source(elem, dims), source(elem, dims), source(elem, dims)};
    form.carried = 3;
    const bool scans = random_.oneIn(2);
    if (scans) ids.push_back(source(elem, scanned)), form.scanned = 1;
    ids.push_back(random_.oneIn(2) ? constant(elem, dims, Range::calm) : source(elem, dims));
    graph::Graph body;
    std::vector<graph::Value*> in;
    for (size_t i = 0; i < ids.size(); ++i)
      in.push_back(body.addInput(fmt::format("v{}", i), graph::TensorType(elem, dims)));
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Max};
    const auto of = [&](graph::Value* a, graph::Value* b) {
      return (*body.addNode(random_.of(kKinds), {a, b}).orAbort()).result();
    };
    graph::Value* next = of(in[0], in.back());
    graph::Value* sum = of(scans ? in[3] : in[1], next);
    body.addOutput(next, "next0");
    body.addOutput(random_.oneIn(2) ? in[1] : sum, "next1"); // as it is, or not
    body.addOutput(random_.oneIn(2) ? in[2] : of(in[2], in[1]), "next2");
    body.addOutput(of(sum, in[0]), "each");
    if (form.scanned) form.backward.push_back(random_.below(2));
    form.backward.push_back(random_.below(2));
    std::vector<graph::Value*> operands;
    for (const Id id : ids) operands.push_back(known_.at(id));
    const auto shared = std::make_shared<const graph::Graph>(graph::clone(body));
    const auto made = graph::addLoop(graph_, form, operands, std::move(body));
    if (!made) return;
    const std::vector<Id> results = keep(**made, ids, shared);
    const size_t before = recipe_.outputs.size();
    for (const Id id : results)
      if (random_.oneIn(2)) emit(id);
    if (recipe_.outputs.size() == before) emit(results[3]);
  }

  // ---- raise-quantized

  struct Steps {
    Elem elem = Elem::i8_;
    double scale = 1, zero = 0;
  };
  double anyScale() {
    static constexpr double kScales[] = {0.013, 0.1, 0.00392, 1.0 / 3, 0.7, 2.6};
    if (random_.oneIn(12)) return std::abs(digits(between(-60, 60)));
    return random_.oneIn(2) ? std::ldexp(1, between(-7, 3))
                            : static_cast<float>(random_.of(kScales));
  }
  Steps anySteps(bool wide = false) {
    static constexpr Elem kElems[] = {Elem::i8_, Elem::u8_,  Elem::i8_,
                                      Elem::u8_, Elem::i16_, Elem::u16_};
    Steps steps{kElems[random_.below(wide ? 6 : 4)], anyScale(), 0};
    const IntegerRange range = integerRange(steps.elem);
    if (random_.oneIn(2))
      steps.zero = static_cast<double>(
          random_.between(static_cast<int64_t>(range.lowest), static_cast<int64_t>(range.highest)));
    if (steps.elem == Elem::u8_ && random_.oneIn(2)) steps.zero = 128;
    return steps;
  }
  std::vector<Id> parameters(const Steps& steps) {
    std::vector<Id> ids{number(scaleElem_, steps.scale)};
    if (steps.zero != 0 || random_.oneIn(2)) ids.push_back(number(steps.elem, steps.zero));
    return ids;
  }
  Id dequantized(Id stored, const Steps& steps) {
    const std::vector<Id> ids = parameters(steps);
    return node(OpKind::Dequantize, {stored, ids[0], ids.size() > 1 ? ids[1] : kAbsent});
  }
  Id quantized(Id x, const Steps& steps) {
    if (x == kRefused) return x;
    return node(OpKind::Quantize,
                {x, number(elemOf(x), steps.scale), number(steps.elem, steps.zero)});
  }
  /// A dequantized value: of an input of integers, or of reals that are quantized.
  Id activation(const Shape& dims, const Steps& steps) {
    if (random_.oneIn(3)) {
      Tensor reals = Tensor::zeros(scaleElem_, dims).orAbort();
      const double reach = steps.scale * (random_.oneIn(3) ? 200 : 40);
      const bool coarse = random_.oneIn(2); // in half steps: ties
      for (int64_t i = 0; i < reals.count(); ++i)
        put(reals, i,
            coarse ? steps.scale * static_cast<double>(random_.between(-60, 60)) / 2
                   : reach * (random_.unit() * 2 - 1));
      return dequantized(quantized(leaf(std::move(reals), false), steps), steps);
    }
    return dequantized(
        leaf(numbers(steps.elem, dims, random_.oneIn(3) ? Range::high : Range::wide), false),
        steps);
  }
  /// Towards the end of the cluster: activations, and quantize or not.
  void finish(Id y) {
    if (y == kRefused) return;
    if (random_.oneIn(3))
      y = random_.oneIn(2) ? node(OpKind::Relu, {y}) : clip(y, anyBound(), anyBound());
    if (random_.oneIn(5)) y = moved(y);
    if (random_.oneIn(5)) return emit(y);
    const Steps steps = anySteps(true);
    y = quantized(y, steps);
    emit(random_.oneIn(3) ? dequantized(y, steps) : y);
  }
  Id weights(const Shape& dims, int64_t channels, int axis, Doubles& scales) {
    Steps steps = anySteps(random_.oneIn(10));
    const Id stored = constant(steps.elem, dims, random_.oneIn(3) ? Range::high : Range::wide);
    if (random_.oneIn(2)) {
      scales = {steps.scale};
      return dequantized(stored, steps);
    }
    Doubles zeros;
    for (int64_t i = 0; i < channels; ++i)
      scales.push_back(anyScale()), zeros.push_back(random_.oneIn(2) ? steps.zero : 0);
    if (random_.oneIn(2)) zeros.assign(zeros.size(), 0);
    return node(OpKind::Dequantize,
                {stored, constantOf(scaleElem_, {channels}, scales),
                 constantOf(steps.elem, {channels}, zeros)},
                {{"axis", int64_t(axis)}});
  }
  /// A bias: int32 in the steps of the sums or in steps of its own, or reals.
  Id biasOf(int64_t channels, double xScale, const Doubles& scales) {
    const int64_t how = random_.below(5);
    Doubles values, own;
    for (int64_t c = 0; c < channels; ++c)
      own.push_back(xScale * scales[scales.size() == 1 ? 0 : static_cast<size_t>(c)]);
    if (how <= 1) {
      for (int64_t c = 0; c < channels; ++c)
        values.push_back(static_cast<double>(
            random_.oneIn(3) ? random_.between(-(int64_t{1} << 31), (int64_t{1} << 31) - 1)
                             : random_.between(-30000, 30000)));
      if (how == 1) own.assign(own.size(), anyScale());
      return node(
          OpKind::Dequantize,
          {constantOf(Elem::i32_, {channels}, values), constantOf(scaleElem_, {channels}, own)},
          {{"axis", int64_t{0}}});
    }
    for (int64_t c = 0; c < channels; ++c) {
      const double step = own[static_cast<size_t>(c)];
      // a whole number of steps
      values.push_back(how == 2 ? step * static_cast<double>(random_.between(-500, 500))
                       : how == 3
                           ? step * (static_cast<double>(random_.between(-50, 50)) + random_.unit())
                           : random_.unit() * 4 - 2);
    }
    return constantOf(scaleElem_, {channels}, values);
  }
  void product() {
    const Steps steps = anySteps(random_.oneIn(10));
    const int64_t outs = random_.between(1, 4);
    Doubles scales;
    if (random_.oneIn(2)) {
      const int64_t c = random_.between(1, 3);
      const Id x = activation({1, c, random_.between(2, 3), random_.between(1, 3)}, steps);
      const Id w = weights({outs, c, random_.between(1, 2), 1}, outs, 0, scales);
      const Id bias = random_.oneIn(3) ? kAbsent : biasOf(outs, steps.scale, scales);
      return finish(node(OpKind::Conv, {x, w, bias},
                         {{"pads", Ints{random_.below(2), 0, 0, random_.below(2)}}}));
    }
    const int64_t k = random_.between(1, 6), m = random_.between(1, 3);
    if (random_.oneIn(2)) {
      const int64_t transA = random_.below(2), transB = random_.below(2);
      const Id x = activation(transA ? Shape{k, m} : Shape{m, k}, steps);
      const Id w = weights(transB ? Shape{outs, k} : Shape{k, outs}, outs, transB ? 0 : 1, scales);
      const double alpha = random_.oneIn(3) ? 0.5 : 1;
      for (double& scale : scales) scale *= alpha;
      const Id bias = random_.oneIn(3) ? kAbsent : biasOf(outs, steps.scale, scales);
      return finish(node(OpKind::Gemm, {x, w, bias},
                         {{"transA", transA},
                          {"transB", transB},
                          {"alpha", alpha},
                          {"beta", random_.oneIn(4) ? 2.0 : 1.0}}));
    }
    const Id x = activation({m, k}, steps), w = weights({k, outs}, outs, 1, scales);
    const Id y = node(OpKind::Matmul, {x, w});
    finish(random_.oneIn(3) ? y : either(OpKind::Add, y, biasOf(outs, steps.scale, scales)));
  }
  /// Numbers of blocks along an axis, each for all elements of its block: `depth` in all.
  Id spread(Id grid, size_t axis, int64_t block, int64_t depth) {
    if (grid == kRefused) return grid;
    const Shape dims = known_.at(grid)->type.shape();
    Shape each = dims;
    each.insert(each.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
    Shape more = each;
    more[axis + 1] = block;
    Shape flat = dims;
    flat[axis] *= block;
    Id y = node(OpKind::Reshape, {grid}, {{"shape", each}});
    y = node(OpKind::Expand, {y}, {{"shape", more}});
    y = node(OpKind::Reshape, {y}, {{"shape", flat}});
    flat[axis] = depth;
    return node(OpKind::Slice, {y},
                {{"starts", Ints{0, 0}}, {"counts", flat}, {"steps", Ints{1, 1}}});
  }
  /// A product with weights that blocks along k have scales and zero points for, or nearly.
  void blockedProduct() {
    static constexpr Elem kStored[] = {Elem::i4_, Elem::u4_, Elem::i8_,     Elem::u8_,
                                       Elem::i2_, Elem::u2_, Elem::f8e4m3_, Elem::f8e5m2_};
    const Elem stored = random_.of(kStored);
    const int64_t block = random_.oneIn(5) ? 8 : 16;
    const int64_t blocks = random_.between(1, 3);
    const int64_t depth = blocks * block - random_.below(random_.oneIn(2) ? block : 1);
    const int64_t columns = random_.between(1, 4);
    const bool isTransposed = random_.oneIn(2);
    const size_t axis = isTransposed ? 1 : 0;
    const Shape dims = isTransposed ? Shape{columns, depth} : Shape{depth, columns};
    const Shape grid = isTransposed ? Shape{columns, blocks} : Shape{blocks, columns};
    Id w = constant(stored, dims, Range::wide);
    if (isInteger(stored)) w = node(OpKind::Cast, {w}, {{"to", Elem::i32_}});
    if (isInteger(stored) && random_.oneIn(2)) {
      const double middle = std::ldexp(1, elemBits(stored) - 1);
      const bool isMiddle = !isSigned(stored) && random_.oneIn(2);
      Id zero = isMiddle ? number(stored, middle) : constant(stored, grid, Range::wide);
      zero = node(OpKind::Cast, {zero}, {{"to", Elem::i32_}});
      w = node(OpKind::Sub, {w, isMiddle ? zero : spread(zero, axis, block, depth)});
    }
    w = node(OpKind::Cast, {w}, {{"to", scaleElem_}});
    const Id scale = constant(scaleElem_, grid, Range::wide);
    w = node(OpKind::Mul, {w, spread(scale, axis, block, depth)});
    if (isTransposed) w = node(OpKind::Transpose, {w}, {{"perm", Ints{1, 0}}});
    const Id x = leaf(numbers(scaleElem_, {random_.between(1, 3), depth}, Range::wide), false);
    emit(node(OpKind::Matmul, {x, w}));
  }
  /// int32 that stands for reals, and a row: near the end of int32 too.
  void sums() {
    const Shape dims = anyShape(1, 2);
    const double scale = anyScale();
    Doubles row;
    for (int64_t i = 0; i < dims.back(); ++i)
      row.push_back(scale * static_cast<double>(random_.between(-4000, 4000)) /
                    (random_.oneIn(3) ? 3 : 1));
    const Id stored =
        leaf(numbers(Elem::i32_, dims, random_.oneIn(2) ? Range::high : Range::wide), false);
    const Id x = node(OpKind::Dequantize, {stored, number(scaleElem_, scale)});
    finish(either(OpKind::Add, x,
                  constantOf(scaleElem_, {dims.back()}, random_.oneIn(3) ? Doubles{row[0]} : row)));
  }
  void elementwiseBytes() {
    const Steps a = anySteps(true), b = random_.oneIn(3) ? a : anySteps(true);
    const Shape dims = anyShape(1, 3);
    static constexpr OpKind kKinds[] = {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Max};
    const Id x = activation(dims, a),
             y = activation(random_.oneIn(4) ? Shape{dims.back()} : dims, b);
    finish(either(random_.of(kKinds), x, y));
  }
  void functionOfBytes() {
    const Steps steps = anySteps();
    Id x = activation(anyShape(1, 3), steps);
    static constexpr OpKind kKinds[] = {OpKind::Sigmoid, OpKind::Tanh, OpKind::Exp, OpKind::Abs,
                                        OpKind::Neg};
    for (int64_t i = random_.between(1, 2); i > 0; --i)
      x = random_.oneIn(3) ? scaled(x, factor(scaleElem_)) : node(random_.of(kKinds), {x});
    if (x == kRefused) return;
    Steps to = anySteps();
    if (!random_.oneIn(4)) to.elem = steps.elem;
    if (to.elem == Elem::i8_) to.zero = std::clamp(to.zero, -128.0, 127.0);
    if (to.elem == Elem::u8_) to.zero = std::clamp(to.zero, 0.0, 255.0);
    emit(quantized(x, to));
  }
  void meanOfBytes() {
    const Steps steps = anySteps();
    const Id x =
        activation({1, random_.between(1, 3), random_.between(2, 4), random_.between(2, 4)}, steps);
    switch (random_.below(3)) {
    case 0: return finish(node(OpKind::GlobalAveragePool, {x}));
    case 1:
      return finish(node(
          OpKind::ReduceMean, {x},
          {{"axes", random_.oneIn(2) ? Ints{2, 3} : Ints{1}}, {"keepdims", random_.below(2)}}));
    default:
      return finish(node(OpKind::AveragePool, {x},
                         {{"kernel_shape", Ints{2, 2}},
                          {"pads", Ints{random_.below(2), 0, 0, random_.below(2)}},
                          {"count_include_pad", random_.below(2)},
                          {"ceil_mode", int64_t(random_.oneIn(4))}}));
    }
  }
  void movedBytes() {
    const Steps steps = anySteps(random_.oneIn(6));
    const Id x = activation({1, 2, random_.between(2, 4), random_.between(2, 3)}, steps);
    Id y = kRefused;
    switch (random_.below(4)) {
    case 0:
      y = node(OpKind::Concat, {x, activation(shapeOf(x), random_.oneIn(2) ? steps : anySteps())},
               {{"axis", int64_t{1}}});
      break;
    case 1:
      y = node(OpKind::MaxPool, {x},
               {{"kernel_shape", Ints{2, 2}}, {"pads", Ints{0, random_.below(2), 0, 0}}});
      break;
    case 2:
      y = node(OpKind::Gather, {x, constantOf(Elem::i64_, {2}, {1, 0})}, {{"axis", int64_t{2}}});
      break;
    default: y = moved(x);
    }
    if (y == kRefused) return;
    if (random_.oneIn(3)) return emit(quantized(y, steps));
    finish(y);
  }

  static constexpr int64_t kDepths[] = {1, 2, 4, 3, 8};
  random::Random random_;
  const Elem elem_;
  const Range range_;
  Elem scaleElem_ = Elem::f32_; ///< of what is quantized
  size_t kind_ = 0;
  graph::Graph graph_;
  std::map<Id, graph::Value*> known_;
  random::Recipe recipe_;
};

const std::vector<RewriteMaker::Motif>& RewriteMaker::motifs() {
  using M = RewriteMaker;
  static const std::vector<Motif> motifs{
      {"canonicalize", &M::neutral},
      {"canonicalize", &M::casts},
      {"canonicalize", &M::movements},
      {"canonicalize", &M::clips},
      {"canonicalize", &M::selects},
      {"canonicalize", &M::idempotent},
      {"canonicalize", &M::broadcasts},
      {"simplify-loops", &M::loop},
      {"algebra", &M::negations},
      {"algebra", &M::factors},
      {"algebra", &M::quotients},
      {"algebra", &M::powers},
      {"algebra", &M::clips},
      {"algebra", &M::slices},
      {"algebra", &M::trivialReductions},
      {"sink-movement", &M::transposed},
      {"raise-composites", &M::gelu},
      {"raise-composites", &M::sigmoid},
      {"raise-composites", &M::softmax},
      {"raise-composites", &M::attention},
      {"raise-composites", &M::norm},
      {"raise-quantized", &M::product},
      {"raise-quantized", &M::product},
      {"raise-quantized", &M::sums},
      {"raise-quantized", &M::elementwiseBytes},
      {"raise-quantized", &M::functionOfBytes},
      {"raise-quantized", &M::meanOfBytes},
      {"raise-quantized", &M::movedBytes},
      {"raise-scaled-products", &M::blockedProduct},
      {"fold-constants", &M::constants},
      {"fold-constants", &M::gathered},
      {"fold-batch-norm", &M::loneBatchNorm},
      {"fold-batch-norm", &M::scaledChannels},
      {"fold-batch-norm", &M::scaledChannels},
      {"fold-padding", &M::padded},
      {"common-subexpressions", &M::twice},
      {"dead-code", &M::unused},
  };
  return motifs;
}

random::Recipe RewriteMaker::make(std::string_view pass) {
  std::vector<const Motif*> own;
  for (const Motif& motif : motifs())
    if (motif.pass == pass) own.push_back(&motif);
  if (random_.oneIn(8)) scaleElem_ = Elem::f16_;
  const int64_t count = random_.oneIn(3) ? random_.between(2, 3) : 1;
  for (int64_t i = 0; i < count; ++i)
    (this->*(i == 0 ? *random_.of(own) : random_.of(motifs())).build)();
  // What others use is an output too, now and then.
  if (!recipe_.steps.empty() && random_.oneIn(6)) emit(random_.of(recipe_.steps).results[0]);
  return std::move(recipe_);
}

} // namespace

random::Recipe rewriteGraph(std::string_view pass, uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt) {
    // A motif may draw what inference refuses.
    random::Recipe recipe = RewriteMaker(seed + (attempt << 40)).make(pass);
    if (!recipe.outputs.empty()) return recipe;
  }
}

std::span<const std::string_view> rewritePasses() {
  static const std::vector<std::string_view> passes = [] {
    std::vector<std::string_view> found;
    for (const RewriteMaker::Motif& motif : RewriteMaker::motifs())
      if (std::ranges::find(found, motif.pass) == found.end()) found.push_back(motif.pass);
    return found;
  }();
  return passes;
}

} // namespace candela::conformance
