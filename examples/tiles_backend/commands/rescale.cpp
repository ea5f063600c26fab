// RESCALE: y = clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp), exact.
#include "../compiler.hpp"
#include "../engine.hpp"

namespace tiles {

void compileRescale(Compiler& c) {
  Command command{.op = Opcode::RESCALE, .inputs = c.instr().inputs};
  for (uint32_t i = 0; i < c.instr().inputs; i += 4) { // a, and b where there is one
    const int64_t left = c.attr(i ? CDL_ATTR_B_LEFT_SHIFT : CDL_ATTR_A_LEFT_SHIFT, 0);
    int64_t most = 63 - 24 - (c.instr().inputs > 4);
    for (int64_t range = rangeOf(c.input(i).elem).high; range; range /= 2) --most;
    if (left > most)
      c.refuse(CDL_REASON_ATTRIBUTE,
               cdl::text("a left shift by ", left, " leaves 63 bits, shift by ", most, " at most"));
    command.left[i / 4] = uint8_t(left);
  }
  const Range range = rangeOf(c.output().elem);
  command.low = int32_t(std::max(range.low, c.attr(CDL_ATTR_CLAMP_MIN, range.low)));
  command.high = int32_t(std::min(range.high, c.attr(CDL_ATTR_CLAMP_MAX, range.high)));
  c.beginAll();
  std::vector<uint8_t> in;
  for (uint32_t i = 0; i < c.instr().inputs; ++i) in.push_back(command.in[i] = c.load(c.input(i)));
  c.store(c.output(), c.emit(command, in));
}

void runRescale(const Tile& tile, const Command& command) {
  const int32_t* in[6];
  for (int i = 0; i < command.inputs; ++i) in[i] = tile.lanes<int32_t>(command.in[i]);
  const auto [a, m, shift, zero, b, mb] = in;
  int32_t* y = tile.lanes<int32_t>(command.to);
  const int ka = command.left[0], kb = command.left[1];
  for (int64_t l = 0; l < tile.size(); ++l)
    y[l] = int32_t(command.inputs > 4 ? cdl_rescale2(a[l], b[l], m[l], mb[l], ka, kb, shift[l],
                                                     zero[l], command.low, command.high)
                                      : cdl_rescale1(a[l], m[l], ka, shift[l], zero[l], command.low,
                                                     command.high));
}

} // namespace tiles
