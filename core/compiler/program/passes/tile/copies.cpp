// How many bytes the copies of a tiled Program move.
#include "core/compiler/program/passes/tile/tile.h"

namespace candela::program::passes::tile {

namespace {

bool isLocal(const Program& program, const View& view) {
  return program.spaces[program.buffers[view.buffer].space].local;
}

/// The buffers that a product takes as its second operand, or that are copied to such a one. They
/// are found backwards, since copies stand before what reads them.
std::vector<bool> weightsOf(const Program& program) {
  std::vector<bool> isWeight(program.buffers.size(), false);
  for (size_t i = program.instrs.size(); i-- > 0;) {
    const Instr& instr = program.instrs[i];
    if (instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL)
      isWeight[instr.inputs[1].buffer] = true;
    if (instr.kind == CDL_KIND_COPY && isWeight[instr.outputs[0].buffer])
      isWeight[instr.inputs[0].buffer] = true;
  }
  return isWeight;
}

void add(CopiedBytes& sum, const CopiedBytes& part) {
  sum.weights += part.weights;
  sum.tables += part.tables;
  sum.loaded += part.loaded;
  sum.stored += part.stored;
  sum.inner += part.inner;
  sum.copies += part.copies;
}

} // namespace

CopiesOfProgram copiesOf(const Program& program) {
  const std::vector<bool> isWeight = weightsOf(program);
  CopiesOfProgram copies;
  for (const Instr& instr : program.instrs) {
    CopiedBytes& here = copies.instrs.emplace_back();
    if (instr.kind != CDL_KIND_COPY) continue;
    const View &from = instr.inputs[0], &to = instr.outputs[0];
    const bool fromLocal = isLocal(program, from), toLocal = isLocal(program, to);
    if (!fromLocal && !toLocal) continue;
    const uint64_t bytes = elemBytes(from.elem, static_cast<uint64_t>(from.count()));
    const bool isConstant = program.buffers[from.buffer].role == Role::constant;
    here.copies = 1;
    if (fromLocal && toLocal)
      here.inner = bytes;
    else if (fromLocal)
      here.stored = bytes;
    else if (!isConstant)
      here.loaded = bytes;
    else
      (isWeight[from.buffer] ? here.weights : here.tables) = bytes;
    add(copies.total, here);
  }
  return copies;
}

} // namespace candela::program::passes::tile
