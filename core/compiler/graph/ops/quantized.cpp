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

} // namespace candela::graph
