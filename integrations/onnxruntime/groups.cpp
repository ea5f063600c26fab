#include "integrations/onnxruntime/groups.h"

#include <algorithm>
#include <numeric>

namespace candela::ort {
namespace {

/// The graph with each group as one unit, which is named by one of its nodes.
class Units {
public:
  explicit Units(const NodeGraph& graph)
      : graph_(graph), consumers_(graph.taken.size()), parent_(graph.taken.size()),
        members_(graph.taken.size()) {
    std::iota(parent_.begin(), parent_.end(), size_t(0));
    for (size_t node = 0; node < members_.size(); ++node) members_[node] = {node};
    for (const auto& [from, to] : graph.edges) consumers_[from].push_back(to);
  }

  size_t of(size_t node) {
    while (parent_[node] != node) {
      parent_[node] = parent_[parent_[node]];
      node = parent_[node];
    }
    return node;
  }

  /// Makes one unit of two that an edge joins, unless another path between them would then lead out
  /// of it and back in.
  bool join(size_t from, size_t to) {
    const size_t producer = of(from);
    const size_t consumer = of(to);
    if (producer == consumer || hasDetour(producer, consumer)) return false;
    const bool isLarger = members_[producer].size() >= members_[consumer].size();
    const size_t kept = isLarger ? producer : consumer;
    const size_t gone = isLarger ? consumer : producer;
    parent_[gone] = kept;
    members_[kept].insert(members_[kept].end(), members_[gone].begin(), members_[gone].end());
    members_[gone].clear();
    return true;
  }

  std::vector<std::vector<size_t>> taken() {
    std::vector<std::vector<size_t>> groups;
    for (size_t node = 0; node < parent_.size(); ++node) {
      if (of(node) != node || !graph_.taken[node]) continue;
      groups.push_back(members_[node]);
      std::sort(groups.back().begin(), groups.back().end());
    }
    std::sort(groups.begin(), groups.end());
    return groups;
  }

private:
  /// Whether a path leads from one unit to the other through a third.
  bool hasDetour(size_t producer, size_t consumer) {
    std::vector<bool> seen(parent_.size());
    std::vector<size_t> waiting;
    const auto visit = [&](size_t unit) {
      if (unit == producer || seen[unit]) return;
      seen[unit] = true;
      waiting.push_back(unit);
    };
    for (const size_t node : members_[producer])
      for (const size_t next : consumers_[node])
        if (of(next) != consumer) visit(of(next));
    while (!waiting.empty()) {
      const size_t unit = waiting.back();
      waiting.pop_back();
      for (const size_t node : members_[unit])
        for (const size_t next : consumers_[node]) {
          if (of(next) == consumer) return true;
          visit(of(next));
        }
    }
    return false;
  }

  const NodeGraph& graph_;
  std::vector<std::vector<size_t>> consumers_;
  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> members_;
};

} // namespace

std::vector<std::vector<size_t>> groupsOf(const NodeGraph& graph) {
  Units units(graph);
  // What one join forbids a later one may allow, so the edges are asked until nothing changes.
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (const auto& [from, to] : graph.edges)
      if (graph.taken[from] && graph.taken[to] && units.join(from, to)) isChanged = true;
  }
  return units.taken();
}

} // namespace candela::ort
