#include <algorithm>

#include "candela/numerics.h"
#include "simulator/func/execution.h"

namespace candela::npu {
namespace {

struct ChannelParams {
  int32_t bias, mult, shift;
};

std::vector<ChannelParams> readParams(Execution& e, const Epilogue& d) {
  if (d.params % 8) raise(FaultKind::kPort, "params {:#x} are not aligned to 8 bytes", d.params);
  e.memory.range("params", d.params, 8 * d.channels);
  e.memory.reads(d.params, 8 * d.channels, e.accessor);
  std::vector<ChannelParams> params(static_cast<size_t>(d.channels));
  const uint8_t* from = e.memory.scratchpad() + d.params;
  for (ChannelParams& channel : params) {
    const auto packed = static_cast<uint32_t>(elementAt(from + 4, Type::kI32));
    channel = {elementAt(from, Type::kI32), static_cast<int32_t>(packed & 0xffffff),
               static_cast<int32_t>(packed >> 24)};
    from += 8;
  }
  return params;
}

/// The part of a window of one dimension that lies within `in`: first and behind the last.
std::pair<int64_t, int64_t> clipped(int64_t out, int64_t stride, int64_t size, int64_t pad, int64_t in) {
  const int64_t from = out * stride - pad;
  return {std::max<int64_t>(from, 0), std::min(from + size, in)};
}

void needReach(const Epilogue& d) {
  const auto reaches = [](int64_t out, int64_t stride, int64_t size, int64_t pad, int64_t in) {
    return pad < size && (out - 1) * stride - pad < in;
  };
  if (!reaches(d.outH, d.poolStrideH, d.poolH, d.poolPadTop, d.inH) ||
      !reaches(d.outW, d.poolStrideW, d.poolW, d.poolPadLeft, d.inW))
    raise(FaultKind::kInstruction, "a pool window lies wholly outside of the {} x {} accumulated positions", d.inH,
          d.inW);
}

Interval boxOf(int64_t from, const Epilogue& d, int64_t rowStride, int64_t pixelStride, int64_t bytes) {
  return {from, (d.outH - 1) * rowStride + (d.outW - 1) * pixelStride + bytes};
}

void requantize(Execution& e, const Epilogue& d) {
  namespace f = field::requant;
  const int64_t acc = e[f::kAcc], dst = e[f::kDst], res = e[f::kRes], columns = e.configuration.columns();
  const bool hasResidual = e[f::kResidual] != 0, hasTable = e[f::kTable] != 0;
  const int64_t blocks = ceilDiv(d.channels, columns);
  Memory& memory = e.memory;
  needReach(d);
  if (blocks > 1 && d.accPitch < d.inH * d.inW)
    raise(FaultKind::kInstruction, "acc_pitch is {}, a block has {} rows", d.accPitch, d.inH * d.inW);
  memory.rowRange(acc, (blocks - 1) * d.accPitch + d.inH * d.inW);
  const Interval out = boxOf(dst, d, d.rowStride, d.pixelStride, d.channels);
  memory.range("dst", out.from, out.bytes);
  needDisjoint("dst", d.channels, {{d.outW, d.pixelStride}, {d.outH, d.rowStride}});
  e.spend(d.outH * d.outW * d.channels * d.poolH * d.poolW);
  const std::vector<ChannelParams> params = readParams(e, d);

  Rescale r{};
  if (hasResidual) {
    r = rescaleOf(e.second);
    if (r.bType == Type::kI32 || r.outType == Type::kI32)
      raise(FaultKind::kInstruction, "a residual is i8 or u8, and so is the result");
    boundsOf(r, r.outType);
    const Interval in = boxOf(res, d, r.rowStride, r.pixelStride, d.channels);
    memory.range("res", in.from, in.bytes);
    const bool isSame = res == dst && r.rowStride == d.rowStride && r.pixelStride == d.pixelStride;
    if (!isSame && in.touches(out))
      raise(FaultKind::kInstruction, "residual {:#x} and dst {:#x} overlap without being the same", res, dst);
  }
  const uint8_t* table = nullptr;
  if (hasTable) {
    memory.range("table", d.table, 256);
    memory.reads(d.table, 256, e.accessor);
    table = memory.scratchpad() + d.table;
  }
  // Positions that no window covers are not read.
  const auto covered = [](int64_t at, int64_t outs, int64_t stride, int64_t size, int64_t pad) {
    return at + pad - std::min((at + pad) / stride, outs - 1) * stride < size;
  };
  for (int64_t block = 0; block < blocks; ++block) {
    const auto valid = static_cast<int>(std::min(columns, d.channels - block * columns));
    for (int64_t y = 0; y < d.inH; ++y) {
      if (!covered(y, d.outH, d.poolStrideH, d.poolH, d.poolPadTop)) continue;
      const int64_t row = acc + block * d.accPitch + y * d.inW;
      int64_t from = 0;
      for (int64_t x = 0; x <= d.inW; ++x) {
        if (x < d.inW && covered(x, d.outW, d.poolStrideW, d.poolW, d.poolPadLeft)) continue;
        if (x > from) memory.rowsRead(row + from, x - from, valid, e.accessor);
        from = x + 1;
      }
    }
  }

  uint8_t* const scratchpad = memory.scratchpad();
  const int typeLow = (hasResidual ? r.outType : d.outType) == Type::kI8 ? -128 : 0;
  std::vector<int32_t> values(static_cast<size_t>(d.channels));
  for (int64_t oy = 0; oy < d.outH; ++oy) {
    const auto [y0, y1] = clipped(oy, d.poolStrideH, d.poolH, d.poolPadTop, d.inH);
    for (int64_t ox = 0; ox < d.outW; ++ox) {
      const auto [x0, x1] = clipped(ox, d.poolStrideW, d.poolW, d.poolPadLeft, d.inW);
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t first = block * columns, n = std::min(columns, d.channels - first);
        for (int64_t y = y0; y < y1; ++y)
          for (int64_t x = x0; x < x1; ++x) {
            const int32_t* const row = memory.row(acc + block * d.accPitch + y * d.inW + x);
            if (y == y0 && x == x0)
              std::copy(row, row + n, values.begin() + first);
            else
              for (int64_t c = 0; c < n; ++c)
                values[static_cast<size_t>(first + c)] = std::max(values[static_cast<size_t>(first + c)], row[c]);
          }
      }
      const int64_t to = dst + oy * d.rowStride + ox * d.pixelStride;
      const int64_t from = res + oy * r.rowStride + ox * r.pixelStride;
      if (hasResidual) memory.reads(from, d.channels, e.accessor);
      memory.writes(to, d.channels, e.accessor);
      for (int64_t c = 0; c < d.channels; ++c) {
        const ChannelParams& p = params[static_cast<size_t>(c)];
        int64_t value = cdl_rescale1(cdl_add_i32(values[static_cast<size_t>(c)], p.bias), p.mult, 0, p.shift, d.zero,
                                     d.low, d.high);
        if (hasResidual)
          value = cdl_rescale2(value - d.zero, elementAt(scratchpad + from + c, r.bType) - r.bZero, r.aMult, r.bMult,
                               r.aShift, r.bShift, r.shift, r.zero, r.low, r.high);
        scratchpad[to + c] = hasTable ? table[value - typeLow] : static_cast<uint8_t>(value);
      }
    }
  }
  e.count(Counter::kRequantValues, static_cast<uint64_t>(d.outH * d.outW * d.channels));
}

/// accload and accstore: i32 on both sides.
void moveRows(Execution& e, const Epilogue& d, bool isLoad) {
  namespace f = field::accload;
  const int64_t acc = e[f::kAcc], at = e[f::kSrc], columns = e.configuration.columns(), bytes = 4 * d.channels;
  const int64_t blocks = ceilDiv(d.channels, columns), pixels = d.outH * d.outW;
  if (at % 4 || d.rowStride % 4 || d.pixelStride % 4)
    raise(FaultKind::kPort, "{:#x} with strides {} and {} is not aligned to 4 bytes", at, d.rowStride, d.pixelStride);
  if (blocks > 1 && d.accPitch < pixels)
    raise(FaultKind::kInstruction, "acc_pitch is {}, a block has {} rows", d.accPitch, pixels);
  e.memory.rowRange(acc, (blocks - 1) * d.accPitch + pixels);
  const Interval box = boxOf(at, d, d.rowStride, d.pixelStride, bytes);
  e.memory.range(isLoad ? "src" : "dst", box.from, box.bytes);
  if (!isLoad) needDisjoint("dst", bytes, {{d.outW, d.pixelStride}, {d.outH, d.rowStride}});
  e.spend(pixels * d.channels);
  for (int64_t block = 0; block < blocks; ++block) {
    const auto valid = static_cast<int>(std::min(columns, d.channels - block * columns));
    if (isLoad)
      e.memory.rowsWritten(acc + block * d.accPitch, pixels, valid, false, e.accessor);
    else
      e.memory.rowsRead(acc + block * d.accPitch, pixels, valid, e.accessor);
  }
  for (int64_t p = 0; p < pixels; ++p) {
    const int64_t place = at + p / d.outW * d.rowStride + p % d.outW * d.pixelStride;
    if (isLoad)
      e.memory.reads(place, bytes, e.accessor);
    else
      e.memory.writes(place, bytes, e.accessor);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t n = std::min(columns, d.channels - block * columns), row = acc + block * d.accPitch + p;
      uint8_t* const side = e.memory.scratchpad() + place + 4 * block * columns;
      if (isLoad)
        std::memcpy(e.memory.row(row), side, static_cast<size_t>(4 * n));
      else
        std::memcpy(side, e.memory.row(row), static_cast<size_t>(4 * n));
    }
  }
  e.count(Counter::kRequantValues, static_cast<uint64_t>(pixels * d.channels));
}

} // namespace

Bounds boundsOf(const Rescale& rescale, Type type) {
  if (type == Type::kI32) return {rescale.zero, INT32_MIN, INT32_MAX};
  const int low = type == Type::kI8 ? -128 : 0, high = type == Type::kI8 ? 127 : 255;
  if (rescale.low < low || rescale.high > high)
    raise(FaultKind::kInstruction, "low {} and high {} leave {}..{}", rescale.low, rescale.high, low, high);
  return {rescale.zero, rescale.low, rescale.high};
}

void needShift(std::string_view what, int32_t shift, Type type) {
  if (type == Type::kI32 && shift > 7) raise(FaultKind::kInstruction, "{} is {}, of i32 up to 7", what, shift);
}

void runRequant(Execution& e) {
  const Epilogue d = epilogueOf(e.d);
  if (e.insn.op == Op::kRequant)
    requantize(e, d);
  else
    moveRows(e, d, e.insn.op == Op::kAccload);
}

} // namespace candela::npu
