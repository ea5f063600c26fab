#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

/// Which physical layouts a target's rows ask of one node.
namespace candela::lowering::decompose {

/// A way to run a node: the layouts of its operands and of its result.
struct RowLayouts {
  std::vector<graph::Layout> operands;
  graph::Layout result;
};

/// The target takes the node natively on these layouts. The node is as it was afterwards.
bool takesOn(graph::Node& node, const capabilities::Target& target, const RowLayouts& layouts);

/// The layout of the target's table; an opaque one has no steps.
graph::Layout layoutOf(const capabilities::Target& target, uint16_t index);

/// By the rows of the node's instruction, in their order: those that are not row-major throughout
/// and that the target takes natively. What they ask of constants in opaque layouts is left to the
/// pass `pack` of Programs.
std::vector<RowLayouts> layoutsOfRows(graph::Node& node, const capabilities::Target& target);

/// The node alone in a graph, its constants with it, so that a decomposition meets what it will
/// meet. It is the last node.
graph::Graph alone(const graph::Node& node);

} // namespace candela::lowering::decompose
