#include "core/compiler/import/dynamic/script_assembly.h"

namespace candela::import {
namespace {

using SlotIds = std::set<runtime::control_flow::SlotId>;

/// The stage's Graph with the outputs that are needed and the inputs that they need.
graph::Graph pruned(Frame::Stage& stage, const std::set<runtime::control_flow::SlotId>& needed,
                    runtime::control_flow::Step& step) {
  for (const Frame::Port& port : stage.outputs)
    if (needed.count(port.slot)) {
      stage.graph.addOutput(port.value, port.value->name);
      step.outputs.push_back(port.slot);
    }
  stage.graph.eraseDead();
  graph::Graph made;
  made.name = stage.graph.name;
  std::map<const Value*, Value*> copies;
  for (const Frame::Port& port : stage.inputs) {
    if (!stage.graph.isUsed(port.value)) continue;
    copies[port.value] = made.addInput(port.value->name, port.value->type);
    step.inputs.push_back(port.slot);
  }
  for (const auto& node : stage.graph.nodes()) made.addCopy(*node, copies);
  for (size_t i = 0; i < stage.graph.outputs().size(); ++i)
    made.addOutput(copies.at(stage.graph.outputs()[i]), stage.graph.outputNames()[i]);
  return made;
}

/// Steps of frames, made from the last one to the first, so that each is made only where something
/// behind it needs it.
class ScriptAssembly {
public:
  /// `needed`: slots that are read behind the frame, to which what it reads itself is added.
  ScriptAssembly(ImportContext& context, SlotIds& needed) : context_(context), needed_(needed) {}

  std::vector<runtime::control_flow::Step> assemble(Frame& frame) {
    std::vector<runtime::control_flow::Step> steps;
    for (auto stage = frame.stages().rbegin(); stage != frame.stages().rend(); ++stage) {
      addPending(*stage, steps);
      addSection(*stage, steps);
      addGraph(*stage, steps);
    }
    std::ranges::reverse(steps);
    return steps;
  }

private:
  bool isNeeded(const std::vector<runtime::control_flow::SlotId>& slots) const {
    return std::ranges::any_of(
        slots, [&](runtime::control_flow::SlotId slot) { return needed_.count(slot) > 0; });
  }
  void need(const std::vector<runtime::control_flow::SlotId>& slots) {
    needed_.insert(slots.begin(), slots.end());
  }

  /// The stage's own steps.
  void addPending(Frame::Stage& stage, std::vector<runtime::control_flow::Step>& steps) {
    for (auto pending = stage.steps.rbegin(); pending != stage.steps.rend(); ++pending) {
      if (!isNeeded(pending->step.outputs) &&
          pending->step.kind != runtime::control_flow::StepKind::fail)
        continue;
      runtime::control_flow::Step& step = pending->step;
      for (size_t b = 0; b < pending->bodies.size(); ++b) {
        need(step.blocks[b].results);
        step.blocks[b].steps = assemble(*pending->bodies[b]);
      }
      need(step.inputs);
      steps.push_back(std::move(step));
    }
  }

  /// The stage's deferred nodes, as one section.
  void addSection(Frame::Stage& stage, std::vector<runtime::control_flow::Step>& steps) {
    auto section = std::make_shared<Section>();
    section->claim = context_.options.claim;
    section->randomSeed = context_.options.randomSeed;
    SlotIds made, read, frozen;
    for (auto node = stage.deferred.rbegin(); node != stage.deferred.rend(); ++node) {
      if (!isNeeded(node->outputs) &&
          !std::ranges::any_of(node->outputs, [&](auto slot) { return read.count(slot) > 0; }))
        continue;
      for (const runtime::control_flow::SlotId slot : node->outputs)
        if (slot != runtime::control_flow::kNoSlot) made.insert(slot);
      for (const DeferredNode::Read& reads : node->reads) {
        read.insert(reads.slot);
        if (reads.frozen) frozen.insert(reads.slot);
      }
      section->constants.merge(node->constants);
      section->why = node->why;
      section->items.insert(section->items.begin(), std::move(node->item));
    }
    if (section->items.empty()) return;
    section->model = context_.model;
    runtime::control_flow::Step step;
    for (const runtime::control_flow::SlotId slot : made)
      if (needed_.count(slot)) {
        step.outputs.push_back(slot);
        section->outputs.push_back(context_.script.flow.slots[slot].name);
      }
    for (const runtime::control_flow::SlotId slot : read)
      if (!made.count(slot)) {
        step.inputs.push_back(slot);
        section->inputs.push_back({context_.script.flow.slots[slot].name, frozen.count(slot) > 0});
      }
    step.node = section->items[0].name;
    addUnit(std::move(step), std::move(section), steps);
  }

  /// The stage's Graph.
  void addGraph(Frame::Stage& stage, std::vector<runtime::control_flow::Step>& steps) {
    runtime::control_flow::Step step;
    graph::Graph graph = pruned(stage, needed_, step);
    if (!step.outputs.empty()) addUnit(std::move(step), std::move(graph), steps);
  }

  void addUnit(runtime::control_flow::Step step, Script::Unit unit,
               std::vector<runtime::control_flow::Step>& steps) {
    need(step.inputs);
    step.unit = static_cast<uint32_t>(context_.script.units.size());
    context_.script.units.push_back(std::move(unit));
    steps.push_back(std::move(step));
  }

  ImportContext& context_;
  SlotIds& needed_;
};

} // namespace

Script assembleScript(ImportContext& context, const std::vector<Slot>& outputs,
                      std::vector<std::string> names) {
  Frame& frame = context.frames.front();
  runtime::control_flow::Flow& flow = context.script.flow;
  Frame::Stage& first = frame.stage(0);
  const bool single =
      frame.stages().size() == 1 && first.deferred.empty() && first.steps.empty() &&
      first.inputs.size() == flow.inputs.size() &&
      std::ranges::all_of(outputs, [](const Slot& output) { return output.value != nullptr; });
  flow.outputNames = names;
  if (single) {
    for (size_t i = 0; i < outputs.size(); ++i)
      first.graph.addOutput(frame.valueAt(outputs[i], 0), names[i]);
    first.graph.eraseDead();
    return Script::of(std::move(first.graph));
  }
  for (const Slot& output : outputs) flow.outputs.push_back(frame.exported(output));
  std::set<runtime::control_flow::SlotId> needed(flow.outputs.begin(), flow.outputs.end());
  flow.main.steps = ScriptAssembly(context, needed).assemble(frame);
  std::erase_if(flow.constants, [&](const runtime::control_flow::Constant& constant) {
    return !needed.count(constant.slot);
  });
  return std::move(context.script);
}

} // namespace candela::import
