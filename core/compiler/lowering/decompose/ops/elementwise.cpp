#include <cmath>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

Result<Values> lowerRelu(Lowering& l, const Node& node) {
  return Values{l.max(node.operand(0), l.scalar(node.operand(0)->type.elem, 0))};
}

Result<Values> lowerClip(Lowering& l, const Node& node) {
  Value x = node.operand(0);
  if (node.operand(1)) x = l.max(x, node.operand(1));
  if (node.operand(2)) x = l.min(x, node.operand(2));
  return Values{x};
}

Result<Values> lowerGelu(Lowering& l, const Node& node) {
  const Elem elem = node.operand(0)->type.elem, inner = l.wide(elem);
  Value x = l.cast(node.operand(0), inner);
  Value gate = l.unary(OpKind::Erf, l.mul(x, l.scalar(inner, std::sqrt(0.5))));
  return Values{
      l.cast(l.mul(l.mul(x, l.scalar(inner, 0.5)), l.add(gate, l.scalar(inner, 1))), elem)};
}

} // namespace candela::lowering::decompose
