// What a run of a loop computes for the next one is computed where the next one reads it, instead
// of being copied there.
#include <algorithm>

#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::schedule {

namespace {

bool touches(const Instr& instr, uint32_t buffer) {
  const auto isIt = [&](const View& view) { return view.buffer == buffer; };
  return std::ranges::any_of(instr.inputs, isIt) || std::ranges::any_of(instr.outputs, isIt);
}

/// Every view of the buffer counts in elements of the same size as this one.
bool viewsAlike(const Instr& instr, const View& like) {
  const auto isAlike = [&](const View& view) {
    return view.buffer != like.buffer || elemBits(view.elem) == elemBits(like.elem);
  };
  return std::ranges::all_of(instr.inputs, isAlike) && std::ranges::all_of(instr.outputs, isAlike);
}

bool isElementwise(uint16_t kind) {
  return kind == CDL_KIND_BINARY || kind == CDL_KIND_UNARY || kind == CDL_KIND_SELECT ||
         kind == CDL_KIND_CONVERT || kind == CDL_KIND_ELEMENTWISE || kind == CDL_KIND_RESCALE;
}

/// The instruction reads the place only element by element, each where it then writes.
bool writesOver(const Instr& instr, const View& place) {
  if (!isElementwise(instr.kind) || instr.outputs.size() != 1) return false;
  const View out = moved(instr.outputs[0], place);
  return out.isDense() && std::ranges::all_of(instr.inputs, [&](const View& in) {
           return in.buffer != place.buffer ||
                  (in.isDense() && in.dims == out.dims && in.offset == out.offset &&
                   std::ranges::equal(in.ivStrides, out.ivStrides) &&
                   elemBits(in.elem) == elemBits(out.elem));
         });
}

/// Whether the copy `index` at the end of a run of its loop can go, with what it copies computed in
/// place.
bool canCarryInPlace(const Program& program, uint32_t index) {
  const Instr& copy = program.instrs[index];
  if (copy.kind != CDL_KIND_COPY || copy.loop == kNone || copy.group != kNone) return false;
  const View &from = copy.inputs[0], &to = copy.outputs[0];
  const Buffer &source = program.buffers[from.buffer], &target = program.buffers[to.buffer];
  const bool isWhole = from.isDense() && from.offset == 0 &&
                       std::ranges::count(from.ivStrides, 0) == 2 &&
                       elemBytes(from.elem, static_cast<uint64_t>(from.count())) == source.bytes;
  if (!isWhole || !to.isDense() || from.elem != to.elem || from.buffer == to.buffer) return false;
  if (source.role != Role::temp || source.halo || target.halo || source.space != target.space)
    return false;
  if (target.role != Role::temp && target.alignment < source.alignment) return false;
  const Loop& loop = program.loops[copy.loop];
  uint32_t begin = kNone;
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    if (i == index || !touches(program.instrs[i], from.buffer)) continue;
    if (i < loop.first || i > index || !viewsAlike(program.instrs[i], from)) return false;
    begin = std::min(begin, i);
  }
  if (begin == kNone) return false;
  // A loop inside of this one runs again: all of it counts.
  uint32_t writer = begin;
  for (uint32_t l = program.instrs[begin].loop; l != copy.loop; l = program.loops[l].parent) {
    begin = program.loops[l].first;
    writer = kNone;
  }
  for (uint32_t i = begin; i < index; ++i)
    if (touches(program.instrs[i], to.buffer) &&
        !(i == writer && writesOver(program.instrs[i], to)))
      return false;
  return true;
}

} // namespace

View moved(View view, const View& there) {
  view.buffer = there.buffer;
  view.offset += there.offset;
  for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) view.ivStrides[l] += there.ivStrides[l];
  return view;
}

std::vector<bool> carryInPlace(Program& program) {
  std::vector<bool> dead(program.instrs.size(), false);
  for (uint32_t i = 0; i < program.instrs.size(); ++i) {
    if (!canCarryInPlace(program, i)) continue;
    const View from = program.instrs[i].inputs[0], to = program.instrs[i].outputs[0];
    Buffer& target = program.buffers[to.buffer];
    target.alignment = std::max(target.alignment, program.buffers[from.buffer].alignment);
    program.instrs[i].inputs.clear();
    program.instrs[i].outputs.clear();
    dead[i] = true;
    for (Instr& instr : program.instrs)
      for (auto* views : {&instr.inputs, &instr.outputs})
        for (View& view : *views)
          if (view.buffer == from.buffer) view = moved(view, to);
  }
  return dead;
}

} // namespace candela::program::passes::schedule
