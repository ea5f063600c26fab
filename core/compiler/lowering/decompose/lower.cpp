#include "core/compiler/lowering/decompose/lower.h"

#include <algorithm>

#include "core/compiler/capabilities/rows.h"
#include "core/compiler/lowering/decompose/row_layouts.h"
#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

using graph::Node, graph::OpKind;

namespace {

Result<Values> decompose(Lowering& l, const Node& node, const capabilities::Answer& why) {
  switch (node.kind) {
#define CANDELA_OP(Kind, name)                                                                     \
  case OpKind::Kind: return lower##Kind(l, node);
    CANDELA_COMPOSITES(CANDELA_OP)
#undef CANDELA_OP
  case OpKind::Custom: return lowerCustom(l, node);
  default: return lowerElementwise(l, node, why);
  }
}

bool isEmpty(const Node& node) {
  for (const graph::Value* result : node.results())
    if (result->type.count() != 0) return false;
  return true;
}

/// Whether products of i16 end in this type, by steps in the same instruction.
bool scalesWideSums(const capabilities::Target& target, Elem to) {
  constexpr uint64_t kSteps = uint64_t(1) << CDL_KIND_RESCALE | uint64_t(1) << CDL_KIND_BINARY;
  return std::ranges::any_of(target.rows(), [&](const capabilities::Target::Row& each) {
    const cdl_row_t& row = each.row;
    const bool isProduct = row.kind == CDL_KIND_CONV2D || row.kind == CDL_KIND_MATMUL;
    return isProduct && row.support == CDL_SUPPORT_NATIVE && (row.flags & CDL_ROW_EPILOGUE) &&
           (row.steps_mask & kSteps) == kSteps && row.elem_count > 0 && row.elems[0] == CDL_I16 &&
           row.elems[row.elem_count - 1] == static_cast<uint8_t>(to);
  });
}

/// A product of i16 on a target that has sums of them in memory alone: products of bytes are what
/// it is fast at.
bool goesByBytes(const Node& node, const capabilities::Target& target) {
  if (node.kind != OpKind::ConvInteger && node.kind != OpKind::MatmulInteger) return false;
  return node.operand(0)->type.elem == Elem::i16_ && !scalesWideSums(target, Elem::i16_);
}

Status unsupported(const Node& node, const capabilities::Target& target, const std::string& why) {
  return failure(Code::unsupported, "{} '{}': '{}'{}{}", graph::opName(node.kind), node.userName(),
                 target.name(), kCannotDoIt, why);
}

// The values that stand for the node's results from now on.
Result<Values> replacements(Lowering& l, const Node& node, const capabilities::Target& target,
                            const capabilities::Answer& why) {
  try {
    Values values;
    if (isEmpty(node)) {
      for (const graph::Value* result : node.results())
        values.push_back(l.splat(result->type.elem, result->type.shape(), 0));
      return values;
    }
    if (goesByBytes(node, target)) values = lowerByBytes(l, node);
    if (values.empty()) {
      CDL_ASSIGN(values, decompose(l, node, why));
    }
    if (values.empty()) return unsupported(node, target, why.detail);
    return values;
  } catch (const Lowering::Failure& failure) {
    return failure.status.context(
        fmt::format("{} '{}'", graph::opName(node.kind), node.userName()));
  }
}

} // namespace

/// Ops whose rows decide about layouts.
static bool hasLayouts(const Node& node) {
  return node.kind == OpKind::Conv || node.kind == OpKind::ConvInteger ||
         node.kind == OpKind::MaxPool || node.kind == OpKind::AveragePool ||
         node.kind == OpKind::BatchMatmul;
}

namespace {

bool isReadOnce(const graph::Value* value) { return value->users().size() == 1; }

/// A constant that is added to wide sums, or their scaling.
bool isStepOfSums(const Node& node) {
  if (node.operands().empty() || !node.operand(0) || node.operand(0)->type.elem != Elem::i64_)
    return false;
  if (node.kind == OpKind::Add) return node.operand(1)->isConstant();
  return node.kind == OpKind::Rescale && node.operands().size() == 4;
}

/// Whether nobody else reads what leads from a product to this step.
bool isBehindProduct(const Node& step) {
  const graph::Value* sums = step.operand(0);
  for (; sums->producer && isReadOnce(sums); sums = sums->producer->operand(0)) {
    const Node& node = *sums->producer;
    if (node.kind == OpKind::ConvInteger || node.kind == OpKind::MatmulInteger ||
        node.kind == OpKind::BatchMatmul)
      return true;
    if (node.kind != OpKind::Reshape && !isStepOfSums(node)) return false;
  }
  return false;
}

/// The RESCALE that this step is, or leads to alone; null where there is none.
const Node* endOfSums(const Node& step) {
  const Node* node = &step;
  while (node->kind != OpKind::Rescale) {
    if (!isReadOnce(node->result())) return nullptr;
    node = node->result()->users()[0];
    if (node->kind != OpKind::Reshape && !isStepOfSums(*node)) return nullptr;
  }
  return node;
}

} // namespace

bool endsInProduct(const Node& node, const capabilities::Target& target) {
  if (target.isHost() || !isStepOfSums(node) || !isBehindProduct(node)) return false;
  const Node* end = endOfSums(node);
  return end && scalesWideSums(target, end->result()->type.elem);
}

capabilities::Answer ask(const Node& node, const capabilities::Target& target,
                         const LowerOptions& options) {
  if (node.kind == OpKind::Loop) return askBody(node, target, options);
  if (node.kind == OpKind::Custom && node.stringAttr("plugin") != target.name())
    return {capabilities::Support::none, CDL_REASON_NO_ROW,
            fmt::format("an op of '{}'", node.stringAttr("plugin")), -1};
  const std::vector<NodeInstr> instructions = instructionsOf(node);
  if (instructions.empty())
    return {capabilities::Support::none, CDL_REASON_NO_ROW, "no single instruction does it", -1};
  capabilities::Answer worst{capabilities::Support::native, CDL_REASON_NONE, "", -1};
  for (const NodeInstr& instr : instructions) {
    const bool stays = target.isHost() && capabilities::isHostOp(instr.kind);
    if (options.toPrimitives && !stays && !capabilities::isRequiredFn(instr.kind, instr.fn))
      return {capabilities::Support::none, CDL_REASON_NO_ROW,
              instrText(instr.kind, instr.fn) + " is optional", -1};
    capabilities::Answer answer = target.query(describe(instr));
    if (answer.support < worst.support) worst = std::move(answer);
  }
  if (worst.support == capabilities::Support::none && !options.toPrimitives && options.stack &&
      endsInProduct(node, target))
    return {capabilities::Support::native, CDL_REASON_NONE, "", -1};
  // Rows may name layouts alone; conversions then stand around the node (layout/islands.h).
  if (worst.support == capabilities::Support::none && worst.reason == CDL_REASON_LAYOUT &&
      hasLayouts(node)) {
    graph::Graph scratch = alone(node);
    if (!layoutsOfRows(*scratch.nodes().back(), target).empty())
      return {capabilities::Support::native, CDL_REASON_NONE, "", -1};
  }
  return worst;
}

bool isAlias(const Node& node) {
  return node.kind == OpKind::Constant || node.info().has(graph::kTraitAlias);
}

/// A reduction of what no expr computes has no prologue, whatever its operand becomes later.
static void dropIdlePrologue(Node& node) {
  if (node.kind == OpKind::Reduce && node.intAttr("prologue") && !prologueOf(node))
    node.attrs["prologue"] = int64_t(0);
}

Status lower(graph::Graph& graph, const capabilities::Target& target, const LowerOptions& options) {
  // Decompositions stand before the node that they replace; the walk goes back to the first of
  // them, so that each new node is judged too. Every decomposition uses ops nearer to the
  // primitives, so this ends.
  auto it = graph.nodes().begin();
  while (it != graph.nodes().end()) {
    Node* node = it->get();
    const bool loops = node->kind == OpKind::Loop && !isEmpty(*node);
    if (loops) CDL_TRY(lowerBody(*node, target, options));
    if (loops || isAlias(*node)) {
      ++it;
      continue;
    }
    dropIdlePrologue(*node);
    const capabilities::Answer answer = ask(*node, target, options);
    if (answer.support != capabilities::Support::none && !isEmpty(*node)) {
      ++it;
      continue;
    }
    const bool first = it == graph.nodes().begin();
    const auto before = first ? it : std::prev(it);
    Lowering l(graph, node, target);
    CDL_ASSIGN(const Values values, replacements(l, *node, target, answer));
    CDL_CHECK(values.size() == node->results().size(), "{} gave {} values for {} results",
              graph::opName(node->kind), values.size(), node->results().size());
    std::vector<std::pair<graph::Value*, std::string>> renamed;
    for (size_t i = 0; i < values.size(); ++i) {
      CDL_CHECK(values[i] || !graph.isUsed(node->result(i)));
      if (!values[i]) continue;
      CDL_CHECK(values[i]->type.elem == node->result(i)->type.elem &&
                    values[i]->type.shape() == node->result(i)->type.shape(),
                "{} '{}': {} became {}", graph::opName(node->kind), node->userName(),
                node->result(i)->type.text(), values[i]->type.text());
      graph.replaceAllUses(node->result(i), values[i]);
      if (l.made(values[i]->producer)) renamed.emplace_back(values[i], node->result(i)->name);
    }
    graph.erase(node);
    for (const auto& [value, name] : renamed)
      if (!graph.find(name)) graph.rename(value, name);
    it = first ? graph.nodes().begin() : std::next(before);
  }
  graph.eraseDead();
  return Status::ok();
}

} // namespace candela::lowering::decompose
