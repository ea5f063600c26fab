// What the walk left in frames becomes the script: Graphs, sections and the flow between them,
// without what nobody needs.
#include "core/compiler/import/script.h"

#include "core/compiler/import/dynamic/outer_names.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

/// The stage's Graph with the outputs that are needed and the inputs that they need.
graph::Graph pruned(Frame::Stage& stage, const std::set<flow::SlotId>& needed, flow::Step& step) {
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

} // namespace

Script Script::of(graph::Graph graph) {
  Script script;
  const auto slotOf = [&](const std::string& name, const graph::TensorType& type) {
    return script.flow.addSlot({name, flow::Slot::Kind::typed, type.elem, type.shape()});
  };
  for (const Value* input : graph.inputs())
    script.flow.inputs.push_back(slotOf(input->name, input->type));
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    script.flow.outputs.push_back(slotOf(graph.outputNames()[i], graph.outputs()[i]->type));
  script.flow.outputNames = graph.outputNames();
  flow::Step& unit = script.flow.main.steps.emplace_back();
  unit.inputs = script.flow.inputs;
  unit.outputs = script.flow.outputs;
  script.units.emplace_back(std::move(graph));
  return script;
}

graph::Graph* Script::graph() {
  return units.size() == 1 && flow.main.steps.size() == 1 &&
                 flow.main.steps[0].inputs == flow.inputs &&
                 flow.main.steps[0].outputs == flow.outputs
             ? std::get_if<graph::Graph>(&units[0])
             : nullptr;
}

std::vector<std::string> Script::demandedInputs() const {
  std::set<flow::SlotId> wanted;
  // Steps stand behind what they read, so one walk backwards follows every chain.
  for (auto step = flow.main.steps.rbegin(); step != flow.main.steps.rend(); ++step) {
    if (step->kind != flow::StepKind::unit) continue;
    if (const auto* section = std::get_if<std::shared_ptr<const Section>>(&units[step->unit])) {
      for (size_t i = 0; i < step->inputs.size(); ++i)
        if ((*section)->inputs[i].frozen) wanted.insert(step->inputs[i]);
      continue;
    }
    const auto& graph = std::get<graph::Graph>(units[step->unit]);
    std::set<const Value*> reached;
    for (size_t i = 0; i < step->outputs.size(); ++i)
      if (wanted.count(step->outputs[i])) reached.insert(graph.outputs()[i]);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
      if (std::ranges::any_of((*node)->results(),
                              [&](const Value* result) { return reached.count(result) > 0; }))
        reached.insert((*node)->operands().begin(), (*node)->operands().end());
    for (size_t i = 0; i < step->inputs.size(); ++i)
      if (reached.count(graph.inputs()[i])) wanted.insert(step->inputs[i]);
  }
  std::vector<std::string> names;
  for (const flow::SlotId input : flow.inputs)
    if (wanted.count(input)) names.push_back(flow.slots[input].name);
  return names;
}

Status Script::refusal(const std::string& path) const {
  Complaints complaints;
  for (const Unit& unit : units)
    if (const auto* section = std::get_if<std::shared_ptr<const Section>>(&unit))
      complaints.add(failure(Code::unsupported, "node '{}' ({}): {}", (*section)->items[0].name,
                             (*section)->items[0].node.opType, (*section)->why));
  for (const flow::Step& step : flow.main.steps)
    if (step.kind != flow::StepKind::unit && complaints.empty())
      complaints.add(
          failure(Code::unsupported,
                  "node '{}': {} is decided at run, so that the model is no single graph",
                  step.node, flow::stepName(step.kind)));
  if (complaints.empty())
    complaints.add(failure(Code::unsupported, "the model is no single graph"));
  return complaints.status(path);
}

std::vector<flow::Step> Walk::finishFrame(Frame& frame, std::set<flow::SlotId>& needed) {
  std::vector<flow::Step> steps; // last first
  const auto isNeeded = [&](const std::vector<flow::SlotId>& slots) {
    return std::ranges::any_of(slots, [&](flow::SlotId slot) { return needed.count(slot) > 0; });
  };
  const auto need = [&](const std::vector<flow::SlotId>& slots) {
    needed.insert(slots.begin(), slots.end());
  };
  for (auto stage = frame.stages().rbegin(); stage != frame.stages().rend(); ++stage) {
    for (auto pending = stage->steps.rbegin(); pending != stage->steps.rend(); ++pending) {
      if (!isNeeded(pending->step.outputs) && pending->step.kind != flow::StepKind::fail) continue;
      flow::Step& step = pending->step;
      for (size_t b = 0; b < pending->bodies.size(); ++b) {
        need(step.blocks[b].results);
        step.blocks[b].steps = finishFrame(*pending->bodies[b], needed);
      }
      need(step.inputs);
      steps.push_back(std::move(step));
    }
    auto section = std::make_shared<Section>();
    section->claim = options_.claim;
    section->randomSeed = options_.randomSeed;
    flow::Step deferred;
    std::set<flow::SlotId> made, read, frozen;
    for (auto node = stage->deferred.rbegin(); node != stage->deferred.rend(); ++node) {
      if (!isNeeded(node->outputs) &&
          !std::ranges::any_of(node->outputs, [&](auto slot) { return read.count(slot) > 0; }))
        continue;
      for (const flow::SlotId slot : node->outputs)
        if (slot != flow::kNoSlot) made.insert(slot);
      for (const DeferredNode::Read& reads : node->reads) {
        read.insert(reads.slot);
        if (reads.frozen) frozen.insert(reads.slot);
      }
      section->constants.merge(node->constants);
      section->why = node->why;
      section->items.insert(section->items.begin(), std::move(node->item));
    }
    if (!section->items.empty()) {
      section->model = model_;
      for (const flow::SlotId slot : made)
        if (needed.count(slot)) {
          deferred.outputs.push_back(slot);
          section->outputs.push_back(script_.flow.slots[slot].name);
        }
      for (const flow::SlotId slot : read)
        if (!made.count(slot)) {
          deferred.inputs.push_back(slot);
          section->inputs.push_back({script_.flow.slots[slot].name, frozen.count(slot) > 0});
        }
      need(deferred.inputs);
      deferred.unit = static_cast<uint32_t>(script_.units.size());
      deferred.node = section->items[0].name;
      script_.units.emplace_back(std::move(section));
      steps.push_back(std::move(deferred));
    }
    flow::Step unit;
    graph::Graph graph = pruned(*stage, needed, unit);
    if (unit.outputs.empty()) continue;
    need(unit.inputs);
    unit.unit = static_cast<uint32_t>(script_.units.size());
    script_.units.emplace_back(std::move(graph));
    steps.push_back(std::move(unit));
  }
  std::ranges::reverse(steps);
  return steps;
}

Script Walk::finish(const std::vector<Slot>& outputs, std::vector<std::string> names) {
  Frame& frame = frames_.front();
  flow::Flow& flow = script_.flow;
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
  std::set<flow::SlotId> needed(flow.outputs.begin(), flow.outputs.end());
  flow.main.steps = finishFrame(frame, needed);
  std::erase_if(flow.constants,
                [&](const flow::Constant& constant) { return !needed.count(constant.slot); });
  return std::move(script_);
}

/// An input that waits for the run, with the dims that are known.
flow::Slot Walk::openInput(const onnx_io::ValueInfo& input) const {
  using Kind = flow::Slot::Kind;
  flow::Slot open{input.name, Kind::tensor, input.elem, {}, input.hasShape};
  if (input.elem == Elem::none)
    open.kind = input.what == "a sequence" ? Kind::sequence : Kind::optional;
  for (const onnx_io::Dim& dim : input.dims) {
    const auto bound = options_.dims.find(dim.name);
    open.dims.push_back(dim.value < 0 && bound != options_.dims.end() ? bound->second : dim.value);
  }
  return open;
}

Slot Walk::constantSlot(Frame& frame, Tensor tensor) {
  Slot slot;
  slot.frame = &frame;
  slot.value = frame.stage(0).graph.addConstant(std::move(tensor));
  return slot;
}

Status Walk::defer(const Place& place, const onnx_io::Node& node, const std::string& name,
                   std::string why, const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
                   const std::set<size_t>& frozen, Step::Contents known, const Slot& content) {
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
  Section::Item item{node, name, place.opsets, std::move(known), ""};
  outputs = place.frame.defer(std::move(item), std::move(why), inputs, std::move(captured), frozen,
                              content);
  return Status::ok();
}

Result<Script> Walk::run(const Section& section, std::span<const flow::Value> inputs) {
  CDL_CHECK(inputs.size() == section.inputs.size());
  Frame& frame = frames_.front();
  const auto define = [&](const std::string& name, const Slot& slot) {
    scope_.define(name, slot);
    scope_.define(outerName(name), slot);
  };
  for (const auto& [name, tensor] : section.constants) define(name, constantSlot(frame, tensor));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Section::Input& input = section.inputs[i];
    const auto param = [&](const Tensor& tensor) {
      const Slot slot = frame.addParam(input.name, {tensor.elem, tensor.dims});
      script_.flow.inputs.push_back(slot.run);
      return slot;
    };
    Slot slot;
    slot.frame = &frame;
    if (inputs[i].isTensor()) {
      slot = input.frozen ? constantSlot(frame, inputs[i].tensor) : param(inputs[i].tensor);
    } else if (inputs[i].isSequence()) {
      slot.list = std::make_shared<std::vector<Slot>>();
      for (const Tensor& item : *inputs[i].items) slot.list->push_back(param(item));
    }
    define(input.name, slot);
  }
  for (const Section::Item& item : section.items) {
    const Place place{frame, scope_, item.opsets, ""};
    Step::Contents known = item.known;
    if (!item.content.empty()) {
      const auto ints = Builder::knownInts(scope_.find(item.content)->value);
      if (!ints)
        return failure(Code::unsupported, "node '{}': too many values decide a shape", item.name);
      known.push_back(*ints);
    }
    addNode(place, item.node, item.name, std::move(known));
    for (const std::string& output : item.node.outputs)
      if (const Slot* made = scope_.find(output)) scope_.define(outerName(output), *made);
  }
  if (!complaints_.empty()) return complaints_.status(""); // the run names the file
  std::vector<Slot> outputs;
  for (const std::string& output : section.outputs) outputs.push_back(*scope_.find(output));
  return finish(outputs, section.outputs);
}

Result<Script> importScript(std::shared_ptr<const onnx_io::Model> model,
                            const ImportOptions& options) {
  return Walk(std::move(model), options).run();
}

std::vector<std::pair<std::string, std::string>> supportedOperators() {
  std::vector<std::string> qualified = importedNames();
  for (const std::string& name : listOperators()) qualified.push_back(name);
  qualified.insert(qualified.end(), controlOperators().begin(), controlOperators().end());
  std::vector<std::pair<std::string, std::string>> names;
  for (const std::string& name : qualified) {
    const size_t dot = name.rfind('.');
    names.emplace_back(dot == std::string::npos ? "" : name.substr(0, dot), name.substr(dot + 1));
  }
  std::ranges::sort(names);
  return names;
}

Result<Script> importSection(const Section& section, std::span<const flow::Value> inputs) {
  const ImportOptions options{.claim = section.claim, .randomSeed = section.randomSeed};
  return Walk(section.model, options).run(section, inputs);
}

} // namespace candela::import
