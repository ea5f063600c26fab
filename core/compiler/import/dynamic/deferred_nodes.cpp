#include "core/compiler/import/dynamic/deferred_nodes.h"

#include "core/compiler/import/dynamic/outer_names.h"

namespace candela::import {

Status deferNode(const Place& place, const onnx_io::Node& node, const std::string& name,
                 Deferral deferral, const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  std::map<std::string, Slot> captured;
  for (const auto& [attribute, value] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<onnx_io::Graph>>(&value);
    std::set<std::string> names;
    if (graph && *graph) collectOuterNames(**graph, names);
    for (const std::string& outer : names) {
      const Slot* found = place.scope.find(outer);
      if (!found) return badModel("'{}' in its graph is produced by nothing", outer);
      if (found->poisoned) return Status::ok();
      captured.emplace(outer, *found);
    }
  }
  Section::Item item{node, name, place.opsets, std::move(deferral.known), ""};
  outputs = place.frame.defer(std::move(item), std::move(deferral.why), inputs, std::move(captured),
                              deferral.frozen, deferral.content);
  return Status::ok();
}

Status deferTrims(const Place& place, const std::string& name, const NodeContext& context,
                  int stage, const std::string& why, std::vector<Slot>& outputs) {
  static const Opsets kOpsets = {{"", kOpsetOfOwn}};
  const auto slotOf = [&](Value* value) {
    Slot slot;
    slot.frame = &place.frame;
    slot.stage = stage;
    slot.value = value;
    return slot;
  };
  const auto one = [&](int64_t value) {
    return place.frame.addConstant(Tensor::of<int64_t>(Elem::i64_, {1}, {value}));
  };
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = slotOf(context.outputs()[i]);
  for (const NodeContext::Trim& trim : context.trims()) {
    if (!context.wants(trim.output)) continue;
    onnx_io::Node slice;
    slice.opType = "Slice";
    slice.inputs = {"data", "starts", "ends", "axes"};
    slice.outputs = {context.node.outputs[trim.output]};
    std::vector<Slot> made(1);
    const std::vector<Slot> operands = {slotOf(trim.value), one(0), slotOf(context.demanded()),
                                        one(trim.axis)};
    CDL_TRY(deferNode({place.frame, place.scope, kOpsets, place.prefix}, slice, name,
                      {.why = why, .frozen = {2}}, operands, made));
    outputs[trim.output] = made[0];
  }
  return Status::ok();
}

} // namespace candela::import
