#include "core/compiler/graph/custom.h"

#include "core/compiler/capabilities/views.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/lowering/decompose/lower.h"

namespace candela::lowering::decompose {

using graph::Node;

NodeInstr customInstr(const Node& node) {
  const auto dense = [](const graph::Value* value) {
    const Shape shape = value->type.shape();
    return NodeView{value, value->type.elem, shape, denseStrides(shape), 0, {}};
  };
  NodeInstr instr;
  instr.kind = CDL_KIND_CUSTOM;
  instr.fn = static_cast<uint16_t>(node.intAttr("fn"));
  for (const graph::Value* operand : node.operands()) instr.operands.push_back(dense(operand));
  instr.result = dense(node.result());
  for (size_t i = 1; i < node.results().size(); ++i) instr.others.push_back(dense(node.result(i)));
  for (graph::InstrAttr& attr : graph::instrAttrs(node))
    instr.attrs.emplace_back(attr.id, std::move(attr.values));
  return instr;
}

Values Lowering::inlined(const graph::Graph& body, const Values& inputs) {
  std::map<const graph::Value*, Value> copies;
  for (size_t i = 0; i < inputs.size(); ++i) copies[body.inputs()[i]] = inputs[i];
  for (const auto& node : body.nodes()) {
    Values operands;
    std::vector<graph::TensorType> types;
    for (const graph::Value* operand : node->operands())
      operands.push_back(operand ? copies.at(operand) : nullptr);
    for (const graph::Value* result : node->results()) types.push_back(result->type);
    Node* made = graph_.addNodeUnchecked(node->kind, std::move(operands), node->attrs,
                                         at_->provenance, std::move(types), at_);
    made->payload = node->payload;
    if (node->body) made->body = std::make_shared<graph::Graph>(graph::clone(*node->body));
    made_.insert(made);
    for (size_t i = 0; i < node->results().size(); ++i) copies[node->result(i)] = made->result(i);
  }
  Values outputs;
  for (const graph::Value* output : body.outputs()) outputs.push_back(copies.at(output));
  return outputs;
}

Values lowerCustom(Lowering& l, const Node& node) {
  Values values = node.body ? l.inlined(*node.body, node.operands()) : Values();
  values.resize(node.body ? node.results().size() : 0); // the body may give more than is read
  return values;
}

size_t claimantOf(const Node& node, std::span<const capabilities::Target* const> targets) {
  for (size_t t = 0; node.kind == graph::OpKind::Custom && t < targets.size(); ++t)
    if (targets[t]->name() == node.stringAttr("plugin")) return t;
  return targets.size() - 1;
}

} // namespace candela::lowering::decompose
