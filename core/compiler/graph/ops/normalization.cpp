#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferBatchNorm(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  if (x.rank() < 2) return node.fail("batch_norm_c2", x.rank());
  for (size_t i = 1; i < 5; ++i)
    if (typeOf(node, i).shape() != Shape{x.dim(1)})
      return node.fail("batch_norm_c1", node.info().operands[i].name,
                       shapeText(typeOf(node, i).shape()), x.dim(1));
  return Types{likeOperand(node, 0), likeOperand(node, 3), likeOperand(node, 4)};
}

/// Of layer_norm and rms_norm: scale and bias cover the dims from the axis on.
Result<Types> inferRowNorm(const Node& node) {
  const Shape shape = typeOf(node, 0).shape();
  const Shape row(shape.begin() + wrapAxis(node.intAttr("axis"), typeOf(node, 0).rank()),
                  shape.end());
  for (const size_t i : {1, 2})
    if (node.operand(i) && typeOf(node, i).shape() != row)
      return node.fail("c1", node.info().operands[i].name, shapeText(typeOf(node, i).shape()),
                       shapeText(row));
  if (node.operand(2) && !node.operand(1)) return node.fail("c2");
  return Types{likeOperand(node, 0)};
}

} // namespace candela::graph
