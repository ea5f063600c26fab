#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "Vrtl_vector.h"
#include "Vrtl_vector_broad.h"
#include "Vrtl_vector_int16.h"
#include "Vrtl_vector_least.h"
#include "simulator/timing/compute.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260105, kScratchpad = 65536;

/// Fewer lanes than bytes in a word; more of them, so that bytes alone fill a word; words of which
/// lanes take a part; the least that there is.
struct Narrow {
  using Top = Vrtl_vector;
  static constexpr int kLanes = 4, kWidth = 8;
  static constexpr bool kInt16 = false;
};
struct Wide {
  using Top = Vrtl_vector_int16;
  static constexpr int kLanes = 16, kWidth = 8;
  static constexpr bool kInt16 = true;
};
struct Broad {
  using Top = Vrtl_vector_broad;
  static constexpr int kLanes = 4, kWidth = 256;
  static constexpr bool kInt16 = true;
};

struct Least {
  using Top = Vrtl_vector_least;
  static constexpr int kLanes = 1, kWidth = 4;
  static constexpr bool kInt16 = true;
};

template <typename Config> struct Engine {
  explicit Engine(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(configurationOf(fmt::format(
            "name = \"bench\"\n[scratchpad]\nbytes = {}\nbank_width = {}\n[vector]\nlanes = {}\n"
            "[features]\nint16 = {}\n",
            kScratchpad, Config::kWidth, Config::kLanes, Config::kInt16 ? 1 : 0))) {
    bench->insn_valid_i = 0;
    bench->a_ready_i = bench->b_ready_i = bench->write_ready_i = 1;
    chip.resize(kScratchpad);
    for (uint8_t& byte : chip) byte = static_cast<uint8_t>(dice.of(0, 255));
    if (Config::kInt16)
      for (size_t i = 0; i < chip.size(); i += 2)
        if (dice.chance(10))
          chip[i] = static_cast<uint8_t>(-dice.of(0, 1)), chip[i + 1] = chip[i] ^ 0x80;
    std::copy(chip.begin(), chip.end(), model.memory.scratchpad());
  }

  /// Runs it on both sides; `ready` of 100 accesses are granted in the cycle in which they are
  /// asked for. Returns the cycles, -1 if it hangs.
  int64_t run(const Sent& s, int ready) {
    model.run(s);
    bench->insn_valid_i = 1;
    for (int i = 0; i < 4; ++i) {
      bench->word_i[static_cast<size_t>(i)] =
          static_cast<uint32_t>((i < 2 ? s.word.low : s.word.high) >> (32 * (i % 2)));
      setBits(bench->desc_i, 64 * i, 64, s.d[static_cast<size_t>(i)]);
      setBits(bench->second_i, 64 * i, 64, s.second[static_cast<size_t>(i)]);
    }
    bench.settle();
    EXPECT_TRUE(bench->insn_ready_o);
    const int64_t from = bench.cycle;
    ReadPort a, b;
    while (bench.cycle < from + 200000) {
      a.answer(chip, Config::kWidth, dice, bench->a_data_i);
      b.answer(chip, Config::kWidth, dice, bench->b_data_i);
      bench->a_ready_i = dice.chance(ready), bench->b_ready_i = dice.chance(ready),
      bench->write_ready_i = dice.chance(ready);
      bench.settle();
      if (bench->done_o && bench.cycle > from) return bench.cycle - from;
      a = {bench->a_valid_o && bench->a_ready_i, bench->a_addr_o};
      b = {bench->b_valid_o && bench->b_ready_i, bench->b_addr_o};
      if (bench->write_valid_o && bench->write_ready_i) {
        EXPECT_TRUE(write(chip, bench->write_addr_o, Config::kWidth, bench->write_bytes_o,
                          bench->write_data_o))
            << bench->write_addr_o;
      }
      bench.edge();
      bench->insn_valid_i = 0;
    }
    return -1;
  }
  /// An element of i16 in both scratchpads.
  void put16(int64_t at, int64_t value) {
    for (int64_t i = 0; i < 2; ++i)
      chip[static_cast<size_t>(at + i)] = model.memory.scratchpad()[at + i] =
          static_cast<uint8_t>(value >> (8 * i));
  }
  void compare() {
    const auto [mine, theirs] = std::mismatch(chip.begin(), chip.end(), model.memory.scratchpad());
    ASSERT_TRUE(mine == chip.end()) << "byte " << mine - chip.begin() << " is " << int{*mine}
                                    << ", the model has " << int{*theirs};
  }
  int64_t expectedCycles(const Sent& s) {
    const npu::Result<npu::Operation> operation = npu::operationOf(s.insn, s.d, s.second);
    EXPECT_TRUE(operation);
    return npu::computeCost(model.configuration, *operation).cycles();
  }

  Bench<typename Config::Top> bench;
  Dice dice;
  Model model;
  std::vector<uint8_t> chip; ///< the scratchpad of the hardware
};

struct Case {
  Sent sent;
  bool has16 = false; ///< an operand or the result is i16
  std::string text;
};

constexpr int64_t kI8 = 0, kU8 = 1, kI32 = 2, kI16 = 3;
int64_t bytesOf(int64_t type) { return type == kI32 ? 4 : type == kI16 ? 2 : 1; }
/// Of i8, u8, with `int16` i16, and with `canI32` i32.
int64_t randomType(Dice& dice, bool int16, bool canI32) {
  if (int16 && dice.chance(50)) return kI16;
  return dice.of(kI8, canI32 ? kI32 : kU8);
}

/// The second scale of an instruction with a result of `out` and operands of `a` and `b`.
Fields randomRescale(Dice& dice, int64_t a, int64_t b, int64_t out) {
  int64_t low = out == kI8    ? -128
                : out == kI16 ? -32768
                              : 0,
          high = out == kI8    ? 127
                 : out == kI16 ? 32767
                               : 255;
  if (out != kI32 && dice.chance(30)) low = dice.of(low, high), high = dice.of(low, high);
  const auto shift = [&](int64_t type) {
    return dice.of(0, type == kI32 ? 7 : dice.chance(80) ? 8 : type == kI16 ? 22 : 30);
  };
  const auto zero = [&](int64_t type) {
    return type != kI16      ? dice.of(-256, 255)
           : dice.chance(90) ? dice.of(-32768, 32767)
                             : -32768 + 65535 * dice.of(0, 1);
  };
  return {{"a_mult", dice.of(0, (1 << 24) - 1)},
          {"b_mult", dice.of(0, (1 << 24) - 1)},
          {"a_shift", shift(a)},
          {"b_shift", shift(b)},
          {"shift", dice.chance(90) ? dice.of(16, 40) : dice.of(0, 127)},
          {"a_zp", zero(a)},
          {"b_zp", zero(b)},
          {"zp", zero(out)},
          {"low", low},
          {"high", high}};
}
void replace(Fields& fields, std::string_view name, int64_t value) {
  for (auto& [known, of] : fields)
    if (known == name) of = value;
}

/// Operands lie apart: a below 20,000, b below 40,000, results behind; or a result lies on its
/// operand.
Case randomLanes(Dice& dice, bool int16) {
  const char* const op =
      std::array{"vbinary", "vunary", "vreduce", "vselect"}[static_cast<size_t>(dice.of(0, 3))];
  const std::string_view name = op;
  const int64_t fn = name == "vbinary"   ? dice.of(0, 9)
                     : name == "vunary"  ? dice.of(0, 4)
                     : name == "vreduce" ? dice.of(0, 2)
                                         : 0;
  const bool isTable = name == "vunary" && fn == 4, isProduct = name == "vbinary" && fn == 9;
  int64_t aType = randomType(dice, int16, !isTable && !isProduct),
          bType = randomType(dice, int16, !isProduct), outType = randomType(dice, int16, !isTable);
  if (isTable && aType == kI16) outType = kI16;
  if (isTable && aType != kI16) outType = randomType(dice, false, false);
  if (name == "vselect") aType = kU8, bType = outType;
  const bool isLong = dice.chance(5), hasMany = dice.chance(5);
  const int64_t run = isLong    ? dice.of(61, 900)
                      : hasMany ? dice.of(1, 3)
                                : dice.of(1, dice.chance(50) ? 12 : 60);
  const int64_t len1 = isLong ? 1 : dice.of(1, hasMany ? 20 : 4),
                len2 = isLong ? 1 : dice.of(1, hasMany ? 5 : 3);
  const bool scalar = name != "vunary" && name != "vreduce" && dice.chance(30);
  const auto strides = [&](int64_t type, int64_t elements, bool canRepeat) {
    const int64_t unit = bytesOf(type);
    const int64_t stride1 = canRepeat && dice.chance(20) ? 0 : unit * (elements + dice.of(0, 4));
    return std::pair{stride1,
                     canRepeat && dice.chance(20) ? 0 : stride1 * len1 + unit * dice.of(0, 5)};
  };
  auto [a1, a2] = strides(aType, run, true);
  const auto [b1, b2] = strides(bType, scalar ? 1 : run, true);
  const auto [out1, out2] = strides(outType, name == "vreduce" ? 1 : run, false);
  int64_t a = 4 * dice.of(0, 4000);
  const int64_t b = 4 * dice.of(5000, 9000), dst = 4 * dice.of(10000, 15000);
  if (name != "vreduce" && aType == outType && dice.chance(30)) a = dst, a1 = out1, a2 = out2;
  const Fields d{{"run", run},          {"len1", len1},    {"len2", len2},    {"a_stride1", a1},
                 {"a_stride2", a2},     {"b_stride1", b1}, {"b_stride2", b2}, {"out_stride1", out1},
                 {"out_stride2", out2}, {"a_type", aType}, {"b_type", bType}, {"out_type", outType},
                 {"b_scalar", scalar}};
  Fields fields{{"a", a}, {"dst", dst}};
  if (name != "vreduce") fields.push_back({"b", b});
  if (name != "vselect") fields.push_back({"fn", fn});
  Fields r = randomRescale(dice, aType, bType, outType);
  if (isProduct && (aType == kI16 || bType == kI16)) replace(r, "a_shift", dice.of(0, 6));
  const bool hasB = name == "vbinary" || name == "vselect";
  Fields all = d;
  all.insert(all.end(), r.begin(), r.end());
  return {sent(op, fields, descriptorOf(npu::DescriptorKind::kLanes, d),
               descriptorOf(npu::DescriptorKind::kRescale, r)),
          aType == kI16 || outType == kI16 || (hasB && bType == kI16), textOf(op, fields, all)};
}

Case randomPool(Dice& dice, bool int16) {
  const int64_t fn = dice.of(0, 1), aType = randomType(dice, int16, true),
                outType = fn ? randomType(dice, int16, true) : aType;
  const bool isFar = dice.chance(10); // windows and steps beyond those of networks
  const int64_t mostKernel = isFar ? 90 : 4, mostStride = isFar ? 14 : 3, mostOut = isFar ? 2 : 4;
  const int64_t kernelH = dice.of(1, mostKernel), kernelW = dice.of(1, mostKernel);
  const int64_t strideH = dice.of(1, mostStride), strideW = dice.of(1, mostStride);
  const int64_t outH = dice.of(1, mostOut), outW = dice.of(1, mostOut),
                channels = dice.of(1, isFar ? 9 : 14);
  const int64_t padTop = dice.of(0, std::min<int64_t>(kernelH - 1, 63)),
                padLeft = dice.of(0, std::min<int64_t>(kernelW - 1, 63));
  const auto extent = [&](int64_t out, int64_t stride, int64_t pad) {
    return std::max<int64_t>(1, (out - 1) * stride - pad + 1 + dice.of(0, 3));
  };
  const int64_t inH = extent(outH, strideH, padTop), inW = extent(outW, strideW, padLeft);
  const int64_t inPixel = bytesOf(aType) * (channels + dice.of(0, 2)),
                inRow = inPixel * inW + bytesOf(aType) * dice.of(0, 3);
  const int64_t outPixel = bytesOf(outType) * (channels + dice.of(0, 2)),
                outRow = outPixel * outW + bytesOf(outType) * dice.of(0, 3);
  const Fields d{{"in_h", inH},
                 {"in_w", inW},
                 {"out_h", outH},
                 {"out_w", outW},
                 {"channels", channels},
                 {"kernel_h", kernelH},
                 {"kernel_w", kernelW},
                 {"stride_h", strideH},
                 {"stride_w", strideW},
                 {"pad_top", padTop},
                 {"pad_left", padLeft},
                 {"in_row_stride", inRow},
                 {"in_pixel_stride", inPixel},
                 {"out_row_stride", outRow},
                 {"out_pixel_stride", outPixel},
                 {"a_type", aType},
                 {"out_type", outType}};
  const Fields fields{{"a", 4 * dice.of(0, 4000)}, {"dst", 4 * dice.of(10000, 15000)}, {"fn", fn}};
  Fields r = randomRescale(dice, aType, kI8, outType);
  replace(r, "a_shift", dice.of(0, 7));
  Fields all = d;
  all.insert(all.end(), r.begin(), r.end());
  return {sent("vpool", fields, descriptorOf(npu::DescriptorKind::kPooling, d),
               descriptorOf(npu::DescriptorKind::kRescale, r)),
          aType == kI16 || outType == kI16, textOf("vpool", fields, all)};
}

template <typename Config> class VectorEngine : public testing::Test {
protected:
  /// `count` instructions; how many of them have elements of i16. With all accesses granted at once
  /// the cycles are those of simulator/timing.
  int runRandom(int seed, int count, bool isolated) {
    Engine<Config> engine(seed);
    int with16 = 0;
    for (int done = 0; done < count; ++done) {
      const Case c = engine.dice.chance(75) ? randomLanes(engine.dice, Config::kInt16)
                                            : randomPool(engine.dice, Config::kInt16);
      SCOPED_TRACE(fmt::format("seed {}, instruction {}: {}", seed, done, c.text));
      const int64_t cycles =
          engine.run(c.sent, isolated ? 100 : static_cast<int>(engine.dice.of(20, 95)));
      EXPECT_GE(cycles, 0) << "it hangs";
      if (isolated) {
        EXPECT_EQ(cycles, engine.expectedCycles(c.sent));
      }
      engine.compare();
      if (this->HasFailure()) return with16;
      with16 += c.has16;
    }
    return with16;
  }
};
using Configurations = testing::Types<Narrow, Wide, Broad, Least>;
TYPED_TEST_SUITE(VectorEngine, Configurations);

TYPED_TEST(VectorEngine, TakesTheCyclesOfTheTimingModel) {
  const int with16 = this->runRandom(kSeed, 1500, true);
  if (TypeParam::kInt16) {
    EXPECT_GE(with16, 1000);
  }
}
TYPED_TEST(VectorEngine, ComputesTheSameWhenAccessesWait) {
  this->runRandom(kSeed + 1, 500, false);
}

/// All 65,536 values of i16, 8,192 at a time, in an instruction each with a table of its own.
TEST(Vector16, LooksUpEveryValue) {
  Engine<Wide> engine(kSeed + 2);
  constexpr int64_t kRun = 8192, kA = 0, kTable = 2 * kRun, kResult = kTable + 2048;
  const Fields d{{"run", kRun}, {"a_type", kI16}, {"b_type", kI16}, {"out_type", kI16}};
  const Fields fields{{"a", kA}, {"b", kTable}, {"dst", kResult}, {"fn", 4}};
  const Sent s = sent("vunary", fields, descriptorOf(npu::DescriptorKind::kLanes, d));
  for (int64_t from = INT16_MIN; from < INT16_MAX; from += kRun) {
    for (int64_t i = 0; i < kRun; ++i) engine.put16(kA + 2 * i, from + i);
    for (int64_t i = 0; i < 513; ++i)
      engine.put16(kTable + 2 * i, engine.dice.chance(80) ? engine.dice.of(INT16_MIN, INT16_MAX)
                                   : i % 2                ? INT16_MIN
                                                          : INT16_MAX);
    EXPECT_EQ(engine.run(s, 100), engine.expectedCycles(s));
    engine.compare();
    if (HasFailure()) FAIL() << "values from " << from << " on";
  }
}

TEST(Vector16, MultipliesAndAddsTheEndsOfItsNumbers) {
  Engine<Wide> engine(kSeed + 3);
  constexpr int64_t kValues[] = {-32768, -32767, -1, 0, 1, 32766, 32767};
  constexpr int64_t kRun = std::size(kValues) * std::size(kValues), kB = 4096, kResult = 8192;
  int64_t at = 0;
  for (const int64_t x : kValues)
    for (const int64_t y : kValues) engine.put16(at, x), engine.put16(kB + at, y), at += 2;
  for (const int64_t fn : {8, 9})
    for (const int64_t aZero : {-32768, 0, 32767})
      for (const int64_t bZero : {-32768, 0, 32767})
        for (const int64_t outType : {kI8, kI16, kI32}) {
          const Fields d{{"run", kRun}, {"a_type", kI16}, {"b_type", kI16}, {"out_type", outType}};
          const Fields r{{"a_mult", (1 << 24) - 1},
                         {"b_mult", 1 << 23},
                         {"a_shift", 6},
                         {"b_shift", 22},
                         {"shift", 46},
                         {"a_zp", aZero},
                         {"b_zp", bZero},
                         {"zp", -1},
                         {"low", -100},
                         {"high", 100}};
          const Sent s = sent("vbinary", {{"a", 0}, {"b", kB}, {"dst", kResult}, {"fn", fn}},
                              descriptorOf(npu::DescriptorKind::kLanes, d),
                              descriptorOf(npu::DescriptorKind::kRescale, r));
          EXPECT_EQ(engine.run(s, 100), engine.expectedCycles(s));
          engine.compare();
          if (HasFailure())
            FAIL() << "function " << fn << ", zero points " << aZero << " and " << bZero;
        }
}

} // namespace
