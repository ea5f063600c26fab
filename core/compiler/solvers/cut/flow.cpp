#include "core/compiler/solvers/cut/flow.h"

#include <algorithm>

namespace candela::solvers::cut {

uint32_t FlowNetwork::addNode() {
  arcsOf_.emplace_back();
  return static_cast<uint32_t>(arcsOf_.size() - 1);
}

void FlowNetwork::addArc(uint32_t from, uint32_t to, uint64_t capacity) {
  if (from == to || capacity == 0) return;
  arcsOf_[from].push_back(static_cast<uint32_t>(arcs_.size()));
  arcs_.push_back({to, capacity});
  arcsOf_[to].push_back(static_cast<uint32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

uint64_t FlowNetwork::leastCut() {
  uint64_t flow = 0;
  while (findLevels()) {
    next_.assign(arcsOf_.size(), 0);
    while (const uint64_t pushed = pushAlongLevels()) flow += pushed;
  }
  return flow;
}

/// Counts arcs from the source; whether the sink is reached.
bool FlowNetwork::findLevels() {
  level_.assign(arcsOf_.size(), kUnreached);
  level_[kSource] = 0;
  std::vector<uint32_t> reached = {kSource};
  for (size_t at = 0; at < reached.size(); ++at) {
    const uint32_t node = reached[at];
    for (const uint32_t arc : arcsOf_[node]) {
      const auto [to, left] = arcs_[arc];
      if (left == 0 || level_[to] != kUnreached) continue;
      level_[to] = level_[node] + 1;
      reached.push_back(to);
    }
  }
  return level_[kSink] != kUnreached;
}

/// The next arc that leads one level further; kUnreached where there is none.
uint32_t FlowNetwork::openArc(uint32_t node) {
  for (size_t& at = next_[node]; at < arcsOf_[node].size(); ++at) {
    const uint32_t arc = arcsOf_[node][at];
    if (arcs_[arc].left > 0 && level_[arcs_[arc].to] == level_[node] + 1) return arc;
  }
  return kUnreached;
}

/// Flow along one shortest path; 0 where there is none any more.
uint64_t FlowNetwork::pushAlongLevels() {
  std::vector<uint32_t> path;
  uint32_t node = kSource;
  while (node != kSink) {
    const uint32_t arc = openArc(node);
    if (arc != kUnreached) {
      path.push_back(arc);
      node = arcs_[arc].to;
      continue;
    }
    if (path.empty()) return 0;
    node = arcs_[path.back() ^ 1].to;
    ++next_[node]; // which led to a dead end
    path.pop_back();
  }
  uint64_t least = kUnlimited;
  for (const uint32_t arc : path) least = std::min(least, arcs_[arc].left);
  for (const uint32_t arc : path) {
    arcs_[arc].left -= least;
    arcs_[arc ^ 1].left += least;
  }
  return least;
}

} // namespace candela::solvers::cut
