#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "Vrtl_matrix.h"
#include "Vrtl_matrix_int16.h"
#include "simulator/timing/compute.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260103, kScratchpad = 65536, kAccRows = 1024;

struct Narrow {
  using Top = Vrtl_matrix;
  static constexpr int kRows = 8, kColumns = 4;
  static constexpr bool kInt16 = false;
};
struct Wide {
  using Top = Vrtl_matrix_int16;
  static constexpr int kRows = 4, kColumns = 8;
  static constexpr bool kInt16 = true;
};

template <typename Config> struct Engine {
  static constexpr int kLonger = std::max(Config::kRows, Config::kColumns),
                       kSumBits = Config::kInt16 ? 40 : 32;

  explicit Engine(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(configurationOf(
            fmt::format("name = \"bench\"\n[array]\nrows = {}\ncolumns = {}\n[scratchpad]\nbytes = "
                        "{}\n[accumulator]\nbytes = {}\n[features]\nint16 = {}\n",
                        Config::kRows, Config::kColumns, kScratchpad,
                        kAccRows * 4 * Config::kColumns, Config::kInt16 ? 1 : 0))) {
    for (int i = 0; i < kScratchpad; ++i)
      model.memory.scratchpad()[i] = static_cast<uint8_t>(dice.of(0, 255));
    bench->insn_valid_i = bench->read_valid_i = bench->write_valid_i = 0;
    bench->act_ready_i = bench->wgt_ready_i = 1;
    for (int row = 0; row < kAccRows; ++row) {
      std::vector<int64_t> values;
      for (int c = 0; c < Config::kColumns; ++c) {
        values.push_back(
            dice.of(-(int64_t{1} << (kSumBits - 1)), (int64_t{1} << (kSumBits - 1)) - 1));
        setBits(bench->write_data_i, c * kSumBits, kSumBits, static_cast<uint64_t>(values.back()));
        if (!Config::kInt16) model.memory.row(row)[c] = static_cast<int32_t>(values.back());
      }
      if (Config::kInt16) model.memory.writeWide(row, Config::kColumns, values.data(), false);
      bench->write_valid_i = 1, bench->write_row_i = static_cast<uint16_t>(row);
      bench.settle();
      EXPECT_TRUE(bench->write_ready_o);
      bench.edge();
    }
    bench->write_valid_i = 0;
  }

  /// Runs it on both sides; `ready` of 100 reads are granted in the cycle in which they are asked
  /// for. Returns the cycles, -1 if it hangs.
  int64_t run(const Sent& s, int ready) {
    model.run(s);
    bench->insn_valid_i = 1;
    for (int i = 0; i < 4; ++i) {
      bench->word_i[static_cast<size_t>(i)] =
          static_cast<uint32_t>((i < 2 ? s.word.low : s.word.high) >> (32 * (i % 2)));
      setBits(bench->desc_i, 64 * i, 64, s.d[static_cast<size_t>(i)]);
    }
    bench.settle();
    EXPECT_TRUE(bench->insn_ready_o);
    const int64_t from = bench.cycle;
    ReadPort act, wgt;
    for (bool done = false; !done; bench->insn_valid_i = 0) {
      act.answer({model.memory.scratchpad(), kScratchpad}, kLonger * (Config::kInt16 ? 2 : 1), dice,
                 bench->act_data_i);
      wgt.answer({model.memory.scratchpad(), kScratchpad}, kLonger, dice, bench->wgt_data_i);
      bench->act_ready_i = dice.chance(ready);
      bench->wgt_ready_i = dice.chance(ready);
      bench.settle();
      act = {bench->act_valid_o && bench->act_ready_i, bench->act_addr_o};
      wgt = {bench->wgt_valid_o && bench->wgt_ready_i, bench->wgt_addr_o};
      // high in the first cycle: of the instruction before
      done = bench->done_o && bench.cycle > from;
      if (done) return bench.cycle - from;
      bench.edge();
      if (bench.cycle > from + 1000000) return -1;
    }
    return -1;
  }

  /// Accumulators of rows `from` on against the model.
  void compare(int64_t from, int64_t rows) {
    for (int64_t row = std::max<int64_t>(from, 0); row < std::min<int64_t>(from + rows, kAccRows);
         ++row) {
      bench->read_valid_i = 1, bench->read_row_i = static_cast<uint16_t>(row);
      bench.settle();
      bench.edge();
      bench->read_valid_i = 0;
      bench.settle();
      for (int c = 0; c < Config::kColumns; ++c)
        ASSERT_EQ(signedBits(getBits(bench->read_data_o, c * kSumBits, kSumBits), kSumBits),
                  model.accumulator(row, c))
            << "row " << row << ", column " << c;
    }
  }

  int64_t expectedCycles(const Sent& s) {
    const npu::Result<npu::Operation> operation = npu::operationOf(s.insn, s.d, s.second);
    EXPECT_TRUE(operation);
    return npu::computeCost(model.configuration, *operation).cycles();
  }

  Bench<typename Config::Top> bench;
  Dice dice;
  Model model;
};

/// An instruction, the rows of accumulators that it writes, and how it reads in a message.
struct Case {
  Sent sent;
  int64_t row, rows;
  std::string text;
};

/// Types and zero points of a window.
struct Types {
  int64_t aType, aZp, wType, wZp, aBytes;
};
Types randomTypes(Dice& dice, bool int16) {
  Types t{};
  t.aType = int16 && dice.chance(50) ? 3 : dice.of(0, 1);
  t.aBytes = t.aType == 3 ? 2 : 1;
  t.aZp = t.aType == 3   ? dice.of(-32768, 32767)
          : t.aType == 1 ? dice.of(0, 255)
                         : dice.of(-128, 127);
  t.wType = dice.of(0, 1);
  t.wZp = t.wType == 1 ? dice.of(0, 255) : dice.of(-128, 127);
  return t;
}

template <typename Config> Case randomWindow(Dice& dice, bool depthwise) {
  const Types t = randomTypes(dice, Config::kInt16);
  const bool isFar = dice.chance(10); // kernels, steps and pads beyond those of networks
  const int64_t mostTaps = isFar ? 32 : 5, mostStride = isFar ? 16 : 3,
                mostDilation = isFar ? 32 : 3;
  const int64_t mostPad = isFar ? 63 : 4;
  const int64_t kernelH = dice.of(1, isFar ? 7 : 4), kernelW = dice.of(1, mostTaps);
  const int64_t outH = dice.of(1, isFar ? 2 : 5), outW = dice.of(1, isFar ? 3 : 6);
  int64_t cin = isFar || dice.chance(50) ? dice.of(1, 5) : dice.of(1, 3 * Config::kRows);
  const int64_t cout = dice.of(1, 3 * Config::kColumns), taps = kernelH * kernelW,
                channels = depthwise ? cin : cout;
  int64_t packed = 1;
  if (!depthwise && dice.chance(40)) {
    cin = dice.of(1, Config::kRows / 2);
    packed = dice.of(1, std::min<int64_t>(Config::kRows / cin, 64));
  }
  const bool isFlat = !depthwise && packed == 1 && dice.chance(50);
  const bool transposed = !depthwise && dice.chance(30);
  const int64_t planes = dice.chance(50) ? 1 : dice.of(2, 5);
  const int64_t inH = dice.of(1, 8), planeRows = inH + (dice.chance(50) ? 0 : dice.of(0, 3)),
                inW = dice.of(1, 8);
  const int64_t pixel = (cin + (dice.chance(60) ? 0 : dice.of(0, 5))) * t.aBytes;
  const int64_t row =
      (inW * pixel + (dice.chance(50) ? 0 : 2 * dice.of(0, 9))) / t.aBytes * t.aBytes;
  const int64_t pitch =
      (transposed ? taps * cin : channels) + (dice.chance(50) ? 0 : dice.of(0, 7));
  const int64_t blocks = (channels + Config::kColumns - 1) / Config::kColumns,
                outs = planes * outH * outW;
  const int64_t accPitch = outs + dice.of(0, 3), rows = (blocks - 1) * accPitch + outs;
  const int64_t weightRows = transposed ? cout : depthwise ? taps : taps * cin;
  const int64_t act =
      dice.of(0, (kScratchpad - planes * planeRows * row - pixel * inW) / 2 - 1) * 2;
  const int64_t wgt = dice.of(0, kScratchpad - weightRows * pitch - 1),
                acc = dice.of(0, kAccRows - rows);
  Fields d{{"in_h", inH},
           {"in_w", inW},
           {"out_h", outH},
           {"out_w", outW},
           {"cin", cin},
           {"cout", cout},
           {"kernel_h", kernelH},
           {"kernel_w", kernelW},
           {"stride_h", dice.of(1, mostStride)},
           {"stride_w", dice.of(1, mostStride)},
           {"dilation_h", dice.chance(70) ? 1 : dice.of(1, mostDilation)},
           {"dilation_w", dice.chance(70) ? 1 : dice.of(1, mostDilation)},
           {"pad_top", dice.of(0, mostPad)},
           {"pad_left", dice.of(0, mostPad)},
           {"taps", packed},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"weight_pitch", pitch},
           {"acc_pitch", accPitch},
           {"a_type", t.aType},
           {"a_zp", t.aZp},
           {"w_type", t.wType},
           {"w_zp", t.wZp},
           {"transposed", transposed},
           {"flat", isFlat},
           {"planes", planes},
           {"plane_rows", planeRows}};
  const Fields fields{{"acc", acc}, {"act", act}, {"wgt", wgt}, {"accumulate", dice.of(0, 1)}};
  const char* const op = depthwise ? "dwconv" : "conv";
  return {sent(op, fields, descriptorOf(npu::DescriptorKind::kWindow, d)), acc, rows,
          textOf(op, fields, d)};
}

template <typename Config> std::vector<Case> randomByHand(Dice& dice) {
  std::vector<Case> cases;
  const int64_t k = dice.of(1, Config::kRows), n = dice.of(1, Config::kColumns);
  const Types t = randomTypes(dice, Config::kInt16);
  const bool transposed = dice.chance(30);
  const int64_t pitch = (transposed ? k : n) + dice.of(0, 5);
  const Fields weights{
      {"weight_pitch", pitch}, {"w_type", t.wType}, {"w_zp", t.wZp}, {"transposed", transposed}};
  const Fields load{{"wgt", dice.of(0, kScratchpad - 4096)}, {"k", k}, {"n", n}};
  cases.push_back({sent("ldw", load, descriptorOf(npu::DescriptorKind::kWindow, weights)), 0, 0,
                   textOf("ldw", load, weights)});
  for (int64_t i = 0, most = dice.of(1, 3); i < most; ++i) {
    const int64_t outH = dice.of(1, 6), outW = dice.of(1, 8),
                  acc = dice.of(0, kAccRows - outH * outW);
    const Fields walk{{"out_h", outH},
                      {"out_w", outW},
                      {"stride_h", dice.of(1, 4)},
                      {"stride_w", dice.of(1, 4)},
                      {"row_stride", 2 * dice.of(0, 100)},
                      {"pixel_stride", 2 * dice.of(0, 40)},
                      {"a_type", t.aType},
                      {"a_zp", t.aZp}};
    const Fields fields{{"acc", acc},
                        {"act", 2 * dice.of(0, 20000)},
                        {"accumulate", dice.of(0, 1)},
                        {"swap", i == 0}};
    cases.push_back({sent("mm", fields, descriptorOf(npu::DescriptorKind::kWindow, walk)), acc,
                     outH * outW, textOf("mm", fields, walk)});
  }
  return cases;
}

template <typename Config> class MatrixEngine : public testing::Test {
protected:
  /// Runs cases until `count` instructions are done. With all reads granted at once the cycles are
  /// those of simulator/timing.
  void runRandom(int seed, int count, bool isolated) {
    Engine<Config> engine(seed);
    Dice& dice = engine.dice;
    int done = 0;
    while (done < count) {
      std::vector<Case> cases;
      if (dice.chance(25))
        cases = randomByHand<Config>(dice);
      else
        cases.push_back(randomWindow<Config>(dice, dice.chance(25)));
      const int ready = isolated ? 100 : static_cast<int>(dice.of(20, 95));
      for (const Case& c : cases) {
        SCOPED_TRACE(fmt::format("seed {}, instruction {}: {}", seed, done, c.text));
        const int64_t cycles = engine.run(c.sent, ready);
        ASSERT_GE(cycles, 0) << "it hangs";
        if (isolated) {
          ASSERT_EQ(cycles, engine.expectedCycles(c.sent));
        }
        engine.compare(c.row - 2, c.rows ? c.rows + 4 : 0);
        if (this->HasFatalFailure()) return;
        ++done;
      }
    }
    engine.compare(0, kAccRows);
  }
};
using Configurations = testing::Types<Narrow, Wide>;
TYPED_TEST_SUITE(MatrixEngine, Configurations);

TYPED_TEST(MatrixEngine, TakesTheCyclesOfTheTimingModel) { this->runRandom(kSeed, 700, true); }
TYPED_TEST(MatrixEngine, ComputesTheSameWhenReadsWait) { this->runRandom(kSeed + 1, 300, false); }

} // namespace
