#include "core/plan/schedule/schedule.h"

#include <algorithm>

#include "core/plan/schedule/lifetimes.h"
#include "core/plan/schedule/simplify.h"
#include "core/program/dependences.h"

namespace candela::plan {

using namespace program;

namespace {

/// Instructions first .. first + count that move as a whole: one, an outermost loop or a group.
struct Unit {
  uint32_t first = 0, count = 1;
  std::vector<uint32_t> temps; ///< TEMP buffers that it touches
  std::vector<uint32_t> users; ///< units that must stay behind it
  uint32_t waitsFor = 0;       ///< units before it that are not yet placed
};

bool fillsBorder(const Program& program, const Instr& instr) {
  return instr.kind == CDL_KIND_FILL && program.buffers[instr.outputs[0].buffer].halo;
}

/// The end of the unit that begins at `first`: of every loop or group that begins inside of it.
uint32_t unitEnd(const Program& program, uint32_t first) {
  uint32_t end = first + 1;
  const auto widen = [&](uint32_t rangeFirst, uint32_t rangeCount) {
    if (rangeFirst >= first && rangeFirst < end) end = std::max(end, rangeFirst + rangeCount);
  };
  for (uint32_t before = 0; before != end;) {
    before = end;
    for (const program::Loop& loop : program.loops) widen(loop.first, loop.count);
    for (const program::Group& group : program.groups) widen(group.first, group.count);
    // What fills a border stays beside what computes the content: else memory would be taken early.
    while (end < program.instrs.size() && fillsBorder(program, program.instrs[end - 1])) ++end;
  }
  return end;
}

void sortUnique(std::vector<uint32_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<Unit> unitsOf(const Program& program) {
  std::vector<Unit> units;
  std::vector<uint32_t> unitOf(program.instrs.size());
  for (uint32_t i = 0; i < program.instrs.size();) {
    Unit unit;
    unit.first = i;
    unit.count = unitEnd(program, i) - i;
    for (const uint32_t end = i + unit.count; i < end; ++i) {
      unitOf[i] = static_cast<uint32_t>(units.size());
      for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
        for (const View& view : *views)
          if (program.buffers[view.buffer].role == Role::temp) unit.temps.push_back(view.buffer);
    }
    sortUnique(unit.temps);
    units.push_back(std::move(unit));
  }
  const auto dependences = directDependences(program);
  for (uint32_t i = 0; i < dependences.size(); ++i)
    for (const uint32_t before : dependences[i])
      if (unitOf[before] != unitOf[i]) units[unitOf[before]].users.push_back(unitOf[i]);
  for (Unit& unit : units) {
    sortUnique(unit.users);
    for (const uint32_t user : unit.users) ++units[user].waitsFor;
  }
  return units;
}

/// List scheduling: of the units that may come next, the one that leaves the fewest bytes taken;
/// among equals the one that takes the fewest on the way, then the one that came first.
std::vector<uint32_t> greedyOrder(const Program& program, std::vector<Unit> units) {
  std::vector<uint32_t> usesLeft(program.buffers.size(), 0);
  std::vector<bool> live(program.buffers.size(), false);
  for (const Unit& unit : units)
    for (const uint32_t buffer : unit.temps) ++usesLeft[buffer];
  std::vector<uint32_t> ready, order;
  for (uint32_t u = 0; u < units.size(); ++u)
    if (units[u].waitsFor == 0) ready.push_back(u);
  while (!ready.empty()) {
    size_t best = 0;
    std::tuple<int64_t, int64_t, uint32_t> bestScore;
    for (size_t r = 0; r < ready.size(); ++r) {
      int64_t taken = 0, freed = 0;
      for (const uint32_t buffer : units[ready[r]].temps) {
        const auto bytes = static_cast<int64_t>(program.buffers[buffer].bytes);
        if (!live[buffer]) taken += bytes;
        if (usesLeft[buffer] == 1) freed += bytes;
      }
      const std::tuple score{taken - freed, taken, ready[r]};
      if (r == 0 || score < bestScore) {
        best = r;
        bestScore = score;
      }
    }
    const Unit& unit = units[ready[best]];
    order.push_back(ready[best]);
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    for (const uint32_t buffer : unit.temps) {
      live[buffer] = true;
      --usesLeft[buffer];
    }
    for (const uint32_t user : unit.users)
      if (--units[user].waitsFor == 0) ready.push_back(user);
  }
  return order;
}

/// Less in some space, more in none.
bool isBetter(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] > b[i]) return false;
  return a != b;
}

} // namespace

Status schedule(Program& program) {
  for (const Buffer& buffer : program.buffers)
    if (buffer.role == Role::temp && buffer.offset != CDL_UNPLACED)
      return badArgument("buffer '{}' is already placed at {}: order comes before memory", buffer.name, buffer.offset);
  simplify(program);
  const std::vector<Unit> units = unitsOf(program);
  std::vector<uint32_t> order;
  for (const uint32_t u : greedyOrder(program, units))
    for (uint32_t i = 0; i < units[u].count; ++i) order.push_back(units[u].first + i);
  CDL_CHECK(order.size() == program.instrs.size(), "{} of {} instructions are in a cycle",
            program.instrs.size() - order.size(), program.instrs.size());
  Program other = program;
  reorder(other, order);
  if (isBetter(peakBytes(other, sharesOf(other, true)), peakBytes(program, sharesOf(program, true))))
    program = std::move(other);
  rebuildWaits(program);
  return program::verify(program);
}

} // namespace candela::plan
