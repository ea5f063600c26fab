#pragma once

#include "conformance/random/recipe.h"

namespace candela::conformance {

/// A graph of what stacking is about: elementwise chains and trees behind products, convolutions,
/// pools and reductions, with broadcast operands, values of several users, reductions at the end,
/// normalisations spelled out, and the integer chains of quantized networks. 3 to 24 nodes, each
/// judged to its end. The same on every machine.
random::Recipe stackedGraph(uint64_t seed);

} // namespace candela::conformance
