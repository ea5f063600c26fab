// Identities of arithmetic, where they hold in every bit or, for products of constants, up to one
// rounding.
#include <algorithm>
#include <cmath>

#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

bool isNumber(const Value* value, double number) {
  const auto real = splatReal(value);
  return real && *real == number;
}

/// 1 / c where that is exact for every element: powers of two, whose reciprocals are normal.
Result<std::optional<Tensor>> exactReciprocal(const Value* value) {
  std::optional<Tensor> none;
  auto numbers = isFloat(value->type.elem) ? numbersOf(value) : std::nullopt;
  if (!numbers) return none;
  const double smallest = value->type.elem == Elem::f16_ ? 0x1p-14 : 0x1p-126;
  for (double& c : *numbers) {
    int exponent = 0;
    if (std::abs(std::frexp(c, &exponent)) != 0.5 || std::abs(1 / c) < smallest ||
        std::abs(c) < smallest)
      return none;
    c = 1 / c;
  }
  CDL_ASSIGN(Tensor result, tensorOf(value->type.elem, value->type.shape(), *numbers));
  return std::optional(std::move(result));
}

/// x / c = x * (1 / c), 1 / x = reciprocal(x).
Result<Node*> simplerDiv(Graph& graph, Node* node) {
  if (isNumber(node->operand(0), 1) && node->operand(1)->type == node->result()->type)
    return graph.addNode(OpKind::Reciprocal, {node->operand(1)}, {}, node->provenance, node);
  CDL_ASSIGN(const auto factor, exactReciprocal(node->operand(1)));
  if (!factor) return static_cast<Node*>(nullptr);
  Value* constant = graph.addConstant(*factor, node->operand(1)->producer->provenance, node);
  return graph.addNode(OpKind::Mul, {node->operand(0), constant}, {}, node->provenance, node);
}

/// a + -b = a - b, a - -b = a + b.
Result<Node*> withoutNeg(Graph& graph, Node* node) {
  const OpKind other = node->kind == OpKind::Add ? OpKind::Sub : OpKind::Add;
  for (const size_t side : {1, 0}) {
    const Node* neg = plainProducer(node->operand(side), OpKind::Neg);
    if (!neg || (side == 0 && node->kind == OpKind::Sub)) continue;
    return graph.addNode(other, {node->operand(1 - side), neg->operand(0)}, {},
                         mergedProvenance(neg->provenance, node->provenance), node);
  }
  return static_cast<Node*>(nullptr);
}

/// (x * c) * d = x * (c * d), where both make x larger or both make it smaller, and the type has c
/// * d. Then x * c is infinite, or loses digits below the normal numbers, only where the whole
/// product does so too; of a factor up and one down the product alone would not tell.
Result<Node*> joinFactors(Graph& graph, Node* node) {
  const Node* inner = plainProducer(node->operand(0), OpKind::Mul);
  const Value *c = inner ? inner->operand(1) : nullptr, *d = node->operand(1);
  if (!c || !isPlainConstant(c) || !isPlainConstant(d) || !splatReal(c) || !splatReal(d))
    return static_cast<Node*>(nullptr);
  const double first = std::abs(*splatReal(c)), second = std::abs(*splatReal(d));
  const double product = *splatReal(c) * *splatReal(d);
  const bool shapesStay = inner->operand(0)->type == node->result()->type;
  const bool grows = first >= 1 && second >= 1, shrinks = first <= 1 && second <= 1 && product != 0;
  if (!shapesStay || (!grows && !shrinks) || !holdsWell(d->type.elem, product))
    return static_cast<Node*>(nullptr);
  CDL_ASSIGN(const Tensor tensor, tensorOf(d->type.elem, {}, {product}));
  Value* constant = graph.addConstant(
      tensor, mergedProvenance(c->producer->provenance, d->producer->provenance), node);
  return graph.addNode(OpKind::Mul, {inner->operand(0), constant}, {},
                       mergedProvenance(inner->provenance, node->provenance), node);
}

/// A reduction over dims of 1 moves nothing and adds nothing.
Result<Node*> trivialReduction(Graph& graph, Node* node) {
  const TensorType& x = node->operand(0)->type;
  for (const int64_t axis : node->intsAttr("axes"))
    if (x.dim(wrapAxis(axis, x.rank())) != 1) return static_cast<Node*>(nullptr);
  return graph.addNode(OpKind::Reshape, {node->operand(0)},
                       {{"shape", node->result()->type.shape()}}, node->provenance, node);
}

/// A slice of a slice.
Result<Node*> joinSlices(Graph& graph, Node* node) {
  const Node* inner = plainProducer(node->operand(0), OpKind::Slice);
  if (!inner) return static_cast<Node*>(nullptr);
  auto starts = inner->intsAttr("starts"), steps = inner->intsAttr("steps");
  const auto then = node->intsAttr("starts"), counts = node->intsAttr("counts"),
             thenSteps = node->intsAttr("steps");
  for (size_t d = 0; d < starts.size(); ++d) {
    int64_t ahead;
    if (__builtin_mul_overflow(then[d], steps[d], &ahead) ||
        __builtin_add_overflow(starts[d], ahead, &starts[d]))
      return static_cast<Node*>(nullptr);
    // One element has no next one: its step may be anything, up to a product that overflows.
    if (counts[d] <= 1)
      steps[d] = 1;
    else if (__builtin_mul_overflow(steps[d], thenSteps[d], &steps[d]))
      return static_cast<Node*>(nullptr);
  }
  return graph.addNode(OpKind::Slice, {inner->operand(0)},
                       {{"starts", starts}, {"counts", counts}, {"steps", steps}},
                       mergedProvenance(inner->provenance, node->provenance), node);
}

/// What computes the same with less, or null.
Result<Node*> simpler(Graph& graph, Node* node) {
  Value *a = node->operand(0), *b = node->operand(1);
  const auto provenance = [&](const Node* inner) {
    return mergedProvenance(inner->provenance, node->provenance);
  };
  switch (node->kind) {
  case OpKind::Add:
  case OpKind::Sub: return withoutNeg(graph, node);
  case OpKind::Mul: return joinFactors(graph, node);
  case OpKind::Div: return simplerDiv(graph, node);
  case OpKind::Slice: return joinSlices(graph, node);
  case OpKind::Pow:
    if (!(a->type == node->result()->type)) break;
    if (isNumber(b, 2)) return graph.addNode(OpKind::Mul, {a, a}, {}, node->provenance, node);
    if (isNumber(b, -1)) return graph.addNode(OpKind::Reciprocal, {a}, {}, node->provenance, node);
    break;
  case OpKind::Relu:
    // max(min(max(x, l), h), 0) with 0 between the two.
    if (const Node* clip = plainProducer(a, OpKind::Clip)) {
      const auto low = splatReal(clip->operand(1)), high = splatReal(clip->operand(2));
      if ((clip->operand(1) && !(low && *low <= 0)) || (clip->operand(2) && !(high && *high >= 0)))
        break;
      CDL_ASSIGN(const Tensor bound, tensorOf(a->type.elem, {}, {0}));
      return graph.addNode(OpKind::Clip,
                           {clip->operand(0), graph.addConstant(bound, {}, node), clip->operand(2)},
                           {}, provenance(clip), node);
    }
    break;
  case OpKind::Clip:
    // relu before a clip that lets nothing below 0 through.
    if (const Node* relu = plainProducer(a, OpKind::Relu)) {
      const auto low = splatReal(b), high = splatReal(node->operand(2));
      if (!low || *low < 0 || (node->operand(2) && !(high && *high >= *low))) break;
      return graph.addNode(OpKind::Clip, {relu->operand(0), b, node->operand(2)}, {},
                           provenance(relu), node);
    }
    break;
  case OpKind::ReduceSum:
  case OpKind::ReduceMean:
  case OpKind::ReduceMax:
  case OpKind::ReduceMin:
  case OpKind::ReduceProd: return trivialReduction(graph, node);
  default: break;
  }
  return static_cast<Node*>(nullptr);
}

/// The operand that the result equals, or null: neg(neg(x)), select(c, x, x), pow(x, 1).
Value* sameAs(const Node& node) {
  switch (node.kind) {
  case OpKind::Neg: {
    const Node* inner = plainProducer(node.operand(0), OpKind::Neg);
    return inner ? inner->operand(0) : nullptr;
  }
  case OpKind::Select: return node.operand(1) == node.operand(2) ? node.operand(1) : nullptr;
  case OpKind::Pow: return isNumber(node.operand(1), 1) ? node.operand(0) : nullptr;
  default: return nullptr;
  }
}

Result<bool> simplify(Graph& graph, Node* node) {
  if (node->results().size() != 1 || !isPlain(node->result()) || node->kind == OpKind::Constant)
    return false;
  if (!std::ranges::all_of(node->operands(), [](const Value* v) { return !v || isPlain(v); }))
    return false;
  if (Value* same = sameAs(*node); same && canReplace(graph, node->result(), same)) {
    replaceWith(graph, node, same);
    return true;
  }
  CDL_ASSIGN(const Node* fresh, simpler(graph, node));
  if (fresh) replaceWithNew(graph, node, fresh->result());
  return fresh != nullptr;
}

} // namespace

Result<int> algebra(Graph& graph) { return onEachNode(graph, simplify); }

} // namespace candela::graph::passes
