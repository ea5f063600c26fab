#include "core/compiler/program/passes/tile/unroll.h"

namespace candela::program::passes::tile {

namespace {

/// Writes down the instructions of each run of each loop, with the offsets that its counters make.
class Unroller {
public:
  Unroller(const Program& program, uint64_t most) : program_(program), most_(most) {}

  Status run(uint32_t first, uint32_t last, uint32_t loop, int depth) {
    for (uint32_t i = first; i < last;) {
      uint32_t inner = program_.instrs[i].loop;
      if (inner == loop) {
        CDL_TRY(add(program_.instrs[i++]));
        continue;
      }
      while (program_.loops[inner].parent != loop) inner = program_.loops[inner].parent;
      const Loop& region = program_.loops[inner];
      for (uint64_t iv = 0; iv < region.trip; ++iv) {
        iv_[depth] = static_cast<int64_t>(iv);
        CDL_TRY(run(region.first, region.first + region.count, inner, depth + 1));
      }
      i = region.first + region.count;
    }
    return Status::ok();
  }

  std::vector<Instr> instrs;

private:
  Status add(Instr instr) {
    if (instrs.size() == most_)
      return failure(Code::out_of_memory,
                     "without its loops the program has more than {} instructions", most_);
    int depth = 0;
    for (uint32_t l = instr.loop; l != kNone; l = program_.loops[l].parent) ++depth;
    for (auto* views : {&instr.inputs, &instr.outputs})
      for (View& view : *views)
        for (int l = 0; l < CDL_MAX_LOOP_NESTING; ++l) {
          if (l < depth) view.offset += view.ivStrides[l] * iv_[l];
          view.ivStrides[l] = 0;
        }
    instr.loop = instr.group = kNone;
    instr.waits.clear();
    instrs.push_back(std::move(instr));
    return Status::ok();
  }

  const Program& program_;
  uint64_t most_;
  int64_t iv_[CDL_MAX_LOOP_NESTING] = {0, 0};
};

} // namespace

Status unroll(Program& program, uint64_t most) {
  Unroller unroller(program, most);
  CDL_TRY(unroller.run(0, static_cast<uint32_t>(program.instrs.size()), kNone, 0));
  program.instrs = std::move(unroller.instrs);
  program.loops.clear();
  program.groups.clear();
  return Status::ok();
}

} // namespace candela::program::passes::tile
