#include "core/compiler/lowering/fusion/walk.h"

#include <algorithm>
#include <ranges>

#include "core/compiler/lowering/decompose/lower.h"

namespace candela::lowering::fusion {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

FuseWalk::FuseWalk(Graph& graph, const capabilities::Target& target)
    : graph_(graph), target_(target), order_(graph.snapshot()) {
  for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
}

bool FuseWalk::takes(const Node& node) const {
  const capabilities::Support support = decompose::ask(node, target_).support;
  return support == capabilities::Support::native ||
         (support == capabilities::Support::emulated && target_.isHost());
}

bool FuseWalk::isReadOnlyIn(const Value& value, const Nodes& inside) const {
  return !graph_.isOutput(&value) && !value.users().empty() &&
         std::ranges::all_of(value.users(),
                             [&](const Node* user) { return inside.count(user) != 0; });
}

Result<Value*> FuseWalk::alias(Value* value, const Shape& shape,
                               const graph::Provenance& provenance, Node& at) {
  if (value->type.shape() == shape) return value;
  CDL_ASSIGN(const Node* node,
             graph_.addNode(OpKind::Reshape, {value}, {{"shape", shape}}, provenance, &at));
  return node->result();
}

Result<Node*> FuseWalk::add(Node& root, const Expression& expression,
                            const graph::Provenance& provenance) {
  std::vector<Value*> operands;
  for (const Expression::Operand& operand : expression.operands) {
    CDL_ASSIGN(Value * value, alias(operand.value, operand.shape, provenance, root));
    operands.push_back(value);
  }
  graph::Attrs attrs{{"to", root.result()->type.elem}, {"steps", text::exprText(expression.steps)}};
  CDL_ASSIGN(Node * expr,
             graph_.addNode(OpKind::Expr, operands, std::move(attrs), provenance, &root));
  expr->result()->type.layout = root.result()->type.layout;
  return expr;
}

void FuseWalk::eraseNew(Node& expr) {
  const std::vector<Value*> operands = expr.operands();
  graph_.erase(&expr);
  for (Value* operand : operands)
    if (operand->users().empty() && operand->producer && !position_.count(operand->producer))
      graph_.erase(operand->producer);
}

void FuseWalk::eraseAll(const Nodes& inside) {
  // Users stand behind what they use, so that erasing from the end meets no used result.
  for (const size_t i : positionsOf(inside) | std::views::reverse) {
    position_.erase(order_[i]);
    graph_.erase(order_[i]);
    order_[i] = nullptr;
  }
}

std::vector<size_t> FuseWalk::positionsOf(const Nodes& inside) const {
  std::vector<size_t> positions;
  for (const Node* node : inside) positions.push_back(position_.at(node));
  std::ranges::sort(positions);
  return positions;
}

graph::Provenance FuseWalk::provenanceOf(const Nodes& inside) const {
  graph::Provenance provenance;
  for (const size_t i : positionsOf(inside))
    graph::mergeProvenance(provenance, order_[i]->provenance);
  return provenance;
}

} // namespace candela::lowering::fusion
