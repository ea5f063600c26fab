#pragma once

#include "core/compiler/program/program.h"
#include "core/compiler/solvers/memory/memory.h"

/// Order and memory of a Program. Knows addresses and waits, no target.
namespace candela::program::passes::schedule {

struct ScheduleOptions {
  bool reorder = true; ///< for less peak memory; else instructions keep the order that came
  /// Copies, fills and elementwise results that wait while most memory is taken are computed again
  /// before their next reader, where that lowers the peak. Costs time at run.
  bool rematerialize = false;
};

/// Reorders instructions for less peak memory (loops and groups move as a whole), never worse than
/// the order that came; removes dead stores to TEMP buffers and copies whose target can be their
/// source. Waits are rebuilt as the direct dependences. The meaning is unchanged. TEMP buffers must
/// be unplaced. A Program with waits that no dependence on bytes stands for keeps those and all its
/// instructions, in an order that obeys them.
Status schedule(Program& program, const ScheduleOptions& options = {});

struct PlacementReport {
  uint64_t arenaBytes = 0, maxLiveBytes = 0; ///< of the default space
};
/// Gives every TEMP buffer its offset: lifetimes by instruction (a buffer that a loop touches lives
/// through the whole loop), in-place sharing where an elementwise instruction's operand dies with
/// it, solvers/memory's best plan; the result is validated by solvers/memory's validator and by the
/// rule that no two live buffers overlap. Waits are rebuilt with what shares bytes from then on.
/// Failure: out_of_memory when a space is too small.
/// `options`: the work that each space may cost.
Result<PlacementReport> place(Program& program, const solvers::memory::PlanOptions& options = {});
/// As `place`, of a Program that is one of several: neither it nor its offsets are checked but by
/// solvers/memory. Whoever keeps it calls verify() and validatePlacement().
Result<PlacementReport> placeUnchecked(Program& program,
                                       const solvers::memory::PlanOptions& options);

/// What is wrong with the offsets of a Program, found by playing its accesses in order: an
/// instruction that reads bytes which another buffer has overwritten, or one whose result lies on
/// an operand that it does not read element by element. Names the two buffers. In validate.cpp.
Status validatePlacement(const Program& program);

} // namespace candela::program::passes::schedule
