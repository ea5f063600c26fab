#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"
#include "core/compiler/program/program.h"

namespace candela::lowering::emit {

/// The op of the origin of a conversion between layouts, by which reports count them.
inline constexpr std::string_view kLayoutOrigin = "layout";

/// The memory of a target, as Programs for it have it; the host's where it declares none.
std::vector<program::Space> spacesOf(const capabilities::Target& target);

/// Graph -> Program for one target. Every node must be one that emits: a lowered form (affine,
/// place, take, ...), an elementwise op with an instruction, an alias (reshape), or a composite
/// whose instruction the target claims. Quantization leaves the types here. Buffers are unplaced;
/// inputs and outputs keep the graph's order and names. Aliases share their operand's buffer;
/// broadcasts become stride 0 where the row's operand class allows, else copies.
Result<program::Program> emit(const graph::Graph& graph, const capabilities::Target& target);

} // namespace candela::lowering::emit
