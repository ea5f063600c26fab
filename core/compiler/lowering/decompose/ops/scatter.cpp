#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

// Every place times the product of the updates that meet it: updates spread over the places and
// folded. That costs an element for each pair of update and place, so large scatters are left to
// whoever has the function.
Values lowerScatterProduct(Lowering& l, const Node& node) {
  constexpr int64_t kMostPairs = int64_t(1) << 24;
  Value x = node.operand(0), index = node.operand(1), updates = node.operand(2);
  const Shape dims = x->type.shape();
  const int64_t count = index->type.count();
  const auto pairs = elementCount(Shape{dims[0], count, dims[1], dims[2]});
  if (node.stringAttr("fn") != "mul" || !pairs || *pairs > kMostPairs) return {};
  Value place = l.constant(Payload::iota(index->type.elem, dims[1], 0, 1), {1, 1, dims[1], 1});
  Value meets = l.equal(l.reshape(index, {1, count, 1, 1}), place);
  Value factors = l.select(meets, l.reshape(updates, {dims[0], count, 1, dims[2]}),
                           l.scalar(updates->type.elem, 1));
  return {l.mul(x, l.reshape(l.reduceAxis(factors, 1, "prod"), dims))};
}

} // namespace candela::lowering::decompose
