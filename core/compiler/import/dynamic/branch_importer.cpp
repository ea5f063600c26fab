#include "core/compiler/import/dynamic/branch_importer.h"

#include "core/compiler/import/dynamic/flow_values.h"
#include "core/compiler/import/graph_importer.h"

namespace candela::import {
namespace {

using SlotKind = runtime::control_flow::Slot::Kind;

} // namespace

Status BranchImporter::add(const Place& place, const onnx_io::Node& node, const std::string& name,
                           const std::vector<Slot>& inputs, std::vector<Slot>& outputs) {
  CDL_ASSIGN(const onnx_io::Graph* thenGraph, graphs_.graphOf(node, "then_branch"));
  CDL_ASSIGN(const onnx_io::Graph* elseGraph, graphs_.graphOf(node, "else_branch"));
  CDL_TRY(checkAttributeNames(node, std::array{"then_branch", "else_branch"}));
  if (inputs.size() != 1 || inputs[0].isAbsent())
    return badModel("has {} inputs, expected 1", inputs.size());
  const auto checkBranch = [&](const onnx_io::Graph& graph) -> Status {
    if (graph.outputs.size() < outputs.size())
      return badModel("has {} outputs but a branch gives {}", outputs.size(), graph.outputs.size());
    if (!graph.inputs.empty())
      return badModel("a branch has {} inputs, expected none", graph.inputs.size());
    return Status::ok();
  };
  if (place.frame.isTyped(inputs[0]))
    if (const graph::TensorType type = place.frame.typeOf(inputs[0]);
        type.elem != Elem::bool_ || type.count() != 1)
      return badModel("the condition is {}, expected one bool", type.text());
  if (const auto condition = knownScalar(inputs[0])) {
    const onnx_io::Graph& taken = *condition ? *thenGraph : *elseGraph;
    CDL_TRY(checkBranch(taken));
    Scope scope(&place.scope);
    const std::vector<Slot> results =
        graphs_.addGraph(place.within(place.frame, scope, name), taken);
    std::copy_n(results.begin(), outputs.size(), outputs.begin());
    return Status::ok();
  }
  for (const onnx_io::Graph* graph : {thenGraph, elseGraph}) CDL_TRY(checkBranch(*graph));
  std::vector<Branch> branches;
  for (const onnx_io::Graph* graph : {thenGraph, elseGraph})
    branches.push_back(addBranch(place, *graph, name, outputs.size()));
  return addStep(place, node, name, branches, inputs[0], outputs);
}

BranchImporter::Branch BranchImporter::addBranch(const Place& place, const onnx_io::Graph& graph,
                                                 const std::string& name, size_t outputs) {
  const size_t reported = context_.diagnostics.count();
  Branch branch;
  branch.body = &context_.addFrame(&place.frame);
  Scope scope(&place.scope);
  branch.results = graphs_.addGraph(place.within(*branch.body, scope, name), graph);
  branch.results.resize(outputs);
  if (!context_.diagnostics.onlyOfBlock(reported)) return branch;
  branch.failed = context_.diagnostics.take(reported);
  const Status failed = branch.failed.status("");
  runtime::control_flow::Step step;
  step.kind = runtime::control_flow::StepKind::fail;
  step.node = name;
  step.why = failed.message();
  step.unsupported = failed.code() == Code::unsupported;
  branch.body = &context_.addFrame(&place.frame);
  branch.body->addStep(std::move(step), {}, {});
  return branch;
}

Status BranchImporter::addStep(const Place& place, const onnx_io::Node& node,
                               const std::string& name, const std::vector<Branch>& branches,
                               const Slot& condition, std::vector<Slot>& outputs) {
  const auto hasFailed = [](const Branch& branch) { return !branch.failed.empty(); };
  const auto isPoisoned = [&](const Branch& branch) {
    return !hasFailed(branch) && anyPoisoned(branch.results);
  };
  if (std::ranges::all_of(branches, hasFailed) || std::ranges::any_of(branches, isPoisoned)) {
    for (const Branch& branch : branches) context_.diagnostics.add(branch.failed);
    return Status::ok();
  }
  runtime::control_flow::Step step;
  step.kind = runtime::control_flow::StepKind::branch;
  step.node = name;
  std::vector<Frame*> bodies;
  std::vector<runtime::control_flow::Slot> kinds;
  for (const Branch& branch : branches) {
    runtime::control_flow::Block& block = step.blocks.emplace_back();
    bodies.push_back(branch.body);
    block.results.assign(hasFailed(branch) ? outputs.size() : 0, runtime::control_flow::kNoSlot);
    for (size_t i = block.results.size(); i < outputs.size(); ++i) {
      const runtime::control_flow::Slot kind =
          runSlotFor(*branch.body, branch.results[i], node.outputs[i]);
      if (kinds.size() <= i)
        kinds.push_back(kind);
      else if ((kind.elem != Elem::none && kinds[i].elem != Elem::none &&
                kind.elem != kinds[i].elem) ||
               (kind.kind == SlotKind::sequence && kinds[i].isTyped()) ||
               (kinds[i].kind == SlotKind::sequence && kind.isTyped()))
        return badModel("output '{}' is {} in one branch and {} in the other", node.outputs[i],
                        kinds[i].typeText(), kind.typeText());
      else
        kinds[i] = mergedSlot(kinds[i], kind);
      block.results.push_back(branch.body->exported(branch.results[i]));
    }
  }
  outputs = place.frame.addStep(std::move(step), {condition}, kinds, bodies);
  return Status::ok();
}

} // namespace candela::import
