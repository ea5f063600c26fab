#include <algorithm>
#include <bit>

#include "core/compiler/graph/passes/rewrite.h"

namespace candela::graph::passes {

namespace {

/// Few bytes that tell most constants apart, so that whole payloads are compared only where they
/// are likely equal.
std::string sample(const Payload& payload) {
  if (payload.form() != Payload::Form::data)
    return fmt::format("{}:{}", int(payload.form()), payload.splatBits());
  const uint64_t size = payload.sizeBytes(), step = std::max<uint64_t>(1, size / 64);
  std::string text = "data:";
  for (uint64_t i = 0; i < size; i += step) text += static_cast<char>(payload.bytes().data()[i]);
  return text;
}

/// Floats by their bits: as numbers -0 equals 0, and NaN is not less than anything, so that it
/// would equal all.
Attr comparable(const Attr& attr) {
  const auto bitsOf = [](double value) { return std::bit_cast<int64_t>(value); };
  if (const auto* real = std::get_if<double>(&attr)) return bitsOf(*real);
  const auto* reals = std::get_if<std::vector<double>>(&attr);
  if (!reals) return attr;
  std::vector<int64_t> bits;
  for (const double value : *reals) bits.push_back(bitsOf(value));
  return bits;
}

/// Equal keys: equal types, kinds, attributes and operands. Of constants only likely equal.
using Key = std::tuple<OpKind, std::vector<Value*>, Attrs, std::vector<std::string>>;

Key keyOf(const Node& node) {
  std::vector<std::string> types;
  for (const Value* result : node.results()) types.push_back(result->type.text());
  if (node.kind == OpKind::Constant) types.push_back(sample(*node.payload));
  Attrs attrs;
  for (const auto& [name, attr] : node.attrs) attrs.emplace(name, comparable(attr));
  return {node.kind, node.operands(), std::move(attrs), std::move(types)};
}

bool canMerge(const Graph& graph, const Node& node, const Node& first) {
  if (node.body) return false;
  if (node.kind == OpKind::Constant && !(*node.payload == *first.payload)) return false;
  for (size_t i = 0; i < node.results().size(); ++i)
    if (!canReplace(graph, node.result(i), first.result(i))) return false;
  return true;
}

/// Nodes of one key that others may become.
struct Alike {
  std::vector<Node*> nodes;
  /// an output keeps its node: more of them than one would be asked in vain
  bool hasOutput = false;
};

} // namespace

Result<int> commonSubexpressions(Graph& graph) {
  std::map<Key, Alike> seen;
  int count = 0;
  for (Node* node : graph.snapshot()) {
    Alike& alike = seen[keyOf(*node)];
    const auto found = std::ranges::find_if(
        alike.nodes, [&](const Node* candidate) { return canMerge(graph, *node, *candidate); });
    if (found == alike.nodes.end()) {
      const bool isOutput = node->kind != OpKind::Constant && !node->body &&
                            node->results().size() == 1 && graph.isOutput(node->result());
      if (!isOutput || !std::exchange(alike.hasOutput, true)) alike.nodes.push_back(node);
      continue;
    }
    Node* first = *found;
    mergeProvenance(first->provenance, node->provenance);
    for (size_t i = 0; i < node->results().size(); ++i)
      graph.replaceAllUses(node->result(i), first->result(i));
    graph.erase(node);
    ++count;
  }
  return count;
}

} // namespace candela::graph::passes
