// What every run of a loop would compute alike is computed once, before the loop.
#include <algorithm>

#include "core/compiler/program/passes/schedule/simplify.h"

namespace candela::program::passes::schedule {

namespace {

bool writes(const Instr& instr, uint32_t buffer) {
  return std::ranges::any_of(instr.outputs,
                             [&](const View& view) { return view.buffer == buffer; });
}

bool touches(const Instr& instr, uint32_t buffer) {
  return writes(instr, buffer) ||
         std::ranges::any_of(instr.inputs, [&](const View& view) { return view.buffer == buffer; });
}

/// An instruction of `loop` that reads nothing that the loop writes, and writes what nothing else
/// does.
bool isInvariant(const Program& program, uint32_t index, const Loop& loop) {
  const Instr& instr = program.instrs[index];
  const int level = loop.parent == kNone ? 0 : 1;
  if (instr.inout || instr.group != kNone || instr.outputs.empty()) return false;
  for (const View& in : instr.inputs) {
    if (in.ivStrides[level]) return false;
    for (uint32_t i = loop.first; i < loop.first + loop.count; ++i)
      if (writes(program.instrs[i], in.buffer)) return false;
  }
  for (const View& out : instr.outputs) {
    if (program.buffers[out.buffer].role != Role::temp || out.ivStrides[level]) return false;
    for (uint32_t i = 0; i < program.instrs.size(); ++i)
      if (i != index && (i < index ? touches(program.instrs[i], out.buffer)
                                   : writes(program.instrs[i], out.buffer)))
        return false;
  }
  return true;
}

} // namespace

void hoistInvariants(Program& program) {
  if (!program.groups.empty()) return;
  // inner loops stand behind outer ones
  for (uint32_t l = static_cast<uint32_t>(program.loops.size()); l-- > 0;) {
    Loop& loop = program.loops[l];
    for (uint32_t i = loop.first; i < loop.first + loop.count; ++i) {
      if (loop.count == 1 || program.instrs[i].loop != l || !isInvariant(program, i, loop))
        continue;
      std::rotate(program.instrs.begin() + loop.first, program.instrs.begin() + i,
                  program.instrs.begin() + i + 1);
      for (Loop& inner : program.loops)
        if (inner.parent == l && inner.first < i) ++inner.first;
      program.instrs[loop.first].loop = loop.parent;
      ++loop.first, --loop.count;
    }
  }
}

} // namespace candela::program::passes::schedule
