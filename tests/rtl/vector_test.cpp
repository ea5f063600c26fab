#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "Vrtl_vector.h"
#include "simulator/timing/compute.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260105, kScratchpad = 65536, kLanes = 4, kWidth = 8;

struct Engine {
  explicit Engine(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(configurationOf(
            fmt::format("name = \"bench\"\n[scratchpad]\nbytes = {}\nbank_width = {}\n[vector]\nlanes = {}\n",
                        kScratchpad, kWidth, kLanes))) {
    bench->insn_valid_i = 0;
    bench->a_ready_i = bench->b_ready_i = bench->write_ready_i = 1;
    chip.resize(kScratchpad);
    for (uint8_t& byte : chip) byte = static_cast<uint8_t>(dice.of(0, 255));
    std::copy(chip.begin(), chip.end(), model.memory.scratchpad());
  }

  /// Runs it on both sides; `ready` of 100 accesses are granted in the cycle in which they are asked for. Returns the
  /// cycles, -1 if it hangs.
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
      a.answer(chip, kWidth, dice, bench->a_data_i);
      b.answer(chip, kWidth, dice, bench->b_data_i);
      bench->a_ready_i = dice.chance(ready), bench->b_ready_i = dice.chance(ready),
      bench->write_ready_i = dice.chance(ready);
      bench.settle();
      if (bench->done_o && bench.cycle > from) return bench.cycle - from;
      a = {bench->a_valid_o && bench->a_ready_i, bench->a_addr_o};
      b = {bench->b_valid_o && bench->b_ready_i, bench->b_addr_o};
      if (bench->write_valid_o && bench->write_ready_i) {
        EXPECT_TRUE(write(chip, bench->write_addr_o, bench->write_bytes_o, bench->write_data_o)) << bench->write_addr_o;
      }
      bench.edge();
      bench->insn_valid_i = 0;
    }
    return -1;
  }
  void compare() {
    const auto [mine, theirs] = std::mismatch(chip.begin(), chip.end(), model.memory.scratchpad());
    ASSERT_TRUE(mine == chip.end()) << "byte " << mine - chip.begin() << " is " << int{*mine} << ", the model has "
                                    << int{*theirs};
  }
  int64_t expectedCycles(const Sent& s) {
    const npu::Result<npu::Operation> operation = npu::operationOf(s.insn, s.d, s.second);
    EXPECT_TRUE(operation);
    return npu::computeCost(model.configuration, *operation).cycles();
  }

  Bench<Vrtl_vector> bench;
  Dice dice;
  Model model;
  std::vector<uint8_t> chip; ///< the scratchpad of the hardware
};

struct Case {
  Sent sent;
  std::string text;
};

constexpr int64_t kI8 = 0, kU8 = 1, kI32 = 2;
int64_t bytesOf(int64_t type) { return type == kI32 ? 4 : 1; }

/// The second scale of an instruction with a result of `out` and operands of `a` and `b`.
Fields randomRescale(Dice& dice, int64_t a, int64_t b, int64_t out) {
  int64_t low = out == kI8 ? -128 : 0, high = out == kI8 ? 127 : 255;
  if (out != kI32 && dice.chance(30)) low = dice.of(low, high), high = dice.of(low, high);
  const auto shift = [&](int64_t type) { return dice.of(0, type == kI32 ? 7 : dice.chance(80) ? 8 : 30); };
  return {{"a_mult", dice.of(0, (1 << 24) - 1)},
          {"b_mult", dice.of(0, (1 << 24) - 1)},
          {"a_shift", shift(a)},
          {"b_shift", shift(b)},
          {"shift", dice.chance(90) ? dice.of(16, 40) : dice.of(0, 127)},
          {"a_zp", dice.of(-256, 255)},
          {"b_zp", dice.of(-256, 255)},
          {"zp", dice.of(-256, 255)},
          {"low", low},
          {"high", high}};
}

/// Operands lie apart: a below 20,000, b below 40,000, results behind; or a result lies on its operand.
Case randomLanes(Dice& dice) {
  const char* const op = std::array{"vbinary", "vunary", "vreduce", "vselect"}[static_cast<size_t>(dice.of(0, 3))];
  const std::string_view name = op;
  const int64_t fn = name == "vbinary"   ? dice.of(0, 9)
                     : name == "vunary"  ? dice.of(0, 4)
                     : name == "vreduce" ? dice.of(0, 2)
                                         : 0;
  const bool isTable = name == "vunary" && fn == 4, isProduct = name == "vbinary" && fn == 9;
  int64_t aType = dice.of(0, isTable || isProduct ? 1 : 2), bType = dice.of(0, isProduct ? 1 : 2),
          outType = dice.of(0, isTable ? 1 : 2);
  if (name == "vselect") aType = kU8, bType = outType;
  const int64_t run = dice.chance(50) ? dice.of(1, 12) : dice.of(1, 60), len1 = dice.of(1, 4), len2 = dice.of(1, 3);
  const bool scalar = name != "vunary" && name != "vreduce" && dice.chance(30);
  const auto strides = [&](int64_t type, int64_t elements, bool canRepeat) {
    const int64_t unit = bytesOf(type);
    const int64_t stride1 = canRepeat && dice.chance(20) ? 0 : unit * (elements + dice.of(0, 4));
    return std::pair{stride1, canRepeat && dice.chance(20) ? 0 : stride1 * len1 + unit * dice.of(0, 5)};
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
  const Fields r = randomRescale(dice, isProduct ? kI8 : aType, bType, outType);
  Fields all = d;
  all.insert(all.end(), r.begin(), r.end());
  return {
      sent(op, fields, descriptorOf(npu::DescriptorKind::kLanes, d), descriptorOf(npu::DescriptorKind::kRescale, r)),
      textOf(op, fields, all)};
}

Case randomPool(Dice& dice) {
  const int64_t fn = dice.of(0, 1), aType = dice.of(0, 2), outType = fn ? dice.of(0, 2) : aType;
  const int64_t kernelH = dice.of(1, 4), kernelW = dice.of(1, 4), strideH = dice.of(1, 3), strideW = dice.of(1, 3);
  const int64_t outH = dice.of(1, 4), outW = dice.of(1, 4), channels = dice.of(1, 14);
  const int64_t padTop = dice.of(0, kernelH - 1), padLeft = dice.of(0, kernelW - 1);
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
  const Fields r = randomRescale(dice, kI32, kI32, outType);
  Fields all = d;
  all.insert(all.end(), r.begin(), r.end());
  return {sent("vpool", fields, descriptorOf(npu::DescriptorKind::kPooling, d),
               descriptorOf(npu::DescriptorKind::kRescale, r)),
          textOf("vpool", fields, all)};
}

void runRandom(int seed, int count, bool isolated) {
  Engine engine(seed);
  for (int done = 0; done < count; ++done) {
    const Case c = engine.dice.chance(75) ? randomLanes(engine.dice) : randomPool(engine.dice);
    SCOPED_TRACE(fmt::format("seed {}, instruction {}: {}", seed, done, c.text));
    const int64_t cycles = engine.run(c.sent, isolated ? 100 : static_cast<int>(engine.dice.of(20, 95)));
    ASSERT_GE(cycles, 0) << "it hangs";
    if (isolated) { ASSERT_EQ(cycles, engine.expectedCycles(c.sent)); }
    engine.compare();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(VectorEngine, TakesTheCyclesOfTheTimingModel) { runRandom(kSeed, 1500, true); }
TEST(VectorEngine, ComputesTheSameWhenAccessesWait) { runRandom(kSeed + 1, 500, false); }

} // namespace
