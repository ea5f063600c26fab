#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "Vrtl_requant.h"
#include "Vrtl_requant_broad.h"
#include "Vrtl_requant_int16.h"
#include "Vrtl_requant_least.h"
#include "simulator/timing/compute.h"
#include "tests/rtl/bench.h"
#include "tests/rtl/model.h"
#include "tests/rtl/ports.h"

namespace {
using namespace candela;
using namespace candela::rtl;

constexpr int kSeed = 20260104, kScratchpad = 65536, kAccRows = 1024;
constexpr int64_t kI8 = 0, kU8 = 1, kI16 = 3;

/// Fewer lanes than columns; as many, whose values fill more than a word; words of which one holds
/// all that a row has; the least that there is, where a sum of 64 bits is two words.
struct Narrow {
  using Top = Vrtl_requant;
  static constexpr int kColumns = 8, kLanes = 4, kWidth = 8;
  static constexpr bool kInt16 = false;
};
struct Wide {
  using Top = Vrtl_requant_int16;
  static constexpr int kColumns = 8, kLanes = 8, kWidth = 8;
  static constexpr bool kInt16 = true;
};
struct Broad {
  using Top = Vrtl_requant_broad;
  static constexpr int kColumns = 4, kLanes = 2, kWidth = 256;
  static constexpr bool kInt16 = true;
};

struct Case {
  Sent sent;
  int64_t row = 0, rows = 0; ///< accumulators that it may write
  bool has16 = false;        ///< values or tables of i16, or sums of more than 32 bits
  std::string text;
};

struct Least {
  using Top = Vrtl_requant_least;
  static constexpr int kColumns = 4, kLanes = 1, kWidth = 4;
  static constexpr bool kInt16 = true;
};

template <typename Config> struct Engine {
  static constexpr int kColumns = Config::kColumns, kSumBits = Config::kInt16 ? 40 : 32;
  static constexpr int kPortBytes =
      std::max(Config::kLanes * (Config::kInt16 ? 2 : 1), Config::kWidth);

  explicit Engine(int seed)
      : bench(seed), dice(static_cast<uint32_t>(seed)),
        model(configurationOf(fmt::format(
            "name = \"bench\"\n[array]\nrows = 8\ncolumns = {}\n[scratchpad]\nbytes = {}\n"
            "bank_width = {}\n[accumulator]\nbytes = {}\n[requant]\nlanes = {}\n"
            "[features]\nint16 = {}\n",
            kColumns, kScratchpad, Config::kWidth, kAccRows * 4 * kColumns, Config::kLanes,
            Config::kInt16 ? 1 : 0))) {
    bench->insn_valid_i = bench->matrix_valid_i = bench->probe_i = 0;
    bench->read_ready_i = bench->write_ready_i = 1;
    const int64_t most = (int64_t{1} << (kSumBits - 1)) - 1;
    for (int row = 0; row < kAccRows; ++row) {
      std::vector<int64_t> values;
      for (int c = 0; c < kColumns; ++c) {
        values.push_back(dice.chance(75)   ? dice.of(-50000, 50000)
                         : dice.chance(80) ? dice.of(-most - 1, most)
                         : dice.chance(50) ? -most - 1
                                           : most);
        if (!Config::kInt16) model.memory.row(row)[c] = static_cast<int32_t>(values.back());
      }
      if (Config::kInt16) model.memory.writeWide(row, kColumns, values.data(), false);
      accumulate(row, false, values);
      bench.settle();
      bench.edge();
    }
    bench->matrix_valid_i = 0;
    for (int i = 0; i < 3; ++i) bench.settle(), bench.edge();
    chip.resize(kScratchpad);
    for (uint8_t& byte : chip) byte = static_cast<uint8_t>(dice.of(0, 255));
    std::copy(chip.begin(), chip.end(), model.memory.scratchpad());
  }
  void accumulate(int row, bool add, const std::vector<int64_t>& values) {
    bench->matrix_valid_i = 1, bench->matrix_add_i = add,
    bench->matrix_row_i = static_cast<uint16_t>(row);
    for (int c = 0; c < kColumns; ++c)
      setBits(bench->matrix_sums_i, kSumBits * c, kSumBits,
              static_cast<uint64_t>(values[static_cast<size_t>(c)]));
  }
  /// Bytes of both scratchpads.
  void put(int64_t at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i)
      chip[static_cast<size_t>(at + i)] = model.memory.scratchpad()[at + i] =
          static_cast<uint8_t>(value >> (8 * i));
  }

  /// Runs it on both sides; `ready` of 100 accesses are granted in the cycle in which they are
  /// asked for, and below 100 the matrix port takes the accumulators now and then, but for rows
  /// that the instruction writes. Returns the cycles, -1 if it hangs.
  int64_t run(const Case& c, int ready) {
    const Sent& s = c.sent;
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
      read.answer(chip, kPortBytes, dice, bench->read_data_i);
      bench->read_ready_i = dice.chance(ready), bench->write_ready_i = dice.chance(ready);
      bench->matrix_valid_i = 0;
      if (dice.chance(100 - ready))
        if (const int64_t row = dice.of(0, kAccRows - 1); row < c.row || row >= c.row + c.rows)
          accumulate(static_cast<int>(row), true, std::vector<int64_t>(kColumns, 0));
      bench.settle();
      if (bench->done_o && bench.cycle > from) {
        bench->matrix_valid_i = 0;
        return bench.cycle - from;
      }
      read = {bench->read_valid_o && bench->read_ready_i, bench->read_addr_o};
      if (bench->write_valid_o && bench->write_ready_i) {
        EXPECT_TRUE(
            write(chip, bench->write_addr_o, kPortBytes, bench->write_bytes_o, bench->write_data_o))
            << bench->write_addr_o;
      }
      bench.edge();
      bench->insn_valid_i = 0;
    }
    return -1;
  }

  void compareScratchpad() {
    const auto [mine, theirs] = std::mismatch(chip.begin(), chip.end(), model.memory.scratchpad());
    ASSERT_TRUE(mine == chip.end()) << "byte " << mine - chip.begin() << " is " << int{*mine}
                                    << ", the model has " << int{*theirs};
  }
  void compareRows(int64_t from, int64_t rows) {
    for (int64_t row = std::max<int64_t>(from, 0); row < std::min<int64_t>(from + rows, kAccRows);
         ++row) {
      bench->probe_i = 1, bench->probe_row_i = static_cast<uint16_t>(row);
      bench.settle();
      bench.edge();
      bench->probe_i = 0;
      bench.settle();
      for (int c = 0; c < kColumns; ++c)
        ASSERT_EQ(signedBits(getBits(bench->probe_data_o, kSumBits * c, kSumBits), kSumBits),
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
  std::vector<uint8_t> chip; ///< the scratchpad of the hardware
};

struct Range {
  int64_t low, high;
};
Range rangeOf(int64_t type) {
  return type == kI8 ? Range{-128, 127} : type == kU8 ? Range{0, 255} : Range{-32768, 32767};
}
int64_t bytesOf(int64_t type) { return type == kI16 ? 2 : 1; }
int64_t randomByteType(Dice& dice) { return dice.chance(50) ? kI8 : kU8; }
/// Of a type, now and then an end of it.
int64_t randomOf(Dice& dice, const Range& type) {
  return dice.chance(90) ? dice.of(type.low, type.high) : dice.chance(50) ? type.low : type.high;
}
/// Zero point and bounds of a result.
void addBounds(Fields& d, Dice& dice, const Range& type) {
  int64_t low = type.low, high = type.high;
  if (dice.chance(30)) low = dice.of(type.low, type.high), high = dice.of(low, type.high);
  d.push_back({"zp", randomOf(dice, type)});
  d.push_back({"low", low});
  d.push_back({"high", high});
}

/// Parameters, table and operands lie apart: records below 8 KiB, tables below 10, residuals below
/// 36, results behind; or a residual is where the result goes.
template <typename Config> Case randomRequant(Engine<Config>& engine) {
  Dice& dice = engine.dice;
  // The largest windows and steps, or many channels.
  const bool isFar = dice.chance(7), hasMany = !isFar && dice.chance(7);
  const int64_t outH = dice.of(1, isFar || hasMany ? 2 : 4),
                outW = dice.of(1, isFar || hasMany ? 2 : 5);
  const int64_t channels = dice.of(1, isFar ? 2 * Config::kColumns : hasMany ? 200 : 20);
  const int64_t mostPool = isFar                        ? 16
                           : hasMany || dice.chance(40) ? 1
                                                        : 3,
                mostStride = isFar     ? 16
                             : hasMany ? 1
                                       : 3;
  const int64_t poolH = dice.of(1, mostPool), poolW = dice.of(1, mostPool);
  const int64_t strideH = dice.of(1, mostStride), strideW = dice.of(1, mostStride);
  const int64_t padTop = dice.of(0, std::min<int64_t>(poolH - 1, 7)),
                padLeft = dice.of(0, std::min<int64_t>(poolW - 1, 7));
  const auto extent = [&](int64_t out, int64_t stride, int64_t pad) {
    return std::max<int64_t>(1, (out - 1) * stride - pad + 1 + dice.of(0, 2));
  };
  const int64_t inH = extent(outH, strideH, padTop), inW = extent(outW, strideW, padLeft),
                positions = inH * inW;
  const int64_t accPitch = positions + dice.of(0, 3),
                rows = (channels - 1) / Config::kColumns * accPitch + positions;
  const bool residual = dice.chance(50), hasTable = dice.chance(30),
             wide = Config::kInt16 && dice.chance(50);
  const int64_t outType = Config::kInt16 && dice.chance(60) ? kI16 : randomByteType(dice);
  const int64_t lastType = outType == kI16 ? kI16 : residual ? randomByteType(dice) : outType;
  const int64_t resType = Config::kInt16 && dice.chance(50) ? kI16 : randomByteType(dice);
  const int64_t unit = bytesOf(outType), resUnit = bytesOf(resType);
  const int64_t params = 8 * dice.of(0, 700),
                table = 8192 + unit * dice.of(0, outType == kI16 ? 500 : 1700);
  const int64_t leastShift = (outType == kI16 ? 18 : 26) + (wide && dice.chance(50) ? 8 : 0);
  for (int64_t c = 0; c < channels; ++c)
    engine.put(params + 8 * c,
               static_cast<uint64_t>(leastShift + dice.of(0, 16)) << 56 |
                   static_cast<uint64_t>(dice.of(1 << 22, (1 << 24) - 1)) << 32 |
                   static_cast<uint32_t>(dice.chance(90) ? dice.of(-9000, 9000)
                                                         : dice.of(INT32_MIN, INT32_MAX)),
               8);
  const int64_t pixel = unit * (channels + dice.of(0, 3)),
                row = outW * pixel + unit * dice.of(0, 9);
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
           {"out_type", outType},
           {"wide", wide}};
  addBounds(d, dice, rangeOf(outType));
  const bool inPlace = resUnit == unit && dice.chance(30);
  const int64_t resPixel = inPlace ? pixel : resUnit * (channels + dice.of(0, 3)),
                resRow = inPlace ? row : outW * resPixel + resUnit * dice.of(0, 5);
  const auto shift = [&](int64_t type) {
    return dice.of(0, dice.chance(80) ? 6 : type == kI16 ? 22 : 30);
  };
  Fields r{{"a_mult", dice.of(0, (1 << 24) - 1)},
           {"b_mult", dice.of(0, (1 << 24) - 1)},
           {"a_shift", shift(outType)},
           {"b_shift", shift(resType)},
           {"shift", dice.chance(80) ? dice.of(20, 32) : dice.of(0, 70)},
           {"b_zp", resType == kI16 ? randomOf(dice, rangeOf(kI16)) : dice.of(-256, 255)},
           {"b_type", resType},
           {"out_type", lastType},
           {"row_stride", resRow},
           {"pixel_stride", resPixel}};
  addBounds(r, dice, rangeOf(lastType));
  const int64_t acc = dice.of(0, kAccRows - rows);
  const int64_t dst = 37000 + unit * dice.of(0, (kScratchpad - outH * row - 64 - 37000) / unit);
  const int64_t res =
      inPlace ? dst : 10240 + resUnit * dice.of(0, (25700 - outH * resRow) / resUnit);
  const Fields fields{
      {"acc", acc}, {"dst", dst}, {"res", res}, {"residual", residual}, {"table", hasTable}};
  Fields all = d;
  if (residual) all.insert(all.end(), r.begin(), r.end());
  return {sent("requant", fields, descriptorOf(npu::DescriptorKind::kEpilogue, d),
               descriptorOf(npu::DescriptorKind::kRescale, r)),
          0, 0, wide || outType == kI16 || (residual && resType == kI16),
          textOf("requant", fields, all)};
}

template <typename Config> Case randomMove(Engine<Config>& engine) {
  Dice& dice = engine.dice;
  const bool isLoad = dice.chance(50), wide = Config::kInt16 && dice.chance(60);
  const int64_t unit = wide ? 8 : 4;
  const int64_t outH = dice.of(1, 4), outW = dice.of(1, 5), channels = dice.of(1, 20),
                outs = outH * outW;
  const int64_t accPitch = outs + dice.of(0, 3),
                rows = (channels - 1) / Config::kColumns * accPitch + outs;
  const int64_t pixel = isLoad && dice.chance(30) ? 0 : unit * (channels + dice.of(0, 3)),
                row = outW * pixel + unit * dice.of(0, 5);
  const Fields d{{"out_h", outH},        {"out_w", outW},         {"channels", channels},
                 {"wide", wide},         {"acc_pitch", accPitch}, {"row_stride", row},
                 {"pixel_stride", pixel}};
  const int64_t acc = dice.of(0, kAccRows - rows),
                at = unit * dice.of(0, (kScratchpad - outH * row - 512) / unit);
  const Fields fields{{"acc", acc}, {isLoad ? "src" : "dst", at}};
  const char* const op = isLoad ? "accload" : "accstore";
  return {sent(op, fields, descriptorOf(npu::DescriptorKind::kEpilogue, d)), acc, isLoad ? rows : 0,
          wide, textOf(op, fields, d)};
}

template <typename Config> class RequantEngine : public testing::Test {
protected:
  /// `count` instructions; how many of them have to do with 16 bits. With all accesses granted at
  /// once the cycles are those of simulator/timing.
  int runRandom(int seed, int count, bool isolated) {
    Engine<Config> engine(seed);
    int with16 = 0;
    for (int done = 0; done < count; ++done) {
      const Case c = engine.dice.chance(65) ? randomRequant(engine) : randomMove(engine);
      SCOPED_TRACE(fmt::format("seed {}, instruction {}: {}", seed, done, c.text));
      const int64_t cycles =
          engine.run(c, isolated ? 100 : static_cast<int>(engine.dice.of(20, 95)));
      EXPECT_GE(cycles, 0) << "it hangs";
      if (isolated) {
        EXPECT_EQ(cycles, engine.expectedCycles(c.sent));
      }
      engine.compareScratchpad();
      engine.compareRows(c.row - 2, c.rows ? c.rows + 4 : 0);
      if (this->HasFailure()) return with16;
      with16 += c.has16;
    }
    engine.compareRows(0, kAccRows);
    return with16;
  }
};
using Configurations = testing::Types<Narrow, Wide, Broad, Least>;
TYPED_TEST_SUITE(RequantEngine, Configurations);

TYPED_TEST(RequantEngine, TakesTheCyclesOfTheTimingModel) {
  const int with16 = this->runRandom(kSeed, TypeParam::kInt16 ? 2000 : 1000, true);
  if (TypeParam::kInt16) {
    EXPECT_GE(with16, 1000);
  }
}
TYPED_TEST(RequantEngine, ComputesTheSameWhenOthersComeBetween) {
  this->runRandom(kSeed + 1, 400, false);
}

} // namespace
