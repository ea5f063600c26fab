// Beam search: states of so many tasks side by side, of which the best lead to states of one task
// more. States that the same set of tasks has led to are one. Each step first runs all that costs
// nothing (Walk::settle), which shortens the search more than a wide beam does.
//
// The method: B. Lowerre, "The HARPY Speech Recognition System", 1976.
#include <algorithm>
#include <set>
#include <tuple>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {

namespace {

constexpr size_t kLooks = 2'000; // at tasks that may run next, for each task that runs

/// How a state was reached, kept after the state itself is gone.
struct Trail {
  uint32_t parent = 0;
  std::vector<uint32_t> tasks;
};
struct Front {
  WalkState state;
  uint32_t trail = 0;
};
struct Choice {
  std::tuple<uint64_t, uint64_t, uint32_t, size_t> rank;
  Effect effect;
};

} // namespace

std::vector<uint32_t> beamOrder(const OrderProblem& problem, uint64_t bound, uint32_t width,
                                bool byLive) {
  const Walk walk(problem);
  std::vector<Trail> trails(1);
  std::vector<Front> fronts(1);
  fronts[0].state = walk.start(bound);
  walk.settle(fronts[0].state, trails[0].tasks);
  for (;;) {
    std::vector<Choice> choices;
    for (size_t f = 0; f < fronts.size(); ++f)
      for (const uint32_t task : fronts[f].state.ready) {
        const Effect effect = walk.effectOf(fronts[f].state, task);
        const uint64_t peak = std::max(fronts[f].state.peak, effect.hill);
        choices.push_back({byLive ? std::tuple(effect.live, effect.hill, task, f)
                                  : std::tuple(peak, effect.live, task, f),
                           effect});
      }
    if (choices.empty()) break;
    std::ranges::make_heap(choices, std::greater<>(), &Choice::rank);
    const size_t most = std::clamp<size_t>(kLooks * fronts.size() / choices.size(), 1, width);
    std::vector<Front> next;
    std::set<std::vector<uint64_t>> seen;
    while (!choices.empty() && next.size() < most) {
      std::ranges::pop_heap(choices, std::greater<>(), &Choice::rank);
      const Choice choice = choices.back();
      choices.pop_back();
      const auto [first, second, task, from] = choice.rank;
      Front front = fronts[from];
      Trail trail{front.trail, {task}};
      walk.run(front.state, task, choice.effect);
      walk.settle(front.state, trail.tasks);
      if (!seen.insert(front.state.done).second) continue;
      front.trail = static_cast<uint32_t>(trails.size());
      trails.push_back(std::move(trail));
      next.push_back(std::move(front));
    }
    fronts = std::move(next);
  }
  // States that ran more tasks for nothing were complete earlier; those that were complete last are
  // left.
  const auto best =
      std::ranges::min_element(fronts, {}, [](const Front& front) { return front.state.peak; });
  std::vector<uint32_t> order;
  for (uint32_t t = best->trail;; t = trails[t].parent) {
    order.insert(order.end(), trails[t].tasks.rbegin(), trails[t].tasks.rend());
    if (t == 0) break;
  }
  std::ranges::reverse(order);
  return order;
}

} // namespace candela::solvers::order
