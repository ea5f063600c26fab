#include "core/compiler/driver/traffic.h"

#include <algorithm>
#include <set>

#include "core/compiler/graph/loop.h"

namespace candela::driver {

namespace {

using graph::Node;
using graph::OpKind;
using graph::Value;

uint64_t bytesOf(const Value& value) {
  return elemBytes(value.type.elem, static_cast<uint64_t>(value.type.count()));
}

/// What follows from constants alone.
std::set<const Value*> constantsOf(const graph::Graph& graph) {
  std::set<const Value*> constants;
  for (const auto& node : graph.nodes()) {
    const auto isKnown = [&](const Value* operand) {
      return !operand || constants.count(operand) > 0;
    };
    const bool isConstant =
        node->kind == OpKind::Constant ||
        (!node->operands().empty() && std::ranges::all_of(node->operands(), isKnown));
    for (const Value* result : node->results())
      if (isConstant) constants.insert(result);
  }
  return constants;
}

} // namespace

program::report::Traffic graphTraffic(const graph::Graph& graph) {
  const std::set<const Value*> constants = constantsOf(graph);
  std::map<std::string, std::vector<const Node*>> byOrigin;
  for (const auto& node : graph.nodes())
    if (node->kind != OpKind::Constant && !node->results().empty() &&
        !constants.count(node->result()))
      byOrigin[node->userName()].push_back(node.get());
  program::report::Traffic moved;
  for (const auto& [name, nodes] : byOrigin) {
    const auto isInside = [&](const Node* node) { return std::ranges::count(nodes, node) > 0; };
    std::set<const Value*> read;
    for (const Node* node : nodes) {
      for (const Value* operand : node->operands())
        if (operand && !(operand->producer && isInside(operand->producer))) read.insert(operand);
      for (const Value* result : node->results())
        if (graph.isOutput(result) || !std::ranges::all_of(result->users(), isInside))
          moved.written += bytesOf(*result);
    }
    for (const Value* value : read)
      (constants.count(value) ? moved.constants : moved.read) += bytesOf(*value);
  }
  return moved;
}

std::vector<uint64_t> contentBytes(const LoweredPart& part) {
  std::map<std::string, const Value*> byName;
  for (const graph::Graph* each : graph::nestedGraphs(part.graph)) {
    for (const Value* input : each->inputs()) byName[input->name] = input;
    for (const auto& node : each->nodes())
      for (const Value* result : node->results()) byName[result->name] = result;
  }
  for (size_t i = 0; i < part.graph.outputs().size(); ++i)
    byName[part.graph.outputNames()[i]] = part.graph.outputs()[i];
  std::vector<uint64_t> bytes;
  for (const program::Buffer& buffer : part.program.buffers) {
    bytes.push_back(buffer.bytes);
    const auto found = byName.find(buffer.name);
    if (found == byName.end()) continue;
    const Value& value = *found->second;
    if (elemBytes(value.type.elem, static_cast<uint64_t>(value.type.physicalCount())) ==
        buffer.bytes)
      bytes.back() = bytesOf(value);
  }
  return bytes;
}

} // namespace candela::driver
