#include "core/target/fuse/fuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/target/fuse/expression.h"
#include "core/target/lower/lower.h"

namespace candela::target {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

/// The walk of one graph. Nodes that it made itself have no position, and are never taken again.
class Fuser {
public:
  Fuser(Graph& graph, const Target& target) : graph_(graph), target_(target), order_(graph.snapshot()) {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
  }

  Result<int> run() {
    // From the end: what two producers could take goes to the later one, behind which the other has long been computed.
    for (size_t i = order_.size(); i-- > 0;)
      if (position_.count(order_[i]) && carriesEpilogue(*order_[i])) CDL_TRY(fuseEpilogue(*order_[i]));
    for (size_t i = order_.size(); target_.hasKind(CDL_KIND_ELEMENTWISE) && i-- > 0;)
      if (position_.count(order_[i]) && isWalkable(order_[i]->results()) && stepOf(*order_[i]))
        CDL_TRY(fuseTree(*order_[i]));
    return count_;
  }

private:
  static bool carriesEpilogue(const Node& node) {
    if (!isWalkable(node.results())) return false;
    const std::vector<NodeInstr> instrs = instructionsOf(node);
    return instrs.size() == 1 && hasEpilogue(instrs[0].kind);
  }

  bool takes(const Node& node) const {
    const Support support = ask(node, target_).support;
    return support == Support::native || (support == Support::emulated && target_.isHost());
  }

  /// May `node` be computed along with `acc`, of all of whose elements it has one each? The steps of an expression are
  /// known to the target by kind alone, so each must be an instruction that it takes.
  bool mayFollow(const Node& node, const Value& acc) const {
    if (!position_.count(&node) || !isWalkable(node.results())) return false;
    const graph::TensorType& type = node.result()->type;
    if (type.layout != acc.type.layout || type.count() != acc.type.count()) return false;
    if (node.kind == OpKind::Reshape) return type.layout.isRowMajor() && !type.quant;
    if (!stepOf(node) || !takes(node)) return false;
    return std::ranges::all_of(node.operands(), [&](const Value* operand) {
      return (operand->type.layout.isRowMajor() || operand->type.layout == type.layout) &&
             shapeOver(operand->type.shape(), type.shape(), acc.type.shape());
    });
  }

  /// The largest part of what follows `acc` that one value leaves, as far as the target takes it: node by node in
  /// order, tried whenever nobody outside reads any other value.
  Status fuseEpilogue(Node& producer) {
    Value* acc = producer.result();
    std::set<const Node*> inside;
    std::set<Value*> open{acc};
    std::optional<Expression> best;
    std::set<const Node*> bestInside;
    Node* bestRoot = nullptr;
    while (open.size() <= kMaxOpen) {
      Node* next = nullptr;
      bool isOutput = false;
      for (const Value* value : open) {
        isOutput |= graph_.isOutput(value) && open.size() > 1;
        for (Node* user : value->users()) {
          if (inside.count(user)) continue;
          if (!position_.count(user)) return apply(producer, bestRoot, best, bestInside);
          if (!next || position_.at(user) < position_.at(next)) next = user;
        }
      }
      const bool ends = open.size() == 1 && graph_.isOutput(*open.begin());
      if (!next || isOutput || ends || inside.size() >= kMaxInside || !mayFollow(*next, *acc)) break;
      inside.insert(next);
      open.insert(next->result());
      std::erase_if(open, [&](const Value* value) {
        return !graph_.isOutput(value) && !value->users().empty() &&
               std::ranges::all_of(value->users(), [&](const Node* user) { return inside.count(user) != 0; });
      });
      if (open.size() != 1 || *open.begin() != next->result() || next->kind == OpKind::Reshape) continue;
      if (auto expression = expressionOf(*next, inside, acc); expression && isTaken(*next, *expression, acc)) {
        best = std::move(expression);
        bestInside = inside;
        bestRoot = next;
      }
    }
    return apply(producer, bestRoot, best, bestInside);
  }

  /// The last of the producers of operands of what is inside that nobody else needs and that have the shape of the
  /// root.
  const Node* nextOfTree(const Node& root, const std::set<const Node*>& inside, const std::set<const Node*>& refused) {
    const Node* last = nullptr;
    for (const Node* member : inside)
      for (const Value* operand : member->operands()) {
        const Node* producer = operand->producer;
        if (!producer || inside.count(producer) || refused.count(producer) || !position_.count(producer)) continue;
        if (graph_.isOutput(operand) || producer->kind == OpKind::Constant || !stepOf(*producer)) continue;
        const auto isInside = [&](const Node* user) { return inside.count(user) != 0; };
        if (!std::ranges::all_of(operand->users(), isInside)) continue;
        const graph::TensorType &type = operand->type, &wanted = root.result()->type;
        if (type.shape() != wanted.shape() || type.layout != wanted.layout) continue;
        if (!last || position_.at(producer) > position_.at(last)) last = producer;
      }
    return last;
  }

  Status fuseTree(Node& root) {
    std::set<const Node*> inside{&root}, refused;
    std::optional<Expression> best;
    while (const Node* candidate = nextOfTree(root, inside, refused)) {
      inside.insert(candidate);
      auto expression = expressionOf(root, inside, nullptr);
      if (expression && isTaken(root, *expression, nullptr)) {
        best = std::move(expression);
      } else {
        inside.erase(candidate);
        refused.insert(candidate);
      }
    }
    if (best) count_ -= 1; // the expression is a node too
    return apply(root, &root, best, inside);
  }

  /// The node of an expression, in the place of `root`: of the shape of `acc` where there is one.
  Result<Node*> add(Node& root, const Expression& expression, const Value* acc, graph::Provenance provenance) {
    std::vector<Value*> operands;
    for (const Expression::Operand& operand : expression.operands) {
      operands.push_back(operand.value);
      if (operand.shape == operand.value->type.shape()) continue;
      CDL_ASSIGN(const Node* alias,
                 graph_.addNode(OpKind::Reshape, {operand.value}, {{"shape", operand.shape}}, provenance, &root));
      operands.back() = alias->result();
    }
    graph::Attrs attrs{{"to", root.result()->type.elem}, {"steps", text::exprText(expression.steps)}};
    CDL_ASSIGN(Node * expr, graph_.addNode(OpKind::Expr, operands, std::move(attrs), std::move(provenance), &root));
    expr->result()->type.layout = (acc ? acc : root.result())->type.layout;
    return expr;
  }

  void remove(Node* expr) {
    const std::vector<Value*> operands = expr->operands();
    graph_.erase(expr);
    for (Value* operand : operands)
      if (operand->users().empty() && operand->producer && !position_.count(operand->producer))
        graph_.erase(operand->producer);
  }

  bool isTaken(Node& root, const Expression& expression, const Value* acc) {
    const auto expr = add(root, expression, acc, {});
    if (!expr) return false;
    const bool taken = (*expr)->result()->type.count() == root.result()->type.count() && takes(**expr) &&
                       (acc != nullptr) == (accumulatorOf(**expr) != nullptr);
    remove(*expr);
    return taken;
  }

  Status apply(Node& first, Node* root, const std::optional<Expression>& best, const std::set<const Node*>& inside) {
    if (!best) return Status::ok();
    const Value* acc = root == &first ? nullptr : first.result();
    graph::Provenance provenance = acc ? first.provenance : graph::Provenance{};
    for (const Node* node : order_)
      if (inside.count(node)) graph::mergeProvenance(provenance, node->provenance);
    CDL_ASSIGN(const Node* expr, add(*root, *best, acc, provenance));
    const std::string name = root->result()->name;
    Value* result = expr->result();
    if (result->type.shape() != root->result()->type.shape()) {
      CDL_ASSIGN(const Node* alias, graph_.addNode(OpKind::Reshape, {result}, {{"shape", root->result()->type.shape()}},
                                                   provenance, root));
      result = alias->result();
    }
    graph_.replaceAllUses(root->result(), result);
    // Users stand behind what they use, so that erasing from the end meets no used result.
    for (size_t i = order_.size(); i-- > 0;) {
      if (!inside.count(order_[i])) continue;
      position_.erase(order_[i]);
      graph_.erase(order_[i]);
      order_[i] = nullptr;
    }
    graph_.rename(result, name);
    count_ += static_cast<int>(inside.size());
    return Status::ok();
  }

  static constexpr size_t kMaxOpen = 8, kMaxInside = 64;

  Graph& graph_;
  const Target& target_;
  std::vector<Node*> order_;
  std::map<const Node*, size_t> position_; ///< in the graph as it was, of the nodes of then that are left
  int count_ = 0;
};

} // namespace

Result<int> fuse(Graph& graph, const Target& target) { return Fuser(graph, target).run(); }

} // namespace candela::target
