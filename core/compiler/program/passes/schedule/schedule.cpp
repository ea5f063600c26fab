#include "core/compiler/program/passes/schedule/schedule.h"

#include <algorithm>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/simplify.h"
#include "core/compiler/program/passes/schedule/units.h"

namespace candela::program::passes::schedule {

namespace {

/// Whether instruction `index` stays behind `before` by way of what these depend on.
bool follows(const std::vector<std::vector<uint32_t>>& dependences, uint32_t index,
             uint32_t before) {
  std::vector<uint32_t> open{index};
  std::vector<bool> seen(index + 1, false);
  while (!open.empty()) {
    const uint32_t i = open.back();
    open.pop_back();
    if (i == before) return true;
    for (const uint32_t next : dependences[i])
      if (next >= before && !seen[next]) {
        seen[next] = true;
        open.push_back(next);
      }
  }
  return false;
}

/// Leaves the waits that no dependence stands for; whether there are any.
bool keepOwnWaits(Program& program) {
  const auto dependences = directDependences(program);
  bool any = false;
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    std::vector<uint32_t>& waits = program.instrs[i].waits;
    std::erase_if(waits, [&](uint32_t wait) { return follows(dependences, i, wait); });
    any |= !waits.empty();
  }
  return any;
}

void addDependences(Program& program) {
  std::vector<std::vector<uint32_t>> own;
  for (Instr& instr : program.instrs) own.push_back(std::move(instr.waits));
  rebuildWaits(program);
  for (size_t i = 0; i < own.size(); ++i) {
    std::vector<uint32_t>& waits = program.instrs[i].waits;
    waits.insert(waits.end(), own[i].begin(), own[i].end());
    std::ranges::sort(waits);
  }
}

/// Less in some space, more in none.
bool isBetter(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] > b[i]) return false;
  return a != b;
}

Status orderForMemory(Program& program) {
  for (uint32_t space = 0; space < program.spaces.size(); ++space) {
    const Units units = unitsOf(program);
    CDL_ASSIGN(const solvers::order::OrderPlan best,
               solvers::order::planOrder(problemOf(program, units, space)));
    if (std::ranges::is_sorted(best.order)) continue;
    std::vector<uint32_t> order;
    for (const uint32_t u : best.order)
      for (uint32_t i = 0; i < units.units[u].count; ++i) order.push_back(units.units[u].first + i);
    Program other = program;
    reorder(other, order);
    if (isBetter(peakBytes(other, sharesOf(other, true)),
                 peakBytes(program, sharesOf(program, true))))
      program = std::move(other);
  }
  return Status::ok();
}

} // namespace

Status schedule(Program& program, const ScheduleOptions& options) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED)
      return badArgument("buffer '{}' is already placed at {}: order comes before memory",
                         buffer.name, buffer.offset);
  // Who waits for more than bytes knows of effects that are not to be seen here: nothing is removed
  // then.
  if (!keepOwnWaits(program)) simplify(program);
  if (options.reorder) CDL_TRY(orderForMemory(program));
  if (options.rematerialize && rematerialize(program) && options.reorder)
    CDL_TRY(orderForMemory(program));
  addDependences(program);
  return verify(program);
}

} // namespace candela::program::passes::schedule
