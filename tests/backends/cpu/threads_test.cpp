// Threads that share work: who takes part, and what those that wait cost.
#include "backends/cpu/runtime/threads.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <numeric>

namespace cpu {
namespace {

/// What all threads of this process have worked so far.
double processorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr auto kNap = std::chrono::milliseconds(300);

TEST(CpuThreads, EveryOneWorksOnceAndNoMoreThanAreNeeded) {
  Threads threads(4);
  for (int round = 0; round < 600; ++round) {
    const int most = round % 6 + 1, want = std::min(most, 4);
    std::vector<int> calls(8, 0), totals(8, 0);
    threads.run(most, [&](int t, int total) {
      ++calls[static_cast<size_t>(t)];
      totals[static_cast<size_t>(t)] = total;
    });
    ASSERT_EQ(std::accumulate(calls.begin(), calls.end(), 0), want) << round;
    for (size_t t = 0; t < static_cast<size_t>(want); ++t) {
      ASSERT_EQ(calls[t], 1) << round;
      ASSERT_EQ(totals[t], want) << round;
    }
  }
}

TEST(CpuThreads, ABarrierHoldsBackWhoIsEarly) {
  constexpr int kRounds = 300;
  Threads threads(4);
  Barrier barrier(4);
  std::atomic<int> arrived{0}, wrong{0};
  threads.run(4, [&](int, int total) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      barrier.arrive();
      wrong += arrived < round * total;
      barrier.arrive();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(arrived, 4 * kRounds);
}

TEST(CpuThreads, WhoWaitsForLongSleeps) {
  Threads threads(4);
  Barrier barrier(4);
  const double before = processorSeconds();
  threads.run(4, [&](int t, int) {
    if (t == 1) std::this_thread::sleep_for(kNap);
    barrier.arrive();
    if (t == 1) std::this_thread::sleep_for(kNap);
  });
  std::this_thread::sleep_for(kNap);
  EXPECT_LT(processorSeconds() - before, 0.1);
}

// which need more address space than the limit
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(CpuThreads, FewerThanAskedForStillEnd) {
  const auto crowded = [] {
    alarm(30);
    const rlimit limit{1 << 30, 1 << 30};
    setrlimit(RLIMIT_AS, &limit);
    Threads threads(1000);
    std::atomic<int> works{0};
    threads.run(1000, [&](int, int) { ++works; });
    return threads.count() < 1000 && works == threads.count() ? 0 : 1;
  };
  EXPECT_EXIT(_exit(crowded()), testing::ExitedWithCode(0), "");
}
#endif

} // namespace
} // namespace cpu
