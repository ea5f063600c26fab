#include "core/target/lower/shared.h"

namespace candela::target {

Result<Values> lowerRelu(Lowering& l, const graph::Node& node) {
  return Values{l.max(node.operand(0), l.scalar(node.operand(0)->type.elem, 0))};
}

Result<Values> lowerClip(Lowering& l, const graph::Node& node) {
  Lowering::Value x = node.operand(0);
  if (node.operand(1)) x = l.max(x, node.operand(1));
  if (node.operand(2)) x = l.min(x, node.operand(2));
  return Values{x};
}

} // namespace candela::target
