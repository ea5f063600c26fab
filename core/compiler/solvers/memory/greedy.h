// Plans made quickly: bodies one after the other, each into a gap between those placed before.
//
// What decides is the order. Large bodies first leaves small ones to fill the gaps; other orders
// win where lifetimes are alike. So several orders are planned, and the best of them improved:
// whatever ends highest came too late, and is moved to an earlier turn.
//
// Orders by size and area, gaps by best fit: Y. Pisarchyk and J. Lee, "Efficient Memory Management
// for Deep Neural Net Inference", 2020. The rest is a local search over permutations.
#pragma once

#include <optional>
#include <vector>

#include "core/compiler/solvers/memory/body.h"

namespace candela::solvers::memory {

/// The origins of all bodies in the smallest plan found: orders of size, area, begin, length,
/// neighbours and end, each into the first or the tightest gap; then, above `bound` bytes, of a
/// local search over the best orders. `work` counts how many placed bodies may be looked at; the
/// first three orders always run. Fails with invalid_argument when two pinned bodies meet.
Result<std::vector<uint64_t>> greedy(const Bodies& bodies, uint64_t bound, uint64_t work);

/// The origins of all bodies within the capacity, so that bytes are taken again as late as may be:
/// who takes them waits for who had them. A ring buffer does that best, and is what this is where
/// bodies die in the order in which they were born. nullopt where it finds none: bodies of several
/// parts, banks, pinned bodies that meet, or too little room for it. `work` as for greedy().
std::optional<std::vector<uint64_t>> rotating(const Bodies& bodies, uint64_t capacity,
                                              uint64_t work);

} // namespace candela::solvers::memory
