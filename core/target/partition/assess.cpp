#include "core/target/partition/partition.h"

namespace candela::target {

using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

// The node alone, its constants with it, so that a decomposition meets what it will meet.
Graph alone(const Node& node) {
  Graph graph;
  std::map<const Value*, Value*> copies;
  std::vector<Value*> operands;
  for (const Value* operand : node.operands()) {
    if (!operand) {
      operands.push_back(nullptr);
      continue;
    }
    Value*& copy = copies[operand];
    if (!copy) copy = operand->isConstant() ? graph.addConstant(operand->payload(), operand->type) : graph.addInput(operand->name, operand->type);
    operands.push_back(copy);
  }
  std::vector<graph::TensorType> types;
  for (const Value* result : node.results()) types.push_back(result->type);
  Node* copy = graph.addNodeUnchecked(node.kind, operands, node.attrs, node.provenance, types);
  for (size_t i = 0; i < node.results().size(); ++i)
    if (i == 0 || !node.result(i)->users().empty()) graph.addOutput(copy->result(i), node.result(i)->name);
  return graph;
}

double costOf(const Node& node) {
  double cost = 0;
  for (const InstrDesc& desc : describeAll(node)) cost += rooflineCost(desc);
  return cost;
}

} // namespace

Assessment assess(const Node& node, const Target& target, const PartitionOptions& options) {
  if (isAlias(node)) return {Verdict::claimed, 0, CDL_REASON_NONE, ""};
  for (const Value* result : node.results())
    if (!result->type.isExact()) return {Verdict::no, 0, CDL_REASON_DYNAMIC_SHAPE, "its shape depends on data"};
  const LowerOptions lowerOptions{options.toPrimitives};
  Answer answer = ask(node, target, lowerOptions);
  Assessment result{Verdict::no, 0, answer.reason, std::move(answer.detail)};
  // The host's rows are emulation by definition: whoever does it natively comes first.
  if (answer.support != Support::none) {
    const bool native = answer.support == Support::native && !target.isHost();
    result.verdict = native ? Verdict::claimed : Verdict::lowersEmulated;
    result.cost = costOf(node);
    return result;
  }
  Graph graph = alone(node);
  if (Status status = lower(graph, target, lowerOptions); !status) {
    result.detail = status.message();
    return result;
  }
  result.verdict = target.isHost() ? Verdict::lowersEmulated : Verdict::lowersNative;
  for (const auto& part : graph.nodes()) {
    if (isAlias(*part)) continue;
    if (ask(*part, target, lowerOptions).support != Support::native) result.verdict = Verdict::lowersEmulated;
    result.cost += costOf(*part);
  }
  return result;
}

} // namespace candela::target
