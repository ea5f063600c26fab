// A run of a loop that takes a contiguous part of a buffer out of it only to read it reads it where
// it lies.
#include <algorithm>

#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::schedule {

namespace {

/// All of a row-major buffer without a border.
bool isWhole(const Program& program, const View& view) {
  return view.isDense() && view.offset == 0 &&
         std::ranges::count(view.ivStrides, 0) == CDL_MAX_LOOP_NESTING &&
         !program.buffers[view.buffer].halo &&
         elemBytes(view.elem, static_cast<uint64_t>(view.count())) ==
             program.buffers[view.buffer].bytes;
}

/// The end of the block of `loop` up to which instruction `index`, which lies somewhere in it, may
/// run again.
uint32_t endOf(const Program& program, uint32_t index, uint32_t loop) {
  uint32_t end = index + 1;
  for (uint32_t l = program.instrs[index].loop; l != loop; l = program.loops[l].parent)
    end = program.loops[l].first + program.loops[l].count;
  return end;
}

/// Whether what reads the copy may read its source.
bool canReadPart(const Program& program, uint32_t index) {
  const Instr& copy = program.instrs[index];
  if (copy.kind != CDL_KIND_COPY || copy.loop == kNone || copy.group != kNone) return false;
  const View &from = copy.inputs[0], &to = copy.outputs[0];
  const Buffer &source = program.buffers[from.buffer], &part = program.buffers[to.buffer];
  if (part.role != Role::temp || !isWhole(program, to) || !from.isDense() || from.elem != to.elem)
    return false;
  if (source.role == Role::constant || source.halo || source.space != part.space ||
      from.buffer == to.buffer)
    return false;
  const Loop& loop = program.loops[copy.loop];
  uint32_t end = index + 1;
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    const Instr& instr = program.instrs[i];
    const auto isPart = [&](const View& view) { return view.buffer == to.buffer; };
    if (i != index && std::ranges::any_of(instr.outputs, isPart)) return false;
    if (std::ranges::none_of(instr.inputs, isPart)) continue;
    if (i < index || i >= loop.first + loop.count) return false;
    if (std::ranges::any_of(instr.inputs, [&](const View& view) {
          return isPart(view) && elemBits(view.elem) != elemBits(from.elem);
        }))
      return false;
    end = std::max(end, endOf(program, i, copy.loop));
  }
  for (uint32_t i = index; i < end; ++i)
    if (std::ranges::any_of(program.instrs[i].outputs,
                            [&](const View& view) { return view.buffer == from.buffer; }))
      return false;
  return true;
}

} // namespace

std::vector<bool> readParts(Program& program) {
  std::vector<bool> dead(program.instrs.size(), false);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    if (!canReadPart(program, i)) continue;
    const View from = program.instrs[i].inputs[0];
    const uint32_t part = program.instrs[i].outputs[0].buffer;
    program.instrs[i].inputs.clear();
    program.instrs[i].outputs.clear();
    dead[i] = true;
    for (Instr& instr : program.instrs)
      for (View& view : instr.inputs)
        if (view.buffer == part) view = moved(view, from);
  }
  return dead;
}

} // namespace candela::program::passes::schedule
