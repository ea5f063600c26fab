// Each instruction on random operands against loops written from the manual: the whole scratchpad
// and all accumulators afterwards, with plain kernels and with the best.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "simulator/npu_device.h"
#include "tests/unit/simulator/program_builder.h"

namespace candela::npu {
namespace {

constexpr int64_t kArea = 65536;
constexpr uint64_t kSeed = 4711;
constexpr int64_t kI8 = 0, kU8 = 1, kI32 = 2, kI16 = 3, kBf16 = 4, kF32 = 5;
constexpr int64_t kDiv = 10; ///< of vbinary

int64_t bytesOf(int64_t type) {
  if (type == kI32 || type == kF32) return 4;
  return type == kI16 || type == kBf16 ? 2 : 1;
}
/// Of a narrow type.
int64_t lowestOf(int64_t type) { return type == kI8 ? -128 : type == kI16 ? -32768 : 0; }
int64_t highestOf(int64_t type) { return type == kI8 ? 127 : type == kI16 ? 32767 : 255; }
int64_t wrapped(__int128 value) { return static_cast<int32_t>(static_cast<uint32_t>(value)); }
int64_t wrapped40(__int128 value) {
  return static_cast<int64_t>(static_cast<uint64_t>(value) << 24) >> 24;
}

struct State {
  std::vector<uint8_t> spad;
  std::vector<int64_t> acc;
  int64_t columns;

  int64_t value(int64_t at, int64_t type) const {
    if (type == kI8) return static_cast<int8_t>(spad[at]);
    if (type == kU8) return spad[at];
    if (type == kI16) return static_cast<int16_t>(spad[at] | spad[at + 1] << 8);
    int32_t word;
    std::memcpy(&word, &spad[at], 4);
    return word;
  }
  void store(int64_t at, int64_t type, int64_t value) {
    const auto word = static_cast<uint32_t>(value);
    std::memcpy(&spad[at], &word, static_cast<size_t>(bytesOf(type)));
  }
  /// What the table at `at` makes of a value.
  int64_t mapped(int64_t at, int64_t type, int64_t x) const {
    if (type != kI16) return spad[at + x - lowestOf(type)];
    const int64_t entry = (x + 32768) / 128, left = value(at + 2 * entry, kI16),
                  right = value(at + 2 * entry + 2, kI16);
    // of 256ths: halves up, so floor
    const int64_t twice = 2 * (right - left) * ((x + 32768) % 128) + 128;
    return left + (twice >= 0 ? twice / 256 : -((255 - twice) / 256));
  }
  int64_t& cell(int64_t row, int64_t column) { return acc[row * columns + column]; }

  /// A float as its type has it.
  float real(int64_t at, int64_t type) const {
    uint32_t bits = 0;
    std::memcpy(type == kBf16 ? reinterpret_cast<uint8_t*>(&bits) + 2
                              : reinterpret_cast<uint8_t*>(&bits),
                &spad[at], static_cast<size_t>(bytesOf(type)));
    return std::bit_cast<float>(bits);
  }
  void storeReal(int64_t at, int64_t type, float value) {
    const uint32_t bits = realBits(value, type);
    std::memcpy(&spad[at], &bits, static_cast<size_t>(bytesOf(type)));
  }
  /// To nearest, ties to even; there is one NaN.
  static uint32_t realBits(float value, int64_t type) {
    if (std::isnan(value)) return type == kBf16 ? 0x7fc0 : 0x7fc00000;
    const auto bits = std::bit_cast<uint32_t>(value);
    if (type == kF32) return bits;
    const uint32_t rest = bits & 0xffff;
    const uint32_t kept = bits >> 16;
    return rest > 0x8000 || (rest == 0x8000 && kept % 2 != 0) ? kept + 1 : kept;
  }
  float sum(int64_t row, int64_t column) {
    return std::bit_cast<float>(static_cast<int32_t>(cell(row, column)));
  }
  void setSum(int64_t row, int64_t column, float value) {
    cell(row, column) = static_cast<int32_t>(realBits(value, kF32));
  }
};

/// Half to even, in 128 bits.
int64_t rescaled(__int128 sum, int64_t shift, int64_t zero, int64_t low, int64_t high) {
  __int128 value = 0;
  if (shift < 100) {
    const __int128 unit = static_cast<__int128>(1) << shift;
    value = sum / unit;
    __int128 rest = sum % unit;
    if (rest < 0) rest += unit, --value;
    if (2 * rest > unit || (2 * rest == unit && value % 2 != 0)) ++value;
  }
  value += zero;
  return static_cast<int64_t>(value < low ? low : value > high ? high : value);
}

Configuration configurationOf(int64_t rows, int64_t columns, bool int16) {
  Configuration c = *findConfiguration("gem16");
  c.values[key::kArrayRows] = rows;
  c.values[key::kArrayColumns] = columns;
  c.values[key::kScratchpadBytes] = kArea;
  c.values[key::kAccumulatorBytes] = 32768;
  c.values[key::kFeaturesInt16] = int16;
  return c;
}

/// The same with floats.
Configuration floatConfigurationOf(int64_t rows, int64_t columns) {
  Configuration c = configurationOf(rows, columns, false);
  c.values[key::kFeaturesBf16] = 1;
  return c;
}

class Instructions : public testing::Test {
protected:
  std::mt19937_64 random{kSeed};
  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  }
  int64_t chance(int64_t value, int64_t otherwise) { return random() % 2 ? value : otherwise; }

  /// Of the array, from 4 on: a power of two, as hardware has them, or any number.
  int64_t side(int64_t most) {
    const int64_t any = draw(4, most);
    return random() % 2 ? any : static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(any)));
  }

  int64_t next = 0; ///< where the next operand may lie
  int64_t place(int64_t bytes, int64_t alignment = 1) {
    next = (next + draw(0, 20) + alignment - 1) / alignment * alignment;
    const int64_t at = next;
    next += bytes;
    return at;
  }
  int64_t zeroOf(int64_t type) { return draw(lowestOf(type), highestOf(type)); }
  /// i8 or u8; with int16 i16 as often.
  int64_t narrowType(bool int16) { return int16 && random() % 2 ? kI16 : draw(kI8, kU8); }
  int64_t anyType(bool int16) { return random() % 3 ? narrowType(int16) : kI32; }
  /// Bytes of the scratchpad that are all alike, from 0; none: random ones.
  int64_t alike = 0, alikeByte = 0;
  /// Every 16 bits are a bf16 of 2^-7 to 2^8, so that sums have terms of like sizes.
  bool areModerate = false;

  /// One instruction on random memory, and what `expected` makes of that memory.
  void check(const Configuration& c, const std::string& op, const Fields& fields,
             const std::vector<std::pair<DescriptorKind, Fields>>& descriptors, int engine,
             const std::function<void(State&)>& expected, int round) {
    ASSERT_LE(next, kArea) << op << " round " << round;
    const int64_t unit = c.hasInt16() ? 8 : 4, rows = c.accumulatorRows(),
                  accBytes = rows * c.columns() * unit;
    constexpr int64_t kBytes = 2 * kArea;
    ProgramBuilder p(c);
    p.binary.regions = {{"in", RegionClass::kInput, kBytes}, {"out", RegionClass::kOutput, kBytes}};
    const auto copyAll = [&](const char* name, int64_t far, int64_t bytes, bool isLoad) {
      p.descriptor(15, DescriptorKind::kTransfer,
                   {{"run", bytes / 2},
                    {"len1", 2},
                    {"far_stride1", bytes / 2},
                    {"near_stride1", bytes / 2}});
      if (isLoad)
        p.op(name, {{"region", 0}, {"far", far}, {"d", 15}});
      else
        p.op(name, {{"region", 1}, {"far", far}, {"d", 15}});
      p.fence();
    };
    const Fields walk{{"out_w", rows},
                      {"channels", c.columns()},
                      {"pixel_stride", unit * c.columns()},
                      {"wide", c.hasInt16()}};
    copyAll("load", kArea, accBytes, true);
    p.descriptor(14, DescriptorKind::kEpilogue, walk);
    p.op("accload", {{"d", 14}});
    p.fence();
    copyAll("load", 0, kArea, true);
    for (size_t i = 0; i < descriptors.size(); ++i)
      p.descriptor(static_cast<int>(i), descriptors[i].first, descriptors[i].second);
    p.op(op, fields, {}, {}, engine);
    p.fence();
    copyAll("store", 0, kArea, false);
    p.op("accstore", {{"d", 14}});
    p.fence();
    copyAll("store", kArea, accBytes, false);
    p.op("halt", {});

    std::vector<std::byte> in(kBytes), out[2];
    for (size_t i = 0; i < in.size(); i += 8) {
      const uint64_t eight = random();
      std::memcpy(&in[i], &eight, 8);
    }
    std::fill_n(in.begin(), alike, static_cast<std::byte>(alikeByte));
    for (size_t i = 0; areModerate && i < in.size(); i += 2) {
      uint16_t half = 0;
      std::memcpy(&half, &in[i], 2);
      half = static_cast<uint16_t>((half & 0x807f) | (120 + (half >> 7 & 15)) << 7);
      std::memcpy(&in[i], &half, 2);
    }
    State state{std::vector<uint8_t>(kArea), std::vector<int64_t>(accBytes / unit), c.columns()};
    std::memcpy(state.spad.data(), in.data(), kArea);
    const auto cellOf = [&](const std::vector<std::byte>& memory, int64_t i) {
      int64_t value = 0;
      std::memcpy(&value, &memory[kArea + unit * i], static_cast<size_t>(unit));
      return unit == 8 ? value : static_cast<int32_t>(value);
    };
    for (size_t i = 0; i < state.acc.size(); ++i) {
      state.acc[i] = cellOf(in, static_cast<int64_t>(i));
      if (unit == 8) state.acc[i] = wrapped40(state.acc[i]);
    }
    expected(state);
    for (const bool plain : {false, true}) {
      FunctionalOptions options;
      options.plainKernels = plain;
      options.checks = false; // accumulators are read beyond what the instruction wrote
      const auto device = makeFunctionalDevice(c, options);
      std::vector<std::byte>& result = out[plain];
      result.resize(in.size());
      const Outcome bad = device->load(p.binary);
      ASSERT_FALSE(bad) << bad->message;
      ASSERT_FALSE(device->bind(0, in));
      ASSERT_FALSE(device->bind(1, result));
      const Result<RunReport> run = device->run();
      ASSERT_TRUE(run);
      ASSERT_FALSE(run->fault) << run->fault->message << " seed " << kSeed << " round " << round;
      for (int64_t i = 0; i < kArea && std::memcmp(result.data(), state.spad.data(), kArea) != 0;
           ++i)
        ASSERT_EQ(static_cast<int>(result[i]), state.spad[i])
            << op << ": byte " << i << " seed " << kSeed << " round " << round
            << (plain ? " plain" : "");
      for (int64_t i = 0; i < accBytes / unit; ++i) {
        const int64_t value = cellOf(result, i);
        if (value == state.acc[i]) continue;
        ASSERT_EQ(value, state.acc[i])
            << op << ": row " << i / c.columns() << " column " << i % c.columns() << " seed "
            << kSeed << " round " << round << (plain ? " plain" : "");
      }
    }
  }
};

TEST_F(Instructions, ConvolutionAndDepthwise) {
  for (int round = 0; round < 2000; ++round) {
    next = 0;
    const int64_t rows = side(64);
    const int64_t columns = side(32);
    const bool int16 = draw(0, 1);
    const Configuration c = configurationOf(rows, columns, int16);
    const bool depthwise = round % 3 == 0;
    const int64_t cin = draw(1, round % 5 ? 20 : 70), cout = depthwise ? cin : draw(1, 40);
    const int64_t kh = draw(1, 4), kw = draw(1, 4), sh = draw(1, 3), sw = draw(1, 3),
                  dh = draw(1, 2), dw = draw(1, 2);
    const int64_t outH = draw(1, 5), outW = draw(1, 5), inH = draw(1, 9), inW = draw(1, 9);
    const int64_t padTop = draw(0, 3), padLeft = draw(0, 3), aType = narrowType(int16),
                  wType = draw(0, 1), aZero = aType == kI16 && random() % 2 ? 0 : zeroOf(aType),
                  wZero = zeroOf(wType), unit = bytesOf(aType);
    const int64_t pixel = (cin + chance(0, draw(0, 9))) * unit,
                  row = inW * pixel + chance(0, draw(0, 9)) * unit;
    const bool transposed = !depthwise && round % 4 == 1;
    const int64_t k = kh * kw * cin, pitch = (transposed ? k : cout) + chance(0, draw(0, 9));
    const int64_t taps = !depthwise && cin * 2 <= rows ? draw(1, rows / cin) : 1,
                  blocks = (cout + columns - 1) / columns;
    const int64_t planes = draw(1, 3), planeRows = inH + chance(0, draw(0, 2));
    const int64_t flat = !depthwise && taps == 1 ? draw(0, 1) : 0;
    const int64_t accPitch = planes * outH * outW + draw(0, 3);
    if (blocks * accPitch > c.accumulatorRows()) continue;
    const int64_t acc = draw(0, c.accumulatorRows() - blocks * accPitch),
                  act = place(((planes - 1) * planeRows + inH) * row, unit);
    const int64_t wgt = place((transposed  ? cout
                               : depthwise ? kh * kw
                                           : k) *
                              pitch),
                  accumulate = draw(0, 1);
    check(
        c, depthwise ? "dwconv" : "conv",
        {{"acc", acc}, {"act", act}, {"wgt", wgt}, {"accumulate", accumulate}},
        {{DescriptorKind::kWindow,
          {{"in_h", inH},
           {"in_w", inW},
           {"out_h", outH},
           {"out_w", outW},
           {"cin", cin},
           {"cout", cout},
           {"kernel_h", kh},
           {"kernel_w", kw},
           {"stride_h", sh},
           {"stride_w", sw},
           {"dilation_h", dh},
           {"dilation_w", dw},
           {"pad_top", padTop},
           {"pad_left", padLeft},
           {"taps", std::min<int64_t>(taps, 64)},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"weight_pitch", pitch},
           {"acc_pitch", accPitch},
           {"a_type", aType},
           {"a_zp", aZero},
           {"w_type", wType},
           {"w_zp", wZero},
           {"transposed", transposed},
           {"flat", flat},
           {"planes", planes},
           {"plane_rows", planeRows}}}},
        -1,
        [&](State& s) {
          for (int64_t r = 0; r < planes * outH; ++r)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < cout; ++n) {
                const int64_t oy = r % outH, plane = act + r / outH * planeRows * row;
                int64_t sum = 0;
                for (int64_t ky = 0; ky < kh; ++ky)
                  for (int64_t kx = 0; kx < kw; ++kx) {
                    const int64_t y = oy * sh + ky * dh - padTop, x = ox * sw + kx * dw - padLeft,
                                  tap = ky * kw + kx;
                    if (y < 0 || y >= inH || x < 0 || x >= inW) continue;
                    for (int64_t i = depthwise ? n : 0; i < (depthwise ? n + 1 : cin); ++i) {
                      const int64_t at = depthwise    ? tap * pitch + n
                                         : transposed ? n * pitch + tap * cin + i
                                                      : (tap * cin + i) * pitch + n;
                      sum += (s.value(plane + y * row + x * pixel + i * unit, aType) - aZero) *
                             (s.value(wgt + at, wType) - wZero);
                    }
                  }
                int64_t& cell = s.cell(acc + n / columns * accPitch + r * outW + ox, n % columns);
                const __int128 all = static_cast<__int128>(sum) + (accumulate ? cell : 0);
                cell = aType == kI16 ? wrapped40(all) : wrapped(all);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

/// Sums of the largest products there are, up to 40 bits and beyond: 128 taps of a column, and 128
/// pairs of rows, are what fits 32 bits.
TEST_F(Instructions, LargestSumsOfI16) {
  alike = kArea;
  alikeByte = 0x80;                                               // i16 -32640, i8 -128
  const int64_t product = (-32640 - 32767) * int64_t{-128 - 127}; // about 2^24
  const Configuration c = configurationOf(16, 16, true);
  struct Case {
    bool depthwise;
    int64_t kernelH, kernelW, channels;
  };
  // Rows of the last one lie on each other: 65,536 products.
  for (const Case& k :
       {Case{true, 4, 31, 3}, Case{true, 4, 32, 3}, Case{true, 10, 13, 3}, Case{true, 8, 32, 3},
        Case{true, 32, 32, 3}, Case{false, 1, 1, 255}, Case{false, 1, 1, 256},
        Case{false, 1, 1, 257}, Case{false, 1, 1, 32768}, Case{false, 2, 1, 32768}}) {
    next = 0;
    check(
        c, k.depthwise ? "dwconv" : "conv", {{"acc", 5}, {"act", 0}, {"wgt", 0}, {"accumulate", 1}},
        {{DescriptorKind::kWindow,
          {{"in_h", k.kernelH},
           {"in_w", k.kernelW},
           {"cin", k.channels},
           {"cout", 1},
           {"kernel_h", k.kernelH},
           {"kernel_w", k.kernelW},
           {"weight_pitch", k.depthwise ? 3 : 1},
           {"a_type", kI16},
           {"a_zp", 32767},
           {"w_type", kI8},
           {"w_zp", 127}}}},
        -1,
        [&](State& s) {
          const int64_t terms = k.kernelH * k.kernelW * (k.depthwise ? 1 : k.channels);
          for (int64_t n = 0; n < (k.depthwise ? k.channels : 1); ++n)
            s.cell(5, n) = wrapped40(static_cast<__int128>(s.cell(5, n)) +
                                     static_cast<__int128>(terms) * product);
        },
        static_cast<int>(k.channels));
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, Requantization) {
  for (int round = 0; round < 2000; ++round) {
    next = 0;
    const int64_t columns = side(32);
    const bool int16 = draw(0, 1), wide = int16 && random() % 4;
    const Configuration c = configurationOf(16, columns, int16);
    const int64_t channels = draw(1, 40), outH = draw(1, 4), outW = draw(1, 4),
                  blocks = (channels + columns - 1) / columns;
    const bool pools = round % 2, hasResidual = round % 3 == 0, hasTable = round % 5 == 0;
    const int64_t ph = pools ? draw(1, 3) : 1, pw = pools ? draw(1, 3) : 1,
                  psh = pools ? draw(1, 3) : 1, psw = pools ? draw(1, 3) : 1;
    const int64_t padTop = draw(0, ph - 1), padLeft = draw(0, pw - 1);
    const int64_t inH = std::max<int64_t>(1, (outH - 1) * psh - padTop + draw(1, ph)),
                  inW = std::max<int64_t>(1, (outW - 1) * psw - padLeft + draw(1, pw));
    const int64_t accPitch = inH * inW + draw(0, 2);
    if (blocks * accPitch > c.accumulatorRows()) continue;
    const int64_t type = narrowType(int16), unit = bytesOf(type), typeLow = lowestOf(type),
                  typeHigh = highestOf(type);
    const int64_t middle = (typeLow + typeHigh) / 2, zero = zeroOf(type),
                  low = draw(typeLow, middle), high = draw(low, typeHigh);
    const int64_t rType = narrowType(int16), rUnit = bytesOf(rType), rZero = zeroOf(rType),
                  aMult = draw(0, 0xffffff), bMult = draw(0, 0xffffff),
                  aShift = draw(0, type == kI16 ? 22 : 30),
                  bShift = draw(0, rType == kI16 ? 22 : 30);
    const int64_t acc = draw(0, c.accumulatorRows() - blocks * accPitch),
                  pixel = (channels + draw(0, 5)) * unit, row = outW * pixel + draw(0, 5) * unit;
    const int64_t params = place(8 * channels, 8), table = place(type == kI16 ? 1026 : 256, unit),
                  dst = place(outH * row, unit);
    const bool inPlace = round % 2 && unit == rUnit;
    const int64_t rPixel = inPlace ? pixel : (channels + draw(0, 5)) * rUnit,
                  rRow = inPlace ? row : outW * rPixel,
                  res = inPlace ? dst : place(outH * rRow, rUnit);
    const int64_t shift = draw(20, 60), zero2 = zeroOf(type), low2 = draw(typeLow, middle),
                  high2 = draw(low2, typeHigh);
    check(
        c, "requant",
        {{"acc", acc},
         {"dst", dst},
         {"res", res},
         {"d", 0},
         {"r", 1},
         {"residual", hasResidual},
         {"table", hasTable}},
        {{DescriptorKind::kEpilogue,
          {{"out_h", outH},
           {"out_w", outW},
           {"channels", channels},
           {"in_h", inH},
           {"in_w", inW},
           {"acc_pitch", accPitch},
           {"pool_h", ph},
           {"pool_w", pw},
           {"pool_stride_h", psh},
           {"pool_stride_w", psw},
           {"pool_pad_top", padTop},
           {"pool_pad_left", padLeft},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"params", params},
           {"table", table},
           {"out_type", type},
           {"zp", zero},
           {"low", low},
           {"high", high},
           {"wide", wide}}},
         {DescriptorKind::kRescale,
          {{"a_mult", aMult},
           {"b_mult", bMult},
           {"a_shift", aShift},
           {"b_shift", bShift},
           {"shift", shift},
           {"b_zp", rZero},
           {"zp", zero2},
           {"low", low2},
           {"high", high2},
           {"b_type", rType},
           {"out_type", type},
           {"row_stride", rRow},
           {"pixel_stride", rPixel}}}},
        -1,
        [&](State& s) {
          const State before = s;
          for (int64_t oy = 0; oy < outH; ++oy)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < channels; ++n) {
                int64_t best = INT64_MIN;
                for (int64_t y = 0; y < inH; ++y)
                  for (int64_t x = 0; x < inW; ++x)
                    if (y >= oy * psh - padTop && y < oy * psh - padTop + ph &&
                        x >= ox * psw - padLeft && x < ox * psw - padLeft + pw) {
                      const int64_t cell =
                          s.cell(acc + n / columns * accPitch + y * inW + x, n % columns);
                      best = std::max(best, wide ? cell : wrapped(cell));
                    }
                const auto packed = static_cast<uint32_t>(before.value(params + 8 * n + 4, kI32));
                const __int128 biased =
                    static_cast<__int128>(best) + before.value(params + 8 * n, kI32);
                const int64_t sum = wide ? wrapped40(biased) : wrapped(biased);
                int64_t value = rescaled(static_cast<__int128>(sum) * (packed & 0xffffff),
                                         packed >> 24, zero, low, high);
                const int64_t other = res + oy * rRow + ox * rPixel + n * rUnit;
                if (hasResidual)
                  value = rescaled(
                      (static_cast<__int128>(value - zero) * aMult << aShift) +
                          (static_cast<__int128>(before.value(other, rType) - rZero) * bMult
                           << bShift),
                      shift, zero2, low2, high2);
                s.store(dst + oy * row + ox * pixel + n * unit, type,
                        hasTable ? before.mapped(table, type, value) : value);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, VectorBinaryAndUnaryAndReduceAndSelect) {
  for (int round = 0; round < 3000; ++round) {
    next = 0;
    const bool int16 = draw(0, 1);
    const Configuration c = configurationOf(16, 16, int16);
    const int kind = round % 4; // binary, unary, reduce, select
    const int64_t run = draw(1, 40), len1 = draw(1, 5), len2 = draw(1, 5),
                  fn = kind == 0   ? draw(0, 9)
                       : kind == 1 ? draw(0, 4)
                                   : draw(0, 2);
    int64_t aType = anyType(int16), bType = anyType(int16), outType = anyType(int16);
    const bool isTable = kind == 1 && fn == 4, isProduct = kind == 0 && fn == 9;
    if (isProduct) aType = narrowType(int16), bType = narrowType(int16);
    if (isTable) aType = narrowType(int16), outType = aType == kI16 ? kI16 : draw(kI8, kU8);
    if (kind == 3) aType = kU8, bType = outType;
    const bool bScalar = draw(0, 1);
    struct Box {
      int64_t at, s1, s2;
    };
    const auto box = [&](int64_t type, int64_t elements, bool isOutput) {
      const int64_t unit = bytesOf(type), bytes = elements * unit;
      const int64_t s1 = !isOutput && random() % 4 == 0 ? 0 : bytes + unit * draw(0, 3),
                    s2 = !isOutput && random() % 4 == 0
                             ? 0
                             : len1 * s1 + unit * draw(0, 3) + (s1 ? 0 : bytes);
      return Box{place((len2 - 1) * s2 + (len1 - 1) * s1 + bytes, unit), s1, s2};
    };
    const Box out = box(outType, kind == 2 ? 1 : run, true),
              b = isTable ? Box{place(aType == kI16 ? 1026 : 256, bytesOf(aType)), 0, 0}
                          : box(bType, bScalar ? 1 : run, false);
    Box a = box(aType, run, false);
    if (kind == 0 && aType == outType && random() % 4 == 0) a = out; // in place
    const bool narrow = outType != kI32;
    const int64_t typeLow = lowestOf(outType), typeHigh = highestOf(outType);
    const int64_t low = narrow ? draw(typeLow, (typeLow + typeHigh) / 2) : 0,
                  high = narrow ? draw(low, typeHigh) : 0,
                  zero = narrow ? zeroOf(outType) : draw(-256, 255);
    const auto zeroBefore = [&](int64_t type) {
      return type == kI16 ? zeroOf(type) : draw(-128, 127);
    };
    const auto shiftBefore = [&](int64_t type) {
      return draw(0, type == kI32 ? 6 : type == kI16 ? 22 : 30);
    };
    const int64_t aZero = zeroBefore(aType), bZero = zeroBefore(bType), aMult = draw(0, 0xffffff),
                  bMult = draw(0, 0xffffff);
    const int64_t aShift = shiftBefore(aType), bShift = shiftBefore(bType), shift = draw(0, 70);
    const int64_t productShift =
        isProduct ? draw(0, aType == kI16 || bType == kI16 ? 6 : 20) : aShift;
    Fields fields{{"a", a.at}, {"dst", out.at}, {"d", 0}};
    if (kind != 2) fields.push_back({"b", b.at});
    if (kind != 3) fields.push_back({"fn", fn});
    const char* const names[] = {"vbinary", "vunary", "vreduce", "vselect"};
    check(
        c, names[kind], fields,
        {{DescriptorKind::kLanes,
          {{"run", run},
           {"len1", len1},
           {"len2", len2},
           {"a_stride1", a.s1},
           {"a_stride2", a.s2},
           {"b_stride1", b.s1},
           {"b_stride2", b.s2},
           {"out_stride1", out.s1},
           {"out_stride2", out.s2},
           {"a_type", aType},
           {"b_type", bType},
           {"out_type", outType},
           {"b_scalar", bScalar}}},
         {DescriptorKind::kRescale,
          {{"a_mult", aMult},
           {"b_mult", bMult},
           {"a_shift", productShift},
           {"b_shift", bShift},
           {"shift", shift},
           {"a_zp", aZero},
           {"b_zp", bZero},
           {"zp", zero},
           {"low", low},
           {"high", high}}}},
        -1,
        [&](State& s) {
          const State before = s;
          const int64_t least = narrow ? low : INT32_MIN, most = narrow ? high : INT32_MAX;
          const int64_t aUnit = bytesOf(aType), bUnit = bScalar ? 0 : bytesOf(bType),
                        outUnit = bytesOf(outType);
          for (int64_t j = 0; j < len2; ++j)
            for (int64_t i = 0; i < len1; ++i) {
              const int64_t from = a.at + j * a.s2 + i * a.s1, other = b.at + j * b.s2 + i * b.s1,
                            to = out.at + j * out.s2 + i * out.s1;
              int64_t folded = before.value(from, aType);
              for (int64_t e = 0; e < run; ++e) {
                const int64_t x = before.value(from + e * aUnit, aType),
                              y = isTable || kind == 2 ? 0 : before.value(other + e * bUnit, bType);
                int64_t value = 0;
                if (kind == 2) {
                  if (e)
                    folded = fn == 0   ? wrapped(static_cast<__int128>(folded) + x)
                             : fn == 1 ? std::min(folded, x)
                                       : std::max(folded, x);
                  continue;
                }
                if (kind == 3) {
                  if (x) s.store(to + e * outUnit, outType, y);
                  continue;
                }
                if (kind == 0) {
                  const __int128 wide = fn == 0   ? x + y
                                        : fn == 1 ? x - y
                                                  : static_cast<__int128>(x) * y;
                  value = fn < 3    ? wrapped(wide)
                          : fn == 3 ? std::min(x, y)
                          : fn == 4 ? std::max(x, y)
                          : fn == 5 ? x == y
                          : fn == 6 ? x < y
                          : fn == 7 ? x <= y
                          : fn == 8
                              ? rescaled((static_cast<__int128>(x - aZero) * aMult << aShift) +
                                             (static_cast<__int128>(y - bZero) * bMult << bShift),
                                         shift, zero, least, most)
                              : rescaled(static_cast<__int128>((x - aZero) * (y - bZero)) * aMult
                                             << productShift,
                                         shift, zero, least, most);
                } else {
                  value = fn == 0   ? x
                          : fn == 1 ? wrapped(-static_cast<__int128>(x))
                          : fn == 2 ? wrapped(x < 0 ? -static_cast<__int128>(x) : x)
                          : fn == 3 ? rescaled(static_cast<__int128>(x - aZero) * aMult << aShift,
                                               shift, zero, least, most)
                                    : before.mapped(b.at, aType, x);
                }
                s.store(to + e * outUnit, outType, value);
              }
              if (kind == 2) s.store(to, outType, folded);
            }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, VectorPools) {
  for (int round = 0; round < 1000; ++round) {
    next = 0;
    const bool int16 = draw(0, 1);
    const Configuration c = configurationOf(16, 16, int16);
    const int64_t fn = draw(0, 1), aType = anyType(int16), outType = fn ? anyType(int16) : aType,
                  channels = draw(1, 20);
    const int64_t kh = draw(1, 5), kw = draw(1, 5), sh = draw(1, 4), sw = draw(1, 4),
                  padTop = draw(0, kh - 1), padLeft = draw(0, kw - 1);
    const int64_t outH = draw(1, 4), outW = draw(1, 4);
    const int64_t inH = std::max<int64_t>(1, (outH - 1) * sh - padTop + draw(1, kh)),
                  inW = std::max<int64_t>(1, (outW - 1) * sw - padLeft + draw(1, kw));
    const int64_t aUnit = bytesOf(aType), outUnit = bytesOf(outType);
    const int64_t pixel = (channels + draw(0, 2)) * aUnit, row = inW * pixel,
                  outPixel = (channels + draw(0, 2)) * outUnit, outRow = outW * outPixel;
    const int64_t a = place(inH * row, aUnit), dst = place(outH * outRow, outUnit);
    const bool narrow = outType != kI32;
    const int64_t typeLow = lowestOf(outType), typeHigh = highestOf(outType),
                  low = narrow ? draw(typeLow, (typeLow + typeHigh) / 2) : 0,
                  high = narrow ? draw(low, typeHigh) : 0;
    const int64_t zero = narrow ? zeroOf(outType) : draw(-256, 255),
                  aZero = aType == kI16 ? zeroOf(aType) : draw(-128, 127), mult = draw(0, 0xffffff),
                  aShift = draw(0, 7), shift = draw(0, 60);
    check(
        c, "vpool", {{"a", a}, {"dst", dst}, {"d", 0}, {"fn", fn}},
        {{DescriptorKind::kPooling,
          {{"in_h", inH},
           {"in_w", inW},
           {"out_h", outH},
           {"out_w", outW},
           {"channels", channels},
           {"kernel_h", kh},
           {"kernel_w", kw},
           {"stride_h", sh},
           {"stride_w", sw},
           {"pad_top", padTop},
           {"pad_left", padLeft},
           {"in_row_stride", row},
           {"in_pixel_stride", pixel},
           {"out_row_stride", outRow},
           {"out_pixel_stride", outPixel},
           {"a_type", aType},
           {"out_type", outType}}},
         {DescriptorKind::kRescale,
          {{"a_mult", mult},
           {"a_shift", aShift},
           {"shift", shift},
           {"a_zp", aZero},
           {"zp", zero},
           {"low", low},
           {"high", high}}}},
        -1,
        [&](State& s) {
          for (int64_t oy = 0; oy < outH; ++oy)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < channels; ++n) {
                int64_t best = INT64_MIN;
                __int128 sum = 0;
                for (int64_t y = oy * sh - padTop; y < oy * sh - padTop + kh; ++y)
                  for (int64_t x = ox * sw - padLeft; x < ox * sw - padLeft + kw; ++x) {
                    if (y < 0 || y >= inH || x < 0 || x >= inW) continue;
                    const int64_t value = s.value(a + y * row + x * pixel + n * aUnit, aType);
                    best = std::max(best, value);
                    sum += value - aZero;
                  }
                const int64_t value =
                    fn ? rescaled(static_cast<__int128>(wrapped(sum)) * mult << aShift, shift, zero,
                                  narrow ? low : INT32_MIN, narrow ? high : INT32_MAX)
                       : best;
                s.store(dst + oy * outRow + ox * outPixel + n * outUnit, outType, value);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, CopiesAndFillsWithPadding) {
  for (int round = 0; round < 1500; ++round) {
    next = 0;
    const Configuration c = configurationOf(16, 16, false);
    const bool isFill = round % 4 == 0, isLoad = round % 4 == 1;
    const int64_t run = draw(1, 30), l1 = draw(1, 6), l2 = draw(1, 5), l3 = draw(1, 4),
                  left = draw(0, 3), right = draw(0, 3), top = draw(0, 2), bottom = draw(0, 2);
    const int64_t p1 = l1 + left + right, p2 = l2 + top + bottom;
    // The near side in any order of its dimensions: transposes.
    int64_t near[3], extents[3] = {p1, p2, l3}, order[3] = {0, 1, 2}, size = run;
    std::shuffle(order, order + 3, random);
    for (const int64_t dimension : order) {
      near[dimension] = size + chance(0, draw(0, 3));
      size = near[dimension] * (extents[dimension] - 1) + size;
    }
    const int64_t f1 = run + draw(0, 3), f2 = l1 * f1, f3 = chance(1, -1) * l2 * f2;
    const int64_t dst = place(size), sourceBytes = l3 * l2 * f2,
                  source =
                      (f3 < 0 ? (l3 - 1) * -f3 : 0) + (isLoad ? draw(0, 50) : place(sourceBytes));
    const int64_t fill = draw(0, 255), flip = isFill ? 0 : draw(0, 1);
    if (isLoad && source + sourceBytes > kArea) continue;
    const Fields box{{"run", run},
                     {"len1", l1},
                     {"len2", l2},
                     {"len3", l3},
                     {"far_stride1", f1},
                     {"far_stride2", f2},
                     {"far_stride3", f3},
                     {"near_stride1", near[0]},
                     {"near_stride2", near[1]},
                     {"near_stride3", near[2]},
                     {"pad_left", left},
                     {"pad_right", right},
                     {"pad_top", top},
                     {"pad_bottom", bottom}};
    Fields fields{{"dst", dst}, {"d", 0}, {"fill", fill}};
    if (isLoad) fields.insert(fields.end(), {{"region", 0}, {"far", source}, {"flip", flip}});
    if (!isFill && !isLoad) fields.insert(fields.end(), {{"src", source}, {"flip", flip}});
    check(
        c,
        isFill   ? "fill"
        : isLoad ? "load"
                 : "copy",
        fields, {{DescriptorKind::kTransfer, box}}, -1,
        [&](State& s) {
          const State before = s; // region 0 begins with the same bytes
          for (int64_t k = 0; k < l3; ++k)
            for (int64_t j = 0; j < p2; ++j)
              for (int64_t i = 0; i < p1; ++i)
                for (int64_t b = 0; b < run; ++b) {
                  const int64_t y = j - top, x = i - left;
                  const bool inside = !isFill && y >= 0 && y < l2 && x >= 0 && x < l1;
                  s.spad[dst + k * near[2] + j * near[1] + i * near[0] + b] = static_cast<uint8_t>(
                      inside
                          ? before.spad[source + k * f3 + y * f2 + x * f1 + b] ^ (flip ? 0x80 : 0)
                          : fill);
                }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, WeightsLoadedByHandGiveTheSameProducts) {
  for (int round = 0; round < 500; ++round) {
    const bool isFloat = round % 4 == 0, int16 = !isFloat && draw(0, 1);
    Configuration c = configurationOf(side(64), side(32), int16);
    c.values[key::kFeaturesBf16] = isFloat;
    const int64_t k = draw(1, c.rows()), n = draw(1, c.columns()), outH = draw(1, 4),
                  outW = draw(1, 6), stride = draw(1, 2),
                  aType = isFloat ? kBf16 : narrowType(int16), aZero = isFloat ? 0 : zeroOf(aType),
                  unit = int16 ? 8 : 4;
    ProgramBuilder p(c);
    p.binary.regions = {{"in", RegionClass::kInput, 16384}, {"out", RegionClass::kOutput, 16384}};
    const Fields window{{"out_h", outH},
                        {"out_w", outW},
                        {"stride_h", stride},
                        {"stride_w", stride},
                        {"row_stride", isFloat ? 1400 : 900},
                        {"pixel_stride", isFloat ? 130 : 70},
                        {"weight_pitch", isFloat ? 2 * n + 4 : n + 3},
                        {"a_type", aType},
                        {"w_type", isFloat ? kBf16 : kI8},
                        {"a_zp", aZero},
                        {"cin", k},
                        {"cout", n},
                        {"in_h", 8},
                        {"in_w", 12}};
    p.descriptor(0, DescriptorKind::kTransfer, {{"run", 16384}});
    p.op("load", {{"d", 0}});
    p.fence();
    p.descriptor(1, DescriptorKind::kWindow, window);
    p.op("ldw", {{"wgt", 12000}, {"d", 1}, {"k", k}, {"n", n}});
    p.op("mm", {{"acc", 3}, {"act", 6}, {"d", 1}, {"swap", 1}});
    p.op("conv", {{"acc", 64}, {"act", 6}, {"wgt", 12000}, {"d", 1}});
    p.fence();
    for (const int64_t half : {0, 1}) {
      p.descriptor(2, DescriptorKind::kEpilogue,
                   {{"out_h", outH},
                    {"out_w", outW},
                    {"channels", n},
                    {"row_stride", outW * n * unit},
                    {"pixel_stride", n * unit},
                    {"wide", int16}});
      p.op("accstore", {{"acc", half ? 64 : 3}, {"dst", 20000 + half * 8192}, {"d", 2}});
      p.descriptor(3, DescriptorKind::kTransfer, {{"run", outH * outW * n * unit}});
      p.fence();
      p.op("store", {{"region", 1}, {"far", half * 8192}, {"src", 20000 + half * 8192}, {"d", 3}});
    }
    p.op("halt", {});
    std::vector<std::byte> in(16384), out(16384);
    for (std::byte& byte : in) byte = static_cast<std::byte>(random());
    // with all checks: this is a program as it should be
    const auto device = makeFunctionalDevice(c);
    ASSERT_FALSE(device->load(p.binary));
    ASSERT_FALSE(device->bind(0, in));
    ASSERT_FALSE(device->bind(1, out));
    const Result<RunReport> run = device->run();
    ASSERT_TRUE(run);
    ASSERT_FALSE(run->fault) << run->fault->message;
    ASSERT_EQ(
        std::memcmp(out.data(), out.data() + 8192, static_cast<size_t>(outH * outW * n * unit)), 0)
        << "seed " << kSeed << " round " << round;
    EXPECT_EQ(run->counters[static_cast<int>(Counter::kMacs)],
              static_cast<uint64_t>(2 * outH * outW * k * n));
  }
}

TEST_F(Instructions, ConvolutionAndDepthwiseOfBf16) {
  for (int round = 0; round < 800; ++round) {
    next = 0;
    areModerate = round % 4 != 0;
    const int64_t rows = side(64), columns = side(32);
    const Configuration c = floatConfigurationOf(rows, columns);
    const bool depthwise = round % 3 == 0;
    const int64_t cin = draw(1, round % 5 ? 20 : 70), cout = depthwise ? cin : draw(1, 40);
    const int64_t kh = draw(1, 4), kw = draw(1, 4), sh = draw(1, 3), sw = draw(1, 3),
                  dh = draw(1, 2), dw = draw(1, 2);
    const int64_t outH = draw(1, 5), outW = draw(1, 5), inH = draw(1, 9), inW = draw(1, 9),
                  padTop = draw(0, 3), padLeft = draw(0, 3);
    const int64_t pixel = 2 * (cin + chance(0, draw(0, 9))),
                  row = inW * pixel + 2 * chance(0, draw(0, 9));
    const bool transposed = !depthwise && round % 4 == 1;
    const int64_t k = kh * kw * cin, pitch = 2 * ((transposed ? k : cout) + chance(0, draw(0, 9)));
    const int64_t planes = draw(1, 3), planeRows = inH + chance(0, draw(0, 2)),
                  flat = depthwise ? 0 : draw(0, 1), blocks = (cout + columns - 1) / columns,
                  accPitch = planes * outH * outW + draw(0, 3), accumulate = draw(0, 1);
    if (blocks * accPitch > c.accumulatorRows()) continue;
    int64_t weightRows = transposed ? cout : k;
    if (depthwise) weightRows = kh * kw;
    const int64_t acc = draw(0, c.accumulatorRows() - blocks * accPitch),
                  act = place(((planes - 1) * planeRows + inH) * row, 2),
                  wgt = place(weightRows * pitch, 2);
    if (next > kArea) continue;
    check(
        c, depthwise ? "dwconv" : "conv",
        {{"acc", acc}, {"act", act}, {"wgt", wgt}, {"accumulate", accumulate}},
        {{DescriptorKind::kWindow,
          {{"in_h", inH},
           {"in_w", inW},
           {"out_h", outH},
           {"out_w", outW},
           {"cin", cin},
           {"cout", cout},
           {"kernel_h", kh},
           {"kernel_w", kw},
           {"stride_h", sh},
           {"stride_w", sw},
           {"dilation_h", dh},
           {"dilation_w", dw},
           {"pad_top", padTop},
           {"pad_left", padLeft},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"weight_pitch", pitch},
           {"acc_pitch", accPitch},
           {"a_type", kBf16},
           {"w_type", kBf16},
           {"transposed", transposed},
           {"flat", flat},
           {"planes", planes},
           {"plane_rows", planeRows}}}},
        -1,
        [&](State& s) {
          for (int64_t r = 0; r < planes * outH; ++r)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < cout; ++n) {
                const int64_t oy = r % outH, plane = act + r / outH * planeRows * row,
                              at = acc + n / columns * accPitch + r * outW + ox;
                float sum = accumulate ? s.sum(at, n % columns) : 0;
                for (int64_t t = 0; t < (depthwise ? kh * kw : k); ++t) {
                  const int64_t tap = depthwise ? t : t / cin, i = depthwise ? n : t % cin;
                  const int64_t y = oy * sh + tap / kw * dh - padTop,
                                x = ox * sw + tap % kw * dw - padLeft;
                  const bool isInside = y >= 0 && y < inH && x >= 0 && x < inW;
                  const int64_t w = transposed ? n * pitch + 2 * t : t * pitch + 2 * n;
                  const float left =
                      isInside ? s.real(plane + y * row + x * pixel + 2 * i, kBf16) : 0;
                  const float product = left * s.real(wgt + w, kBf16);
                  sum += product;
                }
                s.setSum(at, n % columns, sum);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, RequantizationOfFloats) {
  for (int round = 0; round < 800; ++round) {
    next = 0;
    areModerate = round % 4 != 0;
    const int64_t columns = side(32);
    const Configuration c = floatConfigurationOf(16, columns);
    const int64_t channels = draw(1, 40), outH = draw(1, 4), outW = draw(1, 4),
                  blocks = (channels + columns - 1) / columns;
    const bool pools = round % 2, hasResidual = round % 3 == 0;
    const int64_t most = pools ? 3 : 1, ph = draw(1, most), pw = draw(1, most), psh = draw(1, most),
                  psw = draw(1, most);
    const int64_t padTop = draw(0, ph - 1), padLeft = draw(0, pw - 1);
    const int64_t inH = std::max<int64_t>(1, (outH - 1) * psh - padTop + draw(1, ph)),
                  inW = std::max<int64_t>(1, (outW - 1) * psw - padLeft + draw(1, pw));
    const int64_t accPitch = inH * inW + draw(0, 2);
    if (blocks * accPitch > c.accumulatorRows()) continue;
    const int64_t type = draw(kBf16, kF32), unit = bytesOf(type), rType = draw(kBf16, kF32),
                  rUnit = bytesOf(rType);
    const int64_t acc = draw(0, c.accumulatorRows() - blocks * accPitch),
                  pixel = (channels + draw(0, 5)) * unit, row = outW * pixel + draw(0, 5) * unit,
                  params = place(8 * channels + 8, 8), dst = place(outH * row, unit);
    const bool inPlace = round % 2 && type == rType;
    const int64_t rPixel = inPlace ? pixel : (channels + draw(0, 5)) * rUnit,
                  rRow = inPlace ? row : outW * rPixel,
                  res = inPlace ? dst : place(outH * rRow, rUnit);
    check(
        c, "requant",
        {{"acc", acc}, {"dst", dst}, {"res", res}, {"d", 0}, {"r", 1}, {"residual", hasResidual}},
        {{DescriptorKind::kEpilogue,
          {{"out_h", outH},
           {"out_w", outW},
           {"channels", channels},
           {"in_h", inH},
           {"in_w", inW},
           {"acc_pitch", accPitch},
           {"pool_h", ph},
           {"pool_w", pw},
           {"pool_stride_h", psh},
           {"pool_stride_w", psw},
           {"pool_pad_top", padTop},
           {"pool_pad_left", padLeft},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"params", params},
           {"out_type", type}}},
         {DescriptorKind::kRescale,
          {{"b_type", rType}, {"out_type", type}, {"row_stride", rRow}, {"pixel_stride", rPixel}}}},
        -1,
        [&](State& s) {
          const State before = s;
          const auto larger = [](float a, float b) { return a > b || std::isnan(a) ? a : b; };
          const auto smaller = [](float a, float b) { return a < b || std::isnan(a) ? a : b; };
          for (int64_t oy = 0; oy < outH; ++oy)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < channels; ++n) {
                std::optional<float> best;
                for (int64_t y = oy * psh - padTop; y < oy * psh - padTop + ph; ++y)
                  for (int64_t x = ox * psw - padLeft; x < ox * psw - padLeft + pw; ++x) {
                    if (y < 0 || y >= inH || x < 0 || x >= inW) continue;
                    const float one =
                        s.sum(acc + n / columns * accPitch + y * inW + x, n % columns);
                    best = best ? larger(*best, one) : one;
                  }
                const int64_t record = params + 8 * n, bounds = params + 8 * channels;
                const float scaled = *best * before.real(record, kF32);
                float value = scaled + before.real(record + 4, kF32);
                if (hasResidual)
                  value += before.real(res + oy * rRow + ox * rPixel + n * rUnit, rType);
                value = larger(value, before.real(bounds, kF32));
                value = smaller(value, before.real(bounds + 4, kF32));
                s.storeReal(dst + oy * row + ox * pixel + n * unit, type, value);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, VectorsOfFloats) {
  const auto larger = [](float a, float b) { return a > b || std::isnan(a) ? a : b; };
  const auto smaller = [](float a, float b) { return a < b || std::isnan(a) ? a : b; };
  for (int round = 0; round < 1600; ++round) {
    next = 0;
    areModerate = round % 3 != 0;
    const Configuration c = floatConfigurationOf(16, 16);
    const int kind = round % 3; // binary, unary, reduce
    const int64_t run = draw(1, 300), len1 = draw(1, 4), len2 = draw(1, 3),
                  drawn = draw(0, kind == 0 ? 8 : 2), fn = drawn == 8 ? kDiv : drawn;
    const bool compares = kind == 0 && fn >= 5 && fn < 8, bScalar = draw(0, 1);
    const int64_t aType = draw(kBf16, kF32), bType = draw(kBf16, kF32),
                  outType = compares ? draw(kI8, kI32) : draw(kBf16, kF32);
    struct Box {
      int64_t at, s1, s2;
    };
    const auto box = [&](int64_t type, int64_t elements) {
      const int64_t unit = bytesOf(type), s1 = (elements + draw(0, 3)) * unit,
                    s2 = len1 * s1 + unit * draw(0, 3);
      return Box{place(len2 * s2, unit), s1, s2};
    };
    const Box out = box(outType, kind == 2 ? 1 : run), b = box(bType, bScalar ? 1 : run);
    Box a = box(aType, run);
    if (kind == 0 && aType == outType && random() % 4 == 0) a = out; // in place
    Fields fields{{"a", a.at}, {"dst", out.at}, {"d", 0}, {"fn", fn}};
    if (kind == 0) fields.push_back({"b", b.at});
    const char* const names[] = {"vbinary", "vunary", "vreduce"};
    check(
        c, names[kind], fields,
        {{DescriptorKind::kLanes,
          {{"run", run},
           {"len1", len1},
           {"len2", len2},
           {"a_stride1", a.s1},
           {"a_stride2", a.s2},
           {"b_stride1", b.s1},
           {"b_stride2", b.s2},
           {"out_stride1", out.s1},
           {"out_stride2", out.s2},
           {"a_type", aType},
           {"b_type", bType},
           {"out_type", outType},
           {"b_scalar", bScalar}}},
         {DescriptorKind::kRescale, {}}},
        -1,
        [&](State& s) {
          const State before = s;
          for (int64_t j = 0; j < len2; ++j)
            for (int64_t i = 0; i < len1; ++i) {
              const int64_t from = a.at + j * a.s2 + i * a.s1, other = b.at + j * b.s2 + i * b.s1,
                            to = out.at + j * out.s2 + i * out.s1;
              float folded = fn == 0 ? 0 : before.real(from, aType);
              for (int64_t e = 0; e < run; ++e) {
                const float x = before.real(from + e * bytesOf(aType), aType);
                const float y =
                    kind == 0 ? before.real(other + (bScalar ? 0 : e * bytesOf(bType)), bType) : 0;
                const int64_t place = to + e * bytesOf(outType);
                if (kind == 2) {
                  const float all[] = {folded + x, smaller(folded, x), larger(folded, x)};
                  folded = all[fn];
                } else if (kind == 1) {
                  const float all[] = {x, -x, std::fabs(x)};
                  s.storeReal(place, outType, all[fn]);
                } else if (compares) {
                  const bool all[] = {x == y, x < y, x <= y};
                  s.store(place, outType, all[fn - 5]);
                } else if (fn == kDiv) {
                  s.storeReal(place, outType, x / y);
                } else {
                  const float all[] = {x + y, x - y, x * y, smaller(x, y), larger(x, y)};
                  s.storeReal(place, outType, all[fn]);
                }
              }
              if (kind == 2) s.storeReal(to, outType, folded);
            }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

TEST_F(Instructions, VectorPoolsOfFloats) {
  for (int round = 0; round < 500; ++round) {
    next = 0;
    areModerate = round % 3 != 0;
    const Configuration c = floatConfigurationOf(16, 16);
    const int64_t fn = draw(0, 1), aType = draw(kBf16, kF32),
                  outType = fn ? draw(kBf16, kF32) : aType, channels = draw(1, 20);
    const int64_t kh = draw(1, 5), kw = draw(1, 5), sh = draw(1, 4), sw = draw(1, 4),
                  padTop = draw(0, kh - 1), padLeft = draw(0, kw - 1);
    const int64_t outH = draw(1, 4), outW = draw(1, 4);
    const int64_t inH = std::max<int64_t>(1, (outH - 1) * sh - padTop + draw(1, kh)),
                  inW = std::max<int64_t>(1, (outW - 1) * sw - padLeft + draw(1, kw));
    const int64_t aUnit = bytesOf(aType), outUnit = bytesOf(outType);
    const int64_t pixel = (channels + draw(0, 2)) * aUnit, row = inW * pixel,
                  outPixel = (channels + draw(0, 2)) * outUnit, outRow = outW * outPixel;
    const int64_t a = place(inH * row, aUnit), dst = place(outH * outRow, outUnit);
    check(
        c, "vpool", {{"a", a}, {"dst", dst}, {"d", 0}, {"fn", fn}},
        {{DescriptorKind::kPooling,
          {{"in_h", inH},
           {"in_w", inW},
           {"out_h", outH},
           {"out_w", outW},
           {"channels", channels},
           {"kernel_h", kh},
           {"kernel_w", kw},
           {"stride_h", sh},
           {"stride_w", sw},
           {"pad_top", padTop},
           {"pad_left", padLeft},
           {"in_row_stride", row},
           {"in_pixel_stride", pixel},
           {"out_row_stride", outRow},
           {"out_pixel_stride", outPixel},
           {"a_type", aType},
           {"out_type", outType}}},
         {DescriptorKind::kRescale, {}}},
        -1,
        [&](State& s) {
          for (int64_t oy = 0; oy < outH; ++oy)
            for (int64_t ox = 0; ox < outW; ++ox)
              for (int64_t n = 0; n < channels; ++n) {
                float best = -std::numeric_limits<float>::infinity(), sum = 0;
                for (int64_t y = oy * sh - padTop; y < oy * sh - padTop + kh; ++y)
                  for (int64_t x = ox * sw - padLeft; x < ox * sw - padLeft + kw; ++x) {
                    if (y < 0 || y >= inH || x < 0 || x >= inW) continue;
                    const float value = s.real(a + y * row + x * pixel + n * aUnit, aType);
                    if (value > best || std::isnan(value) || std::isnan(best))
                      best = std::isnan(best) ? best : value;
                    sum += value;
                  }
                s.storeReal(dst + oy * outRow + ox * outPixel + n * outUnit, outType,
                            fn ? sum : best);
              }
        },
        round);
    if (HasFatalFailure()) return;
  }
}

} // namespace
} // namespace candela::npu
