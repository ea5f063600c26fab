// Small problems from seeds, and what tries every assignment of one.
#pragma once

#include <optional>

#include "core/compiler/solvers/cut/stages.h"

namespace candela::solvers::cut {

struct Draw {
  uint32_t mostItems = 12;
  uint32_t labels = 2;
};

/// A graph in topological order, each item allowed on one label or more. The last label stands for
/// the host: nothing is paid to enter or leave it, and most items may be there.
CutProblem drawProblem(uint64_t seed, const Draw& draw);

/// The label that is the cheapest for each item, or what its leaders force on it: allowed.
std::vector<uint32_t> startOf(const CutProblem& problem);

/// What labels cost, by pairs of items and not as the solver adds it up; kForbidden where they are
/// not allowed.
uint64_t costByPairs(const CutProblem& problem, const std::vector<uint32_t>& labels);

/// The least costByPairs() of all labels.
uint64_t leastOfAll(const CutProblem& problem);

/// The slowest stage and what is moved.
struct StageCost {
  uint64_t slowest = 0, moved = 0;
  auto operator<=>(const StageCost&) const = default;
};
/// The least of all ways to cut the order of items; nullopt where none is allowed.
std::optional<StageCost> leastOfAllStages(const CutProblem& problem);

} // namespace candela::solvers::cut
