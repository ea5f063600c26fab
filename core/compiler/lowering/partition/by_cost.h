#pragma once

#include "core/compiler/lowering/partition/clusters.h"
#include "core/compiler/lowering/partition/costs.h"

/// The policies that weigh what nodes take against what their values pay to cross.
namespace candela::lowering::partition {

/// A node that a target has in the instruction of a product alone: there only where `leader` is.
struct Bond {
  size_t node = 0, leader = 0; ///< in the graph's order
  size_t target = 0;
};

/// What may be chosen from.
struct Choices {
  const graph::Graph& graph;
  const NodeList& list;
  /// of nodes that compute something; a target that says no is out
  const std::map<const graph::Node*, std::vector<Assessment>>& assessments;
  std::vector<Bond> bonds;
  const CostModel& costs;
};

/// Targets of all nodes, and what is said about them.
struct Chosen {
  std::vector<size_t> targetOf;
  Choice choice;
};

/// The seconds that a node takes on a target that takes it: what is emulated runs on the host.
NodeCost costOn(const Choices& choices, const graph::Node& node, size_t target);

/// The least total that was found from a placement that is allowed: a least cut of work and
/// transfers, then parts that move as wholes as long as that saves, cut ties and starts of parts
/// counted. Never worse than where it began. `targetOf`: kNobody for aliases.
Result<Chosen> byCost(const Choices& choices, const std::vector<size_t>& targetOf);

/// Contiguous stages in the graph's order, one for each device in theirs, whose slowest one is the
/// fastest. The host is none. Failure: unsupported where the devices do not take the nodes so.
Result<Chosen> byStages(const Choices& choices);

} // namespace candela::lowering::partition
