#include "simulator/func/execution.h"

#include <algorithm>

namespace candela::npu {
namespace {

/// The bytes from the first to the last that a walk of runs touches, relative to its start; strides of any sign.
Interval extentOf(int64_t run, const int64_t (&lengths)[3], const int64_t (&strides)[3]) {
  Interval extent{0, run};
  for (int i = 0; i < 3; ++i) {
    const int64_t step = (lengths[i] - 1) * strides[i];
    extent.from += std::min<int64_t>(step, 0);
    extent.bytes += std::abs(step);
  }
  return extent;
}

void flipTop(uint8_t* bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) bytes[i] ^= 0x80;
}

uint64_t byteCounter(bool isWrite, RegionClass kind) {
  const int base = static_cast<int>(isWrite ? Counter::kDramWrittenInput : Counter::kDramReadConstants);
  return static_cast<uint64_t>(base + static_cast<int>(kind) - (isWrite ? 1 : 0));
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

void load(Execution& e, const Transfer& t, bool fromDram) {
  namespace f = field::load;
  namespace c = field::copy;
  const bool isFill = e.insn.op == Op::kFill;
  const int64_t dst = e[fromDram ? f::kDst : isFill ? int{field::fill::kDst} : int{c::kDst}];
  const int64_t lengths[3] = {t.padded(0), t.padded(1), t.len[2]};
  const Interval near = extentOf(t.run, lengths, t.near), far = extentOf(t.run, t.len, t.far);
  e.memory.range("dst", dst, near.bytes);
  needDisjoint("dst", t.run, {{lengths[0], t.near[0]}, {lengths[1], t.near[1]}, {lengths[2], t.near[2]}});
  e.spend(t.run * lengths[0] * lengths[1] * lengths[2]);
  uint8_t* const base = e.memory.scratchpad() + dst;
  const uint32_t region = fromDram ? static_cast<uint32_t>(e[f::kRegion]) : 0;
  const int64_t source = isFill ? 0 : e[fromDram ? int{f::kFar} : int{c::kSrc}];
  const auto fill = static_cast<uint8_t>(e[fromDram ? int{f::kFill}
                                           : isFill ? int{field::fill::kFill}
                                                    : int{c::kFill}]);
  const bool flip = !isFill && e[fromDram ? int{f::kFlip} : int{c::kFlip}] != 0;
  if (fromDram) {
    e.memory.dramRange(region, source + far.from, far.bytes, false);
  } else if (!isFill) {
    e.memory.range("src", source + far.from, far.bytes);
    if (Interval{source + far.from, far.bytes}.touches({dst, near.bytes}))
      raise(FaultKind::kInstruction, "src {:#x}..{:#x} and dst {:#x}..{:#x} overlap", source + far.from,
            source + far.from + far.bytes - 1, dst, dst + near.bytes - 1);
  }
  walk(t, [&](int64_t to, int64_t from, bool inside) {
    e.memory.writes(dst + to, t.run, e.accessor);
    if (!inside || isFill) {
      std::memset(base + to, fill, static_cast<size_t>(t.run));
      return;
    }
    if (fromDram) {
      e.memory.dramReads(region, source + from, t.run, e.accessor);
      std::memcpy(base + to, e.memory.dram(region) + source + from, static_cast<size_t>(t.run));
    } else {
      e.memory.reads(source + from, t.run, e.accessor);
      std::memcpy(base + to, e.memory.scratchpad() + source + from, static_cast<size_t>(t.run));
    }
    if (flip) flipTop(base + to, t.run);
  });
  if (fromDram)
    e.counters[byteCounter(false, e.memory.classOf(region))] +=
        static_cast<uint64_t>(t.run * t.len[0] * t.len[1] * t.len[2]);
}

void store(Execution& e, const Transfer& t) {
  namespace f = field::store;
  if (t.padLeft || t.padRight || t.padTop || t.padBottom) raise(FaultKind::kInstruction, "a store has no padding");
  const auto region = static_cast<uint32_t>(e[f::kRegion]);
  const int64_t src = e[f::kSrc], target = e[f::kFar];
  const Interval near = extentOf(t.run, t.len, t.near), far = extentOf(t.run, t.len, t.far);
  e.memory.range("src", src, near.bytes);
  e.memory.dramRange(region, target + far.from, far.bytes, true);
  needDisjoint("far", t.run,
               {{t.len[0], std::abs(t.far[0])}, {t.len[1], std::abs(t.far[1])}, {t.len[2], std::abs(t.far[2])}});
  e.spend(t.run * t.len[0] * t.len[1] * t.len[2]);
  walk(t, [&](int64_t from, int64_t to, bool) {
    e.memory.reads(src + from, t.run, e.accessor);
    e.memory.dramWrites(region, target + to, t.run, e.accessor);
    uint8_t* const out = e.memory.dram(region) + target + to;
    std::memcpy(out, e.memory.scratchpad() + src + from, static_cast<size_t>(t.run));
    if (e[f::kFlip]) flipTop(out, t.run);
  });
  e.counters[byteCounter(true, e.memory.classOf(region))] +=
      static_cast<uint64_t>(t.run * t.len[0] * t.len[1] * t.len[2]);
}

} // namespace

void runDma(Execution& e) {
  const Transfer t = transferOf(e.d);
  if (e.insn.op == Op::kStore)
    store(e, t);
  else
    load(e, t, e.insn.op == Op::kLoad);
}

} // namespace candela::npu
