#include "core/graph/ops/common.h"

namespace candela::graph {
namespace {

Result<Types> reduce(const Node& node, std::string_view rangeId, std::string_view twiceId) {
  const TensorType& x = typeOf(node, 0);
  std::vector<bool> reduced(x.dims.size(), false);
  for (const int64_t given : node.intsAttr("axes")) {
    const auto axis = resolveAxis(given, x.rank());
    if (!axis) return node.fail(rangeId, given, x.rank());
    if (reduced[*axis]) return node.fail(twiceId, given);
    reduced[*axis] = true;
  }
  TensorType type;
  type.elem = x.elem;
  for (int i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) type.dims.push_back(x.dims[i]);
    if (reduced[i] && node.intAttr("keepdims")) type.dims.push_back(Dim(1));
  }
  return Types{type};
}

} // namespace

Result<Types> inferReduceSum(const Node& node) { return reduce(node, "reduce_sum_c1", "reduce_sum_c2"); }
Result<Types> inferReduceMean(const Node& node) { return reduce(node, "reduce_mean_c1", "reduce_mean_c2"); }
Result<Types> inferReduceMax(const Node& node) { return reduce(node, "reduce_max_c1", "reduce_max_c2"); }
Result<Types> inferReduceMin(const Node& node) { return reduce(node, "reduce_min_c1", "reduce_min_c2"); }
Result<Types> inferReduceProd(const Node& node) { return reduce(node, "reduce_prod_c1", "reduce_prod_c2"); }

} // namespace candela::graph
