#include <algorithm>
#include <cmath>

#include "core/compiler/graph/passes/rewrite.h"
#include "core/support/float_bits.h"

namespace candela::graph::passes {

namespace {

bool allEqual(const std::vector<int64_t>& values, int64_t to) {
  return std::ranges::all_of(values, [to](int64_t v) { return v == to; });
}

/// The producer when it is of this kind.
const Node* producerOf(const Value* value, OpKind kind) {
  return value && value->producer && value->producer->kind == kind ? value->producer : nullptr;
}

// ---- What a node is, when it is only another value

/// A cast that saturates makes limits of infinities, even of those that its type has.
bool keepsInfinities(const Node& cast) {
  return !cast.intAttr("saturate") || !isFloat(cast.operand(0)->type.elem);
}

bool isIdentityMovement(const Node& node) {
  const TensorType& x = node.operand(0)->type;
  switch (node.kind) {
  case OpKind::Reshape:
  case OpKind::Expand: return node.result()->type == x;
  case OpKind::Transpose: return std::ranges::is_sorted(node.intsAttr("perm"));
  case OpKind::Slice:
    return allEqual(node.intsAttr("starts"), 0) && allEqual(node.intsAttr("steps"), 1) &&
           node.result()->type == x;
  case OpKind::Pad: return allEqual(node.intsAttr("lo"), 0) && allEqual(node.intsAttr("hi"), 0);
  case OpKind::Concat: return node.operands().size() == 1;
  case OpKind::Cast: return node.elemAttr("to") == x.elem && keepsInfinities(node);
  default: return false;
  }
}

/// x of `x op constant` where that is x in every bit: x + -0 (x + 0 would make 0 of -0), x - 0, x *
/// 1, x / 1.
Value* neutralOperand(const Node& node) {
  Value *a = node.operand(0), *b = node.operand(1);
  const auto neutral = [&](const Value* v) {
    switch (node.kind) {
    case OpKind::Add: return isSplatOf(v, isFloat(v->type.elem) ? -0.0 : 0);
    case OpKind::Sub: return isSplatOf(v, 0);
    case OpKind::Mul:
    case OpKind::Div: return isSplatOf(v, 1);
    default: return false;
    }
  };
  if (neutral(b)) return a;
  const bool commutes = node.kind == OpKind::Add || node.kind == OpKind::Mul;
  return commutes && neutral(a) ? b : nullptr;
}

/// f(f(x)) = f(x).
bool isIdempotent(OpKind kind) {
  return kind == OpKind::Relu || kind == OpKind::Abs || kind == OpKind::Floor ||
         kind == OpKind::Ceil;
}

/// The value that the node's result always equals, or null.
Value* sameAs(const Node& node) {
  if (node.operands().empty() || !isPlain(node.operand(0)) || node.results().size() != 1)
    return nullptr;
  Value* x = node.operand(0);
  if (isIdentityMovement(node)) return x;
  if (isIdempotent(node.kind) && producerOf(x, node.kind)) return x;
  switch (node.kind) {
  case OpKind::Add:
  case OpKind::Sub:
  case OpKind::Mul:
  case OpKind::Div: return neutralOperand(node);
  case OpKind::Select:
    if (const auto bits = splatBits(x)) return node.operand(*bits ? 1 : 2);
    return nullptr;
  case OpKind::Clip: return !node.operand(1) && !node.operand(2) ? x : nullptr;
  default: return nullptr;
  }
}

// ---- Two nodes that are one

/// Every value of `from` is a value of `to`. A float in an integer, or anything else in a bool, is
/// not.
bool holdsAll(Elem to, Elem from) {
  if (to == from) return true;
  if (isStorageOnly(to) || isStorageOnly(from) || to == Elem::bool_) return false;
  if (isFloat(from)) return to == Elem::f64_ || (to == Elem::f32_ && elemBits(from) == 16);
  const auto inner = integerRange(from);
  if (isFloat(to)) { // whose significand has the bits of the largest, or it is rounded up
    const double largest = toReal(to, fromReal(to, static_cast<double>(inner.highest)));
    return std::isfinite(largest) && static_cast<__int128>(largest) == inner.highest;
  }
  const auto outer = integerRange(to);
  return outer.lowest <= inner.lowest && inner.highest <= outer.highest;
}

/// One bound of a clip. known: constant, one element and not NaN, or absent.
struct Bound {
  Value* value = nullptr;
  bool known = !value;
  double real = 0;
  __int128 whole = 0;
};

Bound boundOf(Value* value) {
  Bound bound{value};
  if (bound.known || !isPlainConstant(value) || value->type.count() != 1) return bound;
  const auto tensor = value->tensor();
  if (!tensor) return bound;
  const uint64_t bits = loadElement(tensor->elem, tensor->bytes.data(), 0);
  if (isFloat(tensor->elem))
    bound.real = toReal(tensor->elem, bits);
  else
    bound.whole = integerOf(tensor->elem, bits);
  bound.known = bound.real == bound.real;
  return bound;
}

bool less(const Bound& a, const Bound& b) { return a.real < b.real || a.whole < b.whole; }
/// The tighter of two lower (or upper) bounds.
Bound tighterLow(const Bound& a, const Bound& b) {
  return !a.value || (b.value && less(a, b)) ? b : a;
}
Bound tighterHigh(const Bound& a, const Bound& b) {
  return !a.value || (b.value && less(b, a)) ? b : a;
}

/// clip(clip(x, l1, h1), l2, h2) = clip(x, max(l1, l2), min(h1, h2)) where both intervals and what
/// they share are not empty.
Result<bool> mergeClips(Graph& graph, Node* node) {
  const Node* inner = producerOf(node->operand(0), OpKind::Clip);
  if (!inner || !isPlain(inner->operand(0))) return false;
  const Bound low = boundOf(node->operand(1)), high = boundOf(node->operand(2));
  const Bound innerLow = boundOf(inner->operand(1)), innerHigh = boundOf(inner->operand(2));
  if (!low.known || !high.known || !innerLow.known || !innerHigh.known) return false;
  const Bound newLow = tighterLow(innerLow, low), newHigh = tighterHigh(innerHigh, high);
  if (newLow.value && newHigh.value && !less(newLow, newHigh)) return false;
  CDL_ASSIGN(const Node* merged,
             graph.addNode(OpKind::Clip, {inner->operand(0), newLow.value, newHigh.value}, {},
                           mergedProvenance(inner->provenance, node->provenance), node));
  replaceWithNew(graph, node, merged->result());
  return true;
}

/// Looks through a producer that the node makes superfluous; both keep their names in the node's
/// provenance.
bool lookThrough(Node* node, const Node* inner) {
  node->provenance = mergedProvenance(inner->provenance, node->provenance);
  node->setOperand(0, inner->operand(0));
  return true;
}

bool mergeMovement(Node* node) {
  if (node->kind != OpKind::Reshape && node->kind != OpKind::Transpose &&
      node->kind != OpKind::Cast)
    return false;
  const Node* inner = producerOf(node->operand(0), node->kind);
  if (!inner || !isPlain(inner->operand(0)) || !isPlain(inner->result())) return false;
  switch (node->kind) {
  case OpKind::Reshape: return lookThrough(node, inner);
  case OpKind::Transpose: {
    auto perm = node->intsAttr("perm");
    const auto first = inner->intsAttr("perm");
    for (int64_t& p : perm) p = first[p];
    node->attrs["perm"] = perm;
    return lookThrough(node, inner);
  }
  default:
    return holdsAll(inner->elemAttr("to"), inner->operand(0)->type.elem) &&
           keepsInfinities(*inner) && lookThrough(node, inner);
  }
}

/// A transpose that moves only dims of 1 leaves the order of the elements alone.
Result<bool> transposeToReshape(Graph& graph, Node* node) {
  if (node->kind != OpKind::Transpose || !isPlain(node->operand(0))) return false;
  const TensorType& x = node->operand(0)->type;
  int64_t last = -1;
  for (const int64_t dim : node->intsAttr("perm")) {
    if (x.dim(static_cast<int>(dim)) == 1) continue;
    if (dim < last) return false;
    last = dim;
  }
  CDL_ASSIGN(const Node* reshape,
             graph.addNode(OpKind::Reshape, {node->operand(0)},
                           {{"shape", node->result()->type.shape()}}, node->provenance, node));
  replaceWithNew(graph, node, reshape->result());
  return true;
}

// ---- One form for operands

bool constantToTheRight(Node* node) {
  if (!node->info().has(kTraitCommutative) || node->operands().size() != 2) return false;
  Value *a = node->operand(0), *b = node->operand(1);
  if (!a->isConstant() || b->isConstant()) return false;
  node->setOperand(0, b);
  node->setOperand(1, a);
  return true;
}

bool broadcastsTo(const Node& node, size_t changed, const Shape& with, const Shape& result) {
  std::optional<Shape> shape = Shape{};
  for (size_t i = 0; shape && i < node.operands().size(); ++i)
    shape = broadcastShapes(*shape, i == changed ? with : node.operand(i)->type.shape());
  return shape == result;
}

/// A broadcasting op takes what an expand was made from, and one element of a splat, where the
/// other operands give the shape.
Result<bool> shrinkOperands(Graph& graph, Node* node) {
  if (!node->info().has(kTraitBroadcast) || node->operands().size() < 2 || !isPlain(node->result()))
    return false;
  const Shape result = node->result()->type.shape();
  bool changed = false;
  for (size_t i = 0; i < node->operands().size(); ++i) {
    Value* operand = node->operand(i);
    if (!isPlain(operand)) continue;
    if (const Node* expand = producerOf(operand, OpKind::Expand);
        expand && isPlain(expand->operand(0)) &&
        broadcastsTo(*node, i, expand->operand(0)->type.shape(), result)) {
      mergeProvenance(node->provenance, expand->provenance);
      node->setOperand(i, expand->operand(0));
      changed = true;
      continue;
    }
    const auto bits = operand->type.count() > 1 ? splatBits(operand) : std::nullopt;
    if (!bits || !broadcastsTo(*node, i, {}, result)) continue;
    const Elem elem = operand->type.elem;
    CDL_ASSIGN(const Tensor scalar, Payload::splat(elem, 1, *bits).materialize({}));
    node->setOperand(i, graph.addConstant(scalar, operand->producer->provenance, node));
    changed = true;
  }
  return changed;
}

/// One rewrite of the node, or none. `gone`: the node was erased.
Result<bool> rewrite(Graph& graph, Node* node, bool& gone) {
  gone = true;
  if (Value* same = sameAs(*node); same && canReplace(graph, node->result(), same)) {
    replaceWith(graph, node, same);
    return true;
  }
  CDL_ASSIGN(const bool reshaped, transposeToReshape(graph, node));
  if (reshaped) return true;
  if (node->kind == OpKind::Clip) {
    CDL_ASSIGN(const bool merged, mergeClips(graph, node));
    if (merged) return true;
  }
  gone = false;
  if (mergeMovement(node) || constantToTheRight(node)) return true;
  return shrinkOperands(graph, node);
}

Result<int> settle(Graph& graph, Node* node) {
  int count = 0;
  for (bool gone = node->kind == OpKind::Constant, again = true; again && !gone; count += again) {
    CDL_ASSIGN(again, rewrite(graph, node, gone));
  }
  return count;
}

} // namespace

Result<int> canonicalize(Graph& graph) { return onEachNode(graph, settle); }

} // namespace candela::graph::passes
