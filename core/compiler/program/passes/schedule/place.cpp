#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/schedule.h"

namespace candela::program::passes::schedule {

namespace {

struct SpacePlan {
  solvers::memory::MemoryPlan plan;
  uint64_t maxLive = 0; ///< no plan of these shares is smaller
};

Result<SpacePlan> planSpace(const Program& program, uint32_t space,
                            const std::vector<Share>& shares,
                            solvers::memory::PlanOptions options) {
  const solvers::memory::MemoryProblem problem = problemOf(program, space, shares);
  const std::string& name = program.spaces[space].name;
  const uint64_t live = solvers::memory::maxLive(problem);
  if (live > problem.capacity)
    return failure(Code::out_of_memory, "space '{}' has {} bytes but {} are live at once", name,
                   problem.capacity, live);
  options.ownsCapacity &= program.spaces[space].local;
  CDL_ASSIGN(
      solvers::memory::MemoryPlan plan,
      solvers::memory::planMemory(problem, options).context(fmt::format("space '{}'", name)));
  const auto wrong = solvers::memory::validate(problem, plan);
  CDL_CHECK(!wrong, "{}", *wrong);
  return SpacePlan{std::move(plan), live};
}

} // namespace

Result<PlacementReport> placeUnchecked(Program& program,
                                       const solvers::memory::PlanOptions& options) {
  const std::vector<Share> apart = sharesOf(program, false), together = sharesOf(program, true);
  const bool isSame = apart.size() == together.size(); // nothing joins
  PlacementReport report;
  report.maxLiveBytes = peakBytes(program, together)[0];
  for (Buffer& buffer : program.buffers)
    if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
  for (uint32_t space = 0; space < program.spaces.size(); ++space) {
    // Longer intervals can pack worse than their parts, though never below what is live at once.
    // Where all of the memory may be taken that is no matter.
    const std::vector<Share>* shares = &together;
    auto best = planSpace(program, space, together, options);
    const bool mayShrink = best && best->plan.size > best->maxLive &&
                           !(options.ownsCapacity && program.spaces[space].local);
    if ((!best || mayShrink) && !isSame) {
      auto other = planSpace(program, space, apart, options);
      if (other && (!best || other->plan.size < best->plan.size)) {
        best = std::move(other);
        shares = &apart;
      }
    }
    if (!best) return best.status();
    size_t next = 0;
    for (const Share& share : *shares) {
      if (share.space != space) continue;
      for (const uint32_t buffer : share.buffers)
        program.buffers[buffer].offset = best->plan.offsets[next];
      ++next;
    }
    if (space == 0) report.arenaBytes = best->plan.size;
  }
  // Buffers that share bytes must not meet in time either.
  rebuildWaits(program);
  return report;
}

Result<PlacementReport> place(Program& program, const solvers::memory::PlanOptions& options) {
  CDL_TRY(verify(program));
  CDL_ASSIGN(const PlacementReport report, placeUnchecked(program, options));
  const Status valid = validatePlacement(program);
  CDL_CHECK(valid.isOk(), "{}", valid.message());
  // bands may not lie on each other's rows
  if (!program.groups.empty()) CDL_TRY(verify(program));
  return report;
}

} // namespace candela::program::passes::schedule
