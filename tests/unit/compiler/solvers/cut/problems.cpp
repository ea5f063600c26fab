#include "tests/unit/compiler/solvers/cut/problems.h"

#include <algorithm>
#include <random>

namespace candela::solvers::cut {

namespace {

using Engine = std::mt19937_64;

uint64_t drawn(Engine& engine, uint64_t low, uint64_t high) {
  return low + engine() % (high - low + 1);
}

CutValue drawValue(Engine& engine, uint32_t producer, uint32_t items, uint32_t labels) {
  CutValue value;
  value.producer = producer;
  const uint32_t first = producer == kOutside ? 0 : producer + 1;
  for (uint32_t reader = first; reader < items; ++reader)
    if (drawn(engine, 0, 3) == 0) value.readers.push_back(reader);
  value.isReadOutside = producer != kOutside && (value.readers.empty() || drawn(engine, 0, 7) == 0);
  for (uint32_t label = 0; label < labels; ++label) {
    const bool isHost = label + 1 == labels;
    value.leave.push_back(isHost ? 0 : drawn(engine, 0, 30));
    value.enter.push_back(isHost ? 0 : drawn(engine, 0, 30));
  }
  return value;
}

/// Calls `visit` for every assignment of labels.
template <typename Visit> void forAll(const CutProblem& problem, Visit&& visit) {
  std::vector<uint32_t> labels(problem.costs.size(), 0);
  while (true) {
    visit(labels);
    size_t at = 0;
    while (at < labels.size() && ++labels[at] == problem.labels) labels[at++] = 0;
    if (at == labels.size()) return;
  }
}

bool areStages(const std::vector<uint32_t>& labels) { return std::ranges::is_sorted(labels); }

} // namespace

CutProblem drawProblem(uint64_t seed, const Draw& draw) {
  Engine engine(seed);
  CutProblem problem;
  problem.labels = draw.labels;
  const auto items = static_cast<uint32_t>(drawn(engine, 1, draw.mostItems));
  for (uint32_t item = 0; item < items; ++item) {
    std::vector<uint64_t>& costs = problem.costs.emplace_back();
    for (uint32_t label = 0; label < draw.labels; ++label)
      costs.push_back(drawn(engine, 0, 5) == 0 ? kForbidden : drawn(engine, 0, 60));
    costs.back() = drawn(engine, 0, 120);
  }
  problem.values.push_back(drawValue(engine, kOutside, items, draw.labels));
  for (uint32_t item = 0; item < items; ++item)
    problem.values.push_back(drawValue(engine, item, items, draw.labels));
  for (uint32_t item = 1; item < items; ++item)
    if (drawn(engine, 0, 9) == 0)
      problem.ties.push_back(
          {item, item - 1, static_cast<uint32_t>(drawn(engine, 0, draw.labels - 1))});
  return problem;
}

std::vector<uint32_t> startOf(const CutProblem& problem) {
  // The last label takes every item; a tie by it binds an item to one that has it too.
  return std::vector<uint32_t>(problem.costs.size(), problem.labels - 1);
}

uint64_t costByPairs(const CutProblem& problem, const std::vector<uint32_t>& labels) {
  uint64_t sum = 0;
  for (size_t item = 0; item < labels.size(); ++item) {
    if (problem.costs[item][labels[item]] == kForbidden) return kForbidden;
    sum += problem.costs[item][labels[item]];
  }
  for (const CutTie& tie : problem.ties)
    if (labels[tie.item] == tie.label && labels[tie.leader] != tie.label) return kForbidden;
  for (const CutValue& value : problem.values) {
    std::vector<bool> isOn(problem.labels, false);
    for (const uint32_t reader : value.readers) isOn[labels[reader]] = true;
    bool leaves = value.isReadOutside;
    for (uint32_t label = 0; label < problem.labels; ++label) {
      const bool isHome = value.producer != kOutside && labels[value.producer] == label;
      if (!isOn[label] || isHome) continue;
      leaves = true;
      sum += value.enter[label];
    }
    if (value.producer != kOutside && leaves) sum += value.leave[labels[value.producer]];
  }
  return sum;
}

uint64_t leastOfAll(const CutProblem& problem) {
  uint64_t least = kForbidden;
  forAll(problem, [&](const std::vector<uint32_t>& labels) {
    least = std::min(least, costByPairs(problem, labels));
  });
  return least;
}

std::optional<StageCost> leastOfAllStages(const CutProblem& problem) {
  std::optional<StageCost> least;
  forAll(problem, [&](const std::vector<uint32_t>& labels) {
    if (!areStages(labels) || costByPairs(problem, labels) == kForbidden) return;
    std::vector<uint64_t> times(problem.labels, 0);
    StageCost cost;
    for (size_t item = 0; item < labels.size(); ++item)
      times[labels[item]] += problem.costs[item][labels[item]];
    for (const CutValue& value : problem.values)
      for (uint32_t label = 0; label < problem.labels; ++label) {
        const auto isHere = [&](uint32_t item) { return labels[item] == label; };
        const bool isHome = value.producer != kOutside && isHere(value.producer);
        const bool isRead = std::ranges::any_of(value.readers, isHere);
        const bool leaves = value.isReadOutside || !std::ranges::all_of(value.readers, isHere);
        uint64_t moved = 0;
        if (isHome && leaves) moved += value.leave[label];
        if (!isHome && isRead) moved += value.enter[label];
        times[label] += moved;
        cost.moved += moved;
      }
    cost.slowest = *std::ranges::max_element(times);
    if (!least || cost < *least) least = cost;
  });
  return least;
}

} // namespace candela::solvers::cut
