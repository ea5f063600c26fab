#include "core/compiler/graph/ops/common.h"

namespace candela::graph {

/// Of every reduction.
Result<Types> inferReduction(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  std::vector<bool> reduced(x.dims.size(), false);
  for (const int64_t axis : node.intsAttr("axes")) {
    if (reduced[wrapAxis(axis, x.rank())]) return node.fail("c2", axis);
    reduced[wrapAxis(axis, x.rank())] = true;
  }
  Shape dims;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) dims.push_back(x.dims[i]);
    if (reduced[i] && node.intAttr("keepdims")) dims.push_back(1);
  }
  return oneResult(x.elem, dims);
}

} // namespace candela::graph
