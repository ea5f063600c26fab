#pragma once

#include "core/compiler/lowering/partition/partition.h"

/// How nodes on the same target become parts.
namespace candela::lowering::partition {

inline constexpr size_t kNobody = SIZE_MAX;

/// The nodes of a graph in its order, and where each stands.
struct NodeList {
  std::vector<graph::Node*> nodes;
  std::map<const graph::Node*, size_t> indexOf;

  explicit NodeList(const graph::Graph& graph) : nodes(graph.snapshot()) {
    for (size_t i = 0; i < nodes.size(); ++i) indexOf[nodes[i]] = i;
  }
};

/// Clusters of nodes on one target, and which cluster feeds which. Merging never closes a cycle.
class Clusters {
public:
  /// `several`: there are several targets. With one, no way from a cluster to another leads through
  /// a third, as edges come in the graph's order.
  Clusters(size_t count, bool several);
  size_t find(size_t i);
  void addEdge(size_t from, size_t to) { next_[from].push_back(to); }
  /// u feeds v, or both stand alone. Merges their clusters unless a way from one to the other leads
  /// through a third.
  void tryMerge(size_t u, size_t v);
  const std::vector<size_t>& next(size_t root) const { return next_[root]; }
  size_t first(size_t root) const { return first_[root]; }

private:
  bool reachesAround(size_t from, size_t to);
  void forgetInner(size_t root);

  std::vector<size_t> parent_;
  std::vector<std::vector<size_t>> next_; ///< of roots: nodes that their nodes feed
  std::vector<size_t> last_, first_;      ///< of roots: indices of nodes
  std::vector<size_t> visit_;             ///< of roots: the last walk that met them
  size_t visits_ = 0;
  const bool several_;
};

/// Aliases go where their operand is; what is left (of inputs and constants) goes where the first
/// user is.
void placeAliases(const NodeList& list, std::vector<size_t>& targetOf, size_t host);

/// Merges the nodes of each target into clusters, as far as no cycle is made.
Clusters clusterNodes(const NodeList& list, const std::vector<size_t>& targetOf);

/// The same of stages: targets never fall along the graph's order, so that all nodes of one may be
/// one cluster.
Clusters clusterStages(const NodeList& list, const std::vector<size_t>& targetOf);

/// Parts in dependency order; among those that are ready the one that begins first.
std::vector<Part> orderParts(const std::vector<graph::Node*>& nodes,
                             const std::vector<size_t>& targetOf, Clusters& clusters);

} // namespace candela::lowering::partition
