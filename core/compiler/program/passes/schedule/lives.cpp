#include "core/compiler/program/passes/schedule/lives.h"

#include <algorithm>

namespace candela::program::passes::schedule {

namespace {

/// The loop that directly in `around` holds what is inside of `loop`; `around` itself when that is
/// the same.
uint32_t childOf(const Program& program, uint32_t around, uint32_t loop) {
  while (loop != around && program.loops[loop].parent != around) loop = program.loops[loop].parent;
  return loop;
}

bool isWithin(const Program& program, uint32_t loop, uint32_t around) {
  while (loop != around && loop != kNone) loop = program.loops[loop].parent;
  return loop == around;
}

/// The innermost loop around both.
uint32_t common(const Program& program, uint32_t a, uint32_t b) {
  while (!isWithin(program, b, a)) a = program.loops[a].parent;
  return a;
}

/// The instruction leaves nothing of what the buffer held.
bool writesAnew(const Program& program, const Instr& instr, uint32_t buffer) {
  const auto isIt = [&](const View& view) { return view.buffer == buffer; };
  const auto isWhole = [&](const View& view) {
    return isIt(view) && view.isDense() && view.offset == 0 &&
           std::ranges::count(view.ivStrides, 0) == 2 &&
           elemBytes(view.elem, static_cast<uint64_t>(view.count())) ==
               program.buffers[buffer].bytes;
  };
  return !instr.inout && std::ranges::none_of(instr.inputs, isIt) &&
         std::ranges::any_of(instr.outputs, isWhole);
}

template <typename Visit> void eachTouch(const Program& program, const Visit& visit) {
  for (uint32_t i = 0; i < program.instrs.size(); ++i)
    for (const auto* views : {&program.instrs[i].inputs, &program.instrs[i].outputs})
      for (const View& view : *views) visit(i, view.buffer);
}

} // namespace

std::vector<Life> livesOf(const Program& program) {
  std::vector<Life> lives(program.buffers.size());
  std::vector<uint32_t> first(program.buffers.size(), kNone), around(program.buffers.size(), kNone);
  eachTouch(program, [&](uint32_t i, uint32_t buffer) {
    const uint32_t loop = program.instrs[i].loop;
    around[buffer] = first[buffer] == kNone ? loop : common(program, around[buffer], loop);
    first[buffer] = std::min(first[buffer], i);
  });
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (around[b] != kNone && (program.instrs[first[b]].loop != around[b] ||
                               !writesAnew(program, program.instrs[first[b]], b)))
      around[b] = kNone;
  eachTouch(program, [&](uint32_t i, uint32_t buffer) {
    const uint32_t loop = childOf(program, around[buffer], program.instrs[i].loop);
    Life& life = lives[buffer];
    const bool isAlone = loop == around[buffer];
    life.first = std::min(life.first, isAlone ? i : program.loops[loop].first);
    life.last = std::max(life.last,
                         isAlone ? i : program.loops[loop].first + program.loops[loop].count - 1);
  });
  eachTouch(program, [&](uint32_t i, uint32_t buffer) {
    if (program.instrs[i].group == kNone) return;
    const Group& group = program.groups[program.instrs[i].group];
    if (group.bands == 1) return;
    lives[buffer].first = std::min(lives[buffer].first, group.first);
    lives[buffer].last = std::max(lives[buffer].last, group.first + group.count - 1);
  });
  return lives;
}

} // namespace candela::program::passes::schedule
