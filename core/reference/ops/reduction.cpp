#include <limits>

#include "core/reference/kinds.h"

namespace candela::reference {
namespace {

/// Over all axes that the node names.
void foldAxes(uint16_t fn, const graph::Node& node, Operands in, Results out) {
  Shape kept = in[0]->dims;
  for (const int64_t axis : node.intsAttr("axes")) kept[axisOf(axis, kept)] = 1;
  fold(fn, *in[0], kept, out[0]);
}

} // namespace

Scalar identity(uint16_t reduceFn, Elem elem) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const IntegerRange range = isFloat(elem) ? IntegerRange{0, 0} : integerRange(elem);
  switch (reduceFn) {
  case CDL_REDUCE_MAX: return {-infinity, range.lowest};
  case CDL_REDUCE_MIN: return {infinity, range.highest};
  case CDL_REDUCE_PROD: return {1, 1};
  default: return {};
  }
}

void fold(uint16_t reduceFn, const Array& x, const Shape& kept, Array& y) {
  static constexpr uint16_t kBinary[] = {CDL_BINARY_ADD, CDL_BINARY_MAX, CDL_BINARY_MIN,
                                         CDL_BINARY_MUL};
  y.fill(identity(reduceFn, x.elem));
  int64_t i = 0;
  forEach(x.dims, {broadcastStrides(kept, x.dims)}, [&](const int64_t* to) {
    y.set(*to, binary(kBinary[reduceFn], x.elem, y.at(*to), x.at(i++)));
  });
}

void referenceReduceSum(const graph::Node& node, Operands in, Results out) {
  foldAxes(CDL_REDUCE_SUM, node, in, out);
}

void referenceReduceProd(const graph::Node& node, Operands in, Results out) {
  foldAxes(CDL_REDUCE_PROD, node, in, out);
}

void referenceReduceMax(const graph::Node& node, Operands in, Results out) {
  foldAxes(CDL_REDUCE_MAX, node, in, out);
}

void referenceReduceMin(const graph::Node& node, Operands in, Results out) {
  foldAxes(CDL_REDUCE_MIN, node, in, out);
}

/// The sum divided by the count; integers truncate, their sum wraps in their type, at least in i32.
/// The mean of nothing is NaN or 0.
void referenceReduceMean(const graph::Node& node, Operands in, Results out) {
  referenceReduceSum(node, in, out);
  int64_t count = 1;
  for (const int64_t axis : node.intsAttr("axes")) count *= in[0]->dims[axisOf(axis, in[0]->dims)];
  const Elem elem = out[0].elem, sum = elemBits(elem) < 32 ? Elem::i32_ : elem;
  for (Whole& whole : out[0].whole) whole = wrap(sum, whole);
  for (int64_t i = 0; i < out[0].count(); ++i)
    out[0].set(i, binary(CDL_BINARY_DIV, elem, out[0].at(i), {static_cast<double>(count), count}));
}

} // namespace candela::reference
