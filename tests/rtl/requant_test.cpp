#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "Vrtl_requant.h"
#include "simulator/timing/compute.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260104, kScratchpad = 65536, kAccRows = 1024, kColumns = 8, kLanes = 4, kWidth = 8;
/// Rows that instructions use; those above are written by the matrix port meanwhile.
constexpr int kUsedRows = 960;

struct Engine {
  explicit Engine(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(
            configurationOf(fmt::format("name = \"bench\"\n[array]\nrows = 8\ncolumns = {}\n[scratchpad]\nbytes = {}\n"
                                        "bank_width = {}\n[accumulator]\nbytes = {}\n[requant]\nlanes = {}\n",
                                        kColumns, kScratchpad, kWidth, kAccRows * 4 * kColumns, kLanes))) {
    bench->insn_valid_i = bench->matrix_valid_i = bench->probe_i = 0;
    bench->read_ready_i = bench->write_ready_i = 1;
    for (int row = 0; row < kAccRows; ++row) {
      std::vector<int32_t> values;
      for (int c = 0; c < kColumns; ++c)
        values.push_back(
            static_cast<int32_t>(dice.chance(80) ? dice.of(-50000, 50000) : dice.of(INT32_MIN, INT32_MAX)));
      accumulate(row, false, values);
      std::copy(values.begin(), values.end(), model.memory.row(row));
      bench.settle();
      bench.edge();
    }
    bench->matrix_valid_i = 0;
    for (int i = 0; i < 3; ++i) bench.settle(), bench.edge();
    chip.resize(kScratchpad);
    for (uint8_t& byte : chip) byte = static_cast<uint8_t>(dice.of(0, 255));
    std::copy(chip.begin(), chip.end(), model.memory.scratchpad());
  }
  void accumulate(int row, bool add, const std::vector<int32_t>& values) {
    bench->matrix_valid_i = 1, bench->matrix_add_i = add, bench->matrix_row_i = static_cast<uint16_t>(row);
    for (int c = 0; c < kColumns; ++c)
      setBits(bench->matrix_sums_i, 32 * c, 32, static_cast<uint32_t>(values[static_cast<size_t>(c)]));
  }
  /// Bytes of both scratchpads.
  void put(int64_t at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      chip[static_cast<size_t>(at + i)] = model.memory.scratchpad()[at + i] = static_cast<uint8_t>(value >> (8 * i));
  }

  /// Runs it on both sides; `ready` of 100 accesses are granted in the cycle in which they are asked for, and below 100
  /// the matrix port takes the accumulators now and then. Returns the cycles, -1 if it hangs.
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
    ReadPort read;
    while (bench.cycle < from + 200000) {
      read.answer(chip, kWidth, dice, bench->read_data_i);
      bench->read_ready_i = dice.chance(ready), bench->write_ready_i = dice.chance(ready);
      bench->matrix_valid_i = 0;
      if (dice.chance(100 - ready))
        accumulate(static_cast<int>(dice.of(0, 1) ? kUsedRows - 1 - dice.of(0, 400) : dice.of(kUsedRows, kAccRows - 1)),
                   true, std::vector<int32_t>(kColumns, 0));
      bench.settle();
      if (bench->done_o && bench.cycle > from) {
        bench->matrix_valid_i = 0;
        return bench.cycle - from;
      }
      read = {bench->read_valid_o && bench->read_ready_i, bench->read_addr_o};
      if (bench->write_valid_o && bench->write_ready_i) {
        EXPECT_TRUE(write(chip, bench->write_addr_o, bench->write_bytes_o, bench->write_data_o)) << bench->write_addr_o;
      }
      bench.edge();
      bench->insn_valid_i = 0;
    }
    return -1;
  }

  void compareScratchpad() {
    const auto [mine, theirs] = std::mismatch(chip.begin(), chip.end(), model.memory.scratchpad());
    ASSERT_TRUE(mine == chip.end()) << "byte " << mine - chip.begin() << " is " << int{*mine} << ", the model has "
                                    << int{*theirs};
  }
  void compareRows(int64_t from, int64_t rows) {
    for (int64_t row = from; row < from + rows; ++row) {
      bench->probe_i = 1, bench->probe_row_i = static_cast<uint16_t>(row);
      bench.settle();
      bench.edge();
      bench->probe_i = 0;
      bench.settle();
      for (int c = 0; c < kColumns; ++c)
        ASSERT_EQ(static_cast<int32_t>(getBits(bench->probe_data_o, 32 * c, 32)), model.memory.row(row)[c])
            << "row " << row << ", column " << c;
    }
  }
  int64_t expectedCycles(const Sent& s) {
    const npu::Result<npu::Operation> operation = npu::operationOf(s.insn, s.d, s.second);
    EXPECT_TRUE(operation);
    return npu::computeCost(model.configuration, *operation).cycles();
  }

  Bench<Vrtl_requant> bench;
  Dice dice;
  Model model;
  std::vector<uint8_t> chip; ///< the scratchpad of the hardware
};

struct Case {
  Sent sent;
  int64_t row = 0, rows = 0; ///< accumulators that it may write
  std::string text;
};

struct Range {
  int64_t low, high;
};
/// Zero point and bounds of a result.
void addBounds(Fields& d, Dice& dice, const Range& type) {
  int64_t low = type.low, high = type.high;
  if (dice.chance(30)) low = dice.of(type.low, type.high), high = dice.of(low, type.high);
  d.push_back({"zp", dice.of(type.low, type.high)});
  d.push_back({"low", low});
  d.push_back({"high", high});
}

/// Parameters, table and operands lie apart: records below 8 KiB, tables below 10, residuals below 36, results behind.
Case randomRequant(Engine& engine) {
  Dice& dice = engine.dice;
  const int64_t outH = dice.of(1, 4), outW = dice.of(1, 5), channels = dice.of(1, 20);
  const int64_t poolH = dice.chance(50) ? 1 : dice.of(1, 3), poolW = dice.chance(50) ? 1 : dice.of(1, 3);
  const int64_t strideH = dice.of(1, 3), strideW = dice.of(1, 3), padTop = dice.of(0, poolH - 1),
                padLeft = dice.of(0, poolW - 1);
  const auto extent = [&](int64_t out, int64_t stride, int64_t pad) {
    return std::max<int64_t>(1, (out - 1) * stride - pad + 1 + dice.of(0, 2));
  };
  const int64_t inH = extent(outH, strideH, padTop), inW = extent(outW, strideW, padLeft), positions = inH * inW;
  const int64_t accPitch = positions + dice.of(0, 3), rows = (channels - 1) / kColumns * accPitch + positions;
  const int64_t params = 8 * dice.of(0, 900), table = 8192 + dice.of(0, 1700);
  for (int64_t c = 0; c < channels; ++c)
    engine.put(params + 8 * c,
               static_cast<uint64_t>(dice.of(26, 42)) << 56 |
                   static_cast<uint64_t>(dice.of(1 << 22, (1 << 24) - 1)) << 32 |
                   static_cast<uint32_t>(dice.of(-9000, 9000)),
               8);
  const bool residual = dice.chance(50), hasTable = dice.chance(30), isI8 = dice.chance(50),
             resultI8 = residual ? dice.chance(50) : isI8;
  const auto typeOf = [](bool i8) { return i8 ? Range{-128, 127} : Range{0, 255}; };
  const int64_t pixel = channels + dice.of(0, 3), row = outW * pixel + dice.of(0, 9);
  Fields d{{"out_h", outH},
           {"out_w", outW},
           {"channels", channels},
           {"in_h", inH},
           {"in_w", inW},
           {"acc_pitch", accPitch},
           {"pool_h", poolH},
           {"pool_w", poolW},
           {"pool_stride_h", strideH},
           {"pool_stride_w", strideW},
           {"pool_pad_top", padTop},
           {"pool_pad_left", padLeft},
           {"row_stride", row},
           {"pixel_stride", pixel},
           {"params", params},
           {"table", table},
           {"out_type", isI8 ? 0 : 1}};
  addBounds(d, dice, typeOf(isI8));
  const bool otherI8 = dice.chance(50);
  Fields r{{"a_mult", dice.of(0, (1 << 24) - 1)},
           {"b_mult", dice.of(0, (1 << 24) - 1)},
           {"a_shift", dice.of(0, 6)},
           {"b_shift", dice.of(0, 6)},
           {"shift", dice.of(20, 32)},
           {"b_zp", dice.of(-256, 255)},
           {"b_type", otherI8 ? 0 : 1},
           {"out_type", resultI8 ? 0 : 1},
           {"row_stride", row + dice.of(0, 5)},
           {"pixel_stride", pixel + dice.of(0, 2)}};
  addBounds(r, dice, typeOf(resultI8));
  const int64_t acc = dice.of(0, kUsedRows - rows);
  const Fields fields{{"acc", acc},
                      {"dst", dice.of(37000, kScratchpad - outH * row - 64)},
                      {"res", dice.of(10240, 36000 - outH * (row + 40))},
                      {"residual", residual},
                      {"table", hasTable}};
  Fields all = d;
  if (residual) all.insert(all.end(), r.begin(), r.end());
  return {sent("requant", fields, descriptorOf(npu::DescriptorKind::kEpilogue, d),
               descriptorOf(npu::DescriptorKind::kRescale, r)),
          0, 0, textOf("requant", fields, all)};
}

Case randomMove(Engine& engine) {
  Dice& dice = engine.dice;
  const bool isLoad = dice.chance(50);
  const int64_t outH = dice.of(1, 4), outW = dice.of(1, 5), channels = dice.of(1, 20), outs = outH * outW;
  const int64_t accPitch = outs + dice.of(0, 3), rows = (channels - 1) / kColumns * accPitch + outs;
  const int64_t pixel = isLoad && dice.chance(30) ? 0 : 4 * (channels + dice.of(0, 3)),
                row = outW * pixel + 4 * dice.of(0, 5);
  const Fields d{{"out_h", outH},         {"out_w", outW},     {"channels", channels},
                 {"acc_pitch", accPitch}, {"row_stride", row}, {"pixel_stride", pixel}};
  const int64_t acc = dice.of(0, kUsedRows - rows), at = 4 * dice.of(0, (kScratchpad - outH * row - 256) / 4);
  const Fields fields{{"acc", acc}, {isLoad ? "src" : "dst", at}};
  const char* const op = isLoad ? "accload" : "accstore";
  return {sent(op, fields, descriptorOf(npu::DescriptorKind::kEpilogue, d)), acc, isLoad ? rows : 0,
          textOf(op, fields, d)};
}

void runRandom(int seed, int count, bool isolated) {
  Engine engine(seed);
  for (int done = 0; done < count; ++done) {
    const Case c = engine.dice.chance(65) ? randomRequant(engine) : randomMove(engine);
    SCOPED_TRACE(fmt::format("seed {}, instruction {}: {}", seed, done, c.text));
    const int64_t cycles = engine.run(c.sent, isolated ? 100 : static_cast<int>(engine.dice.of(20, 95)));
    ASSERT_GE(cycles, 0) << "it hangs";
    if (isolated) { ASSERT_EQ(cycles, engine.expectedCycles(c.sent)); }
    engine.compareScratchpad();
    engine.compareRows(std::max<int64_t>(c.row - 2, 0), c.rows ? c.rows + 4 : 0);
    if (testing::Test::HasFatalFailure()) return;
  }
  engine.compareRows(0, kAccRows);
}

TEST(RequantEngine, TakesTheCyclesOfTheTimingModel) { runRandom(kSeed, 1000, true); }
TEST(RequantEngine, ComputesTheSameWhenOthersComeBetween) { runRandom(kSeed + 1, 400, false); }

} // namespace
