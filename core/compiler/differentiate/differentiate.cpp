#include "core/compiler/differentiate/differentiate.h"

#include <algorithm>
#include <ranges>

#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

/// Numbers with a slope: floats that arithmetic is done in.
bool isReal(const Value& value) {
  return isFloat(value.type.elem) && !isStorageOnly(value.type.elem);
}

Status checkRequest(std::span<const Cotangent> of, std::span<Value* const> wrt) {
  for (const auto& [value, weight] : of) {
    if (!isReal(*value))
      return badArgument("'{}' is {}: only floats have a gradient", value->name,
                         value->type.text());
    if (!weight && value->type.count() != 1)
      return badArgument("'{}' is {}: without a cotangent one number is differentiated",
                         value->name, value->type.text());
    if (weight && !(weight->type == value->type))
      return badArgument("the cotangent of '{}' is {}, expected {}", value->name,
                         weight->type.text(), value->type.text());
  }
  for (const Value* value : wrt)
    if (!isReal(*value))
      return badArgument("'{}' is {}: there is no gradient with respect to it", value->name,
                         value->type.text());
  return Status::ok();
}

std::vector<Gradient> gradientsOf(graph::Graph& graph, std::span<const Cotangent> of,
                                  std::span<Value* const> wrt) {
  Tape tape(graph, dependents(graph, wrt));
  for (const auto& [value, weight] : of) {
    if (!tape.wants(value)) continue;
    tape.add(value, weight ? Term(tape.writer(), weight)
                           : full(tape.writer(), 1, value->type.shape(), value->type.elem));
  }
  walkBack(tape, graph);
  std::vector<Gradient> gradients;
  for (Value* value : wrt) {
    Value* found = tape.find(value);
    tape.writer().provenance.clear();
    gradients.push_back(
        {found ? found : zerosLike(Term(tape.writer(), value)).value(), found != nullptr});
  }
  return gradients;
}

/// An output of its own, whatever else the value is.
void addOwnOutput(graph::Graph& graph, Value* value, const std::string& name) {
  Writer writer{graph};
  Value* own =
      make(OpKind::Reshape, {Term(writer, value)}, {{"shape", value->type.shape()}}).value();
  graph.rename(own, graph.uniqueName(name));
  graph.addOutput(own, own->name);
}

void addGradients(graph::Graph& graph) {
  std::vector<Value*> wrt, values;
  std::ranges::copy_if(graph.inputs(), std::back_inserter(wrt),
                       [](Value* v) { return isReal(*v); });
  for (Value* output : graph.outputs())
    if (isReal(*output) && !std::ranges::count(values, output)) values.push_back(output);
  if (wrt.empty() || values.empty())
    throw Failure{badArgument("graph '{}' has no float {}: there is nothing to differentiate",
                              graph.name, wrt.empty() ? "input" : "output")};
  const bool isLoss = values.size() == 1 && values[0]->type.count() == 1;
  std::vector<Cotangent> of;
  for (Value* value : values)
    of.push_back({value, isLoss
                             ? nullptr
                             : graph.addInput(graph.uniqueName("d_" + value->name), value->type)});
  const std::vector<Gradient> gradients = need(differentiate(graph, of, wrt));
  for (size_t i = 0; i < wrt.size(); ++i)
    addOwnOutput(graph, gradients[i].value, "d_" + wrt[i]->name);
}

} // namespace

std::set<const Value*> dependents(const graph::Graph& graph, std::span<Value* const> wrt) {
  std::set<const Value*> all(wrt.begin(), wrt.end());
  for (const auto& node : graph.nodes()) {
    const bool depends = std::ranges::any_of(
        node->operands(), [&](const Value* operand) { return all.count(operand) > 0; });
    if (!depends) continue;
    for (const Value* result : node->results())
      if (isReal(*result)) all.insert(result);
  }
  return all;
}

void walkBack(Tape& tape, const graph::Graph& graph) {
  for (const Node* node : graph.snapshot() | std::views::reverse) {
    const Step step(tape, *node);
    const auto operands = std::views::iota(size_t{0}, node->operands().size());
    if (std::ranges::none_of(operands, [&](size_t i) { return step.wants(i); })) continue;
    const auto results = std::views::iota(size_t{0}, node->results().size());
    if (std::ranges::none_of(results, [&](size_t i) { return step.has(i); })) continue;
    const Rule rule = ruleOf(node->kind);
    if (!rule) step.refuse(std::string(reasonWithout(node->kind)));
    tape.writer().provenance = node->provenance;
    rule(step);
  }
}

Result<std::vector<Gradient>> differentiate(graph::Graph& graph, std::span<const Cotangent> of,
                                            std::span<Value* const> wrt) {
  CDL_TRY(checkRequest(of, wrt));
  try {
    return gradientsOf(graph, of, wrt);
  } catch (const Failure& failure) {
    return failure.status;
  }
}

Status differentiateGraph(graph::Graph& graph) {
  try {
    addGradients(graph);
    return Status::ok();
  } catch (const Failure& failure) {
    return failure.status;
  }
}

} // namespace candela::differentiate
