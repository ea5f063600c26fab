#include "core/compiler/import/loop_recurrence.h"

#include <algorithm>

#include "core/compiler/graph/loop.h"
#include "core/compiler/import/import.h"

namespace candela::import {
namespace {

// Nodes of all steps together that a loop would not be worth.
constexpr int64_t kFewNodes = 64;

/// The ONNX node whose import this is. Whatever the builder makes says it.
graph::Provenance provenanceOf(Builder& build) {
  return full(build, 0, {}, Elem::bool_).value()->producer->provenance;
}

/// Whether nothing but elements of a constant is there, in another order: the passes fold it,
/// whatever its size.
bool isMovedConstant(const Value* value) {
  while (value->producer &&
         (value->producer->kind == OpKind::Reshape || value->producer->kind == OpKind::Slice ||
          value->producer->kind == OpKind::Transpose))
    value = value->producer->operand(0);
  return value->isConstant();
}

/// One step in a Graph of its own. Constants that it captures stand in it, where they are packed
/// once.
struct Body {
  Body(Builder& outer, const StepInputs& inputs, const StepBody& body)
      : build(graph, BuilderOptions{ImportOptions().foldLimitBytes}) {
    build.begin(provenanceOf(outer).front());
    const auto added = [&](const std::vector<Term>& terms, int gone) {
      std::vector<Term> inner;
      for (const Term& term : terms) inner.push_back(add(term, gone));
      return inner;
    };
    StepInputs inner{added(inputs.carried, 0), added(inputs.scanned, 1), {}};
    for (const Term& term : inputs.captured)
      inner.captured.push_back(isMovedConstant(term.value()) ? Term(build, copy(term.value()))
                                                             : add(term, 0));
    results = body(inner);
    for (const std::vector<Term>* terms : {&results.carried, &results.stacked})
      for (const Term& term : *terms) graph.addOutput(term.value(), term.value()->name);
    graph.eraseDead();
  }

  /// `gone`: how many dims go from the front.
  Term add(const Term& outer, int gone) {
    Shape shape = outer.shape();
    shape.erase(shape.begin(), shape.begin() + gone);
    return {build, graph.addInput(outer.value()->name, {outer.elem(), shape})};
  }

  /// With what it is moved from.
  Value* copy(const Value* value) {
    if (copies.count(value)) return copies[value];
    for (const Value* operand : value->producer->operands()) copy(operand);
    graph.addCopy(*value->producer, copies);
    return copies[value];
  }

  graph::Graph graph;
  Builder build;
  std::map<const Value*, Value*> copies;
  StepResults results;
};

bool flagOf(const std::vector<bool>& flags, size_t i) { return i < flags.size() && flags[i]; }

/// A step for each trip, one behind the other.
StepResults unroll(const Recurrence& recurrence, const StepBody& body) {
  StepInputs next = recurrence.inputs;
  std::vector<std::vector<Term>> stacks;
  for (int64_t trip = 0; trip < recurrence.trips; ++trip) {
    for (size_t i = 0; i < next.scanned.size(); ++i) {
      const bool backward = flagOf(recurrence.scannedBackward, i);
      const int64_t place = backward ? recurrence.trips - 1 - trip : trip;
      next.scanned[i] = recurrence.inputs.scanned[i].slice(0, place, 1).squeeze(0);
    }
    const StepResults step = body(next);
    next.carried = step.carried;
    stacks.resize(step.stacked.size());
    for (size_t i = 0; i < stacks.size(); ++i)
      stacks[i].insert(flagOf(recurrence.stackedBackward, i) ? stacks[i].begin() : stacks[i].end(),
                       step.stacked[i].unsqueeze(0));
  }
  StepResults all{next.carried, {}};
  for (const std::vector<Term>& stack : stacks) all.stacked.push_back(concat(stack, 0));
  return all;
}

/// One loop around a step.
StepResults repeat(Builder& build, const Recurrence& recurrence, Body& once) {
  const StepInputs& inputs = recurrence.inputs;
  graph::LoopForm form{recurrence.trips, inputs.carried.size(), inputs.scanned.size(), {}};
  std::vector<Value*> operands;
  for (const std::vector<Term>* terms : {&inputs.carried, &inputs.scanned, &inputs.captured})
    for (const Term& term : *terms)
      if (terms != &inputs.captured || !isMovedConstant(term.value()))
        operands.push_back(term.value());
  for (size_t i = 0; i < inputs.scanned.size(); ++i)
    form.backward.push_back(flagOf(recurrence.scannedBackward, i));
  for (size_t i = 0; i < once.results.stacked.size(); ++i)
    form.backward.push_back(flagOf(recurrence.stackedBackward, i));
  const graph::Node* node = need(
      graph::addLoop(build.graph(), form, operands, std::move(once.graph), provenanceOf(build)));
  StepResults all;
  for (Value* result : node->results())
    (all.carried.size() < form.carried ? all.carried : all.stacked).emplace_back(build, result);
  return all;
}

} // namespace

StepResults addRecurrence(Builder& build, const Recurrence& recurrence, const StepBody& body) {
  Body once(build, recurrence.inputs, body);
  if (recurrence.trips == 0) {
    StepResults none{recurrence.inputs.carried, {}};
    for (const Term& element : once.results.stacked) {
      Shape shape = element.shape();
      shape.insert(shape.begin(), 0);
      none.stacked.push_back(full(build, 0, shape, element.elem()));
    }
    return none;
  }
  const auto nodes =
      std::ranges::count_if(once.graph.nodes(), [](const auto& node) { return !node->payload; });
  return nodes == 0 || recurrence.trips <= kFewNodes / nodes ? unroll(recurrence, body)
                                                             : repeat(build, recurrence, once);
}

} // namespace candela::import
