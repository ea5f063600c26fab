#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "Vrtl_systolic_array.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260102, kRows = 8, kColumns = 4, kLatency = kRows + kColumns - 1;

/// Weights of one pass and the activations that stream through them.
struct Pass {
  std::vector<std::vector<int>> weights, activations; // [row][column], [vector][row]
  bool byColumn;
};

Pass randomPass(Dice& dice, int64_t vectors) {
  Pass p;
  p.byColumn = dice.chance(50);
  p.weights.assign(kRows, std::vector<int>(kColumns));
  p.activations.assign(static_cast<size_t>(vectors), std::vector<int>(kRows));
  // The ends of nine bits are as likely as all between.
  const auto value = [&] {
    return static_cast<int>(dice.chance(20) ? (dice.chance(50) ? 255 : -256) : dice.of(-256, 255));
  };
  for (auto& row : p.weights)
    for (int& w : row) w = value();
  for (auto& vector : p.activations)
    for (int& a : vector) a = value();
  return p;
}

/// Streams passes with their loads one pass ahead, `percent` of 100 cycles moving on either side.
/// The array has no back-pressure of its own: whoever feeds it waits. Returns the cycles from the
/// first load to the last sum.
int64_t stream(Bench<Vrtl_systolic_array>& bench, const std::vector<Pass>& passes, Dice& dice,
               int percent) {
  std::deque<std::pair<int64_t, std::vector<int32_t>>> due; // cycle, sums
  size_t loading = 0, streaming = 0, loaded = 0, vector = 0;
  int index = 0;
  const int64_t from = bench.cycle;
  while (streaming < passes.size() || !due.empty()) {
    bench->load_i = 0, bench->valid_i = 0, bench->swap_i = 0;
    const size_t before = loaded;
    // A vector: of the next pass only when its weights were all sent in an earlier cycle.
    bool swaps = false;
    if (streaming < before && dice.chance(percent)) {
      const Pass& p = passes[streaming];
      swaps = vector == 0;
      bench->valid_i = 1, bench->swap_i = swaps;
      std::vector<int32_t> sums(kColumns);
      for (int r = 0; r < kRows; ++r) {
        const int a = p.activations[vector][static_cast<size_t>(r)];
        setBits(bench->act_i, r * 9, 9, static_cast<uint64_t>(a));
        for (int c = 0; c < kColumns; ++c)
          sums[static_cast<size_t>(c)] +=
              a * p.weights[static_cast<size_t>(r)][static_cast<size_t>(c)];
      }
      due.push_back({bench.cycle + kLatency, sums});
      if (++vector == p.activations.size()) vector = 0, ++streaming;
    } else {
      for (int r = 0; r < kRows; ++r)
        setBits(bench->act_i, r * 9, 9, static_cast<uint64_t>(dice.of(0, 511)));
    }
    // A row or column of weights: from the cycle on in which the pass before has swapped.
    const bool isFree = loading == 0 || streaming > loading - 1 ||
                        (streaming == loading - 1 && (vector > 0 || swaps));
    if (loading < passes.size() && isFree && dice.chance(percent)) {
      const Pass& p = passes[loading];
      bench->load_i = 1, bench->load_column_i = p.byColumn,
      bench->load_index_i = static_cast<uint8_t>(index);
      const int n = p.byColumn ? kRows : kColumns;
      for (int i = 0; i < n; ++i) {
        const auto [r, c] = p.byColumn ? std::pair{i, index} : std::pair{index, i};
        setBits(bench->load_weights_i, i * 9, 9,
                static_cast<uint64_t>(p.weights[static_cast<size_t>(r)][static_cast<size_t>(c)]));
      }
      if (++index == (p.byColumn ? kColumns : kRows)) index = 0, ++loading, ++loaded;
    }
    bench.settle();
    const bool isDue = !due.empty() && due.front().first == bench.cycle;
    EXPECT_EQ(bench->valid_o, isDue) << "cycle " << bench.cycle;
    if (isDue) {
      for (int c = 0; c < kColumns; ++c)
        EXPECT_EQ(signedBits(getBits(bench->sum_o, c * 32, 32), 32),
                  due.front().second[static_cast<size_t>(c)])
            << "column " << c;
      due.pop_front();
    }
    bench.edge();
    if (testing::Test::HasFailure()) return 0;
  }
  return bench.cycle - from;
}

TEST(SystolicArray, StreamsPassesWithoutAGap) {
  Bench<Vrtl_systolic_array> bench(kSeed);
  Dice dice(kSeed);
  for (const int64_t vectors : {1, 7, 8, 9, 20}) {
    std::vector<Pass> passes;
    for (int i = 0; i < 4; ++i) {
      passes.push_back(randomPass(dice, vectors));
      passes.back().byColumn = false;
    }
    EXPECT_EQ(stream(bench, passes, dice, 100),
              kRows + 3 * std::max<int64_t>(vectors, kRows) + vectors + kLatency)
        << vectors;
  }
}

TEST(SystolicArray, MultipliesWhateverTheOrderOfLoadsAndVectors) {
  Bench<Vrtl_systolic_array> bench(kSeed + 1);
  Dice dice(kSeed + 1);
  for (int round = 0; round < 300; ++round) {
    std::vector<Pass> passes;
    for (int64_t n = dice.of(1, 4); n > 0; --n) passes.push_back(randomPass(dice, dice.of(1, 20)));
    stream(bench, passes, dice, static_cast<int>(dice.of(30, 100)));
    if (HasFailure()) FAIL() << "seed " << kSeed + 1 << ", round " << round;
  }
}

} // namespace
