#include <gtest/gtest.h>

#include <array>

#include "Vrtl_semaphores.h"
#include "tests/rtl/bench.h"

namespace {
using namespace candela::rtl;

constexpr int kSeed = 20260107, kEngines = 4, kSemaphores = 32, kMost = 255;

TEST(Semaphores, CountAndGrantInOrder) {
  Bench<Vrtl_semaphores> bench(kSeed);
  Dice dice(kSeed);
  std::array<int, kSemaphores> counts{};
  bool overflowed = false, refused = false;
  for (int i = 0; i < 20000; ++i) {
    // Few semaphores for a while, so that engines meet; more signals than waits at times, so that
    // counts reach their end.
    const int semaphores = i / 500 % 2 ? kSemaphores : 2, signals = i / 2000 % 2 ? 70 : 30;
    bench->clear_i = dice.chance(1) && dice.chance(20);
    bench->take_valid_i = bench->signal_valid_i = 0;
    std::array<int, kEngines> take{}, takeCount{}, signal{}, signalCount{};
    for (int e = 0; e < kEngines; ++e) {
      const auto at = static_cast<size_t>(e);
      bench->take_valid_i |= uint32_t{dice.chance(50)} << e,
          bench->signal_valid_i |= uint32_t{dice.chance(signals)} << e;
      take[at] = static_cast<int>(dice.of(0, semaphores - 1)),
      takeCount[at] = static_cast<int>(dice.of(1, 7));
      signal[at] = static_cast<int>(dice.of(0, semaphores - 1)),
      signalCount[at] = static_cast<int>(dice.of(1, 7));
      setBits(bench->take_semaphore_i, e * 5, 5, static_cast<uint64_t>(take[at]));
      setBits(bench->take_count_i, e * 3, 3, static_cast<uint64_t>(takeCount[at]));
      setBits(bench->signal_semaphore_i, e * 5, 5, static_cast<uint64_t>(signal[at]));
      setBits(bench->signal_count_i, e * 3, 3, static_cast<uint64_t>(signalCount[at]));
    }
    bench.settle();
    for (int s = 0; s < kSemaphores; ++s)
      ASSERT_EQ(getBits(bench->counts_o, s * 8, 8),
                static_cast<uint64_t>(counts[static_cast<size_t>(s)]))
          << "semaphore " << s << ", cycle " << i;
    uint32_t granted = 0;
    for (int e = 0; e < kEngines; ++e) {
      int& count = counts[static_cast<size_t>(take[static_cast<size_t>(e)])];
      if (!(bench->take_valid_i >> e & 1)) continue;
      if (takeCount[static_cast<size_t>(e)] <= count) {
        count -= takeCount[static_cast<size_t>(e)];
        granted |= 1u << e;
      } else {
        refused = true;
      }
    }
    ASSERT_EQ(bench->take_ready_o, granted) << "cycle " << i;
    for (int e = 0; e < kEngines; ++e)
      if (bench->signal_valid_i >> e & 1)
        counts[static_cast<size_t>(signal[static_cast<size_t>(e)])] +=
            signalCount[static_cast<size_t>(e)];
    bool overflow = false;
    for (int& count : counts)
      if (count > kMost) count = kMost, overflow = true;
    ASSERT_EQ(bench->overflow_o, overflow) << "cycle " << i;
    overflowed |= overflow;
    if (bench->clear_i) counts.fill(0);
    bench.edge();
  }
  EXPECT_TRUE(overflowed && refused) << "the draws were too tame, seed " << kSeed;
}

} // namespace
