// One run of the exact search over one group of bodies, in one order of preference.
#pragma once

#include "core/compiler/solvers/memory/search.h"
#include "core/compiler/solvers/memory/sections.h"

namespace candela::solvers::memory {

struct Attempt {
  Verdict verdict = Verdict::Undecided;
  uint64_t nodes = 0;
  std::vector<uint64_t> origins; ///< of the items, when they fit
};

/// Searches the plans in which no body can be lowered, bottom up (attempt.cpp says how). Undecided
/// after `limit` nodes. `rank`, by item: which comes first among those that would lie equally low.
/// Every order leads to the same verdict, at very different cost.
Attempt attempt(const Bodies& bodies, const Sections& sections, uint64_t capacity,
                const std::vector<uint32_t>& rank, uint64_t limit);

} // namespace candela::solvers::memory
