/// Which nodes of a graph become one: connected groups that are as large as they can be.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_GROUPS_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_GROUPS_H

#include <cstddef>
#include <utility>
#include <vector>

namespace candela::ort {

/// A graph of `taken.size()` nodes, numbered in an order in which every edge goes up.
struct NodeGraph {
  std::vector<bool> taken;                      ///< nodes that may be in a group
  std::vector<std::pair<size_t, size_t>> edges; ///< from a producer to a consumer
};

/// Groups of taken nodes, each connected and sorted, in the order of their first nodes. With each
/// group as one node the graph has no cycle, and no two groups that an edge joins could be one
/// without making one.
std::vector<std::vector<size_t>> groupsOf(const NodeGraph& graph);

} // namespace candela::ort

#endif
