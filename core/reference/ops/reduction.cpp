#include <limits>

#include "core/reference/index.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

/// fn over all axes that the node names, from `start`. Strides over x find y's element: 0 along
/// what is reduced.
Status fold(const graph::Node& node, const Array& x, Array& y, uint16_t fn, double realStart, Whole wholeStart) {
  const int64_t rank = static_cast<int64_t>(x.dims.size());
  Shape kept = x.dims;
  for (const int64_t axis : node.intsAttr("axes")) kept[axis < 0 ? axis + rank : axis] = 1;
  const std::array<Strides, 1> strides = {broadcastStrides(kept, x.dims)};
  std::fill(y.real.begin(), y.real.end(), realStart);
  std::fill(y.whole.begin(), y.whole.end(), wholeStart);
  int64_t i = 0;
  if (isFloat(x.elem)) {
    forEach(x.dims, strides, [&](int64_t o) { y.real[o] = binary(fn, y.real[o], x.real[i++]); });
  } else {
    forEach(x.dims, strides, [&](int64_t o) { y.whole[o] = binary(fn, x.elem, y.whole[o], x.whole[i++]); });
  }
  return Status::ok();
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

} // namespace

Status referenceReduceSum(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  return fold(node, *in[0], out[0], CDL_BINARY_ADD, 0, 0);
}

Status referenceReduceProd(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  return fold(node, *in[0], out[0], CDL_BINARY_MUL, 1, 1);
}

/// Of nothing: the lowest value of the type, -inf of a float one.
Status referenceReduceMax(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Elem elem = in[0]->elem;
  return fold(node, *in[0], out[0], CDL_BINARY_MAX, -kInfinity, isFloat(elem) ? 0 : integerRange(elem).lowest);
}

Status referenceReduceMin(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Elem elem = in[0]->elem;
  return fold(node, *in[0], out[0], CDL_BINARY_MIN, kInfinity, isFloat(elem) ? 0 : integerRange(elem).highest);
}

/// The exact sum divided by the count; integers truncate, and the mean of nothing is NaN or 0.
Status referenceReduceMean(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  CDL_TRY(referenceReduceSum(node, in, out));
  const Array& x = *in[0];
  int64_t count = 1;
  for (const int64_t axis : node.intsAttr("axes"))
    count *= x.dims[axis < 0 ? axis + static_cast<int64_t>(x.dims.size()) : axis];
  for (double& value : out[0].real) value /= static_cast<double>(count);
  for (Whole& value : out[0].whole) value = binary(CDL_BINARY_DIV, x.elem, value, count);
  return Status::ok();
}

} // namespace candela::reference
