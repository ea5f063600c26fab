#include <numeric>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

// The lowest or highest of the places that hold the extreme.
Result<Values> lowerArgReduce(Lowering& l, const Node& node) {
  Value x = node.operand(0);
  const int axis = graph::wrapAxis(node.intAttr("axis"), x->type.rank());
  const bool last = node.intAttr("select_last") != 0;
  Value hit = l.equal(x, l.reduceAxis(x, axis, node.stringAttr("fn") == "max" ? "max" : "min"));
  // A NaN is the extreme and equals nothing.
  if (isFloat(x->type.elem)) hit = l.select(l.equal(x, x), hit, l.scalar(Elem::bool_, 1));
  std::vector<int32_t> places(static_cast<size_t>(x->type.dim(axis)));
  std::iota(places.begin(), places.end(), 0);
  Value line = alongAxis(l, indexConstant(l, places, {x->type.dim(axis)}), axis, x->type.rank());
  Value none = l.scalar(Elem::i32_, last ? -1 : static_cast<double>(places.size()));
  return Values{l.reduceAxis(l.select(hit, line, none), axis, last ? "max" : "min")};
}

} // namespace candela::lowering::decompose
