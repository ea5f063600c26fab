#include <limits>

#include "core/graph/ops/common.h"

namespace candela::graph {

Result<Types> inferArgReduce(const Node& node) {
  std::vector<Dim> dims = typeOf(node, 0).dims;
  Dim& extreme = dims[wrapAxis(node.intAttr("axis"), typeOf(node, 0).rank())];
  if (extreme.bound == 0 || extreme.bound > std::numeric_limits<int32_t>::max())
    return node.fail("arg_reduce_c1", node.intAttr("axis"), extreme.bound);
  extreme = Dim(1);
  return oneResult(Elem::i32_, dims);
}

} // namespace candela::graph
