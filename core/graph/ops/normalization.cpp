#include "core/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferBatchNorm(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  if (x.rank() < 2) return node.fail("batch_norm_c2", x.rank());
  for (size_t i = 1; i < 5; ++i)
    if (typeOf(node, i).shape() != Shape{x.dim(1)})
      return node.fail("batch_norm_c1", node.info().operands[i].name, shapeText(typeOf(node, i).shape()), x.dim(1));
  return Types{likeOperand(node, 0), likeOperand(node, 3), likeOperand(node, 4)};
}

} // namespace candela::graph
