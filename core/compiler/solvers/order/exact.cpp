// Best-first search over sets of finished tasks: the set with the lowest peak goes on first, as in
// Dijkstra's algorithm with the maximum in the place of the sum, so that the first complete set has
// the least peak of all. What is live follows from the set alone: of all orders that lead to a set,
// only the one with the lowest peak goes on, which makes 2^n sets of n! orders.
//
// The dynamic programming over sets: M. Held and R. Karp, "A Dynamic Programming Approach to
// Sequencing Problems", 1962.
#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {

namespace {

constexpr size_t kWideState = 16; // tasks that may run next, and words of what has run

struct Hash {
  size_t operator()(const std::vector<uint64_t>& words) const {
    uint64_t hash = 0;
    for (const uint64_t word : words) {
      hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

struct Node {
  WalkState state;
  uint32_t parent = 0;
  std::vector<uint32_t> tasks; ///< since the parent
};

/// The order in which nodes go on: the lowest peak first, then the fewest tasks left, then the
/// fewest bytes live, then the oldest.
using Rank = std::tuple<uint64_t, size_t, uint64_t, uint32_t>;

std::vector<uint32_t> orderOf(const std::vector<Node>& nodes, uint32_t last) {
  std::vector<uint32_t> order;
  for (uint32_t n = last;; n = nodes[n].parent) {
    order.insert(order.end(), nodes[n].tasks.rbegin(), nodes[n].tasks.rend());
    if (n == 0) break;
  }
  std::ranges::reverse(order);
  return order;
}

} // namespace

ExactResult exactOrder(const OrderProblem& problem, uint64_t bound, uint64_t ceiling,
                       uint64_t& states) {
  const Walk walk(problem);
  std::vector<Node> nodes(1);
  std::vector<size_t> left(1, problem.tasks.size()); // tasks that have not run, by node
  std::priority_queue<Rank, std::vector<Rank>, std::greater<>> open;
  std::unordered_map<std::vector<uint64_t>, uint64_t, Hash> lowest; // peak by set
  // Opens the last node, or drops it where it leads to nothing better.
  const auto add = [&] {
    Node& node = nodes.back();
    walk.settle(node.state, node.tasks);
    left.back() -= node.tasks.size();
    if (node.state.peak < ceiling) {
      const auto [known, isNew] = lowest.try_emplace(node.state.done, node.state.peak);
      if (isNew || node.state.peak < known->second) {
        known->second = node.state.peak;
        open.emplace(node.state.peak, left.back(), node.state.live,
                     static_cast<uint32_t>(nodes.size() - 1));
        return;
      }
    }
    nodes.pop_back();
    left.pop_back();
  };
  nodes[0].state = walk.start(bound);
  add();
  while (!open.empty()) {
    const uint32_t n = std::get<3>(open.top());
    open.pop();
    if (left[n] == 0) return {orderOf(nodes, n), true};
    const WalkState state = std::move(nodes[n].state);
    if (lowest.at(state.done) < state.peak) continue;
    // Every task that may run next costs time: where there are many, a state counts as several.
    const uint64_t cost = 1 + (state.ready.size() + state.done.size()) / kWideState;
    for (const uint32_t task : state.ready) {
      const Effect effect = walk.effectOf(state, task);
      if (effect.hill >= ceiling) continue;
      if (states < cost) return {};
      states -= cost;
      nodes.push_back({state, n, {task}});
      left.push_back(left[n]);
      walk.run(nodes.back().state, task, effect);
      add();
    }
  }
  return {{}, true};
}

} // namespace candela::solvers::order
