#include "core/compiler/import/custom_importer.h"

#include "core/compiler/graph/custom.h"
#include "core/compiler/import/dynamic/deferred_nodes.h"

namespace candela::import {

Status importCustomNode(const Place& place, const ClaimOp& claim, const onnx_io::Node& node,
                        const std::string& name, int64_t version, const std::vector<Slot>& inputs,
                        std::vector<Slot>& outputs) {
  const auto unknown = [&](const std::string& why) {
    return failure(Code::unsupported, "operator {} of opset {} is not supported{}{}",
                   qualified(node.domain, node.opType), version, why.empty() ? "" : ": ", why);
  };
  if (!claim) return unknown("");
  Frame& frame = place.frame;
  bool typed = true;
  for (const Slot& input : inputs) {
    if (input.poisoned) return Status::ok(); // nobody can say yet
    if (input.list) return badModel("an input is a sequence, expected a tensor");
    typed &= input.isAbsent() || frame.isTyped(input);
  }
  if (!typed)
    return deferNode(place, node, name, {"a shape that depends on data"}, inputs, outputs);
  const int index = frame.stageFor(inputs, Slot::From::graph);
  Builder& builder = frame.stage(index).builder;
  builder.begin(name);
  CustomNode asked{node, name, version, {}};
  std::vector<Value*> operands;
  for (const Slot& input : inputs) {
    Value* value = input.isAbsent() ? nullptr : frame.valueAt(input, index);
    asked.inputs.push_back(value);
    if (value) operands.push_back(value);
  }
  Result<CustomOp> claimed = claim(asked);
  if (!claimed)
    return claimed.status().code() == Code::unsupported ? unknown(claimed.status().message())
                                                        : claimed.status();
  for (const auto& [attribute, value] : node.attributes)
    if (const Tensor* tensor = std::get_if<Tensor>(&value))
      operands.push_back(builder.constant(*tensor));
  graph::Graph& graph = frame.stage(index).graph;
  CDL_ASSIGN(const graph::Node* made,
             graph::addCustom(graph, std::move(operands), std::move(claimed->attrs),
                              std::move(claimed->body), std::move(claimed->results), {name}));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = {};
    outputs[i].frame = &frame;
    outputs[i].stage = index;
    outputs[i].value = made->result(i);
    if (!node.outputs[i].empty()) graph.rename(made->result(i), node.outputs[i]);
  }
  return Status::ok();
}

} // namespace candela::import
