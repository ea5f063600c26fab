#include <algorithm>

#include "core/compiler/graph/passes/rewrite.h"
#include "core/reference/reference.h"

namespace candela::graph::passes {

namespace {

/// A larger result that takes more bytes than what it came from stays computed at run time.
constexpr uint64_t kMaxGrownBytes = 4096;
/// Multiply-accumulates that the oracle may spend on one node.
constexpr int64_t kMaxWork = int64_t{1} << 26;

bool hasOnlyConstants(const Node& node) {
  bool any = false;
  // as often as it runs it may cost more than the oracle should spend
  if (node.info().has(kTraitRegion)) return false;
  for (const Value* operand : node.operands()) {
    if (!operand) continue;
    if (!isPlainConstant(operand)) return false;
    any = true;
  }
  return any && std::ranges::all_of(node.results(), [](const Value* v) { return isPlain(v); });
}

/// The one bit pattern of an elementwise node's result on splats: the node on scalars.
Result<uint64_t> evaluateOnScalars(const Node& node) {
  Graph scalars;
  std::vector<Value*> operands;
  for (const Value* operand : node.operands()) {
    operands.push_back(nullptr);
    if (!operand) continue;
    const Elem elem = operand->type.elem;
    operands.back() = scalars.addConstant(Payload::splat(elem, 1, *splatBits(operand)), {elem, {}});
  }
  CDL_ASSIGN(const Node* scalar, scalars.addNode(node.kind, std::move(operands), node.attrs));
  CDL_ASSIGN(const std::vector<Tensor> results, reference::evaluate(*scalar));
  return loadElement(results[0].elem, results[0].bytes.data(), 0);
}

/// Splats stay splats where each result element comes from one element of each operand.
std::optional<Payload> foldSplats(const Node& node) {
  const Value* result = node.result();
  if (node.results().size() != 1 || result->type.count() <= 1 || elemBits(result->type.elem) < 8)
    return std::nullopt;
  for (const Value* operand : node.operands())
    if (operand && !splatBits(operand)) return std::nullopt;
  using enum graph::OpKind;
  switch (node.kind) {
  case Reshape:
  case Transpose:
  case Expand:
  case Slice:
  case Affine:
    return Payload::splat(result->type.elem, result->type.count(), *splatBits(node.operand(0)));
  case Table:
  case Expr: return std::nullopt; // not a plain function of scalars
  default: break;
  }
  if (!node.info().has(kTraitElementwise)) return std::nullopt;
  const auto bits = evaluateOnScalars(node);
  if (!bits) return std::nullopt;
  return Payload::splat(result->type.elem, result->type.count(), *bits);
}

bool isWorthEvaluating(const Node& node) {
  uint64_t operandBytes = 0, resultBytes = 0;
  for (const Value* operand : node.operands())
    if (operand)
      operandBytes +=
          operand->payload().form() == Payload::Form::data ? operand->payload().sizeBytes() : 1;
  for (const Value* result : node.results())
    resultBytes += elemBytes(result->type.elem, result->type.count());
  if (resultBytes > kMaxGrownBytes && resultBytes > operandBytes) return false;
  if (!node.info().has(kTraitContraction)) return true;
  return node.result()->type.count() <=
         kMaxWork / std::max<int64_t>(1, node.operand(0)->type.count());
}

/// Payloads of the results; empty when the node stays.
std::vector<Payload> fold(const Node& node) {
  if (auto splat = foldSplats(node)) return {std::move(*splat)};
  if (!isWorthEvaluating(node)) return {};
  // What the oracle cannot do now fails, or is done, when the model runs.
  const auto results = reference::evaluate(node);
  if (!results) return {};
  std::vector<Payload> payloads;
  for (const Tensor& tensor : *results) payloads.push_back(compactPayload(tensor));
  return payloads;
}

} // namespace

Result<int> foldConstants(Graph& graph) {
  int count = 0;
  for (Node* node : graph.snapshot()) {
    if (node->kind == OpKind::Constant || node->kind == OpKind::Dequantize ||
        !hasOnlyConstants(*node))
      continue;
    if (std::ranges::any_of(node->results(), [&](const Value* v) { return graph.isOutput(v); }))
      continue;
    const std::vector<Payload> payloads = fold(*node);
    if (payloads.empty()) continue;
    Provenance provenance;
    for (const Value* operand : node->operands())
      if (operand) mergeProvenance(provenance, operand->producer->provenance);
    mergeProvenance(provenance, node->provenance);
    std::vector<std::pair<Value*, std::string>> names;
    for (size_t i = 0; i < payloads.size(); ++i) {
      Value* result = node->result(i);
      Value* constant = graph.addConstant(payloads[i], result->type, provenance, node);
      graph.replaceAllUses(result, constant);
      names.emplace_back(constant, result->name);
    }
    graph.erase(node);
    for (const auto& [constant, name] : names) graph.rename(constant, name);
    ++count;
  }
  graph.eraseDead();
  return count;
}

} // namespace candela::graph::passes
