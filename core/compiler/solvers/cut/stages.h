// Contiguous stages of items, one for each label in its order, whose slowest one is the fastest
// that the order of items allows. Knows no IR.
//
// Dynamic programming over where a stage begins and ends, as for cutting a chain of tasks (S.
// Bokhari, "Partitioning Problems in Parallel, Pipelined, and Distributed Computing", 1988). It is
// exact for the order of items that comes, and says nothing of others: the best of all orders is
// NP-hard.
#pragma once

#include "core/compiler/solvers/cut/cut.h"

namespace candela::solvers::cut {

struct StagePlan {
  std::vector<uint32_t> labels; ///< by item; they never fall
  std::vector<uint64_t> times;  ///< by label: its items, what enters and what leaves it
  uint64_t slowest = 0;         ///< the largest of them, the least there is
  uint64_t moved = 0;           ///< what enters and leaves in all, the least with that
};

/// The items stand in an order in which each comes behind what it reads. A stage may be empty.
/// Takes time by the square of the items. Fails with invalid_argument on a malformed problem, with
/// unsupported where no stages are allowed.
Result<StagePlan> planStages(const CutProblem& problem);

} // namespace candela::solvers::cut
