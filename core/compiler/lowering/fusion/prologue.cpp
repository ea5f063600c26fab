// What only a REDUCE reads, as the expression that its instruction computes on the way.
#include <algorithm>

#include "core/compiler/lowering/fusion/walk.h"

namespace candela::lowering::fusion {

using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

class PrologueFuser : FuseWalk {
public:
  using FuseWalk::FuseWalk;

  Result<int> run() {
    for (size_t i = order_.size(); i-- > 0;)
      if (position_.count(order_[i]) && order_[i]->kind == OpKind::Reduce)
        CDL_TRY(fusePrologue(*order_[i]));
    return count_;
  }

private:
  /// What is behind reshapes of an operand of what is inside, where nobody else needs any of them:
  /// a step of one element for each of x. The reshapes come along.
  Nodes ownProducer(const Value& x, Value* operand, const Nodes& inside) const {
    Nodes all = inside, made;
    for (;;) {
      const Node* producer = operand->producer;
      if (!position_.count(producer) || inside.count(producer) || !isReadOnlyIn(*operand, all) ||
          !operand->type.layout.isRowMajor() || operand->type.count() != x.type.count())
        return {};
      made.insert(producer), all.insert(producer);
      if (producer->kind != OpKind::Reshape)
        return decompose::stepOf(*producer) && takes(*producer) ? made : Nodes{};
      operand = producer->operand(0);
    }
  }
  static const Node* stepIn(const Nodes& made) {
    const auto step =
        std::ranges::find_if(made, [](const Node* node) { return node->kind != OpKind::Reshape; });
    return step == made.end() ? nullptr : *step;
  }
  /// The last of those in front of what is inside.
  Nodes nextOfPrologue(const Value& x, const Nodes& inside, const Nodes& refused) const {
    Nodes last;
    for (const Node* member : inside)
      for (Value* operand : member->operands()) {
        Nodes made = operand ? ownProducer(x, operand, inside) : Nodes{};
        const Node* step = stepIn(made);
        if (step && !refused.count(step) &&
            (last.empty() || position_.at(step) > position_.at(stepIn(last))))
          last = std::move(made);
      }
    return last;
  }

  /// The largest tree in front of a reduction that nobody else reads, as far as the target computes
  /// it on the way.
  Status fusePrologue(Node& reduce) {
    Value* x = reduce.operand(0);
    if (!decompose::isWalkable(reduce.results()) || !x->type.layout.isRowMajor() ||
        x->type.count() == 0)
      return Status::ok();
    const Shape over = x->type.shape();
    Nodes inside{&reduce}, refused;
    const Node* root = nullptr;
    std::optional<Expression> best;
    for (;;) {
      const Nodes next = nextOfPrologue(*x, inside, refused);
      if (next.empty() || inside.size() >= kMaxInside) break;
      const Node* top = root ? root : stepIn(next);
      Nodes with = inside;
      with.insert(next.begin(), next.end());
      const auto expression = expressionOf(*top, with, nullptr, over);
      if (expression && tryPrologue(reduce, *top, *expression, nullptr)) {
        inside = std::move(with);
        best = expression;
        root = top;
      } else {
        refused.insert(stepIn(next));
      }
    }
    if (!best) return Status::ok();
    inside.erase(&reduce);
    count_ += static_cast<int>(inside.size());
    return tryPrologue(reduce, *root, *best, &inside)
               ? Status::ok()
               : failure(Code::internal, "a prologue was taken and is not");
  }

  /// Whether the target takes the reduction with this prologue. With `inside`, which it replaces,
  /// it stays in the graph.
  bool tryPrologue(Node& reduce, const Node& root, const Expression& expression,
                   const Nodes* inside) {
    Node& before = *order_[position_.at(&root)];
    const auto expr = add(before, expression, {});
    if (!expr) return false;
    const bool fits = (*expr)->result()->type.shape() == reduce.operand(0)->type.shape();
    graph::Attrs attrs = reduce.attrs;
    attrs["prologue"] = int64_t(1);
    const auto made = fits ? graph_.addNode(OpKind::Reduce, {(*expr)->result()}, std::move(attrs),
                                            reduce.provenance, &reduce)
                           : Result<Node*>(failure(Code::internal, "other dims"));
    bool taken = false;
    if (made) {
      Node& folded = **made;
      graph_.replaceAllUses(reduce.result(), folded.result());
      const Node* epilogue = decompose::epilogueOf(folded);
      taken = takes(epilogue ? *epilogue : folded);
      if (taken && inside) {
        replaceBy(reduce, folded, *inside);
        return true;
      }
      graph_.replaceAllUses(folded.result(), reduce.result());
      graph_.erase(&folded);
    }
    eraseNew(**expr);
    return taken;
  }

  void replaceBy(Node& reduce, Node& folded, const Nodes& inside) {
    graph::Provenance provenance = provenanceOf(inside);
    Node* named = decompose::epilogueOf(folded) ? folded.result()->users()[0] : &folded;
    graph::mergeProvenance(provenance, named->provenance);
    named->provenance = std::move(provenance);
    const std::string name = reduce.result()->name;
    Nodes gone = inside;
    gone.insert(&reduce);
    eraseAll(gone);
    graph_.rename(folded.result(), name);
  }

  int count_ = 0;
};

} // namespace

Result<int> fusePrologues(graph::Graph& graph, const capabilities::Target& target) {
  return PrologueFuser(graph, target).run();
}

} // namespace candela::lowering::fusion
