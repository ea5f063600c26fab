#include <limits>

#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferArgReduce(const Node& node) {
  Shape dims = typeOf(node, 0).dims;
  int64_t& extreme = dims[wrapAxis(node.intAttr("axis"), typeOf(node, 0).rank())];
  if (extreme == 0 || extreme > std::numeric_limits<int32_t>::max())
    return node.fail("arg_reduce_c1", node.intAttr("axis"), extreme);
  extreme = 1;
  return oneResult(Elem::i32_, dims);
}

} // namespace candela::graph
