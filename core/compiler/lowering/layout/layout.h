#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

namespace candela::lowering::layout {

/// Gives values their layouts (islands.h), then does the movement of constants: an `affine` or
/// `reshape` or `place` of constants becomes a constant in that form (packed weights), unless it
/// would grow by more than 4 KB and its reader takes it as it was. Returns how many constants were
/// packed.
Result<int> chooseLayouts(graph::Graph& graph, const capabilities::Target& target);

/// Runs after fuse: a blocked value that a convolution or a pool with padding reads lies in a
/// border that holds what the padding counts as, if the target takes every node around it so. Core
/// fills the border, kernels read it.
void giveHalos(graph::Graph& graph, const capabilities::Target& target);

/// The border of a `place` that only joins whole rows of memory goes around its pieces too, if the
/// target takes them so: then they can be computed where they belong
/// (core/compiler/program/passes/join_parts). Nothing happens to other nodes. In frames.cpp.
void framePieces(graph::Graph& graph, const graph::Node& place, const capabilities::Target& target);

} // namespace candela::lowering::layout
