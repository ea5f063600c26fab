#pragma once

#include "core/graph/graph.h"
#include "core/target/target.h"

namespace candela::target {

/// Gives values their layouts (islands.h), then does the movement of constants: an `affine` or `reshape` or `place` of
/// constants becomes a constant in that form (packed weights), unless it would grow by more than 4 KB and its reader
/// takes it as it was. Returns how many constants were packed.
Result<int> chooseLayouts(graph::Graph& graph, const Target& target);

/// Runs after fuse: a blocked value that a convolution or a pool with padding reads lies in a border that holds what
/// the padding counts as, if the target takes every node around it so. Core fills the border, kernels read it.
void giveHalos(graph::Graph& graph, const Target& target);

} // namespace candela::target
