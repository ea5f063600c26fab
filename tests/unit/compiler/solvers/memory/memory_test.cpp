#include "core/compiler/solvers/memory/memory.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

namespace candela::solvers::memory {
namespace {

using ::testing::HasSubstr;

Interval alive(int64_t begin, int64_t end, uint64_t size, uint64_t alignment = 1) {
  return {begin, end, size, alignment};
}
MemoryPlan planned(const MemoryProblem& problem, const PlanOptions& options = {}) {
  Result<MemoryPlan> result = planMemory(problem, options);
  EXPECT_TRUE(result) << result.status().message();
  return result ? *result : MemoryPlan{};
}
// Independent of both the planner and the sweep: every pair, every point in time.
uint64_t bruteMaxLive(const MemoryProblem& problem) {
  uint64_t most = 0;
  for (const Interval& at : problem.buffers) {
    uint64_t live = 0;
    for (const Interval& b : problem.buffers)
      if (b.begin <= at.begin && at.begin < b.end) live += b.size;
    most = std::max(most, live);
  }
  return most;
}
bool brutePairsClash(const MemoryProblem& problem, const MemoryPlan& plan) {
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Interval &a = problem.buffers[i], &b = problem.buffers[j];
      const uint64_t x = plan.offsets[i], y = plan.offsets[j];
      if (a.begin < b.end && b.begin < a.end && x < y + b.size && y < x + a.size) return true;
    }
  return false;
}

MemoryProblem randomProblem(std::mt19937& random, size_t count, int64_t steps) {
  MemoryProblem problem;
  for (size_t i = 0; i < count; ++i) {
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
    const int64_t length = 1 + static_cast<int64_t>(random() % (random() % 10 == 0 ? 50 : 5));
    problem.buffers.push_back(alive(begin, begin + length,
                                    random() % 5 == 0 ? random() % 3 : random() % 100000,
                                    uint64_t{1} << random() % 8));
  }
  return problem;
}

// Layer i writes one buffer that the next layer reads; every third has a scratch, every fifth a
// residual three layers on.
MemoryProblem network(std::mt19937& random, int64_t layers) {
  MemoryProblem problem;
  for (int64_t i = 0; i < layers; ++i) {
    const uint64_t size = 64 * (1 + random() % 4096);
    problem.buffers.push_back(alive(i, i + (i % 5 == 0 ? 4 : 2), size, 64));
    if (i % 3 == 0) problem.buffers.push_back(alive(i, i + 1, 64 * (1 + random() % 512), 64));
  }
  return problem;
}

TEST(PlanMemory, EmptyProblem) {
  EXPECT_EQ(planned({}).size, 0u);
  EXPECT_EQ(maxLive({}), 0u);
}

TEST(PlanMemory, DisjointLifetimesShareMemory) {
  const MemoryProblem problem{{alive(0, 2, 100), alive(2, 4, 80), alive(4, 9, 100)}};
  EXPECT_EQ(planned(problem).size, 100u);
  EXPECT_EQ(maxLive(problem), 100u);
}

TEST(PlanMemory, BuffersOfNoBytesTakeNoRoom) {
  const MemoryProblem problem{{alive(0, 5, 0), alive(0, 5, 7), alive(0, 5, 0, 16)}};
  const MemoryPlan plan = planned(problem);
  EXPECT_EQ(plan.size, 7u);
  EXPECT_EQ(validate(problem, plan), std::nullopt);
}

TEST(PlanMemory, RefusesMalformedProblems) {
  const auto error = [](MemoryProblem problem) { return planMemory(problem).status().message(); };
  EXPECT_EQ(error({{alive(0, 1, 1), alive(5, 5, 1)}}), "buffer 1 begins at 5 but ends at 5");
  EXPECT_EQ(error({{alive(0, 1, 1, 24)}}), "buffer 0 has alignment 24, not a power of two");
  EXPECT_EQ(error({{alive(0, 1, 1, 0)}}), "buffer 0 has alignment 0, not a power of two");
  EXPECT_EQ(error({{alive(0, 2, 60), alive(1, 3, 60)}, 100}),
            "the buffers need 120 bytes (at least 120 are alive at once) but the capacity is 100");
  EXPECT_THAT(error({{alive(0, 1, UINT64_MAX), alive(5, 6, 1)}}), HasSubstr("beyond 64 bits"));
}

TEST(PlanMemory, RandomProblemsAreValidAndNeverBelowTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const MemoryProblem problem = randomProblem(random, 1 + random() % 120, 40);
    const PlanOptions brief{.placements = 10'000, .shrinkNodes = 20};
    const MemoryPlan plan = planned(problem, brief);
    ASSERT_EQ(validate(problem, plan), std::nullopt) << "round " << round;
    ASSERT_FALSE(brutePairsClash(problem, plan)) << "round " << round;
    ASSERT_EQ(maxLive(problem), bruteMaxLive(problem)) << "round " << round;
    ASSERT_GE(plan.size, maxLive(problem));
    ASSERT_EQ(planned(problem, brief).offsets, plan.offsets)
        << "not deterministic in round " << round;
  }
}

TEST(PlanMemory, NetworksComeWithinTwoPercentOfTheBound) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const MemoryProblem problem = network(random, 20 + round * 6);
    const MemoryPlan plan = planned(problem);
    ASSERT_EQ(validate(problem, plan), std::nullopt);
    EXPECT_LE(static_cast<double>(plan.size), 1.02 * static_cast<double>(maxLive(problem)))
        << "round " << round;
  }
}

// A planner whose work grew with the cube would take hours here; this one looks at a counted number
// of placed buffers.
TEST(PlanMemory, TenThousandBuffersComeNearTheBound) {
  std::mt19937 random(5);
  for (const int64_t steps : {100, 100000}) { // nearly all alive at once, and nearly none
    const MemoryProblem problem = randomProblem(random, 10000, steps);
    const MemoryPlan plan = planned(problem, {.placements = 0});
    EXPECT_EQ(validate(problem, plan), std::nullopt);
    EXPECT_LE(static_cast<double>(plan.size), 1.03 * static_cast<double>(maxLive(problem)))
        << steps << " steps";
  }
}

TEST(PlanMemory, KeepsPinsTiesHalosGapsAndBanks) {
  MemoryProblem problem{
      {alive(0, 4, 30), alive(0, 4, 30), alive(2, 6, 30), alive(0, 9, 16), alive(3, 5, 8)}};
  problem.buffers[0].offset = 64;
  problem.buffers[1].haloBefore = 4;
  problem.buffers[1].haloAfter = 2;
  problem.buffers[3].gaps = {{1, 8}};
  problem.ties = {{4, 2, 22}}; // the last 8 bytes of buffer 2
  problem.bankBytes = 64;
  const MemoryPlan plan = planned(problem);
  EXPECT_EQ(validate(problem, plan), std::nullopt);
  EXPECT_EQ(plan.offsets[0], 64u);
  EXPECT_GE(plan.offsets[1], 4u);
  EXPECT_EQ(plan.offsets[4], plan.offsets[2] + 22);
  EXPECT_EQ(maxLive(problem), 96u);
}

TEST(PlanMemory, RefusesConstraintsThatContradict) {
  const auto error = [](const MemoryProblem& problem) {
    return planMemory(problem).status().message();
  };
  MemoryProblem problem{{alive(0, 4, 8), alive(1, 3, 8, 16), alive(2, 5, 8)}};
  problem.buffers[0].offset = 4;
  problem.buffers[2].offset = 8;
  EXPECT_EQ(error(problem), "buffers 0 and 2 are pinned to common bytes while both are alive");
  problem.buffers[1].offset = 24;
  EXPECT_EQ(error(problem), "buffer 1 is pinned at 24, not a multiple of its alignment 16");
  problem.buffers[1].offset.reset();
  problem.ties = {{2, 0, 0}};
  EXPECT_EQ(error(problem), "buffer 2 is pinned at 8 but tied to one that is pinned elsewhere");
  problem.ties = {{2, 0, 4}, {0, 7, 0}};
  EXPECT_EQ(error(problem), "a tie of buffer 0 to buffer 7, of 3 buffers");
  problem.ties = {{2, 0, 4}, {1, 0, 0}, {1, 2, 0}};
  EXPECT_EQ(error(problem), "buffer 1 is tied 0 bytes above buffer 2 but other ties say otherwise");
  problem.ties = {};
  problem.bankBytes = 4;
  EXPECT_EQ(error(problem), "buffer 0 of 8 bytes is larger than a bank of 4");
  problem.bankBytes = 12;
  EXPECT_EQ(error(problem), "banks of 12 bytes, not a power of two");
  problem.bankBytes = 0;
  problem.buffers[0].gaps = {{2, 5}};
  EXPECT_EQ(error(problem),
            "buffer 0 lives from 0 to 4 and has a gap from 2 to 5, out of order or outside");
}

struct Wrong {
  MemoryProblem problem;
  MemoryPlan plan;
  const char* message;
};

TEST(ValidatePlan, CatchesEveryKindOfWrongPlan) {
  const std::vector<Interval> two{alive(0, 4, 10), alive(3, 6, 10)};
  const Wrong cases[] = {
      {{two}, {{0}, 20}, "the plan has 1 offsets for 2 buffers"},
      {{two},
       {{0, 9}, 20},
       "buffers 0 and 1 are alive at once from 3 on and share bytes: [0,10) and [9,19)"},
      {{two},
       {{5, 0}, 20},
       "buffers 0 and 1 are alive at once from 3 on and share bytes: [5,15) and [0,10)"},
      {{two},
       {{0, 0}, 20},
       "buffers 0 and 1 are alive at once from 3 on and share bytes: [0,10) and [0,10)"},
      {{two}, {{0, 10}, 19}, "buffer 1 of 10 bytes at 10 ends beyond the plan's 19 bytes"},
      {{two, 15}, {{0, 10}, 20}, "the plan takes 20 bytes but the capacity is 15"},
      {{{alive(0, 1, 8, 8)}}, {{4}, 12}, "buffer 0 is at 4, not a multiple of its alignment 8"},
      {{{alive(2, 2, 8)}}, {{0}, 8}, "buffer 0 begins at 2 but ends at 2"},
      {{{alive(0, 1, 8)}},
       {{UINT64_MAX}, 8},
       "buffer 0 of 8 bytes at 18446744073709551615 ends beyond the plan's 8 bytes"},
      // A long buffer below short ones: the clash is not with the nearest in time.
      {{{alive(0, 9, 100), alive(1, 2, 5), alive(5, 6, 5)}},
       {{0, 100, 99}, 105},
       "buffers 0 and 2 are alive at once from 5 on and share bytes: [0,100) and [99,104)"},
  };
  for (const Wrong& wrong : cases)
    EXPECT_EQ(validate(wrong.problem, wrong.plan).value_or("valid"), wrong.message);
  EXPECT_EQ(validate({two}, {{0, 10}, 20}), std::nullopt);
}

TEST(ValidatePlan, CatchesBrokenConstraints) {
  MemoryProblem problem{{alive(0, 4, 10), alive(0, 4, 10)}};
  problem.buffers[0].haloAfter = 2;
  EXPECT_EQ(validate(problem, {{0, 11}, 21}),
            "buffers 0 and 1 are alive at once from 0 on and share bytes: [0,12) and [11,21)");
  EXPECT_EQ(validate(problem, {{10, 0}, 21}),
            "buffer 0 of 10 bytes at 10 has a halo of 2 that ends beyond the plan's 21 bytes");
  problem.buffers[1].haloBefore = 3;
  EXPECT_EQ(validate(problem, {{12, 2}, 24}),
            "buffer 1 is at 2, which leaves no halo of 3 bytes before it");
  problem.buffers[1].offset = 20;
  EXPECT_EQ(validate(problem, {{0, 16}, 26}), "buffer 1 is at 16 but pinned at 20");
  problem = {{alive(0, 4, 10), alive(0, 4, 10), alive(1, 3, 2)}, UINT64_MAX, {{1, 0, 4}}};
  EXPECT_EQ(validate(problem, {{0, 4, 14}, 16}), std::nullopt);
  EXPECT_EQ(validate(problem, {{0, 5, 15}, 17}), "buffer 1 is at 5, not 4 above buffer 0 at 0");
  EXPECT_EQ(validate(problem, {{0, 4, 13}, 16}),
            "buffers 1 and 2 are alive at once from 1 on and share bytes: [4,14) and [13,15)");
  problem.buffers[0].gaps = problem.buffers[1].gaps = {{1, 3}};
  EXPECT_EQ(validate(problem, {{0, 4, 13}, 16}), std::nullopt);
  problem.bankBytes = 8;
  EXPECT_EQ(validate(problem, {{0, 4, 14}, 16}),
            "buffer 0 of 10 bytes at 0 lies across banks of 8 bytes");
}

// A memory of its own is taken in turn; one that is shared is taken as low as may be.
TEST(OwnedMemory, IsTakenInTurn) {
  const MemoryProblem problem{{alive(0, 2, 10), alive(2, 4, 10), alive(4, 6, 10)}, 30, {}};
  EXPECT_EQ(planned(problem).offsets, (std::vector<uint64_t>{0, 0, 0}));
  PlanOptions options;
  options.ownsCapacity = true;
  EXPECT_EQ(planned(problem, options).offsets, (std::vector<uint64_t>{0, 10, 20}));
  // From the bottom again where the memory ends, above who is still there.
  const MemoryProblem less{
      {alive(0, 5, 10), alive(0, 2, 10), alive(2, 4, 10), alive(4, 6, 10)}, 30, {}};
  EXPECT_EQ(planned(less, options).offsets, (std::vector<uint64_t>{0, 10, 20, 10}));
}

// In turn, 0 | 4 | 8 does not leave 8 bytes side by side for the last one, which then comes first.
TEST(OwnedMemory, PlacesEarlierWhatFitsNowhere) {
  PlanOptions options;
  options.ownsCapacity = true;
  const MemoryProblem problem{{alive(0, 2, 4), alive(0, 9, 4), alive(2, 9, 8)}, 16, {}};
  const MemoryPlan plan = planned(problem, options);
  EXPECT_EQ(validate(problem, plan), std::nullopt);
  const MemoryProblem tight{{alive(0, 2, 4), alive(0, 9, 4), alive(2, 9, 8)}, 12, {}};
  EXPECT_EQ(validate(tight, planned(tight, options)), std::nullopt);
}

// Whatever fits as a shared memory fits as one of its own too.
TEST(OwnedMemory, HoldsWhateverASharedOneHolds) {
  std::mt19937 random(12);
  PlanOptions options;
  options.ownsCapacity = true;
  for (int round = 0; round < 200; ++round) {
    MemoryProblem problem = randomProblem(random, 2 + random() % 60, 40);
    problem.capacity = planned(problem).size + random() % 20000;
    const MemoryPlan plan = planned(problem, options);
    ASSERT_EQ(validate(problem, plan), std::nullopt) << "round " << round;
    ASSERT_LE(plan.size, problem.capacity) << "round " << round;
  }
}

// The sweep agrees with the comparison of all pairs on plans of which many are wrong.
TEST(ValidatePlan, AgreesWithTheComparisonOfAllPairs) {
  std::mt19937 random(11);
  int wrong = 0, right = 0;
  for (int round = 0; round < 600; ++round) {
    MemoryProblem problem;
    MemoryPlan plan;
    for (size_t i = 0; i < 6; ++i) {
      const int64_t begin = static_cast<int64_t>(random() % 10);
      problem.buffers.push_back(
          alive(begin, begin + 1 + static_cast<int64_t>(random() % 3), random() % 8));
      plan.offsets.push_back(random() % 30);
      plan.size = std::max(plan.size, plan.offsets[i] + problem.buffers[i].size);
    }
    // Buffers of no bytes never clash; the pairwise formula counts them as points.
    for (Interval& b : problem.buffers) b.size = std::max<uint64_t>(b.size, 1);
    plan.size += 1;
    const bool clash = brutePairsClash(problem, plan);
    (clash ? wrong : right) += 1;
    ASSERT_EQ(validate(problem, plan).has_value(), clash) << "round " << round;
  }
  EXPECT_GT(wrong, 100);
  EXPECT_GT(right, 100);
}

} // namespace
} // namespace candela::solvers::memory
