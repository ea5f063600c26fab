// Ops that have an instruction which the target does not take.
#include "core/compiler/lowering/decompose/shared.h"
#include "core/support/float_bits.h"

namespace candela::lowering::decompose {

bool isSmallInteger(Elem elem) {
  return isInteger(elem) && elemBits(elem) < 32 && !isStorageOnly(elem);
}

// The same op on i32, exact for every function that wraps, orders or truncates.
Values lowerThroughI32(Lowering& l, const Node& node) {
  std::vector<Value> operands;
  for (Value operand : node.operands())
    operands.push_back(isSmallInteger(operand->type.elem) ? l.cast(operand, Elem::i32_) : operand);
  return {l.cast(l.node(node.kind, std::move(operands), node.attrs), node.result()->type.elem)};
}

namespace {

// Infinities become the largest numbers of their signs. Narrow floats go by way of f32, which holds
// them all, for there a CONVERT does it.
Value withoutInfinities(Lowering& l, Value x) {
  const Elem elem = x->type.elem;
  if (elem != Elem::f32_ && elem != Elem::f64_)
    return l.node(OpKind::Cast, {l.cast(x, Elem::f32_)}, {{"to", elem}, {"saturate", int64_t(1)}});
  const double largest = largestReal(elem);
  return l.min(l.max(x, l.scalar(elem, -largest)), l.scalar(elem, largest));
}

// Casts that no single CONVERT does: by a comparison, or in two steps by way of i32, which holds
// every value between.
Values lowerCast(Lowering& l, const Node& node) {
  Value x = node.operand(0);
  const Elem from = x->type.elem, to = node.result()->type.elem;
  const bool saturates = node.intAttr("saturate") != 0;
  if (from == to) return {saturates && isFloat(from) ? withoutInfinities(l, x) : x};
  if (to == Elem::bool_) {
    Value isZero = l.equal(x, l.scalar(from, 0));
    return {l.select(isZero, l.scalar(to, 0), l.scalar(to, 1))};
  }
  const bool narrowSource = isSmallInteger(from) || from == Elem::bool_;
  const bool narrowTarget = isSmallInteger(to);
  if (from == Elem::i32_ || to == Elem::i32_ || (!narrowSource && !narrowTarget)) return {};
  graph::Attrs first{{"to", Elem::i32_}}, second{{"to", to}};
  for (graph::Attrs* attrs : {&first, &second})
    attrs->emplace("saturate", node.intAttr("saturate"));
  return {l.node(OpKind::Cast, {l.node(OpKind::Cast, {x}, first)}, second)};
}

// Zero points outside of the product: (a - za)(b - zb) = ab - za b - zb a + za zb, summed in the
// result's type, which may wrap.
Values lowerZeroPoints(Lowering& l, const Node& node) {
  if (!node.operand(2) && !node.operand(3)) return {};
  const Elem sums = node.result()->type.elem;
  Value a = node.operand(0), b = node.operand(1), y = l.matmul(a, b, sums);
  const Shape aDims = a->type.shape(), bDims = b->type.shape();
  Value aZero = node.operand(2) ? l.cast(node.operand(2), sums) : nullptr;
  Value bZero = node.operand(3) ? l.cast(node.operand(3), sums) : nullptr;
  if (aZero) {
    Value columns = l.reshape(l.reduce3(l.cast(b, sums), "sum"), {bDims[0], 1, bDims[2]});
    if (bZero)
      columns = l.sub(columns, l.mul(bZero, l.scalar(sums, static_cast<double>(aDims[2]))));
    y = l.sub(y, l.mul(columns, aZero));
  }
  if (!bZero) return {y};
  Value rows = l.reduce3(l.reshape(l.cast(a, sums), {aDims[0] * aDims[1], aDims[2], 1}), "sum");
  return {l.sub(y, l.mul(l.reshape(rows, {aDims[0], aDims[1], 1}), bZero))};
}

// Operands of the result's shape, for targets that refuse stride 0.
Values lowerExpanded(Lowering& l, const Node& node) {
  const Shape shape = node.result()->type.shape();
  std::vector<Value> operands;
  bool changed = false;
  for (Value operand : node.operands()) {
    operands.push_back(operand ? l.broadcast(operand, shape) : nullptr);
    changed |= operands.back() != operand;
  }
  if (!changed) return {};
  return {l.node(node.kind, std::move(operands), node.attrs)};
}

} // namespace

Result<Values> lowerElementwise(Lowering& l, const Node& node, const capabilities::Answer& why) {
  const Elem elem =
      node.operands().empty() || !node.operand(0) ? Elem::none : node.operand(0)->type.elem;
  const bool expands = node.operands().size() > 1 && node.info().has(graph::kTraitElementwise);
  if (expands && (why.reason == CDL_REASON_OPERAND_CLASS || instructionsOf(node).empty()))
    if (Values values = lowerExpanded(l, node); !values.empty()) return values;
  switch (node.kind) {
  case OpKind::Cast: return lowerCast(l, node);
  case OpKind::Neg:
    if (!isInteger(elem)) return Values{};
    return Values{l.sub(l.scalar(elem, 0), node.operand(0))};
  case OpKind::Abs:
    if (!isInteger(elem)) return Values{};
    if (isUnsigned(elem)) return Values{node.operand(0)};
    return Values{l.max(node.operand(0), l.sub(l.scalar(elem, 0), node.operand(0)))};
  case OpKind::BatchMatmul: return lowerZeroPoints(l, node);
  case OpKind::Put: return lowerScatterProduct(l, node);
  case OpKind::Round: {
    if (node.result()->type.elem == Elem::i32_ || !isSmallInteger(node.result()->type.elem))
      return Values{};
    graph::Attrs attrs = node.attrs;
    attrs["to"] = Elem::i32_;
    return Values{
        l.node(OpKind::Cast, {l.node(OpKind::Round, {node.operand(0)}, attrs)},
               {{"to", node.result()->type.elem}, {"saturate", node.intAttr("saturate")}})};
  }
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Mul:
  case OpKind::Div:
  case OpKind::Min:
  case OpKind::Max:
  case OpKind::Equal:
  case OpKind::Less:
  case OpKind::Reduce:
    if (!isSmallInteger(elem)) return Values{};
    return lowerThroughI32(l, node);
  default: return lowerFunction(l, node);
  }
}

} // namespace candela::lowering::decompose
