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

namespace {

/// Says a program in the numbers that the order of its units is solved by.
class ProblemBuilder {
public:
  ProblemBuilder(const Program& program, const Units& units, uint32_t space)
      : program_(program), space_(space), items_(itemsOf(program, units)), lives_(livesOf(program)),
        number_(program.buffers.size(), kNone), stepOf_(program.instrs.size(), nullptr) {
    problem_.tasks.resize(units.units.size());
    for (size_t u = 0; u < units.units.size(); ++u) problem_.tasks[u].after = units.after[u];
    // Steps are pointed to: they must not move.
    for (const Item& item : items_)
      problem_.tasks[item.unit].steps.reserve(units.units[item.unit].count);
  }

  solvers::order::OrderProblem build() {
    for (const Item& item : items_) {
      addStep(item);
      if (!isLoop(item)) addOperandsInPlace(item.first);
    }
    addResultsOfProducts();
    return std::move(problem_);
  }

private:
  bool isLoop(const Item& item) const { return program_.instrs[item.first].loop != kNone; }

  /// What a step touches; buffers that live within a loop are bytes that it needs meanwhile.
  void addStep(const Item& item) {
    solvers::order::OrderStep& step = problem_.tasks[item.unit].steps.emplace_back();
    stepOf_[item.first] = &step;
    std::vector<uint32_t> own;
    for (const uint32_t buffer : tempsOf(item)) {
      const bool isOwn =
          isLoop(item) && lives_[buffer].first >= item.first && lives_[buffer].last < item.end;
      if (isOwn)
        own.push_back(buffer);
      else
        step.buffers.push_back(numberOf(buffer));
    }
    sortUnique(step.buffers);
    sortUnique(own);
    solvers::memory::MemoryProblem inside;
    for (const uint32_t buffer : own)
      inside.buffers.push_back({lives_[buffer].first, int64_t{lives_[buffer].last} + 1,
                                program_.buffers[buffer].bytes, 1});
    step.transient = solvers::memory::maxLive(inside);
  }

  void addOperandsInPlace(uint32_t i) {
    const Instr& instr = program_.instrs[i];
    const uint32_t result = instr.outputs.empty() ? kNone : instr.outputs[0].buffer;
    for (const uint32_t operand : operandsInPlace(program_, i))
      if (program_.buffers[result].space == space_)
        stepOf_[i]->inPlace.emplace_back(number_[result], number_[operand]);
  }

  /// The result of a RESCALE that follows a product is there while the product computes, unless it
  /// lies where the sums lay.
  void addResultsOfProducts() {
    const std::vector<uint32_t> products = productsBehind(program_, lives_);
    for (uint32_t i = 0; i < program_.instrs.size(); ++i) {
      const Instr& instr = program_.instrs[i];
      if (instr.kind != CDL_KIND_RESCALE || instr.loop != kNone) continue;
      const uint32_t result = instr.outputs[0].buffer;
      if (number_[result] == kNone || products[result] == kNone) continue;
      const auto dies = [&](uint32_t operand) {
        return lives_[result].first == i && lives_[operand].last == i;
      };
      if (std::ranges::any_of(operandsInPlace(program_, i), dies)) continue;
      std::vector<uint32_t>& buffers = stepOf_[products[result]]->buffers;
      buffers.push_back(number_[result]);
      sortUnique(buffers);
    }
  }

  /// The buffers in the arena that an item touches, as often as it does.
  std::vector<uint32_t> tempsOf(const Item& item) const {
    std::vector<uint32_t> temps;
    for (uint32_t i = item.first; i < item.end; ++i)
      for (const auto* views : {&program_.instrs[i].inputs, &program_.instrs[i].outputs})
        for (const View& view : *views) {
          const Buffer& buffer = program_.buffers[view.buffer];
          if (buffer.role == Role::temp && buffer.space == space_) temps.push_back(view.buffer);
        }
    return temps;
  }

  uint32_t numberOf(uint32_t buffer) {
    if (number_[buffer] == kNone) {
      number_[buffer] = static_cast<uint32_t>(problem_.buffers.size());
      problem_.buffers.push_back({program_.buffers[buffer].bytes, false, false});
    }
    return number_[buffer];
  }

  const Program& program_;
  const uint32_t space_;
  const std::vector<Item> items_;
  const std::vector<Life> lives_;
  solvers::order::OrderProblem problem_;
  std::vector<uint32_t> number_;                   ///< by buffer: its number in the problem
  std::vector<solvers::order::OrderStep*> stepOf_; ///< by instruction; null inside of loops
};

} // namespace

solvers::order::OrderProblem problemOf(const Program& program, const Units& units, uint32_t space) {
  return ProblemBuilder(program, units, space).build();
}

} // namespace candela::program::passes::schedule
