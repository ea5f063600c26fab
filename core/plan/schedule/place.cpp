#include "core/plan/memory/memory.h"
#include "core/plan/schedule/dependences.h"
#include "core/plan/schedule/lifetimes.h"
#include "core/plan/schedule/schedule.h"

namespace candela::plan {

using program::Buffer;
using program::Program;
using program::Role;

namespace {

struct SpacePlan {
  std::vector<const Share*> shares;
  MemoryPlan plan;
  uint64_t maxLive = 0; ///< no plan of these shares is smaller
};

MemoryProblem problemOf(const Program& program, uint32_t space, const std::vector<Share>& shares,
                        std::vector<const Share*>& members) {
  MemoryProblem problem;
  if (const uint64_t capacity = program.spaces[space].capacityBytes) problem.capacity = capacity;
  for (const Share& share : shares) {
    if (share.space != space) continue;
    members.push_back(&share);
    Interval interval;
    interval.begin = share.first;
    interval.end = int64_t{share.last} + 1;
    interval.size = share.bytes;
    interval.alignment = std::max<uint64_t>(share.alignment, program.spaces[space].alignment);
    problem.buffers.push_back(interval);
  }
  return problem;
}

Result<SpacePlan> planSpace(const Program& program, uint32_t space, const std::vector<Share>& shares) {
  SpacePlan out;
  const MemoryProblem problem = problemOf(program, space, shares, out.shares);
  const std::string& name = program.spaces[space].name;
  out.maxLive = maxLive(problem);
  if (out.maxLive > problem.capacity)
    return failure(Code::out_of_memory, "space '{}' has {} bytes but {} are live at once", name, problem.capacity,
                   out.maxLive);
  auto plan = planMemory(problem);
  if (!plan) return plan.status().context(fmt::format("space '{}'", name));
  const auto wrong = validate(problem, *plan);
  CDL_CHECK(!wrong, "{}", *wrong);
  out.plan = std::move(*plan);
  return out;
}

} // namespace

Result<PlacementReport> place(Program& program) {
  CDL_TRY(program::verify(program));
  const std::vector<Share> apart = sharesOf(program, false), together = sharesOf(program, true);
  PlacementReport report;
  report.maxLiveBytes = peakBytes(program, together)[0];
  for (Buffer& buffer : program.buffers)
    if (buffer.role == Role::temp) buffer.offset = CDL_UNPLACED;
  for (uint32_t space = 0; space < program.spaces.size(); ++space) {
    // Longer intervals can pack worse than their parts, though never below what is live at once.
    auto best = planSpace(program, space, together);
    if (!best || best->plan.size > best->maxLive) {
      auto other = planSpace(program, space, apart);
      if (other && (!best || other->plan.size < best->plan.size)) best = std::move(other);
    }
    if (!best) return best.status();
    for (size_t i = 0; i < best->shares.size(); ++i)
      for (const uint32_t buffer : best->shares[i]->buffers) program.buffers[buffer].offset = best->plan.offsets[i];
    if (space == 0) report.arenaBytes = best->plan.size;
  }
  // Buffers that share bytes must not meet in time either.
  rebuildWaits(program);
  const Status valid = validatePlacement(program);
  CDL_CHECK(valid.isOk(), "{}", valid.message());
  return report;
}

} // namespace candela::plan
