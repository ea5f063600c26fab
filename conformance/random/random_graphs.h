#pragma once

#include "conformance/random/random_ops.h"

namespace candela::conformance::random {

/// A graph of 5 to 40 nodes over all records: constants, broadcasts, shared values, several
/// outputs. What would leave most of its elements without a useful bound is not taken in, so that
/// every graph is judged to its end.
Recipe randomGraph(uint64_t seed);

} // namespace candela::conformance::random
