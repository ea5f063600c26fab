#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

namespace candela::lowering::layout {

/// Gives every value of a lowered graph its layout: nodes for which the target has rows on layouts
/// (convolutions, pools, products) begin islands, which grow over what runs as well on physical
/// dims: elementwise nodes, concatenation of whole blocks, sums over space. At their borders stand
/// conversions: an `affine` that changes nothing but the layout, or a `reshape` where the bytes
/// stay. The choice moves the fewest bytes that a greedy walk and local improvement find. Graph
/// inputs and outputs stay row-major.
void formIslands(graph::Graph& graph, const capabilities::Target& target);

} // namespace candela::lowering::layout
