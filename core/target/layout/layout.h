#ifndef CANDELA_CORE_TARGET_LAYOUT_LAYOUT_H
#define CANDELA_CORE_TARGET_LAYOUT_LAYOUT_H

#include "core/graph/graph.h"
#include "core/target/target.h"

namespace candela::target {

/// Constant movement is done now: an `affine` or `reshape` or `place` of constants becomes a
/// constant in that form (packed weights), unless it would grow by more than 4 KB. Values keep
/// row-major layouts: a target whose rows take no row-major tuple for an instruction answers
/// "layout" already in partition. Returns how many constants were packed.
Result<int> chooseLayouts(graph::Graph& graph, const Target& target);

} // namespace candela::target

#endif
