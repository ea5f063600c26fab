#include "core/graph/window.h"

#include "core/graph/ops/common.h"

namespace candela::graph {
namespace {

Result<TensorType> pool(const Node& node, std::string_view rankId, std::string_view countId, std::string_view fitId) {
  const TensorType& x = typeOf(node, 0);
  const Shape kernel = node.intsAttr("kernel_shape"), input = x.shape();
  if (kernel.empty() || static_cast<size_t>(x.rank()) != kernel.size() + 2)
    return node.fail(rankId, x.rank(), kernel.size());
  const Shape extents(input.begin() + 2, input.end());
  CDL_ASSIGN(const Window window, checkWindow(node, kernel, extents, countId, fitId));
  TensorType type = likeOperand(node, 0);
  for (int i = 0; i < window.rank(); ++i) type.dims[i + 2].bound = window.count(i, extents[i]);
  return type;
}

} // namespace

Result<Types> inferMaxPool(const Node& node) {
  CDL_ASSIGN(const TensorType y, pool(node, "max_pool_c1", "max_pool_c2", "max_pool_c3"));
  TensorType indices = y;
  indices.elem = Elem::i64_;
  return Types{y, indices};
}

Result<Types> inferAveragePool(const Node& node) {
  CDL_ASSIGN(const TensorType y, pool(node, "average_pool_c1", "average_pool_c2", "average_pool_c3"));
  return Types{y};
}

Result<Types> inferGlobalAveragePool(const Node& node) {
  TensorType type = likeOperand(node, 0);
  if (type.rank() < 3) return node.fail("global_average_pool_c1", type.rank());
  for (int i = 2; i < type.rank(); ++i) type.dims[i] = Dim(1);
  return Types{type};
}

} // namespace candela::graph
