#include "core/graph/window.h"

#include "core/graph/ops/common.h"

namespace candela::graph {
/// Of max_pool, with the indices of the maxima, and average_pool.
Result<Types> inferPool(const Node& node) {
  const TensorType& x = typeOf(node, 0);
  const Shape kernel = node.intsAttr("kernel_shape"), input = x.shape();
  if (kernel.empty() || static_cast<size_t>(x.rank()) != kernel.size() + 2)
    return node.fail("c1", x.rank(), kernel.size());
  const Shape extents(input.begin() + 2, input.end());
  CDL_ASSIGN(const Window window, checkWindow(node, kernel, extents, "c2", "c3"));
  TensorType type = likeOperand(node, 0);
  for (int i = 0; i < window.rank(); ++i) type.dims[i + 2].bound = window.count(i, extents[i]);
  Types types(node.info().results.size(), type);
  if (types.size() > 1) types[1].elem = Elem::i64_;
  return types;
}

Result<Types> inferGlobalAveragePool(const Node& node) {
  TensorType type = likeOperand(node, 0);
  if (type.rank() < 3) return node.fail("global_average_pool_c1", type.rank());
  for (int i = 2; i < type.rank(); ++i) type.dims[i] = Dim(1);
  return Types{type};
}

} // namespace candela::graph
