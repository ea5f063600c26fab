#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/reference/reference.h"

/// Which results are right: a running error analysis. Every value is an interval that holds what
/// the op records allow from intervals of the operands, so that a rounding near a step of floor, of
/// a comparison or of a cast loosens the elements behind it and no others.
namespace candela::conformance::judge {

/// Element by element, both ends counted in. Floats are numbers of the element type. Nothing is
/// known of a wild element: it may be anything.
struct Interval {
  reference::Array lo, hi;

  static Result<Interval> of(const Tensor& tensor);
  Elem elem() const { return lo.elem; }
  int64_t count() const { return lo.count(); }
  bool isWild(int64_t i) const;
  void makeWild(int64_t i);
  bool isPoint(int64_t i) const; ///< one value, or NaN; a zero has any sign
  bool isPoint() const;          ///< of every element
  /// What must be that value or must lie within a tenth of its magnitude, or of the largest one in
  /// the tensor: the others are looked at, but prove little.
  int64_t tight() const;
  /// The widest one of finite ends.
  double width() const;
};

/// Intervals of the outputs. Composites are followed through their decompositions for `target`. A
/// half that others read may be computed on in more bits, where it does not overflow.
Result<std::vector<Interval>> analyze(const graph::Graph& graph, std::span<const Interval> inputs,
                                      const capabilities::Target& target);
/// Of one node's results. Null where an operand is absent.
Result<std::vector<Interval>> analyze(const graph::Node& node,
                                      const std::vector<const Interval*>& operands,
                                      const capabilities::Target& target);

/// Empty when every element lies in its interval, else the first that does not, with both.
std::string outside(const Interval& interval, const Tensor& got);

} // namespace candela::conformance::judge
