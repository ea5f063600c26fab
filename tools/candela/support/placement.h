#pragma once

#include "core/compiler/lowering/partition/partition.h"
#include "tools/candela/support/page.h"

namespace candela::tool {

/// Where the nodes of a model went, for a drawing.
struct PlacedModel {
  struct Node {
    std::string name, op;
    size_t target = 0; ///< of `targets`
    size_t layer = 0;  ///< the longest way to it from an input
  };
  struct Edge {
    size_t from = 0, to = 0; ///< nodes
    uint64_t bytes = 0;
    bool isCut = false; ///< between parts: the value is handed over
  };
  std::vector<std::string> targets; ///< the host last
  std::vector<Node> nodes;          ///< inputs and outputs too, on the host
  std::vector<Edge> edges;
};

/// Adds the nodes of a graph, without its constants.
void addPlaced(PlacedModel& model, const graph::Graph& graph,
               const lowering::partition::Partitioning& partitioning);

/// To the front of a page's figures: the graph from top to bottom, nodes in the colour of their
/// device, with the bytes of what crosses between parts. Nothing where everything is on the host.
void addPlacementFigure(Page& page, const PlacedModel& model);

} // namespace candela::tool
