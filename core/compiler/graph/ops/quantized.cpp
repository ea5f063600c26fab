#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

/// Of quantize and dequantize: one scale and zero point, or one of each along the axis.
Result<Types> inferLinearQuant(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  Shape expected;
  if (node.hasAttr("axis")) expected.push_back(x.dim(wrapAxis(node.intAttr("axis"), x.rank())));
  for (const size_t i : {1, 2})
    if (node.operand(i) && typeOf(node, i).shape() != expected)
      return node.fail("c1", node.info().operands[i].name, shapeText(typeOf(node, i).shape()),
                       shapeText(expected));
  return oneResult(node.operandNamed(node.info().results[0].like)->type.elem, x.dims);
}

namespace {

/// Of the row functions of integers: the operands from `first` on have these shapes, with
/// as many segments as the first of the last two says.
Status checkRowTables(const Node& node, size_t first, std::vector<Shape> expected) {
  const size_t segments = first + expected.size();
  const TensorType& given = typeOf(node, segments);
  const int64_t count = given.rank() == 0 ? 0 : given.dim(0);
  expected.push_back({count, 4});
  expected.push_back({count, 513});
  for (size_t i = 0; i < expected.size(); ++i) {
    const Shape shape = typeOf(node, first + i).shape();
    if (shape != expected[i])
      return node.fail("c1", node.info().operands[first + i].name, shapeText(shape),
                       shapeText(expected[i]));
  }
  const Elem to = node.elemAttr("to");
  if (to != Elem::i8_ && to != Elem::u8_) return node.fail("c2", elemName(to));
  return Status::ok();
}

} // namespace

Result<Types> inferSoftmaxInteger(const Node& node) {
  CDL_TRY(checkRowTables(node, 1, {{513}}));
  const TensorType& x = typeOf(node, 0);
  const int64_t count = x.dim(wrapAxis(node.intAttr("axis"), x.rank()));
  if (count > 65536) return node.fail("c3", count);
  return oneResult(node.elemAttr("to"), x.dims);
}

namespace {

/// Of the norms of integers, whose first operands behind x are like a row.
Result<Types> inferNormInteger(const Node& node, size_t rowOperands) {
  const Shape shape = typeOf(node, 0).shape();
  const int axis = wrapAxis(node.intAttr("axis"), typeOf(node, 0).rank());
  const Shape row(shape.begin() + axis, shape.end());
  CDL_TRY(checkRowTables(node, 1, std::vector<Shape>(rowOperands, row)));
  if (const int64_t count = *elementCount(row); count > 16384) return node.fail("c3", count);
  return oneResult(node.elemAttr("to"), typeOf(node, 0).dims);
}

} // namespace

Result<Types> inferLayerNormInteger(const Node& node) { return inferNormInteger(node, 2); }
Result<Types> inferRmsNormInteger(const Node& node) { return inferNormInteger(node, 1); }

} // namespace candela::graph
