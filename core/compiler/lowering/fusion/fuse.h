#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"

namespace candela::lowering::fusion {

/// Runs behind lower and layout. What follows a MATMUL, CONV2D, POOL2D or REDUCE element by element
/// becomes one `expr` that reads `acc`, the epilogue of the same instruction; what only a REDUCE
/// reads becomes the `expr` before it, the prologue of its instruction; and what is left one `expr`
/// per tree, as far as the target's rows permit: at most 32 steps and 16 views. Returns how many
/// nodes others took in.
Result<int> fuse(graph::Graph& graph, const capabilities::Target& target);

} // namespace candela::lowering::fusion
