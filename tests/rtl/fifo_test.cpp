#include <gtest/gtest.h>

#include <deque>

#include "Vrtl_fifo.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260108, kDepth = 4;

TEST(Fifo, KeepsOrderWhenFullAndWhenEmpty) {
  Bench<Vrtl_fifo> bench(kSeed);
  Dice dice(kSeed);
  std::deque<uint8_t> inside;
  int full = 0, empty = 0;
  for (int i = 0; i < 10000; ++i) {
    // Now the one side is faster, now the other.
    const int in = i / 200 % 2 ? 80 : 30;
    bench->valid_i = dice.chance(in), bench->ready_i = dice.chance(100 - in);
    bench->data_i = static_cast<uint8_t>(dice.of(0, 255));
    bench.settle();
    ASSERT_EQ(bench->valid_o, !inside.empty()) << "cycle " << i;
    ASSERT_EQ(bench->ready_o, inside.size() < kDepth) << "cycle " << i;
    full += !bench->ready_o, empty += !bench->valid_o;
    const bool leaves = bench->valid_o && bench->ready_i;
    if (bench->valid_o) {
      ASSERT_EQ(bench->data_o, inside.front()) << "cycle " << i;
    }
    if (bench->valid_i && bench->ready_o) inside.push_back(bench->data_i);
    if (leaves) inside.pop_front();
    bench.edge();
  }
  EXPECT_TRUE(full && empty) << "the draws were too tame, seed " << kSeed;
}

} // namespace
