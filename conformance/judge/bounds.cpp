#include "conformance/judge/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "conformance/judge/element_rule.h"
#include "core/compiler/capabilities/rows.h"
#include "core/compiler/lowering/decompose/lower.h"
#include "core/support/compare.h"
#include "core/support/float_bits.h"
#include "core/support/out_of_memory.h"

namespace candela::conformance::judge {

using graph::Node, graph::OpInfo, graph::OpKind, graph::Tolerance;
using reference::Array, reference::Whole;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Whole kFar = Whole(1) << 100;

/// Whether the number, as f64 has it, is one of the type that nothing rounded on the way to it.
bool isExact(Elem elem, double value) {
  if (elem == Elem::f64_) return value == std::floor(value) && std::abs(value) < 0x1p50;
  return reference::roundReal(elem, value) == value;
}
double largestOf(Elem elem) {
  double size = 1;
  while (std::isfinite(reference::roundReal(elem, size * 2)) && size < 1e308) size *= 2;
  return size;
}

/// The formula of the op, on numbers that are not rounded.
std::vector<Array> formula(const Node& node, const std::vector<const Array*>& operands) {
  std::vector<const Array*> in(std::max(operands.size(), node.info().operands.size()), nullptr);
  std::ranges::copy(operands, in.begin());
  std::vector<Array> out;
  for (const graph::Value* result : node.results())
    out.emplace_back(result->type.elem, result->type.shape());
  reference::applyFormula(node, in, out);
  return out;
}

/// Takes y into the interval.
void include(Interval& x, const Array& y) {
  for (int64_t i = 0; i < y.count(); ++i) {
    if (x.isWild(i)) continue;
    if (!isFloat(y.elem)) {
      x.lo.whole[i] = std::min(x.lo.whole[i], y.whole[i]);
      x.hi.whole[i] = std::max(x.hi.whole[i], y.whole[i]);
      continue;
    }
    double &lo = x.lo.real[i], &hi = x.hi.real[i];
    if (std::isnan(lo) != std::isnan(y.real[i])) {
      x.makeWild(i);
    } else if (!std::isnan(lo)) {
      lo = std::min(lo, y.real[i]);
      hi = std::max(hi, y.real[i]);
    }
  }
}

/// Where a result stands in a Graph.
enum class Place : uint8_t {
  end,     ///< it is looked at
  between, ///< others read it: of a half in what is wider, where a device has no halves
};

bool isHalf(Elem elem) { return elem == Elem::f16_ || elem == Elem::bf16_; }

/// The ends of numbers that were finite before they were rounded, and would be in more bits.
void keepFinite(Elem half, double loBefore, double hiBefore, double& lo, double& hi) {
  if (std::isfinite(loBefore) && lo == kInf) lo = largestReal(half);
  if (std::isfinite(hiBefore) && hi == -kInf) hi = -largestReal(half);
}

/// Rounds the ends to the type, `slack` (may be null: nothing but what rounding needs) outside of
/// them.
void roundEnds(Interval& x, const std::vector<double>* slack, Place place) {
  const Elem elem = x.elem();
  const bool mayBeWider = place == Place::between && isHalf(elem);
  if (!isFloat(elem)) {
    // Integers of several values wrap, index and divide: no interval holds what comes of them.
    for (int64_t i = 0; i < x.count(); ++i)
      if (x.lo.whole[i] != x.hi.whole[i]) {
        x.makeWild(i);
      } else {
        x.lo.whole[i] = x.hi.whole[i] = reference::wrap(elem, x.lo.whole[i]);
      }
    return;
  }
  for (int64_t i = 0; i < x.count(); ++i) {
    double &lo = x.lo.real[i], &hi = x.hi.real[i];
    if (x.isWild(i) || std::isnan(lo)) continue;
    const double wider = slack ? (*slack)[i] : 0;
    if (std::isnan(wider)) {
      x.makeWild(i);
      continue;
    }
    if (wider > 0 && std::isfinite(lo)) lo -= wider;
    if (wider > 0 && std::isfinite(hi)) hi += wider;
    const double loBefore = lo;
    const double hiBefore = hi;
    lo = reference::roundReal(elem, lo);
    hi = reference::roundReal(elem, hi);
    if (mayBeWider) keepFinite(elem, loBefore, hiBefore, lo, hi);
    if (std::isnan(lo) || std::isnan(hi)) x.makeWild(i);
    if (lo == 0) lo = -0.0; // the sign of a result of 0 is nobody's promise
    if (hi == 0) hi = 0.0;
  }
}

double sizeOf(const Interval& x, int64_t i) {
  return std::max(std::abs(x.lo.real[i]), std::abs(x.hi.real[i]));
}

/// Whether every element of the operand is one bit pattern.
bool sameBits(const Array& a, const Array& b) {
  if (a.whole != b.whole) return false;
  for (size_t i = 0; i < a.real.size(); ++i)
    if (a.real[i] != b.real[i] ? !(std::isnan(a.real[i]) && std::isnan(b.real[i]))
                               : std::signbit(a.real[i]) != std::signbit(b.real[i]))
      return false;
  return true;
}

Result<std::vector<Interval>> analyzeGraph(const graph::Graph& graph,
                                           std::span<const Interval> inputs,
                                           const capabilities::Target& target, Place outputs);

class Analysis {
public:
  Analysis(const Node& node, const std::vector<const Interval*>& operands,
           const capabilities::Target& target, Place place)
      : node_(node), info_(node.info()), operands_(operands), target_(target), place_(place) {}

  Result<std::vector<Interval>> run() {
    const bool elementwise = info_.has(graph::kTraitElementwise);
    // What is no instruction is what its decomposition is.
    const bool isFormula =
        info_.tolerance == Tolerance::Composite || info_.tolerance == Tolerance::Function;
    if (isFormula && info_.instrKind == 0) {
      CDL_ASSIGN(results_, decomposed(true));
      if (info_.tolerance == Tolerance::Composite) return std::move(results_);
      // A device may have the functions in it, each as good as its row.
      CDL_ASSIGN(const std::vector<Interval> whole, decomposed(false));
      for (size_t r = 0; r < results_.size(); ++r) {
        include(results_[r], whole[r].lo);
        include(results_[r], whole[r].hi);
      }
      return std::move(results_);
    }
    if (elementwise) {
      corners();
    } else {
      ends();
    }
    for (size_t r = 0; r < results_.size(); ++r) {
      const bool sums = info_.tolerance == Tolerance::Contraction ||
                        (info_.tolerance == Tolerance::Rounded && !elementwise);
      // An extreme is one of the numbers, infinite or not.
      const bool picks = node_.kind == OpKind::Reduce &&
                         (node_.stringAttr("fn") == "max" || node_.stringAttr("fn") == "min");
      if (!isFloat(results_[r].elem()) || info_.tolerance == Tolerance::Exact || picks) {
        roundEnds(results_[r], nullptr, place_);
      } else {
        const std::vector<double> slack = sums ? ofSum(r) : ofFunction(results_[r]);
        roundEnds(results_[r], &slack, place_);
      }
      if (place_ == Place::between) keepFiniteOperand(results_[r]);
    }
    if (elementwise) {
      wildFromWild();
      looseComparisons();
      beyondDomain();
    } else {
      looseIndices();
      bitsOfNan();
    }
    return std::move(results_);
  }

private:
  std::vector<const Array*> side(const std::vector<int>& which) const {
    std::vector<const Array*> arrays;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i])
        arrays.push_back(which[i] ? &operands_[i]->hi : &operands_[i]->lo);
      else
        arrays.push_back(nullptr);
    }
    return arrays;
  }
  void take(std::vector<Array> values) {
    if (results_.empty()) {
      for (Array& value : values) results_.push_back({value, value});
      return;
    }
    for (size_t r = 0; r < values.size(); ++r) include(results_[r], values[r]);
  }

  /// All combinations of the ends, and of both zeros or another whole number between them:
  /// functions are monotone in each operand there, or their intervals so narrow that a turning
  /// point changes nothing that a rounding does not.
  void corners() {
    std::vector<std::vector<Array>> points(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i]) {
        points[i].emplace_back();
        continue;
      }
      const Interval& x = *operands_[i];
      points[i].push_back(x.lo);
      if (sameBits(x.lo, x.hi)) continue;
      points[i].push_back(x.hi);
      if (!isFloat(x.elem())) continue;
      Array middle = x.lo, negative = x.lo; // a quotient by -0 is another infinity
      bool crosses = false, isNegative = false;
      for (size_t e = 0; e < middle.real.size(); ++e) {
        const double lo = x.lo.real[e], hi = x.hi.real[e], whole = std::nearbyint((lo + hi) / 2);
        if (lo <= 0 && hi >= 0 && lo != hi) {
          middle.real[e] = 0.0;
          negative.real[e] = -0.0;
          crosses = isNegative = true;
        } else if (whole > lo && whole < hi) {
          middle.real[e] = whole;
          crosses = true;
        }
      }
      if (crosses) points[i].push_back(std::move(middle));
      if (isNegative) points[i].push_back(std::move(negative));
    }
    std::vector<size_t> at(points.size(), 0);
    for (;;) {
      std::vector<const Array*> in;
      for (size_t i = 0; i < at.size(); ++i)
        in.push_back(operands_[i] ? &points[i][at[i]] : nullptr);
      take(formula(node_, in));
      size_t i = 0;
      while (i < at.size() && ++at[i] == points[i].size()) at[i++] = 0;
      if (i == at.size()) return;
    }
  }

  /// Results rise or fall with every operand.
  void ends() {
    std::vector<int> which(operands_.size(), 0);
    take(formula(node_, side(which)));
    if (std::ranges::all_of(operands_,
                            [](const Interval* x) { return !x || sameBits(x->lo, x->hi); }))
      return;
    for (size_t i = 0; i < which.size(); ++i) {
      which.assign(which.size(), 0), which[i] = 1;
      take(formula(node_, side(which)));
      which.assign(which.size(), 1), which[i] = 0;
      take(formula(node_, side(which)));
    }
    which.assign(which.size(), 1);
    take(formula(node_, side(which)));
  }

  /// A conversion's formula has rounded already: what was finite before is its operand.
  void keepFiniteOperand(Interval& y) const {
    const bool isNarrowing = info_.instrKind == CDL_KIND_CONVERT && isHalf(y.elem()) &&
                             isFloat(operands_[0]->elem()) && operands_[0]->count() == y.count();
    if (!isNarrowing) return;
    const Interval& x = *operands_[0];
    for (int64_t i = 0; i < y.count(); ++i)
      if (!y.isWild(i) && !x.isWild(i))
        keepFinite(y.elem(), x.lo.real[i], x.hi.real[i], y.lo.real[i], y.hi.real[i]);
  }

  /// A conversion's formula has rounded already.
  bool isNarrowed(const Interval& y, int64_t i) const {
    if (info_.instrKind != CDL_KIND_CONVERT || operands_[0]->count() != y.count()) return false;
    const Interval& x = *operands_[0];
    return isFloat(x.elem()) ? x.lo.real[i] != y.lo.real[i]
                             : x.lo.whole[i] != static_cast<Whole>(y.lo.real[i]);
  }
  /// A conversion of one number rounds once, as CONVERT says, and its formula has done so.
  bool convertsKnown(const Interval& y, int64_t i) const {
    return info_.instrKind == CDL_KIND_CONVERT && operands_[0]->count() == y.count() &&
           operands_[0]->isPoint(i);
  }
  /// How much a function of this value may be off, in units relative to it.
  double units(Elem elem, double size) const {
    if (info_.tolerance == Tolerance::Rounded) return 2;
    // an expression
    if (info_.tolerance == Tolerance::Composite) return elemBits(elem) <= 16 ? 3 : 64;
    return functionUnits(info_.instrKind, info_.instrFn, elem, size);
  }
  std::vector<double> ofFunction(const Interval& y) const {
    const double unit = unitOf(y.elem()), least = leastOf(y.elem());
    const bool rounded = info_.tolerance == Tolerance::Rounded;
    std::vector<double> slack(static_cast<size_t>(y.count()));
    for (int64_t i = 0; i < y.count(); ++i) {
      const double size = sizeOf(y, i);
      const bool exact =
          rounded && y.lo.real[i] == y.hi.real[i] && isExact(y.elem(), size) && !isNarrowed(y, i);
      slack[i] = exact || convertsKnown(y, i) || !std::isfinite(size)
                     ? 0
                     : units(y.elem(), size) * unit * size + least;
    }
    return slack;
  }

  /// The op on magnitudes: what its sums are made of. Of integers only the float operands change.
  template <typename Size> std::vector<Array> onSizes(Size size, double leastFactor = 0) {
    std::vector<Array> sizes(operands_.size());
    std::vector<const Array*> in;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (operands_[i]) {
        sizes[i] = operands_[i]->lo;
        for (size_t e = 0; e < sizes[i].real.size(); ++e)
          sizes[i].real[e] = size(operands_[i]->lo.real[e], operands_[i]->hi.real[e]);
      }
      in.push_back(operands_[i] ? &sizes[i] : nullptr);
    }
    return formula(sized(leastFactor), in);
  }
  /// The same op with the magnitudes of its factors, at least so large.
  const Node& sized(double leastFactor) {
    graph::Attrs attrs = node_.attrs;
    bool changed = false;
    for (auto& [name, attr] : attrs)
      if (double* value = std::get_if<double>(&attr); value && *value < leastFactor) {
        *value = std::max(std::abs(*value), leastFactor);
        changed = true;
      }
    if (!changed) return node_;
    std::vector<graph::Value*> operands;
    for (const graph::Value* value : node_.operands())
      operands.push_back(value ? sized_.addInput(value->name, value->type) : nullptr);
    return *orThrow(sized_.addNode(node_.kind, operands, attrs, {}, nullptr,
                                   static_cast<int>(node_.results().size())));
  }

  /// How many elements of the first operand may meet in one of y: windows overlap.
  double mostTerms(const Interval& y) const {
    if (node_.kind == OpKind::AveragePool)
      return static_cast<double>(*elementCount(node_.intsAttr("kernel_shape")));
    return static_cast<double>(operands_[0]->count()) /
           std::max<double>(1, static_cast<double>(y.count()));
  }

  /// c * K * u * sum |x||w|, and what the operands' own errors make of it.
  std::vector<double> ofSum(size_t r) {
    Interval& y = results_[r];
    const Elem elem = y.elem(), sum = elemBits(elem) == 16 ? Elem::f32_ : elem;
    const auto largest = [](double lo, double hi) { return std::max(std::abs(lo), std::abs(hi)); };
    const std::vector<Array> sizes = onSizes(largest);
    const std::vector<Array> middles =
        onSizes([&](double lo, double hi) { return largest(lo, hi) - (hi - lo) / 2; });
    const std::vector<Array> counts = onSizes([](double, double) { return 1.0; });
    // What products may reach on their way: an overflow or lost digits, which the result does not
    // show.
    const std::vector<Array> most =
        onSizes([&](double lo, double hi) { return std::max(1.0, largest(lo, hi)); }, 1);
    const std::vector<Array> least =
        onSizes([&](double lo, double hi) { return std::min(1.0, largest(lo, hi)); });
    const double terms = mostTerms(y);
    const bool whole = std::ranges::all_of(operands_, [](const Interval* x) {
      return !x || std::ranges::all_of(x->lo.real, [](double v) { return v == std::floor(v); });
    });
    const bool points =
        std::ranges::all_of(operands_, [](const Interval* x) { return !x || x->isPoint(); });
    std::vector<double> slack(static_cast<size_t>(y.count()));
    // Whether a border of zeros meets an infinite weight is open: a window may leave it out.
    const bool finite = std::ranges::all_of(operands_, [](const Interval* x) {
      return !x || std::ranges::all_of(x->lo.real, [](double v) { return std::isfinite(v); });
    });
    if (!finite && info_.has(graph::kTraitWindow)) {
      for (int64_t i = 0; i < y.count() && !points; ++i)
        if (std::isnan(y.lo.real[i])) y.makeWild(i); // 0 times both ends of what may be anything
      return std::vector<double>(slack.size(), std::nan(""));
    }
    for (int64_t i = 0; i < y.count(); ++i) {
      const double size = std::abs(sizes[r].real[i]), own = sizeOf(y, i);
      const double k = std::max({1.0, terms, std::abs(counts[r].real[i])});
      if (!std::isfinite(size) || !std::isfinite(own)) {
        // With infinities about, the order decides what becomes of them, unless every order ends at
        // NaN.
        slack[i] = std::nan("");
        if (std::isnan(own) && !points) y.makeWild(i);
        continue;
      }
      const double high = std::abs(most[r].real[i]), low = std::abs(least[r].real[i]);
      const bool shrinks = low > 0 && low < leastNormalOf(elem) && high > 1;
      if (shrinks || high * 1.01 > largestOf(elem) ||
          high * k * 1.01 > largestOf(sum)) { // a mean's sum is k times more
        slack[i] = std::nan("");
        continue;
      }
      const bool exact = points && whole && size * k < 1 / unitOf(elem) && isExact(elem, own);
      // A bias may be added to what was rounded before.
      const double rounded = operands_.size() > 2 ? size : own;
      const double spread = std::max(0.0, size - std::abs(middles[r].real[i]));
      slack[i] = exact ? 0
                       : spread + 2 * (k + 2) * unitOf(sum) * size + 2 * unitOf(elem) * rounded +
                             (k + 1) * leastOf(elem);
    }
    return slack;
  }

  /// For every element of y: which one of an operand that broadcasts to it.
  static std::vector<int64_t> places(const Interval& x, const Interval& y) {
    std::vector<int64_t> places;
    const Shape &from = x.lo.dims, &to = y.lo.dims;
    const std::vector<int64_t> dense = denseStrides(from);
    for (int64_t i = 0; i < y.count(); ++i) {
      int64_t rest = i, at = 0;
      for (size_t d = 0; d < to.size(); ++d) {
        const size_t own = from.size() - 1 - d, whole = to.size() - 1 - d;
        if (d < from.size() && from[own] != 1) at += rest % to[whole] * dense[own];
        rest /= to[whole];
      }
      places.push_back(at);
    }
    return places;
  }

  /// Nothing is known of what a wild operand touches.
  void wildFromWild() {
    for (const Interval* x : operands_)
      for (Interval& y : results_) {
        if (!x) continue;
        const std::vector<int64_t> at = places(*x, y);
        for (int64_t i = 0; i < y.count(); ++i)
          if (x->isWild(at[i])) y.makeWild(i);
      }
  }

  /// What is equal somewhere in two intervals may be unequal at their ends.
  void looseComparisons() {
    Interval& y = results_[0];
    if (y.elem() != Elem::bool_ || operands_.size() != 2 || !isFloat(operands_[0]->elem())) return;
    const Interval &a = *operands_[0], &b = *operands_[1];
    const std::vector<int64_t> inA = places(a, y), inB = places(b, y);
    for (int64_t i = 0; i < y.count(); ++i) {
      const bool overlap =
          a.lo.real[inA[i]] <= b.hi.real[inB[i]] && b.lo.real[inB[i]] <= a.hi.real[inA[i]];
      if (overlap && !(a.isPoint(inA[i]) && b.isPoint(inB[i]))) y.makeWild(i);
    }
  }

  /// Where the record says that the decomposition ends, and where a period says nothing about what
  /// lies between two ends.
  void beyondDomain() {
    Interval& y = results_[0];
    if (!isFloat(y.elem())) return;
    const bool isTan = node_.kind == OpKind::Tan;
    if (isTan || node_.kind == OpKind::Sin || node_.kind == OpKind::Cos) {
      const Interval& x = *operands_[0];
      const double end = y.elem() == Elem::f64_ ? 0x1p49 : 0x1p20;
      for (int64_t i = 0; i < y.count(); ++i) {
        const bool isWide = x.hi.real[i] - x.lo.real[i] > (isTan ? 1e-3 : 1e-2);
        if (sizeOf(x, i) >= end || (isWide && isTan)) {
          y.makeWild(i);
        } else if (isWide) {
          y.lo.real[i] = -1;
          y.hi.real[i] = 1;
        }
      }
    } else if (node_.kind == OpKind::Rem) {
      const Interval &a = *operands_[0], &b = *operands_[1];
      const std::vector<int64_t> inA = places(a, y), inB = places(b, y);
      for (int64_t i = 0; i < y.count(); ++i) {
        const double quotients[] = {
            a.lo.real[inA[i]] / b.lo.real[inB[i]], a.lo.real[inA[i]] / b.hi.real[inB[i]],
            a.hi.real[inA[i]] / b.lo.real[inB[i]], a.hi.real[inA[i]] / b.hi.real[inB[i]]};
        const bool isPoint = a.isPoint(inA[i]) && b.isPoint(inB[i]);
        for (const double q : quotients)
          if (std::abs(q) * unitOf(y.elem()) * 2 >= 1 ||
              (!isPoint && std::trunc(q) != std::trunc(quotients[0])))
            y.makeWild(i);
      }
    }
  }

  /// Places and counts that come of inexact numbers, and all that comes of wild integers but their
  /// movement.
  void looseIndices() {
    bool wildWhole = false, inexact = false;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i]) continue;
      const Interval& x = *operands_[i];
      inexact |= !x.isPoint();
      if (isFloat(x.elem())) continue;
      const bool moved = info_.has(graph::kTraitMovement) && x.elem() == results_[0].elem();
      for (int64_t e = 0; e < x.count() && !moved; ++e) wildWhole |= x.isWild(e);
    }
    const bool picks = info_.has(graph::kTraitReductionLike) || info_.has(graph::kTraitWindow);
    for (Interval& y : results_)
      if (wildWhole || (inexact && picks && !isFloat(y.elem())))
        for (int64_t i = 0; i < y.count(); ++i) y.makeWild(i);
  }

  /// Its sign and its payload are nobody's promise.
  void bitsOfNan() {
    if (node_.kind != OpKind::Bitcast || !isFloat(operands_[0]->elem())) return;
    for (int64_t i = 0; i < results_[0].count(); ++i)
      if (std::isnan(operands_[0]->lo.real[i])) results_[0].makeWild(i);
  }

  Result<std::vector<Interval>> decomposed(bool toPrimitives) const {
    graph::Graph graph;
    std::vector<graph::Value*> operands;
    std::vector<Interval> inputs;
    for (size_t i = 0; i < node_.operands().size(); ++i) {
      const graph::Value* value = node_.operand(i);
      if (!value) {
        operands.push_back(nullptr);
      } else if (value->isConstant()) {
        operands.push_back(graph.addConstant(value->payload(), value->type));
      } else {
        operands.push_back(graph.addInput(fmt::format("x{}", i), value->type));
        inputs.push_back(*operands_[i]);
      }
    }
    CDL_ASSIGN(Node* const node, graph.addNode(node_.kind, operands, node_.attrs, {}, nullptr,
                                               static_cast<int>(node_.results().size())));
    for (graph::Value* result : node->results()) graph.addOutput(result, result->name);
    CDL_TRY(lowering::decompose::lower(graph, target_, {.toPrimitives = toPrimitives}));
    return analyzeGraph(graph, inputs, target_, place_);
  }

  const Node& node_;
  const OpInfo& info_;
  const std::vector<const Interval*>& operands_;
  const capabilities::Target& target_;
  const Place place_;
  std::vector<Interval> results_;
  graph::Graph sized_;
};

} // namespace

Result<Interval> Interval::of(const Tensor& tensor) {
  CDL_ASSIGN(Array array, reference::fromTensor(tensor));
  return Interval{array, array};
}

bool Interval::isWild(int64_t i) const {
  return isFloat(elem()) ? lo.real[i] == -kInf && hi.real[i] == kInf
                         : lo.whole[i] == -kFar && hi.whole[i] == kFar;
}
void Interval::makeWild(int64_t i) {
  if (isFloat(elem())) {
    lo.real[i] = -kInf;
    hi.real[i] = kInf;
  } else {
    lo.whole[i] = -kFar;
    hi.whole[i] = kFar;
  }
}
bool Interval::isPoint(int64_t i) const {
  if (!isFloat(elem())) return lo.whole[i] == hi.whole[i];
  return lo.real[i] == hi.real[i] || (std::isnan(lo.real[i]) && std::isnan(hi.real[i]));
}
bool Interval::isPoint() const {
  for (int64_t i = 0; i < count(); ++i)
    if (!isPoint(i)) return false;
  return true;
}

int64_t Interval::tight() const {
  double largest = 0;
  for (size_t i = 0; i < lo.real.size(); ++i)
    if (std::isfinite(lo.real[i]) && std::isfinite(hi.real[i]))
      largest = std::max(largest, std::min(std::abs(lo.real[i]), std::abs(hi.real[i])));
  int64_t found = 0;
  for (int64_t i = 0; i < count(); ++i)
    found += isPoint(i) || (isFloat(elem()) && hi.real[i] - lo.real[i] <= 0.1 * largest);
  return found;
}

double Interval::width() const {
  double widest = 0;
  for (size_t i = 0; i < lo.real.size(); ++i)
    if (std::isfinite(hi.real[i] - lo.real[i])) widest = std::max(widest, hi.real[i] - lo.real[i]);
  return widest;
}

Result<std::vector<Interval>> analyze(const Node& node,
                                      const std::vector<const Interval*>& operands,
                                      const capabilities::Target& target) {
  return Analysis(node, operands, target, Place::end).run();
}

namespace {

bool isInfinite(const Interval& x) {
  const auto isInf = [](double end) { return std::isinf(end); };
  return std::ranges::any_of(x.lo.real, isInf) || std::ranges::any_of(x.hi.real, isInf);
}

Result<std::vector<Interval>> analyzeGraph(const graph::Graph& graph,
                                           std::span<const Interval> inputs,
                                           const capabilities::Target& target, Place outputs) {
  std::map<const graph::Value*, Interval> values; // as others read them
  std::map<const graph::Value*, Interval> ends;   // as outputs, where that is less
  for (size_t i = 0; i < inputs.size(); ++i) values.emplace(graph.inputs()[i], inputs[i]);
  for (const auto& node : graph.nodes()) {
    if (node->kind == OpKind::Constant) {
      CDL_ASSIGN(const Tensor tensor, node->result()->tensor());
      CDL_ASSIGN(Interval interval, Interval::of(tensor));
      values.emplace(node->result(), std::move(interval));
      continue;
    }
    std::vector<const Interval*> operands;
    for (const graph::Value* operand : node->operands())
      operands.push_back(operand ? &values.at(operand) : nullptr);
    CDL_ASSIGN(std::vector<Interval> results, analyze(*node, operands, target));
    if (std::ranges::any_of(results, isInfinite)) {
      for (size_t i = 0; i < results.size(); ++i) ends.emplace(node->result(i), results[i]);
      CDL_ASSIGN(results, Analysis(*node, operands, target, Place::between).run());
    }
    for (size_t i = 0; i < node->results().size(); ++i)
      values.emplace(node->result(i), std::move(results[i]));
  }
  std::vector<Interval> results;
  for (const graph::Value* output : graph.outputs()) {
    const auto end = ends.find(output);
    const bool isEnd = outputs == Place::end && end != ends.end();
    results.push_back(isEnd ? end->second : values.at(output));
  }
  return results;
}

} // namespace

Result<std::vector<Interval>> analyze(const graph::Graph& graph, std::span<const Interval> inputs,
                                      const capabilities::Target& target) {
  return analyzeGraph(graph, inputs, target, Place::end);
}

std::string outside(const Interval& interval, const Tensor& got) {
  if (got.elem != interval.elem() || got.dims != interval.lo.dims)
    return fmt::format("expected {}, got {}", typeText(interval.elem(), interval.lo.dims),
                       got.typeText());
  for (int64_t i = 0; i < got.count(); ++i) {
    if (interval.isWild(i)) continue;
    if (!isFloat(got.elem)) {
      const Whole value = integerOf(got.elem, loadElement(got.elem, got.bytes.data(), i));
      const bool isTruth = got.elem == Elem::bool_; // of any bits but 0
      if (isTruth ? (value != 0) != (interval.lo.whole[i] != 0) : value != interval.lo.whole[i])
        return fmt::format("element {} is {}, expected {}", i, elementText(got, i),
                           static_cast<int64_t>(interval.lo.whole[i]));
      continue;
    }
    const double value = elementAsReal(got, i), lo = interval.lo.real[i], hi = interval.hi.real[i];
    if (std::isnan(lo) ? !std::isnan(value) : !(value >= lo && value <= hi))
      return fmt::format("element {} is {:.17g}, expected {:.17g} to {:.17g}", i, value, lo, hi);
  }
  return "";
}

} // namespace candela::conformance::judge
