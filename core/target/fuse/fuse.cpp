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

using Nodes = std::set<const Node*>;

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

  bool isReadOnlyIn(const Value& value, const Nodes& inside) const {
    return !graph_.isOutput(&value) && !value.users().empty() &&
           std::ranges::all_of(value.users(), [&](const Node* user) { return inside.count(user) != 0; });
  }

  /// May `node` be computed along with `acc`, of all of whose elements it has one each? The steps of an expression are
  /// known to the target by kind alone, so each must be an instruction that it takes.
  bool mayFollow(const Node& node, const Value& acc) const {
    if (!isWalkable(node.results())) return false;
    const graph::TensorType& type = node.result()->type;
    if (type.layout != acc.type.layout || type.count() != acc.type.count()) return false;
    return node.kind == OpKind::Reshape ? type.layout.isRowMajor() : stepOf(node) && takes(node);
  }

  /// The first that reads one of the open values from outside; null where nothing else may join them.
  Node* nextUser(const std::set<Value*>& open, const Nodes& inside) const {
    Node* next = nullptr;
    for (const Value* value : open) {
      if (graph_.isOutput(value)) return nullptr;
      for (Node* user : value->users()) {
        if (inside.count(user)) continue;
        if (!position_.count(user)) return nullptr;
        if (!next || position_.at(user) < position_.at(next)) next = user;
      }
    }
    return next;
  }

  /// The largest part of what follows `acc` that one value leaves, as far as the target takes it: node by node in
  /// order, tried whenever nobody outside reads any other value.
  Status fuseEpilogue(Node& producer) {
    Value* acc = producer.result();
    Nodes inside, taken;
    std::set<Value*> open{acc};
    std::optional<Expression> best;
    Node* root = nullptr;
    while (Node* next = nextUser(open, inside)) {
      if (inside.size() >= kMaxInside || !mayFollow(*next, *acc)) break;
      inside.insert(next);
      open.insert(next->result());
      std::erase_if(open, [&](const Value* value) { return isReadOnlyIn(*value, inside); });
      if (open != std::set{next->result()} || next->kind == OpKind::Reshape) continue;
      if (auto expression = expressionOf(*next, inside, acc); expression && isTaken(*next, *expression)) {
        best = std::move(expression);
        taken = inside;
        root = next;
      }
    }
    return best ? apply(*root, *best, taken, producer.provenance) : Status::ok();
  }

  /// The last of the producers of operands of what is inside that nobody else needs and that have the shape of the
  /// root.
  const Node* nextOfTree(const Node& root, const Nodes& inside, const Nodes& refused) const {
    const Node* last = nullptr;
    const graph::TensorType& wanted = root.result()->type;
    for (const Node* member : inside)
      for (const Value* operand : member->operands()) {
        const Node* producer = operand->producer;
        if (!position_.count(producer) || inside.count(producer) || refused.count(producer) || !stepOf(*producer) ||
            !isReadOnlyIn(*operand, inside) || operand->type.shape() != wanted.shape() ||
            operand->type.layout != wanted.layout)
          continue;
        if (!last || position_.at(producer) > position_.at(last)) last = producer;
      }
    return last;
  }

  Status fuseTree(Node& root) {
    Nodes inside{&root}, refused;
    std::optional<Expression> best;
    while (const Node* candidate = nextOfTree(root, inside, refused)) {
      inside.insert(candidate);
      if (auto expression = expressionOf(root, inside, nullptr); expression && isTaken(root, *expression)) {
        best = std::move(expression);
      } else {
        inside.erase(candidate);
        refused.insert(candidate);
      }
    }
    count_ -= best ? 1 : 0; // the expression is a node too
    return best ? apply(root, *best, inside, {}) : Status::ok();
  }

  /// A reshape before `at`.
  Result<Value*> alias(Value* value, const Shape& shape, const graph::Provenance& provenance, Node& at) {
    if (value->type.shape() == shape) return value;
    CDL_ASSIGN(const Node* node, graph_.addNode(OpKind::Reshape, {value}, {{"shape", shape}}, provenance, &at));
    return node->result();
  }

  /// The node of an expression, before `root`.
  Result<Node*> add(Node& root, const Expression& expression, const graph::Provenance& provenance) {
    std::vector<Value*> operands;
    for (const Expression::Operand& operand : expression.operands) {
      CDL_ASSIGN(Value * value, alias(operand.value, operand.shape, provenance, root));
      operands.push_back(value);
    }
    graph::Attrs attrs{{"to", root.result()->type.elem}, {"steps", text::exprText(expression.steps)}};
    CDL_ASSIGN(Node * expr, graph_.addNode(OpKind::Expr, operands, std::move(attrs), provenance, &root));
    expr->result()->type.layout = root.result()->type.layout;
    return expr;
  }

  bool isTaken(Node& root, const Expression& expression) {
    const auto expr = add(root, expression, {});
    if (!expr) return false;
    const bool taken = takes(**expr);
    const std::vector<Value*> operands = (*expr)->operands();
    graph_.erase(*expr);
    for (Value* operand : operands)
      if (operand->users().empty() && operand->producer && !position_.count(operand->producer))
        graph_.erase(operand->producer);
    return taken;
  }

  Status apply(Node& root, const Expression& expression, const Nodes& inside, graph::Provenance provenance) {
    for (const Node* node : order_)
      if (inside.count(node)) graph::mergeProvenance(provenance, node->provenance);
    CDL_ASSIGN(const Node* expr, add(root, expression, provenance));
    CDL_ASSIGN(Value * result, alias(expr->result(), root.result()->type.shape(), provenance, root));
    const std::string name = root.result()->name;
    graph_.replaceAllUses(root.result(), result);
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

  static constexpr size_t kMaxInside = 64;

  Graph& graph_;
  const Target& target_;
  std::vector<Node*> order_;
  std::map<const Node*, size_t> position_; ///< in the graph as it was, of the nodes of then that are left
  int count_ = 0;
};

} // namespace

Result<int> fuse(Graph& graph, const Target& target) { return Fuser(graph, target).run(); }

} // namespace candela::target
