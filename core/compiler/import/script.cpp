#include "core/compiler/import/script.h"

#include "core/compiler/import/import_diagnostics.h"

namespace candela::import {

Script Script::of(graph::Graph graph) {
  Script script;
  const auto slotOf = [&](const std::string& name, const graph::TensorType& type) {
    return script.flow.addSlot(
        {name, runtime::control_flow::Slot::Kind::typed, type.elem, type.shape()});
  };
  for (const graph::Value* input : graph.inputs())
    script.flow.inputs.push_back(slotOf(input->name, input->type));
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    script.flow.outputs.push_back(slotOf(graph.outputNames()[i], graph.outputs()[i]->type));
  script.flow.outputNames = graph.outputNames();
  runtime::control_flow::Step& unit = script.flow.main.steps.emplace_back();
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
  std::set<runtime::control_flow::SlotId> wanted;
  // Steps stand behind what they read, so one walk backwards follows every chain.
  for (auto step = flow.main.steps.rbegin(); step != flow.main.steps.rend(); ++step) {
    if (step->kind != runtime::control_flow::StepKind::unit) continue;
    if (const auto* section = std::get_if<std::shared_ptr<const Section>>(&units[step->unit])) {
      for (size_t i = 0; i < step->inputs.size(); ++i)
        if ((*section)->inputs[i].frozen) wanted.insert(step->inputs[i]);
      continue;
    }
    const auto& graph = std::get<graph::Graph>(units[step->unit]);
    std::set<const graph::Value*> reached;
    for (size_t i = 0; i < step->outputs.size(); ++i)
      if (wanted.count(step->outputs[i])) reached.insert(graph.outputs()[i]);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node)
      if (std::ranges::any_of((*node)->results(), [&](const graph::Value* result) {
            return reached.count(result) > 0;
          }))
        reached.insert((*node)->operands().begin(), (*node)->operands().end());
    for (size_t i = 0; i < step->inputs.size(); ++i)
      if (reached.count(graph.inputs()[i])) wanted.insert(step->inputs[i]);
  }
  std::vector<std::string> names;
  for (const runtime::control_flow::SlotId input : flow.inputs)
    if (wanted.count(input)) names.push_back(flow.slots[input].name);
  return names;
}

Status Script::refusal(const std::string& path) const {
  ImportDiagnostics diagnostics;
  for (const Unit& unit : units)
    if (const auto* section = std::get_if<std::shared_ptr<const Section>>(&unit))
      diagnostics.add(failure(Code::unsupported, "node '{}' ({}): {}", (*section)->items[0].name,
                              (*section)->items[0].node.opType, (*section)->why));
  for (const runtime::control_flow::Step& step : flow.main.steps)
    if (step.kind != runtime::control_flow::StepKind::unit && diagnostics.empty())
      diagnostics.add(
          failure(Code::unsupported,
                  "node '{}': {} is decided at run, so that the model is no single graph",
                  step.node, runtime::control_flow::stepName(step.kind)));
  if (diagnostics.empty())
    diagnostics.add(failure(Code::unsupported, "the model is no single graph"));
  return diagnostics.status(path);
}

} // namespace candela::import
