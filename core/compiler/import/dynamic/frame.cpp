#include "core/compiler/import/dynamic/frame.h"

#include "core/compiler/import/dynamic/outer_names.h"

namespace candela::import {

Frame::Stage& Frame::stage(int index) {
  while (static_cast<int>(stages_.size()) <= index) stages_.emplace_back(options_);
  return stages_[static_cast<size_t>(index)];
}

int Frame::stageFor(const Slot& slot, Slot::From reader) const {
  if (slot.list) {
    int latest = 0;
    for (const Slot& item : *slot.list) latest = std::max(latest, stageFor(item, reader));
    return latest;
  }
  if (slot.frame != this || slot.isConstant()) return 0;
  const bool sameStage = slot.from == Slot::From::graph || reader == Slot::From::step ||
                         (slot.from == Slot::From::deferred && reader == Slot::From::deferred);
  return sameStage ? slot.stage : slot.stage + 1;
}

int Frame::stageFor(std::span<const Slot> slots, Slot::From reader) const {
  int latest = 0;
  for (const Slot& slot : slots) latest = std::max(latest, stageFor(slot, reader));
  return latest;
}

graph::TensorType Frame::typeOf(const Slot& slot) const {
  return slot.value ? slot.value->type : graph::TensorType(runSlot(slot).elem, runSlot(slot).dims);
}

void Frame::capture(const Slot& slot) {
  if (slot.frame == this || !slot.frame || slot.isConstant()) return;
  captures_.push_back(slot);
  if (parent_) parent_->capture(slot);
}

Value* Frame::inputFor(runtime::control_flow::SlotId slot, const graph::TensorType& type,
                       int stage) {
  Value*& value = inputs_[{slot, stage}];
  if (!value) {
    Stage& at = this->stage(stage);
    value = at.graph.addInput(at.graph.uniqueName(flow_.slots[slot].name), type);
    at.inputs.push_back({slot, value});
  }
  return value;
}

Value* Frame::valueAt(const Slot& slot, int stage) {
  if (slot.value && slot.frame == this && slot.stage == stage && slot.from == Slot::From::graph)
    return slot.value;
  if (slot.isConstant()) {
    Value*& copy = copies_[{slot.value, stage}];
    if (!copy) {
      graph::Graph& graph = this->stage(stage).graph;
      copy = graph.addConstant(slot.value->payload(), slot.value->type,
                               slot.value->producer->provenance);
      graph.rename(copy, slot.value->name);
    }
    return copy;
  }
  return inputFor(exported(slot), typeOf(slot), stage);
}

runtime::control_flow::SlotId Frame::exported(const Slot& slot) {
  capture(slot);
  if (slot.run != runtime::control_flow::kNoSlot) return slot.run;
  if (slot.list) return constructed(slot).run;
  if (!slot.value) return runtime::control_flow::kNoSlot;
  if (slot.frame != this && !slot.isConstant()) return slot.frame->exported(slot);
  const auto [at, added] = exports_.try_emplace(slot.value, runtime::control_flow::kNoSlot);
  if (!added) return at->second;
  const graph::TensorType& type = slot.value->type;
  at->second = flow_.addSlot(
      {slot.value->name, runtime::control_flow::Slot::Kind::typed, type.elem, type.shape()});
  if (slot.isConstant()) {
    if (auto tensor = slot.value->tensor())
      flow_.constants.push_back({at->second, *std::move(tensor)});
  } else {
    stage(slot.stage).outputs.push_back({at->second, slot.value});
  }
  return at->second;
}

Slot Frame::addParam(const std::string& name, const graph::TensorType& type) {
  Slot slot;
  slot.run =
      flow_.addSlot({name, runtime::control_flow::Slot::Kind::typed, type.elem, type.shape()});
  slot.value = inputFor(slot.run, type, 0);
  slot.frame = this;
  return slot;
}

Slot Frame::addConstant(Tensor tensor) {
  Slot slot;
  slot.frame = this;
  slot.value = stage(0).graph.addConstant(std::move(tensor));
  return slot;
}

Slot Frame::constructed(const Slot& slot) {
  if (!slot.list) return slot;
  runtime::control_flow::Step step;
  step.kind = runtime::control_flow::StepKind::construct;
  return addStep(std::move(step), *slot.list,
                 {{"sequence", runtime::control_flow::Slot::Kind::sequence, Elem::none, {}}})[0];
}

std::vector<Slot> Frame::addStep(runtime::control_flow::Step step, std::vector<Slot> inputs,
                                 const std::vector<runtime::control_flow::Slot>& outputs,
                                 const std::vector<Frame*>& bodies) {
  for (Slot& input : inputs) {
    input = constructed(input);
    step.inputs.push_back(exported(input));
  }
  Slot made;
  made.frame = this;
  made.from = Slot::From::step;
  made.stage = stageFor(inputs, Slot::From::step);
  for (const Frame* body : bodies)
    made.stage = std::max(made.stage, stageFor(body->captures_, Slot::From::step));
  std::vector<Slot> results;
  for (const runtime::control_flow::Slot& output : outputs) {
    made.run = flow_.addSlot(output);
    step.outputs.push_back(made.run);
    results.push_back(made);
  }
  stage(made.stage).steps.push_back({std::move(step), bodies});
  return results;
}

std::vector<Slot> Frame::defer(Section::Item item, std::string why, std::vector<Slot> inputs,
                               std::map<std::string, Slot> captured, const std::set<size_t>& frozen,
                               const Slot& content) {
  DeferredNode node;
  node.why = std::move(why);
  Slot made;
  made.frame = this;
  made.from = Slot::From::deferred;
  /// The name under which the section reads it.
  const auto read = [&](Slot slot, bool isFrozen) -> std::string {
    if (slot.isAbsent()) return "";
    if (slot.isConstant()) {
      // Names of slots have no '#'.
      const std::string name =
          fmt::format("{}#{}", slot.value->name, static_cast<const void*>(slot.value));
      if (auto tensor = slot.value->tensor()) node.constants.emplace(name, *std::move(tensor));
      return name;
    }
    slot = constructed(slot);
    made.stage = std::max(made.stage, stageFor(slot, Slot::From::deferred));
    const runtime::control_flow::SlotId id = exported(slot);
    node.reads.push_back({id, isFrozen});
    return flow_.slots[id].name;
  };
  item.node.inputs.clear();
  for (size_t i = 0; i < inputs.size(); ++i)
    item.node.inputs.push_back(read(inputs[i], frozen.count(i) > 0));
  std::map<std::string, std::string> renamed;
  for (const auto& [name, slot] : captured) {
    const std::string outer = read(slot, false);
    renamed[name] = outer.empty() ? outer : outerName(outer);
  }
  for (auto& [name, attribute] : item.node.attributes)
    if (auto* graph = std::get_if<std::shared_ptr<onnx_io::Graph>>(&attribute); graph && *graph)
      *graph = std::make_shared<onnx_io::Graph>(withOuterNames(**graph, renamed));
  item.content = read(content, true);
  const bool isList = item.node.opType == "SplitToSequence" || item.node.opType == "SequenceMap";
  const runtime::control_flow::Slot::Kind kind = isList
                                                     ? runtime::control_flow::Slot::Kind::sequence
                                                     : runtime::control_flow::Slot::Kind::tensor;
  std::vector<Slot> results;
  for (std::string& output : item.node.outputs) {
    made.run = output.empty() ? runtime::control_flow::kNoSlot
                              : flow_.addSlot({output, kind, Elem::none, {}});
    if (!output.empty()) output = flow_.slots[made.run].name;
    node.outputs.push_back(made.run);
    results.push_back(made);
  }
  node.item = std::move(item);
  stage(made.stage).deferred.push_back(std::move(node));
  return results;
}

} // namespace candela::import
