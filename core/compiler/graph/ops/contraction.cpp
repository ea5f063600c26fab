#include "core/compiler/graph/ops/common.h"
#include "core/compiler/graph/window.h"
#include "core/support/scaled_product.h"

namespace candela::graph {

namespace {

/// What products of the operands are summed in: the integer forms name it.
Elem productElem(const Node& node) {
  const OperandInfo& result = node.info().results[0];
  if (!result.like.empty()) return typeOf(node, 0).elem;
  return typeOf(node, 0).elem == Elem::i16_ ? Elem::i64_ : Elem::i32_;
}

/// Of the integer forms: operands `first` and the next, of which the second may have one value a
/// channel.
Status checkZeroPoints(const Node& node, size_t first, int64_t channels, std::string_view id) {
  if (!node.info().results[0].like.empty()) return Status::ok();
  for (const size_t i : {first, first + 1}) {
    const Shape shape = node.operand(i) ? typeOf(node, i).shape() : Shape{1};
    if (shape != Shape{1} && !(i > first && shape == Shape{channels}))
      return node.fail(id, node.info().operands[i].name, shapeText(shape));
  }
  return Status::ok();
}

} // namespace

/// Of matmul and matmul_integer.
Result<Types> inferMatmul(const Node& node) {
  for (const size_t i : {0, 1})
    if (typeOf(node, i).rank() == 0) return node.fail("c1", node.info().operands[i].name);
  Shape a = typeOf(node, 0).dims, b = typeOf(node, 1).dims;
  // A vector stands for a matrix of one row or one column, which the result loses again.
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const int64_t innerA = a[a.size() - 1], innerB = b[b.size() - 2];
  if (innerA != innerB) return node.fail("c2", innerA, innerB);
  const Shape batchA(a.begin(), a.end() - 2), batchB(b.begin(), b.end() - 2);
  auto dims = broadcastShapes(batchA, batchB);
  if (!dims) return node.fail("c3", shapeText(batchA), shapeText(batchB));
  if (!row) dims->push_back(a[a.size() - 2]);
  if (!column) dims->push_back(b.back());
  CDL_TRY(checkZeroPoints(node, 2, b.back(), "c4"));
  return oneResult(productElem(node), *std::move(dims));
}

Result<Types> inferGemm(const Node& node) {
  for (const size_t i : {0, 1})
    if (typeOf(node, i).rank() != 2)
      return node.fail("gemm_c1", node.info().operands[i].name, typeOf(node, i).rank());
  const bool transA = node.intAttr("transA"), transB = node.intAttr("transB");
  const TensorType &a = typeOf(node, 0), &b = typeOf(node, 1);
  const int64_t innerA = a.dim(transA ? 0 : 1);
  const int64_t innerB = b.dim(transB ? 1 : 0);
  if (innerA != innerB) return node.fail("gemm_c2", innerA, innerB);
  const int64_t rows = a.dims[transA ? 1 : 0];
  const int64_t columns = b.dims[transB ? 0 : 1];
  Types types = oneResult(a.elem, {rows, columns});
  if (node.operand(2)) {
    const Shape c = typeOf(node, 2).shape(), y = types[0].shape();
    if (broadcastShapes(c, y) != y) return node.fail("gemm_c3", shapeText(c), shapeText(y));
  }
  return types;
}

/// Of conv and conv_integer.
Result<Types> inferConv(const Node& node) {
  const TensorType &x = typeOf(node, 0), &w = typeOf(node, 1);
  if (x.rank() != w.rank() || x.rank() < 3 || x.rank() > 5)
    return node.fail("c3", x.rank(), w.rank());
  const int64_t group = node.intAttr("group");
  // Divided, not multiplied: a product of two hostile numbers may overflow.
  if (x.dim(1) % group != 0 || x.dim(1) / group != w.dim(1))
    return node.fail("c1", x.dim(1), w.dim(1), group);
  if (w.dim(0) % group != 0) return node.fail("c2", w.dim(0), group);
  const Shape weight = w.shape(), input = x.shape();
  const Shape kernel(weight.begin() + 2, weight.end()), extents(input.begin() + 2, input.end());
  if (node.hasAttr("kernel_shape")) {
    const Shape given = node.intsAttr("kernel_shape");
    if (given.size() != kernel.size())
      return node.fail("c6", "kernel_shape", given.size(), kernel.size());
    if (given != kernel) return node.fail("c7", listText(given), listText(kernel));
  }
  if (node.operand(2) && typeOf(node, 2).shape() != Shape{w.dim(0)})
    return node.fail("c5", shapeText(typeOf(node, 2).shape()), w.dim(0));
  CDL_ASSIGN(const Window window, checkWindow(node, kernel, extents, "c6", "c4"));
  Shape dims{x.dim(0), w.dim(0)};
  for (int i = 0; i < window.rank(); ++i) dims.push_back(window.count(i, extents[i]));
  CDL_TRY(checkZeroPoints(node, 3, w.dim(0), "c8"));
  return oneResult(productElem(node), dims);
}

namespace {

/// Operand i, if given, broadcasts to these dims.
Status checkScale(const Node& node, size_t i, const Shape& expected) {
  if (!node.operand(i)) return Status::ok();
  const Shape shape = typeOf(node, i).shape();
  if (broadcastShapes(shape, expected) == expected) return Status::ok();
  return node.fail("c2", node.info().operands[i].name, shapeText(shape), shapeText(expected));
}

} // namespace

Result<Types> inferScaledMatmul(const Node& node) {
  const TensorType &a = typeOf(node, 0), &w = typeOf(node, 1);
  const auto elemOf = [&](size_t i) { return node.operand(i) ? typeOf(node, i).elem : Elem::none; };
  const Shape weights = w.shape();
  const bool isMatrix = a.rank() == 2 && weights.size() == 3;
  const int64_t depth = isMatrix ? a.dim(-1) : 0;
  const auto held = isMatrix ? elementCount(Shape{weights[1], weights[2]}) : std::nullopt;
  const bool fits = held && depth <= *held && (*held == 0 || depth > *held - weights[2]);
  if (!fits) return node.fail("c1", shapeText(a.shape()), shapeText(weights));
  CDL_TRY(checkScale(node, 2, {weights[0], weights[1]}));
  CDL_TRY(checkScale(node, 3, {weights[0], weights[1]}));
  CDL_TRY(checkScale(node, 4, {a.dim(0), weights[1]}));
  ScaledProductTypes types;
  types.isDynamic = node.stringAttr("fn") == "dynamic";
  types.a = a.elem;
  types.w = w.elem;
  types.wScale = elemOf(2);
  types.wZero = elemOf(3);
  types.aScale = elemOf(4);
  types.y = node.elemAttr("to");
  if (const std::string why = whyNoScaledProduct(types); !why.empty())
    return node.fail("c3", node.stringAttr("fn"), elemName(types.a), elemName(types.w),
                     elemName(types.y), why);
  const bool isWhole = isInteger(types.w) && (types.isDynamic || isInteger(types.a));
  if (isWhole && weights[2] > kMostIntegersInBlock) return node.fail("c4", weights[2]);
  return oneResult(types.y, {a.dim(0), weights[0]});
}

Result<Types> inferAttention(const Node& node) {
  const Shape q = typeOf(node, 0).shape(), k = typeOf(node, 1).shape(), v = typeOf(node, 2).shape();
  const size_t rank = q.size();
  const bool fits = rank >= 2 && k.size() == rank && v.size() == rank &&
                    std::equal(q.begin(), q.end() - 2, k.begin()) &&
                    std::equal(q.begin(), q.end() - 2, v.begin()) && q.back() == k.back() &&
                    k[rank - 2] == v[rank - 2];
  if (!fits) return node.fail("attention_c1", shapeText(q), shapeText(k), shapeText(v));
  Shape scores = q;
  scores.back() = k[rank - 2];
  if (node.operand(3) && broadcastShapes(typeOf(node, 3).shape(), scores) != scores)
    return node.fail("attention_c2", shapeText(typeOf(node, 3).shape()), shapeText(scores));
  TensorType type = likeOperand(node, 0);
  type.dims.back() = v.back();
  return Types{type};
}

} // namespace candela::graph
