#include "core/compiler/program/passes/schedule/units.h"

#include <algorithm>

#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/passes/schedule/lives.h"

namespace candela::program::passes::schedule {

namespace {

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
    for (const Loop& loop : program.loops) widen(loop.first, loop.count);
    for (const Group& group : program.groups) widen(group.first, group.count);
    // What fills a border stays beside what computes the content: else memory would be taken early.
    while (end < program.instrs.size() && fillsBorder(program, program.instrs[end - 1])) ++end;
  }
  return end;
}

void sortUnique(std::vector<uint32_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// Instructions first .. end of a unit that nothing outside of a loop comes between: one, or an
/// outermost loop.
struct Item {
  uint32_t unit = 0, first = 0, end = 0;
};

std::vector<Item> itemsOf(const Program& program, const Units& units) {
  std::vector<Item> items;
  for (uint32_t u = 0; u < units.units.size(); ++u)
    for (uint32_t i = units.units[u].first; i < units.units[u].first + units.units[u].count;) {
      uint32_t end = i + 1;
      if (uint32_t l = program.instrs[i].loop; l != kNone) {
        while (program.loops[l].parent != kNone) l = program.loops[l].parent;
        end = program.loops[l].first + program.loops[l].count;
      }
      items.push_back({u, i, end});
      i = end;
    }
  return items;
}

} // namespace

Units unitsOf(const Program& program) {
  Units result;
  std::vector<uint32_t> unitOf(program.instrs.size());
  for (uint32_t i = 0; i < program.instrs.size();) {
    const Unit unit{i, unitEnd(program, i) - i};
    for (const uint32_t end = i + unit.count; i < end; ++i)
      unitOf[i] = static_cast<uint32_t>(result.units.size());
    result.units.push_back(unit);
  }
  result.after.resize(result.units.size());
  auto dependences = directDependences(program);
  uint32_t lastCustom = kNone;
  for (uint32_t i = 0; i < dependences.size(); ++i) {
    const Instr& instr = program.instrs[i];
    dependences[i].insert(dependences[i].end(), instr.waits.begin(), instr.waits.end());
    if (instr.kind == CDL_KIND_CUSTOM) {
      if (lastCustom != kNone) dependences[i].push_back(lastCustom);
      lastCustom = i;
    }
    for (const uint32_t before : dependences[i])
      if (unitOf[before] != unitOf[i]) result.after[unitOf[i]].push_back(unitOf[before]);
  }
  for (std::vector<uint32_t>& after : result.after) sortUnique(after);
  return result;
}

solvers::order::OrderProblem problemOf(const Program& program, const Units& units, uint32_t space) {
  const std::vector<Item> items = itemsOf(program, units);
  const std::vector<Life> lives = livesOf(program);
  const auto visitTemps = [&](const Item& item, const auto& visit) {
    for (uint32_t i = item.first; i < item.end; ++i)
      for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
        for (const View& view : *views)
          if (program.buffers[view.buffer].role == Role::temp &&
              program.buffers[view.buffer].space == space)
            visit(view.buffer);
  };
  solvers::order::OrderProblem problem;
  problem.tasks.resize(units.units.size());
  for (size_t u = 0; u < units.units.size(); ++u) problem.tasks[u].after = units.after[u];
  std::vector<uint32_t> number(program.buffers.size(), kNone); // in the problem
  const auto numberOf = [&](uint32_t buffer) {
    if (number[buffer] == kNone) {
      number[buffer] = static_cast<uint32_t>(problem.buffers.size());
      problem.buffers.push_back({program.buffers[buffer].bytes, false, false});
    }
    return number[buffer];
  };
  std::vector<solvers::order::OrderStep*> stepOf(
      program.instrs.size()); // of instructions outside of loops
  for (const Item& item : items)
    problem.tasks[item.unit].steps.reserve(units.units[item.unit].count);
  for (const Item& item : items) {
    solvers::order::OrderStep& step = problem.tasks[item.unit].steps.emplace_back();
    stepOf[item.first] = &step;
    const bool isLoop = program.instrs[item.first].loop != kNone;
    solvers::memory::MemoryProblem inside; // what only this loop touches lives for parts of it
    std::vector<uint32_t> own;
    visitTemps(item, [&](uint32_t buffer) {
      const bool isOwn =
          isLoop && lives[buffer].first >= item.first && lives[buffer].last < item.end;
      if (isOwn)
        own.push_back(buffer);
      else
        step.buffers.push_back(numberOf(buffer));
    });
    sortUnique(step.buffers);
    sortUnique(own);
    for (const uint32_t buffer : own)
      inside.buffers.push_back(
          {lives[buffer].first, int64_t{lives[buffer].last} + 1, program.buffers[buffer].bytes, 1});
    step.transient = solvers::memory::maxLive(inside);
    if (isLoop) continue;
    const uint32_t result = program.instrs[item.first].outputs.empty()
                                ? kNone
                                : program.instrs[item.first].outputs[0].buffer;
    for (const uint32_t operand : operandsInPlace(program, item.first))
      if (program.buffers[result].space == space)
        step.inPlace.emplace_back(number[result], number[operand]);
  }
  const std::vector<uint32_t> products = productsBehind(program, lives);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    if (instr.kind != CDL_KIND_RESCALE || instr.loop != kNone) continue;
    const uint32_t result = instr.outputs[0].buffer;
    const auto dies = [&](uint32_t operand) {
      return lives[result].first == i && lives[operand].last == i;
    };
    if (number[result] == kNone || products[result] == kNone) continue;
    // it lies where the sums lay
    if (std::ranges::any_of(operandsInPlace(program, i), dies)) continue;
    stepOf[products[result]]->buffers.push_back(number[result]);
    sortUnique(stepOf[products[result]]->buffers);
  }
  return problem;
}

} // namespace candela::program::passes::schedule
