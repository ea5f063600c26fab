#include "core/compiler/program/dependences.h"
#include "core/compiler/program/passes/join_parts/parts.h"
#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::join_parts {

namespace {

constexpr size_t kMostRanges = 3; ///< FILLs that one may become

struct Range {
  int64_t begin = 0, end = 0; ///< elements
};

std::vector<Range> without(const std::vector<Range>& ranges, const Range& gone) {
  std::vector<Range> left;
  for (const Range& range : ranges) {
    if (gone.end <= range.begin || range.end <= gone.begin) {
      left.push_back(range);
      continue;
    }
    if (range.begin < gone.begin) left.push_back({range.begin, gone.begin});
    if (gone.end < range.end) left.push_back({gone.end, range.end});
  }
  return left;
}

/// What nobody overwrites before somebody may read it.
std::vector<Range> neededOf(const Program& program, uint32_t index) {
  const View& filled = program.instrs[index].outputs[0];
  const Access all = accessOf(program, program.instrs[index], filled, true);
  std::vector<Range> needed{{filled.offset, filled.offset + filled.count()}};
  for (uint32_t i = index + 1; i < program.instrs.size() && !needed.empty(); ++i) {
    const Instr& instr = program.instrs[i];
    bool ends = false, touches = false;
    for (const Access& access : accessesOf(program, instr)) {
      touches |= access.overlaps(all);
      ends |= access.overlaps(all) && !access.write;
    }
    if (ends || (touches && (instr.loop != kNone || instr.group != kNone))) break;
    for (const View& view : instr.outputs)
      if (touches && view.buffer == filled.buffer && view.isDense() &&
          elemBits(view.elem) == elemBits(filled.elem))
        needed = without(needed, {view.offset, view.offset + view.count()});
  }
  return needed;
}

} // namespace

void narrowFills(Program& program) {
  const auto count = static_cast<uint32_t>(program.instrs.size());
  std::vector<uint32_t> order;
  std::vector<Instr> parts;
  for (uint32_t i = 0; i < count; ++i) {
    const Instr fill = program.instrs[i];
    const auto isPlain = [&] {
      const View& view = fill.outputs[0];
      return fill.loop == kNone && fill.group == kNone && view.isDense() && !isPacked(view.elem) &&
             !view.layout.opaque && view.layout.steps.empty() && !program.buffers[view.buffer].halo;
    };
    if (fill.kind != CDL_KIND_FILL || !isPlain()) {
      order.push_back(i);
      continue;
    }
    const std::vector<Range> needed = neededOf(program, i);
    const View& view = fill.outputs[0];
    const bool isSame = needed.size() > kMostRanges ||
                        (needed.size() == 1 && needed[0].end - needed[0].begin == view.count());
    if (isSame) order.push_back(i);
    for (size_t r = 0; r < needed.size() && !isSame; ++r) {
      Instr part = fill;
      part.outputs[0] = denseView(view.buffer, view.elem, {needed[r].end - needed[r].begin});
      part.outputs[0].offset = needed[r].begin;
      order.push_back(count + static_cast<uint32_t>(parts.size()));
      parts.push_back(std::move(part));
    }
  }
  program.instrs.insert(program.instrs.end(), parts.begin(), parts.end());
  if (order.size() != program.instrs.size()) schedule::reorder(program, order);
}

} // namespace candela::program::passes::join_parts
