#include <algorithm>
#include <optional>
#include <utility>

#include "simulator/func/execution.h"

namespace candela::npu {
namespace {

/// Bytes of packed activations that are worked on at a time: they stay in the second-level cache.
constexpr int64_t kChunkBytes = 256 * 1024;
/// Products of i16 and 9-bit weights, or of 17 and 9 bits, whose sum fits 32 bits: 128 * 65535 *
/// 255 < 2^31.
constexpr int64_t kWideTaps = 128;
/// The same in pairs without a zero point of the i16: 2 * 128 * 32768 * 255 < 2^31.
constexpr int64_t kWidePairs = 128;

/// The rows or pixels of a tile that some output reads at some tap.
std::vector<bool> touched(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t pad) {
  std::vector<bool> is(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t k = 0; k < kernel; ++k)
      if (const int64_t at = o * stride + k * dilation - pad; at >= 0 && at < in)
        is[static_cast<size_t>(at)] = true;
  return is;
}

/// Announces what the walk reads: each byte once, in runs as long as they go.
void readActivations(Execution& e, const Window& w, int64_t act) {
  const int64_t pixelBytes = w.cin * bytesOf(w.aType);
  needAligned("act", w.aType, act, w.rowStride, w.pixelStride);
  const std::vector<bool> rows =
      touched(w.inH, w.outH, w.kernelH, w.strideH, w.dilationH, w.padTop);
  const std::vector<bool> pixels =
      touched(w.inW, w.outW, w.kernelW, w.strideW, w.dilationW, w.padLeft);
  std::vector<std::pair<int64_t, int64_t>> runs; // of a row: offset, bytes
  for (int64_t x = 0; x < w.inW; ++x) {
    if (!pixels[static_cast<size_t>(x)]) continue;
    const int64_t at = x * w.pixelStride;
    if (!runs.empty() && runs.back().first + runs.back().second >= at && runs.back().first <= at)
      runs.back().second = std::max(runs.back().second, at + pixelBytes - runs.back().first);
    else
      runs.push_back({at, pixelBytes});
  }
  if (runs.empty()) return;
  for (const bool isRange : {true, false})
    for (int64_t row = 0; row < w.planes * w.inH; ++row) {
      const int64_t y = row % w.inH;
      if (!rows[static_cast<size_t>(y)]) continue;
      const int64_t from = act + row / w.inH * w.planeStride() + y * w.rowStride;
      for (const auto& [at, bytes] : runs) {
        if (isRange)
          e.memory.range("act", from + at, bytes);
        else
          e.memory.reads(from + at, bytes, e.accessor);
      }
    }
}

/// Rows of weights in the scratchpad, and the bytes of each.
struct WeightRows {
  int64_t rows, bytes;
};
/// Of `inputs` x `outputs` weights; transposed ones lie output by output.
WeightRows weightRowsOf(const Window& w, int64_t inputs, int64_t outputs) {
  if (w.transposed) return {outputs, inputs * bytesOf(w.wType)};
  return {inputs, outputs * bytesOf(w.wType)};
}

/// Announces the rows of weights from `wgt` on.
void readWeights(Execution& e, const Window& w, int64_t wgt, const WeightRows& weights) {
  const auto [rows, bytes] = weights;
  const int64_t pitch = w.weightPitch;
  needAligned("wgt", w.wType, wgt, pitch, 0);
  if (rows > 1 && pitch < bytes)
    raise(FaultKind::kInstruction, "weight_pitch is {}, a row of weights has {} bytes", pitch,
          bytes);
  e.memory.range("wgt", wgt, (rows - 1) * pitch + bytes);
  if (pitch == bytes) return e.memory.reads(wgt, rows * bytes, e.accessor);
  for (int64_t row = 0; row < rows; ++row) e.memory.reads(wgt + row * pitch, bytes, e.accessor);
}

/// Announces the accumulator rows: `pixels` in each block of columns.
void touchRows(Execution& e, int64_t acc, int64_t pixels, int64_t channels, int64_t pitch,
               bool accumulate) {
  const int64_t columns = e.configuration.columns(), blocks = ceilDiv(channels, columns);
  if (blocks > 1 && pitch < pixels)
    raise(FaultKind::kInstruction, "acc_pitch is {}, a block has {} rows", pitch, pixels);
  e.memory.rowRange(acc, (blocks - 1) * pitch + pixels);
  for (int64_t block = 0; block < blocks; ++block) {
    const auto valid = static_cast<int>(std::min(columns, channels - block * columns));
    e.memory.rowsWritten(acc + block * pitch, pixels, valid, accumulate, e.accessor);
  }
}

int64_t paddedTo8(int64_t n) { return ceilDiv(n, 8) * 8; }

/// k x n weights as pairs of rows, paddedTo8(n) wide.
void packWeights(const Execution& e, const uint8_t* from, const Window& w, int64_t k, int64_t n,
                 int16_t* to) {
  const int64_t padded = paddedTo8(n), pairs = ceilDiv(k, 2);
  const bool isUnsigned = w.wType == Type::kU8;
  if (!w.transposed) {
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const uint8_t* const row = from + 2 * pair * w.weightPitch;
      e.kernels.interleave(row, 2 * pair + 1 < k ? row + w.weightPitch : nullptr, n, padded,
                           isUnsigned, w.wZero, to + pair * padded * 2);
    }
    return;
  }
  std::fill_n(to, pairs * padded * 2, int16_t{0});
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < k; ++j)
      to[(j / 2 * padded + i) * 2 + j % 2] =
          static_cast<int16_t>(elementAt(from + i * w.weightPitch + j, w.wType) - w.wZero);
}

/// The activations of one pixel at one tap, as the products want them.
void packActivations(const Execution& e, const uint8_t* from, const Window& w, int64_t count,
                     int16_t* to) {
  if (w.aType == Type::kI16)
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(int16_t));
  else
    e.kernels.widen(from, count, w.aType == Type::kU8, w.aZero, to);
}

/// `count` rows of packed activations by one block of weights, into the accumulators from `row` on.
void multiply(Execution& e, const Window& w, const int16_t* a, int64_t count, int64_t pairs,
              const int16_t* b, int64_t n, int64_t row, bool accumulate) {
  const int64_t padded = paddedTo8(n);
  if (w.aType != Type::kI16) {
    e.kernels.multiply(a, 2 * pairs, count, pairs, b, padded, n, e.memory.row(row),
                       e.configuration.columns(), accumulate);
    return e.memory.extend(row, count, n);
  }
  // (a - zp) * w = a * w - zp * w: the products are of 16 bits, in 64 bits nothing is lost.
  std::vector<int64_t> start(static_cast<size_t>(n));
  for (int64_t i = 0; w.aZero && i < n; ++i)
    for (int64_t pair = 0; pair < pairs; ++pair)
      start[static_cast<size_t>(i)] -=
          int64_t{w.aZero} * (b[(pair * padded + i) * 2] + b[(pair * padded + i) * 2 + 1]);
  std::vector<int32_t>& sums = e.matrix.sums;
  std::vector<int64_t>& wide = e.matrix.wideSums;
  sums.resize(static_cast<size_t>(count * n));
  wide.resize(sums.size());
  for (int64_t p = 0; p < count; ++p) std::copy(start.begin(), start.end(), wide.begin() + p * n);
  for (int64_t pair = 0; pair < pairs; pair += kWidePairs) {
    e.kernels.multiply(a + 2 * pair, 2 * pairs, count, std::min(kWidePairs, pairs - pair),
                       b + pair * padded * 2, padded, n, sums.data(), n, false);
    for (size_t i = 0; i < sums.size(); ++i) wide[i] += sums[i];
  }
  for (int64_t p = 0; p < count; ++p)
    e.memory.writeWide(row + p, n, wide.data() + p * n, accumulate);
}

/// Where a position reads at a tap, from the first activation of the tile on; nothing outside of
/// it.
std::optional<int64_t> offsetOf(const Window& w, int64_t position, int64_t tap) {
  const int64_t line = position / w.outW;
  const int64_t y = line % w.outH * w.strideH + tap / w.kernelW * w.dilationH - w.padTop;
  const int64_t x = position % w.outW * w.strideW + tap % w.kernelW * w.dilationW - w.padLeft;
  if (y < 0 || y >= w.inH || x < 0 || x >= w.inW) return std::nullopt;
  return line / w.outH * w.planeStride() + y * w.rowStride + x * w.pixelStride;
}

/// k x n weights of bf16 as rows of f32, paddedTo8(n) wide.
void packFloatWeights(const uint8_t* from, const Window& w, int64_t k, int64_t n,
                      std::vector<float>& to) {
  const int64_t padded = paddedTo8(n);
  const int64_t term = w.transposed ? bytesOf(w.wType) : w.weightPitch;
  const int64_t output = w.transposed ? w.weightPitch : bytesOf(w.wType);
  to.assign(static_cast<size_t>(k * padded), 0);
  for (int64_t t = 0; t < k; ++t)
    for (int64_t i = 0; i < n; ++i)
      to[static_cast<size_t>(t * padded + i)] = floatAt(from + t * term + i * output, w.wType);
}

/// `count` elements of bf16, or as many zeros.
void widenFloats(const uint8_t* from, int64_t count, float* to) {
  if (!from) std::fill_n(to, count, 0.0F);
  for (int64_t i = 0; from && i < count; ++i) to[i] = floatAt(from + 2 * i, Type::kBf16);
}

/// `count` rows of k activations by one block of weights, into the accumulators from `row` on.
void multiplyFloats(Execution& e, const float* a, int64_t count, const WeightTile& weights,
                    int64_t row, bool accumulate) {
  const int64_t n = weights.n;
  std::vector<float>& sums = e.matrix.floatSums;
  sums.assign(static_cast<size_t>(count * n), 0);
  for (int64_t p = 0; accumulate && p < count; ++p)
    e.memory.readFloats(row + p, n, sums.data() + p * n);
  e.kernels.multiplyFloats(a, count, weights.k, weights.floats.data(), paddedTo8(n), n,
                           sums.data());
  for (int64_t p = 0; p < count; ++p) e.memory.writeFloats(row + p, n, sums.data() + p * n);
}

/// A convolution of bf16 whose operands were announced.
void convolveFloats(Execution& e, const Window& w) {
  namespace f = field::conv;
  const int64_t acc = e[f::kAcc], columns = e.configuration.columns();
  const int64_t taps = w.kernelH * w.kernelW, k = taps * w.cin, pixels = w.pixels();
  const uint8_t* const act = e.memory.scratchpad() + e[f::kAct];
  const uint8_t* const wgt = e.memory.scratchpad() + e[f::kWgt];
  const int64_t chunk = std::clamp<int64_t>(kChunkBytes / (4 * k), 6, std::max<int64_t>(pixels, 6));
  std::vector<float>& a = e.matrix.floatActivations;
  a.resize(static_cast<size_t>(std::min(chunk, pixels) * k));
  std::vector<WeightTile> blocks;
  for (int64_t first = 0; first < w.cout; first += columns) {
    WeightTile& block = blocks.emplace_back();
    block.k = k;
    block.n = std::min(columns, w.cout - first);
    packFloatWeights(wgt + first * (w.transposed ? w.weightPitch : bytesOf(w.wType)), w, k, block.n,
                     block.floats);
  }
  for (int64_t first = 0; first < pixels; first += chunk) {
    const int64_t count = std::min(chunk, pixels - first);
    for (int64_t p = 0; p < count; ++p)
      for (int64_t tap = 0; tap < taps; ++tap) {
        const std::optional<int64_t> from = offsetOf(w, first + p, tap);
        widenFloats(from ? act + *from : nullptr, w.cin, a.data() + p * k + tap * w.cin);
      }
    int64_t row = acc + first;
    for (const WeightTile& block : blocks) {
      multiplyFloats(e, a.data(), count, block, row, e[f::kAccumulate] != 0);
      row += w.accPitch;
    }
  }
}

/// The same channel by channel.
void convolveFloatsDepthwise(Execution& e, const Window& w) {
  namespace f = field::dwconv;
  const int64_t acc = e[f::kAcc], columns = e.configuration.columns();
  const uint8_t* const act = e.memory.scratchpad() + e[f::kAct];
  const uint8_t* const wgt = e.memory.scratchpad() + e[f::kWgt];
  const std::vector<uint8_t> outside(static_cast<size_t>(2 * columns), 0);
  std::vector<float>& sums = e.matrix.floatSums;
  for (int64_t first = 0; first < w.cin; first += columns) {
    const int64_t n = std::min(columns, w.cin - first);
    for (int64_t p = 0; p < w.pixels(); ++p) {
      const int64_t row = acc + first / columns * w.accPitch + p;
      sums.assign(static_cast<size_t>(n), 0);
      if (e[f::kAccumulate]) e.memory.readFloats(row, n, sums.data());
      for (int64_t tap = 0; tap < w.kernelH * w.kernelW; ++tap) {
        const std::optional<int64_t> from = offsetOf(w, p, tap);
        e.kernels.depthwiseFloats(from ? act + *from + 2 * first : outside.data(),
                                  wgt + tap * w.weightPitch + 2 * first, n, sums.data());
      }
      e.memory.writeFloats(row, n, sums.data());
    }
  }
}

void convolve(Execution& e, const Window& w) {
  namespace f = field::conv;
  const int64_t acc = e[f::kAcc], act = e[f::kAct], wgt = e[f::kWgt],
                columns = e.configuration.columns();
  const bool accumulate = e[f::kAccumulate] != 0;
  const int64_t taps = w.kernelH * w.kernelW, k = taps * w.cin, pixels = w.pixels();
  const int64_t blocks = ceilDiv(w.cout, columns), pairs = ceilDiv(k, 2);
  e.memory.rowRange(acc, pixels);
  readWeights(e, w, wgt, weightRowsOf(w, k, w.cout));
  e.spend(k * w.cout * pixels);
  readActivations(e, w, act);
  touchRows(e, acc, pixels, w.cout, w.accPitch, accumulate);
  if (isFloat(w.aType)) return convolveFloats(e, w);

  const uint8_t* const scratchpad = e.memory.scratchpad();
  const int64_t chunk = std::clamp<int64_t>(kChunkBytes / (4 * pairs), 6, pixels < 6 ? 6 : pixels);
  std::vector<int16_t>& a = e.matrix.activations;
  a.resize(static_cast<size_t>(std::min(chunk, pixels) * pairs * 2));
  const auto padding = static_cast<int16_t>(w.aType == Type::kI16 ? w.aZero : 0);
  // All weights side by side, so that a chunk of activations is packed once.
  const int64_t blockSize = pairs * paddedTo8(std::min(columns, w.cout)) * 2;
  std::vector<int16_t>& weights = e.matrix.weights;
  if (weights.size() < static_cast<size_t>(blocks * blockSize))
    weights.resize(static_cast<size_t>(blocks * blockSize));
  for (int64_t block = 0; block < blocks; ++block)
    packWeights(e, scratchpad + wgt + block * columns * (w.transposed ? w.weightPitch : 1), w, k,
                std::min(columns, w.cout - block * columns), weights.data() + block * blockSize);
  for (int64_t first = 0; first < pixels; first += chunk) {
    const int64_t count = std::min(chunk, pixels - first);
    for (int64_t p = 0; p < count; ++p) {
      const int64_t row = (first + p) / w.outW, ox = (first + p) % w.outW, oy = row % w.outH;
      const uint8_t* const plane = scratchpad + act + row / w.outH * w.planeStride();
      int16_t* to = a.data() + p * pairs * 2;
      for (int64_t ky = 0; ky < w.kernelH; ++ky) {
        const int64_t y = oy * w.strideH + ky * w.dilationH - w.padTop;
        for (int64_t kx = 0; kx < w.kernelW; ++kx, to += w.cin) {
          const int64_t x = ox * w.strideW + kx * w.dilationW - w.padLeft;
          if (y >= 0 && y < w.inH && x >= 0 && x < w.inW)
            packActivations(e, plane + y * w.rowStride + x * w.pixelStride, w, w.cin, to);
          else
            std::fill_n(to, w.cin, padding);
        }
      }
      if (k % 2) *to = 0;
    }
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t n = std::min(columns, w.cout - block * columns);
      multiply(e, w, a.data(), count, pairs, weights.data() + block * blockSize, n,
               acc + block * w.accPitch + first, accumulate);
    }
  }
}

void convolveDepthwise(Execution& e, const Window& w) {
  namespace f = field::dwconv;
  const int64_t acc = e[f::kAcc], act = e[f::kAct], wgt = e[f::kWgt],
                columns = e.configuration.columns();
  const bool accumulate = e[f::kAccumulate] != 0;
  const int64_t taps = w.kernelH * w.kernelW, pixels = w.pixels(), blocks = ceilDiv(w.cin, columns);
  if (w.transposed) raise(FaultKind::kInstruction, "depthwise weights are not transposed");
  if (w.taps > 1)
    raise(FaultKind::kInstruction, "depthwise convolution packs no taps, taps is {}", w.taps);
  if (w.flat) raise(FaultKind::kInstruction, "depthwise convolution has no flat sums, flat is 1");
  e.memory.rowRange(acc, pixels);
  readWeights(e, w, wgt, {taps, w.cin * bytesOf(w.wType)});
  e.spend(taps * w.cin * pixels);
  readActivations(e, w, act);
  touchRows(e, acc, pixels, w.cin, w.accPitch, accumulate);
  if (isFloat(w.aType)) return convolveFloatsDepthwise(e, w);
  const uint8_t* const scratchpad = e.memory.scratchpad();
  const bool isWide = w.aType == Type::kI16, wUnsigned = w.wType == Type::kU8;
  std::vector<int32_t>& sums = e.matrix.sums;
  std::vector<int64_t>& wide = e.matrix.wideSums;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first = block * columns, n = std::min(columns, w.cin - first);
    sums.resize(static_cast<size_t>(n));
    for (int64_t p = 0; p < pixels; ++p) {
      const int64_t at = acc + block * w.accPitch + p;
      int32_t* const row = isWide ? sums.data() : e.memory.row(at);
      if (isWide || !accumulate) std::fill_n(row, n, 0);
      if (isWide) wide.assign(static_cast<size_t>(n), 0);
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t line = p / w.outW;
        const int64_t y = line % w.outH * w.strideH + tap / w.kernelW * w.dilationH - w.padTop;
        const int64_t x = p % w.outW * w.strideW + tap % w.kernelW * w.dilationW - w.padLeft;
        if (y < 0 || y >= w.inH || x < 0 || x >= w.inW) continue;
        const uint8_t* const from = scratchpad + act + line / w.outH * w.planeStride() +
                                    y * w.rowStride + x * w.pixelStride + first * bytesOf(w.aType);
        const uint8_t* const weights = scratchpad + wgt + tap * w.weightPitch + first;
        if (!isWide) {
          e.kernels.depthwise(from, w.aType == Type::kU8, w.aZero, weights, wUnsigned, w.wZero, n,
                              row);
          continue;
        }
        e.kernels.depthwise16(reinterpret_cast<const int16_t*>(from), w.aZero, weights, wUnsigned,
                              w.wZero, n, row);
        if (tap % kWideTaps != kWideTaps - 1) continue;
        for (int64_t c = 0; c < n; ++c) wide[static_cast<size_t>(c)] += std::exchange(row[c], 0);
      }
      if (!isWide) continue;
      for (int64_t c = 0; c < n; ++c) wide[static_cast<size_t>(c)] += row[c];
      e.memory.writeWide(at, n, wide.data(), accumulate);
    }
    if (!isWide) e.memory.extend(acc + block * w.accPitch, pixels, n);
  }
}

void loadWeights(Execution& e, const Window& w) {
  namespace f = field::ldw;
  const int64_t k = e[f::kK], n = e[f::kN], wgt = e[f::kWgt];
  if (k > e.configuration.rows() || n > e.configuration.columns())
    raise(FaultKind::kInstruction, "{} x {} weights, the array has {} x {}", k, n,
          e.configuration.rows(), e.configuration.columns());
  readWeights(e, w, wgt, weightRowsOf(w, k, n));
  e.spend(k * n);
  e.matrix.shadow.isFloat = isFloat(w.wType);
  if (isFloat(w.wType)) {
    packFloatWeights(e.memory.scratchpad() + wgt, w, k, n, e.matrix.shadow.floats);
  } else {
    e.matrix.shadow.pairs.resize(static_cast<size_t>(ceilDiv(k, 2) * paddedTo8(n) * 2));
    packWeights(e, e.memory.scratchpad() + wgt, w, k, n, e.matrix.shadow.pairs.data());
  }
  e.matrix.shadow.k = k;
  e.matrix.shadow.n = n;
}

void stream(Execution& e, Window w) {
  namespace f = field::mm;
  if (e[f::kSwap]) {
    if (e.matrix.shadow.k == 0)
      raise(FaultKind::kUninitialised, "swap = 1, but no weights were loaded");
    std::swap(e.matrix.active, e.matrix.shadow);
    e.matrix.shadow.k = 0;
  }
  const WeightTile& tile = e.matrix.active;
  if (tile.k == 0) raise(FaultKind::kUninitialised, "the array has no weights");
  if (tile.isFloat != isFloat(w.aType))
    raise(FaultKind::kInstruction, "of weights and activations one is bf16: bf16 goes by bf16");
  const int64_t acc = e[f::kAcc], act = e[f::kAct], pixels = w.outH * w.outW,
                pairs = ceilDiv(tile.k, 2);
  const bool accumulate = e[f::kAccumulate] != 0;
  // One tap over exactly the vectors that are named.
  w.cin = tile.k;
  w.kernelH = w.kernelW = w.planes = 1;
  w.padTop = w.padLeft = 0;
  w.inH = (w.outH - 1) * w.strideH + 1;
  w.inW = (w.outW - 1) * w.strideW + 1;
  e.memory.rowRange(acc, pixels);
  e.spend(tile.k * tile.n * pixels);
  readActivations(e, w, act);
  touchRows(e, acc, pixels, tile.n, 0, accumulate);
  if (tile.isFloat) {
    std::vector<float>& floats = e.matrix.floatActivations;
    floats.resize(static_cast<size_t>(pixels * tile.k));
    for (int64_t p = 0; p < pixels; ++p)
      widenFloats(e.memory.scratchpad() + act + *offsetOf(w, p, 0), tile.k,
                  floats.data() + p * tile.k);
    return multiplyFloats(e, floats.data(), pixels, tile, acc, accumulate);
  }
  std::vector<int16_t>& a = e.matrix.activations;
  a.assign(static_cast<size_t>(pixels * pairs * 2), 0);
  for (int64_t p = 0; p < pixels; ++p) {
    const int64_t from =
        act + p / w.outW * w.strideH * w.rowStride + p % w.outW * w.strideW * w.pixelStride;
    packActivations(e, e.memory.scratchpad() + from, w, tile.k, a.data() + p * pairs * 2);
  }
  multiply(e, w, a.data(), pixels, pairs, tile.pairs.data(), tile.n, acc, accumulate);
}

} // namespace

void runMatrix(Execution& e) {
  const Window w = windowOf(e.d, e.configuration);
  const bool isByHand = e.insn.op == Op::kLdw || e.insn.op == Op::kMm;
  if (isByHand && e.configuration.isOutputStationary())
    raise(FaultKind::kInstruction, "'{}' keeps no weights: array.dataflow is output_stationary",
          e.configuration.name);
  switch (e.insn.op) {
  case Op::kConv:
    convolve(e, w);
    e.matrix.active.k = e.matrix.shadow.k = 0; // its own weights went through the same registers
    return;
  case Op::kDwconv: return convolveDepthwise(e, w);
  case Op::kLdw: return loadWeights(e, w);
  default: return stream(e, w);
  }
}

} // namespace candela::npu
