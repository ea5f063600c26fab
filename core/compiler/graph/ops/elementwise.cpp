#include <bit>

#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

std::optional<Shape> broadcastShapes(const Node& node) {
  std::optional<Shape> dims(std::in_place);
  for (const Value* operand : node.operands())
    if (dims) dims = broadcastShapes(*std::move(dims), operand->type.dims);
  return dims;
}

static Elem resultElem(const Node& node) {
  const OperandInfo& result = node.info().results[0];
  if (const Value* like = node.operandNamed(result.like)) return like->type.elem;
  if (result.elems == 0) return node.elemAttr("to");
  return static_cast<Elem>(std::countr_zero(result.elems));
}

/// The operands broadcast; the record says which element type the result has.
Result<Types> inferBroadcast(const Node& node) {
  const Elem elem = resultElem(node);
  if (const auto dims = broadcastShapes(node)) return oneResult(elem, *dims);
  return node.fail("c1", operandShapes(node));
}

Result<Types> inferClip(const Node& node) {
  for (const size_t i : {1, 2})
    if (node.operand(i) && typeOf(node, i).rank() != 0)
      return node.fail("clip_c1", node.info().operands[i].name, shapeText(typeOf(node, i).shape()));
  return Types{likeOperand(node, 0)};
}

} // namespace candela::graph
