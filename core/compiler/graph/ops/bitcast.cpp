#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferBitcast(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Elem to = node.elemAttr("to");
  if (elemBits(x.elem) != elemBits(to))
    return node.fail("bitcast_c1", elemName(x.elem), elemBits(x.elem), elemName(to), elemBits(to));
  return oneResult(to, x.dims);
}

} // namespace candela::graph
