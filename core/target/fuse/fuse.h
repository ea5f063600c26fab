#pragma once

#include "core/graph/graph.h"
#include "core/target/target.h"

namespace candela::target {

/// Runs after lower: chains of elementwise nodes with one use become `expr` nodes where the target
/// has ELEMENTWISE rows for their steps, at most 32 steps. Returns how many nodes disappeared.
Result<int> fuse(graph::Graph& graph, const Target& target);

} // namespace candela::target
