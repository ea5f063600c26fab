#include "core/compiler/lowering/fusion/fuse.h"

#include <algorithm>

#include "core/compiler/lowering/fusion/walk.h"

namespace candela::lowering::fusion {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

class Fuser : FuseWalk {
public:
  using FuseWalk::FuseWalk;

  /// From the end: what two producers could take goes to the later one, behind which the other has
  /// long been computed.
  Result<int> epilogues() {
    for (size_t i = order_.size(); i-- > 0;)
      if (position_.count(order_[i]) && carriesEpilogue(*order_[i]))
        CDL_TRY(fuseEpilogue(*order_[i]));
    return count_;
  }

  Result<int> trees() {
    for (size_t i = order_.size(); target_.hasKind(CDL_KIND_ELEMENTWISE) && i-- > 0;)
      if (position_.count(order_[i]) && decompose::isWalkable(order_[i]->results()) &&
          decompose::stepOf(*order_[i]))
        CDL_TRY(fuseTree(*order_[i]));
    return count_;
  }

private:
  static bool carriesEpilogue(const Node& node) {
    if (!decompose::isWalkable(node.results())) return false;
    const std::vector<decompose::NodeInstr> instrs = decompose::instructionsOf(node);
    return instrs.size() == 1 && decompose::hasEpilogue(instrs[0].kind);
  }

  /// May `node` be computed along with `acc`, of all of whose elements it has one each? The steps
  /// of an expression are known to the target by kind alone, so each must be an instruction that it
  /// takes.
  bool mayFollow(const Node& node, const Value& acc) const {
    if (!decompose::isWalkable(node.results())) return false;
    const graph::TensorType& type = node.result()->type;
    if (type.layout != acc.type.layout || type.count() != acc.type.count()) return false;
    return node.kind == OpKind::Reshape ? type.layout.isRowMajor()
                                        : decompose::stepOf(node) && takes(node);
  }

  /// The first that reads one of the open values from outside; null where nothing else may join
  /// them.
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

  /// The largest part of what follows `acc` that one value leaves, as far as the target takes it:
  /// node by node in order, tried whenever nobody outside reads any other value.
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
      if (auto expression = expressionOf(*next, inside, acc);
          expression && isTaken(*next, *expression)) {
        best = std::move(expression);
        taken = inside;
        root = next;
      }
    }
    if (!best) return Status::ok();
    takeWidenings(*root, *acc, taken, *best);
    return apply(*root, *best, taken, producer.provenance);
  }

  /// Takes along what widens another operand of the epilogue for nobody else: it reads fewer bytes,
  /// and none are written between.
  void takeWidenings(Node& root, Value& acc, Nodes& inside, Expression& best) {
    Nodes refused;
    while (const Node* widening = nextWidening(acc, inside, refused)) {
      Nodes more = inside;
      more.insert(widening);
      auto expression = expressionOf(root, more, &acc);
      if (!expression || !isTaken(root, *expression)) {
        refused.insert(widening);
        continue;
      }
      best = std::move(*expression);
      inside = std::move(more);
    }
  }

  /// The last in order of what may be taken along.
  const Node* nextWidening(const Value& acc, const Nodes& inside, const Nodes& refused) const {
    const Node* last = nullptr;
    for (const Node* member : inside)
      for (const Value* operand : member->operands()) {
        const Node* producer = operand ? operand->producer : nullptr;
        const bool isOther = producer && position_.count(producer) && !inside.count(producer) &&
                             !refused.count(producer) && operand != &acc;
        if (!isOther || !isWidening(*producer) || !isReadOnlyIn(*operand, inside) ||
            !mayFollow(*producer, acc))
          continue;
        if (!last || position_.at(producer) > position_.at(last)) last = producer;
      }
    return last;
  }

  static bool isWidening(const Node& node) {
    return node.kind == OpKind::Cast &&
           elemBits(node.operand(0)->type.elem) < elemBits(node.result()->type.elem);
  }

  /// The last of the producers of operands of what is inside that nobody else needs and that have
  /// the shape of the root.
  const Node* nextOfTree(const Node& root, const Nodes& inside, const Nodes& refused) const {
    const Node* last = nullptr;
    const graph::TensorType& wanted = root.result()->type;
    for (const Node* member : inside)
      for (const Value* operand : member->operands()) {
        const Node* producer = operand->producer;
        if (!position_.count(producer) || inside.count(producer) || refused.count(producer) ||
            !decompose::stepOf(*producer) || !isReadOnlyIn(*operand, inside) ||
            operand->type.shape() != wanted.shape() || operand->type.layout != wanted.layout)
          continue;
        if (!last || position_.at(producer) > position_.at(last)) last = producer;
      }
    return last;
  }

  /// Grows `inside` node by node to the largest tree whose expression `accepts` takes.
  template <typename Accepts>
  std::optional<Expression> growTree(const Node& root, Nodes& inside,
                                     const Accepts& accepts) const {
    Nodes refused;
    std::optional<Expression> best;
    while (const Node* candidate = nextOfTree(root, inside, refused)) {
      inside.insert(candidate);
      if (auto expression = expressionOf(root, inside, nullptr);
          expression && accepts(*expression)) {
        best = std::move(expression);
      } else {
        inside.erase(candidate);
        refused.insert(candidate);
      }
    }
    return best;
  }

  Status fuseTree(Node& root) {
    // A target that takes the whole is asked once: each question makes a node and reads all of its
    // steps.
    Nodes inside{&root};
    std::optional<Expression> best = growTree(root, inside, [](const Expression&) { return true; });
    if (best && !isTaken(root, *best)) {
      inside = {&root};
      best = growTree(root, inside,
                      [&](const Expression& expression) { return isTaken(root, expression); });
    }
    count_ -= best ? 1 : 0; // the expression is a node too
    return best ? apply(root, *best, inside, {}) : Status::ok();
  }

  bool isTaken(Node& root, const Expression& expression) {
    const auto expr = add(root, expression, {});
    if (!expr) return false;
    const bool taken = takes(**expr);
    eraseNew(**expr);
    return taken;
  }

  Status apply(Node& root, const Expression& expression, const Nodes& inside,
               graph::Provenance provenance) {
    graph::mergeProvenance(provenance, provenanceOf(inside));
    CDL_ASSIGN(const Node* expr, add(root, expression, provenance));
    CDL_ASSIGN(Value * result,
               alias(expr->result(), root.result()->type.shape(), provenance, root));
    const std::string name = root.result()->name;
    graph_.replaceAllUses(root.result(), result);
    eraseAll(inside);
    graph_.rename(result, name);
    count_ += static_cast<int>(inside.size());
    return Status::ok();
  }

  int count_ = 0;
};

} // namespace

Result<int> fuse(Graph& graph, const capabilities::Target& target) {
  CDL_ASSIGN(const int behind, Fuser(graph, target).epilogues());
  // A product may end in fewer bytes by its epilogue: prologues take what that leaves.
  CDL_ASSIGN(const int before, fusePrologues(graph, target));
  CDL_ASSIGN(const int trees, Fuser(graph, target).trees());
  return behind + before + trees;
}

} // namespace candela::lowering::fusion
