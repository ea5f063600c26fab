#include "core/target/fuse/fuse.h"

#include <algorithm>
#include <set>

#include "core/support/text/expr.h"
#include "core/support/text/literal.h"
#include "core/target/lower/lower.h"
#include "core/target/rows.h"

namespace candela::target {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::Value;

namespace {

constexpr size_t kMaxOperands = 16;

/// Plain but for its layout, which an expression walks as it lies.
bool isWalkable(const Value* value) { return value && value->type.isExact() && !value->type.quant; }

/// The function that a node is as a step, without operands; nullopt when no step does the same.
std::optional<text::ExprStep> stepOf(const Node& node) {
  if (node.results().size() != 1 || !std::ranges::all_of(node.operands(), isWalkable)) return std::nullopt;
  text::ExprStep step;
  step.kind = node.info().instrKind;
  step.fn = node.info().instrFn;
  switch (step.kind) {
  case CDL_KIND_UNARY:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT: return step;
  case CDL_KIND_CONVERT:
    step.to = node.elemAttr("to");
    step.saturate = node.intAttr("saturate") != 0;
    if (node.kind == OpKind::Round) step.fn = fnOf(CDL_KIND_CONVERT, node.stringAttr("mode"));
    // "not 0" is a comparison, not a rounding.
    return step.to == Elem::bool_ ? std::nullopt : std::optional(step);
  default: return std::nullopt;
  }
}

/// What a root and the producers that it swallows are as one expression.
struct Expression {
  text::ExprSteps steps;
  std::vector<Value*> operands;
};

class Builder {
public:
  explicit Builder(const std::set<const Node*>& inside) : inside_(inside) {}

  /// False when there are too many steps or operands.
  bool append(const Node& node) {
    text::ExprStep step = *stepOf(node);
    bool literal = false;
    for (size_t i = 0; i < node.operands().size(); ++i) {
      Value* operand = node.operands()[i];
      text::ExprArg arg;
      if (operand->producer && inside_.count(operand->producer)) {
        if (!append(*operand->producer)) return false;
        arg.source = text::ExprArg::Source::step;
        arg.index = static_cast<uint16_t>(out_.steps.size() - 1);
      } else if (const auto bits = literalBits(*operand); bits && !literal && canBeLiteral(step.kind, i)) {
        literal = true; // a step holds one
        arg.source = text::ExprArg::Source::literal;
        arg.literal = text::elementText(operand->type.elem, *bits);
      } else {
        const auto known = std::ranges::find(out_.operands, operand);
        arg.index = static_cast<uint16_t>(known - out_.operands.begin());
        if (known == out_.operands.end()) out_.operands.push_back(operand);
      }
      step.args.push_back(std::move(arg));
    }
    out_.steps.push_back(std::move(step));
    return out_.steps.size() <= CDL_MAX_STEPS && out_.operands.size() <= kMaxOperands;
  }
  Expression take() { return std::move(out_); }

private:
  static std::optional<uint64_t> literalBits(const Value& value) {
    if (!value.isConstant() || value.type.count() != 1) return std::nullopt;
    const auto tensor = value.payload().materialize({1});
    if (!tensor) return std::nullopt;
    return loadElement(value.type.elem, tensor->bytes.data(), 0);
  }
  /// A literal takes its type from a neighbour: a condition and the only operand of a step have
  /// none.
  static bool canBeLiteral(uint16_t kind, size_t index) {
    return kind == CDL_KIND_BINARY || kind == CDL_KIND_COMPARE || (kind == CDL_KIND_SELECT && index > 0);
  }

  const std::set<const Node*>& inside_;
  Expression out_;
};

Result<Node*> addBefore(Graph& graph, Node* root, const Expression& expression, graph::Provenance provenance) {
  graph::Attrs attrs{{"to", root->result()->type.elem}, {"steps", text::exprText(expression.steps)}};
  CDL_ASSIGN(Node * expr,
             graph.addNode(OpKind::Expr, expression.operands, std::move(attrs), std::move(provenance), root));
  expr->result()->type.layout = root->result()->type.layout;
  return expr;
}

/// The expression of `root` with `inside` swallowed, if the target takes it.
std::optional<Expression> tryBuild(Graph& graph, Node* root, const std::set<const Node*>& inside,
                                   const Target& target) {
  Builder builder(inside);
  if (!builder.append(*root)) return std::nullopt;
  Expression expression = builder.take();
  const auto expr = addBefore(graph, root, expression, {});
  if (!expr) return std::nullopt;
  const Support support = ask(**expr, target).support;
  const bool taken = (*expr)->result()->type == root->result()->type &&
                     (support == Support::native || (support == Support::emulated && target.isHost()));
  graph.erase(*expr);
  return taken ? std::optional(std::move(expression)) : std::nullopt;
}

/// Producers of operands of what is inside, that nobody else needs and that have the shape of the
/// root.
Node* nextCandidate(const Graph& graph, const Node& root, const std::set<const Node*>& inside,
                    const std::set<const Node*>& refused) {
  std::vector<const Node*> members(inside.begin(), inside.end());
  members.push_back(&root);
  for (const Node* member : members) {
    for (const Value* operand : member->operands()) {
      Node* producer = operand->producer;
      if (!producer || inside.count(producer) || refused.count(producer) || producer->kind == OpKind::Constant)
        continue;
      if (operand->users().size() != 1 || graph.isOutput(operand) || !stepOf(*producer)) continue;
      const graph::TensorType &type = operand->type, &wanted = root.result()->type;
      if (type.shape() == wanted.shape() && type.layout == wanted.layout) return producer;
    }
  }
  return nullptr;
}

} // namespace

Result<int> fuse(Graph& graph, const Target& target) {
  if (!target.hasKind(CDL_KIND_ELEMENTWISE)) return 0;
  const std::vector<Node*> order = graph.snapshot();
  int count = 0;
  std::set<const Node*> gone; // only their addresses
  for (size_t i = order.size(); i-- > 0;) {
    Node* root = order[i];
    if (gone.count(root) || root->results().size() != 1 || !isWalkable(root->result()) || !stepOf(*root)) continue;
    std::set<const Node*> inside, refused;
    std::optional<Expression> best;
    while (const Node* candidate = nextCandidate(graph, *root, inside, refused)) {
      inside.insert(candidate);
      if (auto expression = tryBuild(graph, root, inside, target)) {
        best = std::move(expression);
      } else {
        inside.erase(candidate);
        refused.insert(candidate);
      }
    }
    if (!best) continue;

    graph::Provenance provenance;
    for (size_t j = 0; j <= i; ++j)
      if (order[j] == root || inside.count(order[j])) graph::mergeProvenance(provenance, order[j]->provenance);
    CDL_ASSIGN(const Node* expr, addBefore(graph, root, *best, std::move(provenance)));
    const std::string name = root->result()->name;
    graph.replaceAllUses(root->result(), expr->result());
    // Users stand behind what they use, so that erasing from the end meets no used result.
    inside.insert(root);
    for (size_t j = i + 1; j-- > 0;)
      if (inside.count(order[j])) graph.erase(order[j]);
    graph.rename(expr->result(), name);
    count += static_cast<int>(inside.size()) - 1;
    gone.insert(inside.begin(), inside.end());
  }
  return count;
}

} // namespace candela::target
