#include "simulator/func/execution.h"

#include <algorithm>

namespace candela::npu {
namespace {

/// The bytes from the first to the last that a walk of runs touches, relative to its start; strides
/// of any sign.
Interval extentOf(int64_t run, const int64_t (&lengths)[3], const int64_t (&strides)[3]) {
  Interval extent{0, run};
  for (int i = 0; i < 3; ++i) {
    const int64_t step = (lengths[i] - 1) * strides[i];
    extent.from += std::min<int64_t>(step, 0);
    extent.bytes += std::abs(step);
  }
  return extent;
}

void copyRun(uint8_t* to, const uint8_t* from, int64_t count, bool flip) {
  if (count == 1)
    *to = *from;
  else
    std::memcpy(to, from, static_cast<size_t>(count));
  if (!flip) return;
  for (int64_t i = 0; i < count; ++i) to[i] ^= 0x80;
}

std::array<std::pair<int64_t, int64_t>, 3> box(const int64_t (&lengths)[3],
                                               const int64_t (&strides)[3]) {
  return {{{lengths[0], strides[0]}, {lengths[1], strides[1]}, {lengths[2], strides[2]}}};
}

/// Both sides of a transfer, run by run: far(offset) and near(offset), or null for padding.
template <typename Run> void walk(const Transfer& t, Run run) {
  for (int64_t k = 0; k < t.len[2]; ++k)
    for (int64_t j = 0; j < t.padded(1); ++j)
      for (int64_t i = 0; i < t.padded(0); ++i) {
        const int64_t near = k * t.near[2] + j * t.near[1] + i * t.near[0];
        const int64_t x = i - t.padLeft, y = j - t.padTop;
        const bool inside = x >= 0 && x < t.len[0] && y >= 0 && y < t.len[1];
        run(near, inside ? k * t.far[2] + y * t.far[1] + x * t.far[0] : 0, inside);
      }
}

/// The fields of an instruction that writes the scratchpad; a fill has neither source nor flip.
struct WriteFields {
  int dst, fill, source = -1, flip = -1;
};
WriteFields writeFieldsOf(Op op) {
  namespace l = field::load;
  namespace c = field::copy;
  switch (op) {
  case Op::kFill: return {.dst = field::fill::kDst, .fill = field::fill::kFill};
  case Op::kCopy: return {.dst = c::kDst, .fill = c::kFill, .source = c::kSrc, .flip = c::kFlip};
  default: return {.dst = l::kDst, .fill = l::kFill, .source = l::kFar, .flip = l::kFlip};
  }
}

/// Writes the scratchpad: a load, a copy or a fill.
void write(Execution& e, const Transfer& t) {
  const bool isFill = e.insn.op == Op::kFill;
  const bool fromDram = e.insn.op == Op::kLoad;
  const WriteFields fields = writeFieldsOf(e.insn.op);
  const int64_t dst = e[fields.dst];
  const int64_t lengths[3] = {t.padded(0), t.padded(1), t.len[2]};
  const Interval near = extentOf(t.run, lengths, t.near), far = extentOf(t.run, t.len, t.far);
  e.memory.range("dst", dst, near.bytes);
  needDisjoint("dst", t.run,
               {{lengths[0], t.near[0]}, {lengths[1], t.near[1]}, {lengths[2], t.near[2]}});
  e.spend(t.run * lengths[0] * lengths[1] * lengths[2]);
  uint8_t* const base = e.memory.scratchpad() + dst;
  const uint32_t region = fromDram ? static_cast<uint32_t>(e[field::load::kRegion]) : 0;
  const int64_t source = isFill ? 0 : e[fields.source];
  const auto fill = static_cast<uint8_t>(e[fields.fill]);
  const bool flip = !isFill && e[fields.flip] != 0;
  if (fromDram) {
    e.memory.dramRange(region, source + far.from, far.bytes, false);
  } else if (!isFill) {
    e.memory.range("src", source + far.from, far.bytes);
    if (Interval{source + far.from, far.bytes}.touches({dst, near.bytes}))
      raise(FaultKind::kInstruction, "src {:#x}..{:#x} and dst {:#x}..{:#x} overlap",
            source + far.from, source + far.from + far.bytes - 1, dst, dst + near.bytes - 1);
  }
  if (!isFill)
    eachStretch(source, t.run, box(t.len, t.far), [&](int64_t at, int64_t bytes) {
      if (fromDram)
        e.memory.dramReads(region, at, bytes, e.accessor);
      else
        e.memory.reads(at, bytes, e.accessor);
    });
  eachStretch(dst, t.run, box(lengths, t.near),
              [&](int64_t at, int64_t bytes) { e.memory.writes(at, bytes, e.accessor); });
  const uint8_t* const origin = (fromDram ? e.memory.dram(region) : e.memory.scratchpad()) + source;
  walk(t, [&](int64_t to, int64_t from, bool inside) {
    if (inside && !isFill)
      copyRun(base + to, origin + from, t.run, flip);
    else
      std::memset(base + to, fill, static_cast<size_t>(t.run));
  });
}

void store(Execution& e, const Transfer& t) {
  namespace f = field::store;
  if (t.padLeft || t.padRight || t.padTop || t.padBottom)
    raise(FaultKind::kInstruction, "a store has no padding");
  const auto region = static_cast<uint32_t>(e[f::kRegion]);
  const int64_t src = e[f::kSrc], target = e[f::kFar];
  const Interval near = extentOf(t.run, t.len, t.near), far = extentOf(t.run, t.len, t.far);
  e.memory.range("src", src, near.bytes);
  e.memory.dramRange(region, target + far.from, far.bytes, true);
  needDisjoint("far", t.run,
               {{t.len[0], std::abs(t.far[0])},
                {t.len[1], std::abs(t.far[1])},
                {t.len[2], std::abs(t.far[2])}});
  e.spend(t.run * t.len[0] * t.len[1] * t.len[2]);
  eachStretch(src, t.run, box(t.len, t.near),
              [&](int64_t at, int64_t bytes) { e.memory.reads(at, bytes, e.accessor); });
  eachStretch(target, t.run, box(t.len, t.far), [&](int64_t at, int64_t bytes) {
    e.memory.dramWrites(region, at, bytes, e.accessor);
  });
  const uint8_t* const from = e.memory.scratchpad() + src;
  uint8_t* const to = e.memory.dram(region) + target;
  const bool flip = e[f::kFlip] != 0;
  walk(t, [&](int64_t near, int64_t far, bool) { copyRun(to + far, from + near, t.run, flip); });
}

} // namespace

void runDma(Execution& e) {
  const Transfer t = transferOf(e.d);
  if (e.insn.op == Op::kStore)
    store(e, t);
  else
    write(e, t);
}

} // namespace candela::npu
