#include <algorithm>

#include "simulator/func/execution.h"

namespace candela::npu {
namespace {

/// Operands of a requantization, ranges and types checked.
struct Requantization {
  int64_t acc, dst, res;
  bool hasResidual, hasTable;
  Rescale r;
  std::vector<int32_t> bias, mult, shift; ///< of each channel
};

void readParams(Execution& e, const Epilogue& d, Requantization& q) {
  if (d.params % 8) raise(FaultKind::kPort, "params {:#x} are not aligned to 8 bytes", d.params);
  e.memory.range("params", d.params, 8 * d.channels);
  e.memory.reads(d.params, 8 * d.channels, e.accessor);
  const uint8_t* from = e.memory.scratchpad() + d.params;
  for (int64_t c = 0; c < d.channels; ++c, from += 8) {
    const auto packed = static_cast<uint32_t>(elementAt(from + 4, Type::kI32));
    q.bias.push_back(elementAt(from, Type::kI32));
    q.mult.push_back(static_cast<int32_t>(packed & 0xffffff));
    q.shift.push_back(static_cast<int32_t>(packed >> 24));
  }
}

/// The part of a window of one dimension that lies within `in`: first and behind the last.
std::pair<int64_t, int64_t> clipped(int64_t out, int64_t stride, int64_t size, int64_t pad,
                                    int64_t in) {
  const int64_t from = out * stride - pad;
  return {std::max<int64_t>(from, 0), std::min(from + size, in)};
}

void needReach(const Epilogue& d) {
  const auto reaches = [](int64_t out, int64_t stride, int64_t size, int64_t pad, int64_t in) {
    return pad < size && (out - 1) * stride - pad < in;
  };
  if (!reaches(d.outH, d.poolStrideH, d.poolH, d.poolPadTop, d.inH) ||
      !reaches(d.outW, d.poolStrideW, d.poolW, d.poolPadLeft, d.inW))
    raise(FaultKind::kInstruction,
          "a pool window lies wholly outside of the {} x {} accumulated positions", d.inH, d.inW);
}

Interval boxOf(int64_t from, const Epilogue& d, int64_t rowStride, int64_t pixelStride,
               int64_t bytes) {
  return {from, (d.outH - 1) * rowStride + (d.outW - 1) * pixelStride + bytes};
}

/// The accumulators of a row as they are read: their low 32 bits, or all 40.
template <typename Sum>
const Sum* rowOf(Memory& memory, int64_t row, int64_t n, std::vector<Sum>& room) {
  if constexpr (sizeof(Sum) == sizeof(int32_t)) {
    return memory.row(row);
  } else {
    memory.readWide(row, n, room.data());
    return room.data();
  }
}
int64_t withBias(int32_t sum, int32_t bias) { return cdl_add_i32(sum, bias); }
int64_t withBias(int64_t sum, int32_t bias) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum + bias) << 24) >> 24; // wraps at 40 bits
}

/// Announces what the walk reads of the accumulators: positions that no window covers are not read.
void readPositions(Execution& e, const Epilogue& d, int64_t acc) {
  const auto covered = [](int64_t at, int64_t outs, int64_t stride, int64_t size, int64_t pad) {
    return at + pad - std::min((at + pad) / stride, outs - 1) * stride < size;
  };
  const int64_t columns = e.configuration.columns();
  for (int64_t block = 0; block * columns < d.channels; ++block) {
    const auto valid = static_cast<int>(std::min(columns, d.channels - block * columns));
    for (int64_t y = 0; y < d.inH; ++y) {
      if (!covered(y, d.outH, d.poolStrideH, d.poolH, d.poolPadTop)) continue;
      const int64_t row = acc + block * d.accPitch + y * d.inW;
      int64_t from = 0;
      for (int64_t x = 0; x <= d.inW; ++x) {
        if (x < d.inW && covered(x, d.outW, d.poolStrideW, d.poolW, d.poolPadLeft)) continue;
        if (x > from) e.memory.rowsRead(row + from, x - from, valid, e.accessor);
        from = x + 1;
      }
    }
  }
}

template <typename Sum>
void requantizeSums(Execution& e, const Epilogue& d, const Requantization& q) {
  Memory& memory = e.memory;
  uint8_t* const scratchpad = memory.scratchpad();
  const uint8_t* const table = scratchpad + d.table;
  const Rescale& r = q.r;
  const Type last = q.hasResidual ? r.outType : d.outType;
  const int64_t columns = e.configuration.columns(), outBytes = bytesOf(d.outType),
                resBytes = bytesOf(r.bType);
  std::vector<int64_t> sums(static_cast<size_t>(d.channels));
  std::vector<int32_t> results(sums.size()), others(sums.size()), secondShift(sums.size(), r.shift);
  std::vector<Sum> values(static_cast<size_t>(d.channels)), room(static_cast<size_t>(columns));
  for (int64_t oy = 0; oy < d.outH; ++oy) {
    const auto [y0, y1] = clipped(oy, d.poolStrideH, d.poolH, d.poolPadTop, d.inH);
    for (int64_t ox = 0; ox < d.outW; ++ox) {
      const auto [x0, x1] = clipped(ox, d.poolStrideW, d.poolW, d.poolPadLeft, d.inW);
      for (int64_t first = 0; first < d.channels; first += columns) {
        const int64_t n = std::min(columns, d.channels - first),
                      block = q.acc + first / columns * d.accPitch;
        for (int64_t y = y0; y < y1; ++y)
          for (int64_t x = x0; x < x1; ++x) {
            const Sum* const row = rowOf<Sum>(memory, block + y * d.inW + x, n, room);
            if (y == y0 && x == x0)
              std::copy(row, row + n, values.begin() + first);
            else
              for (int64_t c = 0; c < n; ++c)
                values[static_cast<size_t>(first + c)] =
                    std::max(values[static_cast<size_t>(first + c)], row[c]);
          }
      }
      const int64_t to = q.dst + oy * d.rowStride + ox * d.pixelStride;
      const int64_t from = q.res + oy * r.rowStride + ox * r.pixelStride;
      if (q.hasResidual) memory.reads(from, d.channels * resBytes, e.accessor);
      memory.writes(to, d.channels * outBytes, e.accessor);
      for (int64_t c = 0; c < d.channels; ++c)
        sums[static_cast<size_t>(c)] =
            withBias(values[static_cast<size_t>(c)], q.bias[static_cast<size_t>(c)]) *
            q.mult[static_cast<size_t>(c)];
      e.kernels.scale(sums.data(), q.shift.data(), d.channels, d.zero, d.low, d.high,
                      results.data());
      if (q.hasResidual) {
        e.kernels.load(scratchpad + from, r.bType, d.channels, others.data());
        for (int64_t c = 0; c < d.channels; ++c)
          sums[static_cast<size_t>(c)] =
              scaledSum(int64_t{results[static_cast<size_t>(c)]} - d.zero,
                        int64_t{others[static_cast<size_t>(c)]} - r.bZero, r);
        e.kernels.scale(sums.data(), secondShift.data(), d.channels, r.zero, r.low, r.high,
                        results.data());
      }
      if (q.hasTable)
        for (int32_t& result : results) result = tableAt(table, last, result);
      e.kernels.store(results.data(), last, d.channels, scratchpad + to);
    }
  }
}

/// What a requantization of floats reads beside the sums.
struct FloatParams {
  std::vector<float> scale, bias; ///< of each channel
  float low = 0, high = 0;
};

FloatParams readFloatParams(Execution& e, const Epilogue& d) {
  if (d.params % 8) raise(FaultKind::kPort, "params {:#x} are not aligned to 8 bytes", d.params);
  const int64_t bytes = 8 * (d.channels + 1);
  e.memory.range("params", d.params, bytes);
  e.memory.reads(d.params, bytes, e.accessor);
  FloatParams params;
  const uint8_t* from = e.memory.scratchpad() + d.params;
  for (int64_t c = 0; c < d.channels; ++c, from += 8) {
    params.scale.push_back(floatAt(from, Type::kF32));
    params.bias.push_back(floatAt(from + 4, Type::kF32));
  }
  params.low = floatAt(from, Type::kF32);
  params.high = floatAt(from + 4, Type::kF32);
  return params;
}

/// The residual of floats, checked as far as the walk of `out` says.
void readFloatResidual(Execution& e, const Epilogue& d, Requantization& q, const Interval& out) {
  q.r = rescaleOf(e.second, e.configuration);
  const Rescale& r = q.r;
  if (!isFloat(r.bType) || r.outType != d.outType)
    raise(FaultKind::kInstruction,
          "a residual of floats is bf16 or f32, and out_type the same in both descriptors");
  needAligned("res", r.bType, q.res, r.rowStride, r.pixelStride);
  const Interval in = boxOf(q.res, d, r.rowStride, r.pixelStride, d.channels * bytesOf(r.bType));
  e.memory.range("res", in.from, in.bytes);
  const bool isSame = q.res == q.dst && r.rowStride == d.rowStride &&
                      r.pixelStride == d.pixelStride && r.bType == d.outType;
  if (!isSame && in.touches(out))
    raise(FaultKind::kInstruction, "residual {:#x} and dst {:#x} overlap without being the same",
          q.res, q.dst);
}

/// The largest of the window of an output, by channel; NaN where one is.
void largestFloats(Execution& e, const Epilogue& d, const Requantization& q, int64_t oy, int64_t ox,
                   std::vector<float>& values) {
  const auto [y0, y1] = clipped(oy, d.poolStrideH, d.poolH, d.poolPadTop, d.inH);
  const auto [x0, x1] = clipped(ox, d.poolStrideW, d.poolW, d.poolPadLeft, d.inW);
  const int64_t columns = e.configuration.columns();
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t first = 0; first < d.channels; first += columns) {
    const int64_t n = std::min(columns, d.channels - first);
    for (int64_t y = y0; y < y1; ++y)
      for (int64_t x = x0; x < x1; ++x) {
        e.memory.readFloats(q.acc + first / columns * d.accPitch + y * d.inW + x, n, row.data());
        for (int64_t c = 0; c < n; ++c) {
          float& value = values[static_cast<size_t>(first + c)];
          const float one = row[static_cast<size_t>(c)];
          value = y == y0 && x == x0 ? one : cdl_max_f32(value, one);
        }
      }
  }
}

/// The rest of a requantization whose sums are f32; `out`: where it goes.
void requantizeFloats(Execution& e, const Epilogue& d, Requantization& q, const Interval& out) {
  if (q.hasTable) raise(FaultKind::kInstruction, "floats have no table");
  const FloatParams params = readFloatParams(e, d);
  if (q.hasResidual) readFloatResidual(e, d, q, out);
  readPositions(e, d, q.acc);
  uint8_t* const scratchpad = e.memory.scratchpad();
  const int64_t outBytes = bytesOf(d.outType), resBytes = bytesOf(q.r.bType);
  std::vector<float> values(static_cast<size_t>(d.channels));
  for (int64_t oy = 0; oy < d.outH; ++oy)
    for (int64_t ox = 0; ox < d.outW; ++ox) {
      largestFloats(e, d, q, oy, ox, values);
      const int64_t to = q.dst + oy * d.rowStride + ox * d.pixelStride;
      const int64_t from = q.res + oy * q.r.rowStride + ox * q.r.pixelStride;
      if (q.hasResidual) e.memory.reads(from, d.channels * resBytes, e.accessor);
      e.memory.writes(to, d.channels * outBytes, e.accessor);
      for (int64_t c = 0; c < d.channels; ++c) {
        const auto channel = static_cast<size_t>(c);
        const float scaled = values[channel] * params.scale[channel];
        float value = scaled + params.bias[channel];
        if (q.hasResidual) value += floatAt(scratchpad + from + c * resBytes, q.r.bType);
        value = cdl_min_f32(cdl_max_f32(value, params.low), params.high);
        storeFloat(scratchpad + to + c * outBytes, d.outType, value);
      }
    }
}

void requantize(Execution& e, const Epilogue& d) {
  namespace f = field::requant;
  Requantization q{e[f::kAcc], e[f::kDst], e[f::kRes], e[f::kResidual] != 0, e[f::kTable] != 0, {},
                   {},         {},         {}};
  const int64_t blocks = ceilDiv(d.channels, e.configuration.columns()),
                outBytes = d.channels * bytesOf(d.outType);
  Memory& memory = e.memory;
  needReach(d);
  if (blocks > 1 && d.accPitch < d.inH * d.inW)
    raise(FaultKind::kInstruction, "acc_pitch is {}, a block has {} rows", d.accPitch,
          d.inH * d.inW);
  memory.rowRange(q.acc, (blocks - 1) * d.accPitch + d.inH * d.inW);
  needAligned("dst", d.outType, q.dst, d.rowStride, d.pixelStride);
  const Interval out = boxOf(q.dst, d, d.rowStride, d.pixelStride, outBytes);
  memory.range("dst", out.from, out.bytes);
  needDisjoint("dst", outBytes, {{d.outW, d.pixelStride}, {d.outH, d.rowStride}});
  e.spend(d.outH * d.outW * d.channels * d.poolH * d.poolW);
  if (isFloat(d.outType)) return requantizeFloats(e, d, q, out);
  readParams(e, d, q);

  if (q.hasResidual) {
    Rescale& r = q.r;
    r = rescaleOf(e.second, e.configuration);
    if (r.bType == Type::kI32 || r.outType == Type::kI32)
      raise(FaultKind::kInstruction, "a residual is not i32, nor is the result");
    if (isFloat(r.bType) || isFloat(r.outType))
      raise(FaultKind::kInstruction, "a residual of integers is no float, nor is the result");
    if (bytesOf(r.outType) != bytesOf(d.outType))
      raise(FaultKind::kInstruction, "out_type has {} bytes in the one descriptor, {} in the other",
            bytesOf(d.outType), bytesOf(r.outType));
    boundsOf(r, r.outType);
    needZero("b_zp", r.bZero, r.bType);
    needShift("a_shift", r.aShift, r.outType);
    needShift("b_shift", r.bShift, r.bType);
    needAligned("res", r.bType, q.res, r.rowStride, r.pixelStride);
    const Interval in = boxOf(q.res, d, r.rowStride, r.pixelStride, d.channels * bytesOf(r.bType));
    memory.range("res", in.from, in.bytes);
    const bool isSame = q.res == q.dst && r.rowStride == d.rowStride &&
                        r.pixelStride == d.pixelStride && bytesOf(r.bType) == bytesOf(d.outType);
    if (!isSame && in.touches(out))
      raise(FaultKind::kInstruction, "residual {:#x} and dst {:#x} overlap without being the same",
            q.res, q.dst);
  }
  if (q.hasTable) {
    needAligned("table", d.outType, d.table, 0, 0);
    memory.range("table", d.table, tableBytes(d.outType));
    memory.reads(d.table, tableBytes(d.outType), e.accessor);
  }
  readPositions(e, d, q.acc);
  if (d.wide)
    requantizeSums<int64_t>(e, d, q);
  else
    requantizeSums<int32_t>(e, d, q);
}

/// accload and accstore: i32 on both sides, or i64 and all 40 bits.
void moveRows(Execution& e, const Epilogue& d, bool isLoad) {
  namespace f = field::accload;
  const int64_t acc = e[f::kAcc], at = e[f::kSrc], columns = e.configuration.columns();
  const int64_t unit = d.wide ? 8 : 4;
  const int64_t bytes = unit * d.channels;
  const int64_t blocks = ceilDiv(d.channels, columns), pixels = d.outH * d.outW;
  if (at % unit || d.rowStride % unit || d.pixelStride % unit)
    raise(FaultKind::kPort, "{:#x} with strides {} and {} is not aligned to {} bytes", at,
          d.rowStride, d.pixelStride, unit);
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
      const int64_t n = std::min(columns, d.channels - block * columns),
                    row = acc + block * d.accPitch + p;
      uint8_t* const side = e.memory.scratchpad() + place + unit * block * columns;
      auto* const wide = reinterpret_cast<int64_t*>(side); // aligned: checked above
      if (d.wide && isLoad) {
        e.memory.writeWide(row, n, wide, false);
      } else if (d.wide) {
        e.memory.readWide(row, n, wide);
      } else if (isLoad) {
        std::memcpy(e.memory.row(row), side, static_cast<size_t>(4 * n));
        e.memory.extend(row, 1, n);
      } else {
        std::memcpy(side, e.memory.row(row), static_cast<size_t>(4 * n));
      }
    }
  }
}

} // namespace

Bounds boundsOf(const Rescale& rescale, Type type) {
  needZero("zp", rescale.zero, type);
  if (type == Type::kI32) return {rescale.zero, INT32_MIN, INT32_MAX};
  const int low = lowestOf(type), high = highestOf(type);
  if (rescale.low < low || rescale.high > high)
    raise(FaultKind::kInstruction, "low {} and high {} leave {}..{}", rescale.low, rescale.high,
          low, high);
  return {rescale.zero, rescale.low, rescale.high};
}

int mostShift(Type type) {
  if (type == Type::kI32) return 7;
  return type == Type::kI16 ? 22 : 30;
}

void needShift(std::string_view what, int32_t shift, Type type) {
  const int most = mostShift(type);
  if (shift > most)
    raise(
        FaultKind::kInstruction, "{} is {}, of {} up to {}", what, shift,
        memberName(
            kEnums[descriptorInfo(DescriptorKind::kRescale).fields[descriptor::rescale::kBType].of],
            static_cast<int64_t>(type)),
        most);
}

void runRequant(Execution& e) {
  const Epilogue d = epilogueOf(e.d, e.configuration);
  if (e.insn.op == Op::kRequant)
    requantize(e, d);
  else
    moveRows(e, d, e.insn.op == Op::kAccload);
}

} // namespace candela::npu
