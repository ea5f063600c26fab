#include <cmath>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

Value matmulAnyRank(Lowering& l, Value a, Value b, Elem to, Value aZero, Value bZero) {
  // A product wraps to a narrow type as it does to i32 first.
  if (isInteger(to) && elemBits(to) < 32)
    return l.cast(matmulAnyRank(l, l.cast(a, Elem::i32_), l.cast(b, Elem::i32_), Elem::i32_), to);
  if (a->type.rank() == 1) a = l.reshape(a, {1, a->type.dim(0)});
  if (b->type.rank() == 1) b = l.reshape(b, {b->type.dim(0), 1});
  const auto product = [&](Value left, Value right) {
    return l.node(OpKind::BatchMatmul, {left, right, aZero, bZero}, {{"to", to}});
  };
  Shape aDims = a->type.shape(), bDims = b->type.shape();
  const int64_t m = aDims[aDims.size() - 2], k = aDims.back(), n = bDims.back();
  const Shape aBatch(aDims.begin(), aDims.end() - 2), bBatch(bDims.begin(), bDims.end() - 2);
  Shape batch = graph::broadcastShapes(aBatch, bBatch).value_or(Shape{});
  const int64_t count = *elementCount(batch), aCount = *elementCount(aBatch),
                bCount = *elementCount(bBatch);
  Shape result = batch;
  result.insert(result.end(), {m, n});
  // One matrix on the right: the batch of the left is more rows.
  if (bCount == 1)
    return l.reshape(product(l.reshape(a, {1, aCount * m, k}), l.reshape(b, {1, k, n})), result);
  const auto batched = [&](Value value, int64_t own, int64_t rows, int64_t columns) {
    if (own != 1 && own != count) {
      Shape full = batch;
      full.insert(full.end(), {rows, columns});
      value = l.broadcast(value, full);
      own = count;
    }
    return l.reshape(value, {own, rows, columns});
  };
  return l.reshape(product(batched(a, aCount, m, k), batched(b, bCount, k, n)), result);
}

Result<Values> lowerMatmul(Lowering& l, const Node& node) {
  Value a = node.operand(0);
  return Values{
      l.reshape(matmulAnyRank(l, a, node.operand(1), a->type.elem), node.result()->type.shape())};
}

namespace {

// The factors of gemm are reals: an integer takes them in f64 and goes back toward zero.
Value scaled(Lowering& l, Value x, double factor) {
  const Elem elem = x->type.elem;
  if (factor == 1) return x;
  if (isFloat(elem) || factor == std::trunc(factor)) return l.mul(x, l.scalar(elem, factor));
  return l.cast(l.mul(l.cast(x, Elem::f64_), l.scalar(Elem::f64_, factor)), elem);
}

} // namespace

// Sums of halves that a factor or a term follows are f32 where the target can: alone they may be
// beyond any half, and the term may take most of them away again.
Result<Values> lowerGemm(Lowering& l, const Node& node) {
  Value a = node.operand(0), b = node.operand(1), c = node.operand(2);
  const double alpha = node.floatAttr("alpha"), beta = node.floatAttr("beta");
  const bool adds = c && beta != 0;
  const Elem elem = a->type.elem, inner = alpha != 1 || adds ? l.wide(elem) : elem;
  if (node.intAttr("transA")) a = l.transpose(a, {1, 0});
  if (node.intAttr("transB")) b = l.transpose(b, {1, 0});
  Value y = scaled(l, matmulAnyRank(l, l.cast(a, inner), l.cast(b, inner), inner), alpha);
  return Values{l.cast(adds ? l.add(y, scaled(l, l.cast(c, inner), beta)) : y, elem)};
}

namespace {

// One multiply per tap and a sum over the taps: nothing to contract across channels. In f32
// products of halves are exact.
Value depthwise(Lowering& l, Value columns, Value w, int64_t batch) {
  const int64_t channels = w->type.dim(0), taps = columns->type.dim(1),
                places = columns->type.dim(2);
  const Elem elem = w->type.elem, inner = l.wide(elem);
  Value x = l.cast(l.reshape(columns, {batch, channels, taps, places}), inner);
  Value products = l.mul(x, l.cast(l.reshape(w, {channels, taps, 1}), inner));
  return l.cast(l.reduce3(l.reshape(products, {batch * channels, taps, places}), "sum"), elem);
}

} // namespace

Result<Values> lowerConv(Lowering& l, const Node& node) {
  Value x = node.operand(0), w = node.operand(1);
  const Shape wDims = w->type.shape(), yDims = node.result()->type.shape();
  if (Value bias = node.operand(2)) { // sums of halves as in gemm
    const Elem elem = x->type.elem, inner = l.wide(elem);
    Value y = l.node(OpKind::Conv, {l.cast(x, inner), l.cast(w, inner)}, node.attrs);
    return Values{l.cast(l.add(y, alongAxis(l, l.cast(bias, inner), 1, x->type.rank())), elem)};
  }
  const graph::Window window = graph::windowOf(node, Shape(wDims.begin() + 2, wDims.end()));
  const int64_t batch = x->type.dim(0), group = node.intAttr("group"), outputs = wDims[0] / group;
  const int64_t taps = *elementCount(window.kernel), depth = wDims[1] * taps;
  Value columns = unfold(l, x, window, Shape(yDims.begin() + 2, yDims.end()), 0);
  const int64_t places = columns->type.dim(2);
  if (wDims[1] == 1 && outputs == 1 && group > 1)
    return Values{l.reshape(depthwise(l, columns, w, batch), yDims)};
  // A group is a batch. With several of both, the weights are repeated: they are the smaller side.
  Value weights = l.reshape(w, {group, outputs, depth});
  if (batch > 1 && group > 1)
    weights = l.reshape(
        l.broadcast(l.reshape(w, {1, group, outputs, depth}), {batch, group, outputs, depth}),
        {batch * group, outputs, depth});
  columns = l.reshape(columns, {batch * group, depth, places});
  return Values{l.reshape(l.matmul(weights, columns, x->type.elem), yDims)};
}

} // namespace candela::lowering::decompose
