// The greatest flow through a network, which is as large as its least cut (L. Ford and D.
// Fulkerson, "Maximal Flow through a Network", 1956). Found by shortest paths, all of one length at
// a time (E. Dinic, "Algorithm for Solution of a Problem of Maximum Flow in Networks with Power
// Estimation", 1970).
#pragma once

#include <cstdint>
#include <vector>

namespace candela::solvers::cut {

/// Of an arc that no least cut takes. All other capacities together must stay below it.
inline constexpr uint64_t kUnlimited = uint64_t(1) << 60;

class FlowNetwork {
public:
  static constexpr uint32_t kSource = 0, kSink = 1;
  FlowNetwork() : arcsOf_(2) {}

  uint32_t addNode();
  void addArc(uint32_t from, uint32_t to, uint64_t capacity);
  /// The capacity of the least cut. Uses the capacities up.
  uint64_t leastCut();
  /// After leastCut(): whether the node is on the source's side, of the cut with the fewest nodes
  /// there.
  bool isWithSource(uint32_t node) const { return level_[node] != kUnreached; }

private:
  static constexpr uint32_t kUnreached = UINT32_MAX;
  struct Arc {
    uint32_t to = 0;
    uint64_t left = 0; ///< capacity that no flow uses
  };
  bool findLevels();
  uint64_t pushAlongLevels();
  uint32_t openArc(uint32_t node);

  std::vector<Arc> arcs_; ///< in pairs: there and back
  std::vector<std::vector<uint32_t>> arcsOf_;
  std::vector<uint32_t> level_;
  std::vector<size_t> next_; ///< of each node: its arcs before this one are closed
};

} // namespace candela::solvers::cut
