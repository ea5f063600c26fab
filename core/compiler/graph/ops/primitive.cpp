#include "core/compiler/graph/ops/common.h"
#include "core/support/text/expr.h"

namespace candela::graph {
namespace {

/// Products that MATMUL knows: of one type in itself, halves accumulated in f32, and integers
/// in the accumulators that their semantics give.
bool hasProduct(Elem a, Elem b, Elem to) {
  if (a == b && to == a) return isFloat(a) || (isInteger(a) && elemBits(a) >= 32);
  if (a == b && (a == Elem::f16_ || a == Elem::bf16_)) return to == Elem::f32_;
  const bool byteA = a == Elem::i8_ || a == Elem::u8_, byteB = b == Elem::i8_ || b == Elem::u8_;
  if (byteA && byteB) return to == Elem::i32_;
  return a == Elem::i16_ && b == Elem::i8_ && to == Elem::i64_;
}

} // namespace

Result<Types> inferAffine(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Shape dims = node.intsAttr("dims");
  const std::vector<int64_t> strides = node.intsAttr("strides");
  if (dims.size() != strides.size()) return node.fail("affine_c1", dims.size(), strides.size());
  if (dims.size() > CDL_MAX_RANK) return node.fail("affine_c3", dims.size());
  CDL_ASSIGN(Types types, resultOf(node, x.elem, dims));
  if (types[0].count() == 0) return types;
  __int128 first = node.intAttr("offset"), last = first;
  for (size_t i = 0; i < dims.size(); ++i) {
    const __int128 reach = static_cast<__int128>(dims[i] - 1) * strides[i];
    (reach < 0 ? first : last) += reach;
  }
  if (first < 0 || last >= x.count()) {
    const auto clamped = [](__int128 v) {
      return static_cast<int64_t>(std::max<__int128>(INT64_MIN, std::min<__int128>(INT64_MAX, v)));
    };
    return node.fail("affine_c2", clamped(first), clamped(last), x.count());
  }
  return types;
}

Result<Types> inferPlace(const Node& node) {
  const Shape dims = node.intsAttr("dims");
  const size_t rank = dims.size(), count = node.operands().size();
  if (rank > CDL_MAX_RANK) return node.fail("place_c4", rank);
  const std::vector<int64_t> offsets = node.intsAttr("offsets");
  const std::vector<int64_t> steps = node.intsAttr("steps", rank, 1);
  if (offsets.size() != rank * count)
    return node.fail("place_c2", "offsets", offsets.size(), rank * count);
  if (steps.size() != rank) return node.fail("place_c2", "steps", steps.size(), rank);
  const Elem elem = typeOf(node, 0).elem;
  CDL_ASSIGN(Types types, resultOf(node, elem, dims));
  for (size_t i = 0; i < count; ++i) {
    const TensorType& x = typeOf(node, i);
    if (x.elem != elem) return node.fail("place_c3", i, elemName(x.elem), elemName(elem));
    bool fits = x.dims.size() == rank;
    for (size_t d = 0; fits && d < rank; ++d) {
      const int64_t first = offsets[i * rank + d];
      const __int128 last = first + static_cast<__int128>(x.dims[d] - 1) * steps[d];
      fits = x.dims[d] == 0 || (first >= 0 && last < dims[d]);
    }
    if (!fits) return node.fail("place_c1", i, shapeText(x.shape()), shapeText(dims));
  }
  return types;
}

Result<Types> inferTake(const Node& node) {
  const TensorType &x = typeOf(node, 0), &index = typeOf(node, 1);
  if (x.rank() != 3 || index.rank() != 1) return node.fail("take_c1", x.rank(), index.rank());
  if (node.stringAttr("mode") == "clamp" && x.dim(1) == 0 && index.dim(0) > 0)
    return node.fail("take_c3", index.dim(0));
  return oneResult(x.elem, {x.dims[0], index.dims[0], x.dims[2]});
}

Result<Types> inferPut(const Node& node) {
  const Shape x = typeOf(node, 0).shape(), index = typeOf(node, 1).shape(),
              updates = typeOf(node, 2).shape();
  const bool fits = x.size() == 3 && index.size() == 1 && updates == Shape{x[0], index[0], x[2]};
  if (!fits) return node.fail("put_c1", shapeText(x), shapeText(index), shapeText(updates));
  return Types{likeOperand(node, 0)};
}

Result<Types> inferReduce(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  if (x.rank() != 3) return node.fail("reduce_c1", x.rank());
  return oneResult(x.elem, {x.dims[0], x.dims[2]});
}

Result<Types> inferSort(const Node& node) {
  const int64_t k = node.intAttr("k");
  const int axis = wrapAxis(node.intAttr("axis"), typeOf(node, 0).rank());
  Types types{likeOperand(node, 0), likeOperand(node, 0)};
  const int64_t count = types[0].dim(axis);
  if (k < 0 || k > count) return node.fail("sort_c1", k, axis, count);
  if (count > INT32_MAX) return node.fail("sort_c2", axis, count);
  for (TensorType& type : types) type.dims[axis] = k;
  types[1].elem = Elem::i32_;
  return types;
}

Result<Types> inferBatchMatmul(const Node& node) {
  const TensorType &a = typeOf(node, 0), &b = typeOf(node, 1);
  const bool fits = a.rank() == 3 && b.rank() == 3 && a.dim(2) == b.dim(1) &&
                    (a.dim(0) == b.dim(0) || a.dim(0) == 1 || b.dim(0) == 1);
  if (!fits) return node.fail("batch_matmul_c1", shapeText(a.shape()), shapeText(b.shape()));
  const Elem to = node.elemAttr("to");
  if (!hasProduct(a.elem, b.elem, to))
    return node.fail("batch_matmul_c2", elemName(a.elem), elemName(b.elem), elemName(to));
  for (const size_t i : {2, 3}) {
    if (!node.operand(i)) continue;
    const Shape zero = typeOf(node, i).shape();
    if (zero == Shape{1} || (i == 3 && zero == Shape{b.dim(2)})) continue;
    return node.fail("batch_matmul_c3", node.info().operands[i].name, shapeText(zero));
  }
  return oneResult(to, {a.dim(0) == 1 ? b.dims[0] : a.dims[0], a.dims[1], b.dims[2]});
}

Result<Types> inferRound(const Node& node) {
  const Elem to = node.elemAttr("to");
  if (!isInteger(to)) return node.fail("round_c2", elemName(to));
  return oneResult(to, typeOf(node, 0).dims);
}

Result<Types> inferRescale(const Node& node) {
  const Shape a = typeOf(node, 0).shape();
  if (!node.operand(4) != !node.operand(5)) return node.fail("rescale_c3");
  for (size_t i = 1; i < 6; ++i)
    if (node.operand(i) && broadcastShapes(typeOf(node, i).shape(), a) != a)
      return node.fail("rescale_c1", node.info().operands[i].name,
                       shapeText(typeOf(node, i).shape()), shapeText(a));
  const Elem to = node.elemAttr("to");
  if (!isInteger(to)) return node.fail("rescale_c2", elemName(to));
  return oneResult(to, typeOf(node, 0).dims);
}

/// Of the table for an element type; -1: there is none.
static int64_t tableEntries(Elem elem) {
  switch (elem) {
  case Elem::i8_:
  case Elem::u8_: return 256;
  case Elem::i16_: return 513;
  default: return -1;
  }
}

Result<Types> inferTable(const Node& node) {
  const TensorType &x = typeOf(node, 0), &table = typeOf(node, 1);
  if (table.shape() != Shape{tableEntries(x.elem)})
    return node.fail("table_c1", table.count(), elemName(x.elem));
  return Types{likeOperand(node, 0)};
}

Result<Types> inferExpr(const Node& node) {
  const auto dims = broadcastShapes(node);
  if (!dims) return node.fail("expr_c1", fmt::format("{}", fmt::join(operandShapes(node), ", ")));
  const auto steps = text::parseExpr(node.stringAttr("steps"));
  if (!steps) return node.fail("expr_c2", steps.status().message());
  std::vector<Elem> elems;
  for (const Value* operand : node.operands()) elems.push_back(operand->type.elem);
  const auto types = text::typeExpr(*steps, elems, elems.empty() ? Elem::none : elems[0]);
  if (!types) return node.fail("expr_c2", types.status().message());
  const Elem to = node.elemAttr("to");
  if (types->steps.back() != to)
    return node.fail("expr_c2", fmt::format("the value is {}, not {}",
                                            elemName(types->steps.back()), elemName(to)));
  return oneResult(to, *dims);
}

} // namespace candela::graph
