// Transposes and reshapes sink below what does not care for them, until they meet another one, or
// the graph's end.
//
// Element by element it makes no difference whether operands are moved before or their result
// afterwards. What is below knows which axis it works on, and is told the axis of before.
// canonicalize then makes one of two that meet.
#include <algorithm>
#include <span>

#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

bool isMovement(const Value* value) {
  const Node* node = value ? value->producer : nullptr;
  return node && (node->kind == OpKind::Transpose || node->kind == OpKind::Reshape) &&
         isPlain(value) && isPlain(node->operand(0));
}

/// Whether the two bring their operands from the same shape into the same order and shape.
bool movesAlike(const Node& a, const Node& b) {
  return a.kind == b.kind && a.attrs == b.attrs &&
         a.operand(0)->type.shape() == b.operand(0)->type.shape();
}

/// Whether a moved operand can be had as it was before.
bool canUnmove(const Value* operand, const Node& movement) {
  if (!operand || (isMovement(operand) && movesAlike(*operand->producer, movement))) return true;
  if (!isPlain(operand)) return false;
  const Shape from = movement.operand(0)->type.shape(), to = movement.result()->type.shape();
  const Shape own = operand->type.shape();
  if (own.size() > from.size()) return false;
  if (operand->type.count() == 1) return true;
  if (movement.kind == OpKind::Transpose) return operand->isConstant();
  // Trailing dims that the reshape leaves alone.
  return own.size() <= to.size() && std::equal(own.rbegin(), own.rend(), from.rbegin()) &&
         std::equal(own.rbegin(), own.rend(), to.rbegin());
}

Result<Value*> unmoved(Graph& graph, Node* user, Value* operand, const Node& movement) {
  if (!operand) return operand;
  if (isMovement(operand) && movesAlike(*operand->producer, movement))
    return operand->producer->operand(0);
  if (movement.kind == OpKind::Reshape || operand->type.count() == 1) return operand;
  const auto perm = movement.intsAttr("perm");
  Shape own = operand->type.shape(), back(perm.size());
  own.insert(own.begin(), perm.size() - own.size(), 1);
  for (size_t i = 0; i < perm.size(); ++i)
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const auto& names = operand->producer->provenance;
  CDL_ASSIGN(const Node* whole,
             graph.addNode(OpKind::Reshape, {operand}, {{"shape", own}}, names, user));
  CDL_ASSIGN(const Node* moved,
             graph.addNode(OpKind::Transpose, {whole->result()}, {{"perm", back}}, names, user));
  return moved->result();
}

/// The attributes of an op that works along axes, for its operands before the transpose; nullopt
/// where there are none.
std::optional<Attrs> attrsBefore(const Node& node, const std::vector<int64_t>& perm) {
  const int rank = static_cast<int>(perm.size());
  const auto before = [&](int64_t axis) { return perm[static_cast<size_t>(wrapAxis(axis, rank))]; };
  Attrs attrs = node.attrs;
  switch (node.kind) {
  case OpKind::Concat: attrs["axis"] = before(node.intAttr("axis")); return attrs;
  case OpKind::ReduceSum:
  case OpKind::ReduceMean:
  case OpKind::ReduceMax:
  case OpKind::ReduceMin:
  case OpKind::ReduceProd: {
    if (!node.intAttr("keepdims")) return std::nullopt;
    auto axes = node.intsAttr("axes");
    std::ranges::transform(axes, axes.begin(), before);
    std::ranges::sort(axes);
    attrs["axes"] = axes;
    return attrs;
  }
  case OpKind::Slice:
  case OpKind::Pad:
    for (const char* name : {"starts", "counts", "steps", "lo", "hi"}) {
      if (!node.hasAttr(name)) continue;
      const auto values = node.intsAttr(name);
      auto moved = values;
      for (size_t i = 0; i < values.size(); ++i) moved[static_cast<size_t>(perm[i])] = values[i];
      attrs[name] = moved;
    }
    return attrs;
  default: return std::nullopt;
  }
}

bool isElementwise(const Node& node) {
  return node.kind == OpKind::Rescale ||
         (node.info().has(kTraitElementwise) && !node.info().has(kTraitPrimitive));
}
/// How many of the operands move with the result; those behind are numbers.
size_t movedOperands(const Node& node) {
  if (node.kind == OpKind::Clip) return 1;
  return isElementwise(node) || node.kind == OpKind::Concat ? node.operands().size() : 1;
}

/// Which movement the node can be done before; null when there is none that becomes fewer by it.
const Node* movementOf(const Graph& graph, const Node& node) {
  if (node.operands().empty() || node.results().size() != 1 || !isPlain(node.result()))
    return nullptr;
  const std::span operands(node.operands().data(), movedOperands(node));
  const auto found = std::ranges::find_if(operands, isMovement);
  if (found == operands.end()) return nullptr;
  const Node& movement = *(*found)->producer;
  // Packed elements have no addresses of their own: only whole tensors of them are moved.
  if (isPacked(node.result()->type.elem) && movement.kind != OpKind::Reshape) return nullptr;
  if (isElementwise(node)
          ? (*found)->type.shape() != node.result()->type.shape()
          : movement.kind == OpKind::Reshape || !attrsBefore(node, movement.intsAttr("perm")))
    return nullptr;
  const bool all =
      std::ranges::all_of(operands, [&](const Value* v) { return canUnmove(v, movement); });
  const bool oneLess = std::ranges::any_of(operands, [&](const Value* v) {
    return isMovement(v) && !graph.isOutput(v) &&
           std::ranges::all_of(v->users(), [&](const Node* user) { return user == &node; });
  });
  return all && oneLess ? &movement : nullptr;
}

Result<bool> sink(Graph& graph, Node* node) {
  const Node* movement = movementOf(graph, *node);
  if (!movement) return false;
  std::vector<Value*> operands = node->operands();
  Provenance names;
  for (Value*& operand : std::span(operands.data(), movedOperands(*node))) {
    if (isMovement(operand)) mergeProvenance(names, operand->producer->provenance);
    CDL_ASSIGN(operand, unmoved(graph, node, operand, *movement));
  }
  Attrs attrs =
      isElementwise(*node) ? node->attrs : *attrsBefore(*node, movement->intsAttr("perm"));
  CDL_ASSIGN(const Node* early, graph.addNode(node->kind, std::move(operands), std::move(attrs),
                                              node->provenance, node));
  CDL_ASSIGN(const Node* late,
             graph.addNode(movement->kind, {early->result()}, movement->attrs, names, node));
  replaceWithNew(graph, node, late->result());
  return true;
}

} // namespace

Result<int> sinkMovement(Graph& graph) { return onEachNode(graph, sink); }

} // namespace candela::graph::passes
