#pragma once

#include <span>
#include <string_view>

#include "conformance/random/recipe.h"

namespace candela::conformance {

/// A graph of one to three motifs, the first of them one that this pass (of
/// core/compiler/graph/passes/passes.inc) rewrites, or nearly: a constant beside the one that is
/// meant, a factor at an end of the type's range, a value that others use too. Numbers are near 1,
/// near either end of the type, on coarse steps, or far from zero and close together. The same on
/// every machine.
random::Recipe rewriteGraph(std::string_view pass, uint64_t seed);

/// The passes that have motifs of their own.
std::span<const std::string_view> rewritePasses();

} // namespace candela::conformance
