#include "core/import/recurrence.h"

#include "core/import/import.h"

namespace candela::import {
namespace {

// Nodes of all steps together: above this a model is not imported in reasonable time.
constexpr int64_t kMostNodes = int64_t(1) << 16;

/// One step in a Graph of its own, with the shared values that are constants inside it.
struct Body {
  explicit Body(const StepInputs& outer, const StepBody& body)
      : build(graph, ImportOptions().foldLimitBytes),
        results(body({inputs(outer.carried, 0), inputs(outer.scanned, 1), inputs(outer.captured, 0)})) {}

  /// How many dims go from the front.
  std::vector<Term> inputs(const std::vector<Term>& outer, int gone) {
    std::vector<Term> inner;
    for (const Term& term : outer) {
      Shape shape = term.shape();
      shape.erase(shape.begin(), shape.begin() + gone);
      inner.emplace_back(build, term.value()->isConstant() && gone == 0
                                    ? build.constant(term.value()->payload(), shape)
                                    : graph.addInput(term.value()->name, {term.elem(), shape}));
    }
    return inner;
  }

  graph::Graph graph;
  Builder build;
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

} // namespace

StepResults addRecurrence(Builder& build, const Recurrence& recurrence, const StepBody& body) {
  const Body once(recurrence.inputs, body);
  if (recurrence.trips == 0) {
    StepResults none{recurrence.inputs.carried, {}};
    for (const Term& element : once.results.stacked) {
      Shape shape = element.shape();
      shape.insert(shape.begin(), 0);
      none.stacked.push_back(full(build, 0, shape, element.elem()));
    }
    return none;
  }
  const auto nodes = static_cast<int64_t>(once.graph.nodeCount());
  if (recurrence.trips > kMostNodes / nodes)
    need(failure(Code::unsupported, "{} steps of {} nodes, {} nodes at most", recurrence.trips, nodes, kMostNodes));
  return unroll(recurrence, body);
}

} // namespace candela::import
