// The exact search: published instances by the number of nodes, small ones beside brute force, each
// kind of constraint.
#include <gmock/gmock.h>

#include "tests/unit/compiler/solvers/memory/problems.h"

namespace candela::solvers::memory {
namespace {

using testing::drawn;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::readInstance;

// Exact counts, not times: they are the same on every machine. A change of the search changes them;
// they may only fall.
TEST(ExactSearch, SolvesPublishedInstances) {
  const std::pair<const char*, uint64_t> instances[] = {{"A", 15612}, {"B", 4534}, {"F", 658}};
  for (const auto& [name, nodes] : instances) {
    MemoryProblem problem =
        readInstance(fmt::format("{}/tests/unit/compiler/solvers/memory/minimalloc/{}.1048576.csv",
                                 CANDELA_SOURCE_DIR, name));
    ASSERT_GT(problem.buffers.size(), 100u);
    const auto plan = planMemory(problem, {.placements = 0});
    ASSERT_TRUE(plan) << name << ": " << plan.status().message();
    EXPECT_EQ(validate(problem, *plan), std::nullopt);
    EXPECT_EQ(plan->nodes, nodes) << name;
    const auto twice = planMemory(problem, {.placements = 0, .threads = 2});
    ASSERT_TRUE(twice) << name;
    EXPECT_EQ(twice->offsets, plan->offsets) << name << " with two threads";
    EXPECT_EQ(twice->nodes, nodes) << name << " with two threads";
  }
}

TEST(ExactSearch, GivesUpAfterItsNodes) {
  const MemoryProblem problem = readInstance(
      CANDELA_SOURCE_DIR "/tests/unit/compiler/solvers/memory/minimalloc/A.1048576.csv");
  const auto plan = planMemory(problem, {.placements = 0, .nodes = 100});
  EXPECT_EQ(plan.status().code(), Code::out_of_memory);
  EXPECT_THAT(plan.status().message(),
              HasSubstr("but the capacity is 1048576; none better found in 100 nodes"));
}

constexpr uint64_t kTooLarge = 64; // bytes: more than any drawn problem of brute force needs

// One buffer after the other, each at every offset: shares nothing with the planner, nor with the
// validator's sweep. Pinned ones first, then tied ones, so that a contradiction between them shows
// before the others multiply it.
class BruteForce {
public:
  explicit BruteForce(const MemoryProblem& problem)
      : problem_(problem), offsets_(problem.buffers.size(), 0),
        isPlaced_(problem.buffers.size(), false) {
    for (size_t i = 0; i < offsets_.size(); ++i) order_.push_back(i);
    std::ranges::stable_sort(order_, {}, [&](size_t i) {
      return problem.buffers[i].offset ? 0 : isTied(i) ? 1 : 2;
    });
  }

  bool fits(uint64_t capacity, size_t depth = 0) {
    if (depth == order_.size()) return true;
    const size_t next = order_[depth];
    const Interval& b = problem_.buffers[next];
    // takes no room: may lie above the capacity
    const bool empty = b.size + b.haloBefore + b.haloAfter == 0;
    for (uint64_t at = b.haloBefore; at + b.size + b.haloAfter <= (empty ? kTooLarge : capacity);
         ++at) {
      offsets_[next] = at;
      if (!legal(next)) continue;
      isPlaced_[next] = true;
      const bool fit = fits(capacity, depth + 1);
      isPlaced_[next] = false;
      if (fit) return true;
    }
    return false;
  }

private:
  bool isTied(size_t i) const {
    return std::ranges::any_of(problem_.ties,
                               [&](const Tie& tie) { return tie.buffer == i || tie.base == i; });
  }
  bool legal(size_t i) const {
    const Interval& b = problem_.buffers[i];
    const uint64_t at = offsets_[i], bank = problem_.bankBytes;
    if (at % b.alignment != 0 || (b.offset && *b.offset != at)) return false;
    if (bank != 0 && b.size != 0 && at / bank != (at + b.size - 1) / bank) return false;
    std::vector<bool> tied(problem_.buffers.size(), false);
    tied[i] = true;
    for (size_t pass = 0; pass < tied.size(); ++pass)
      for (const Tie& tie : problem_.ties) {
        if ((tie.buffer == i && isPlaced_[tie.base] && at != offsets_[tie.base] + tie.delta) ||
            (tie.base == i && isPlaced_[tie.buffer] && offsets_[tie.buffer] != at + tie.delta))
          return false;
        if (tied[tie.buffer] || tied[tie.base]) tied[tie.buffer] = tied[tie.base] = true;
      }
    for (size_t j = 0; j < offsets_.size(); ++j)
      if (isPlaced_[j] && !tied[j] && meet(b, problem_.buffers[j]) &&
          at - b.haloBefore < endOf(j) && offsets_[j] - problem_.buffers[j].haloBefore < endOf(i))
        return false;
    return true;
  }
  uint64_t endOf(size_t i) const {
    return offsets_[i] + problem_.buffers[i].size + problem_.buffers[i].haloAfter;
  }
  static bool alive(const Interval& b, int64_t time) {
    if (time < b.begin || time >= b.end) return false;
    return std::ranges::none_of(b.gaps,
                                [&](const TimeSpan& g) { return g.begin <= time && time < g.end; });
  }
  static bool meet(const Interval& a, const Interval& b) {
    if (a.size + a.haloBefore + a.haloAfter == 0 || b.size + b.haloBefore + b.haloAfter == 0)
      return false;
    for (int64_t time = a.begin; time < a.end; ++time)
      if (alive(a, time) && alive(b, time)) return true;
    return false;
  }

  const MemoryProblem& problem_;
  std::vector<uint64_t> offsets_;
  std::vector<bool> isPlaced_;
  std::vector<size_t> order_;
};

// Of one height with their halos, but of two sizes: only one of them may end beside the border
// between two banks.
TEST(ExactSearch, BuffersOfOneHeightDifferInBanks) {
  MemoryProblem problem{{{9, 11, 6}, {8, 11, 1}, {6, 11, 5}, {8, 12, 4}}};
  problem.buffers[0].haloAfter = 1;
  problem.buffers[2].haloAfter = 2;
  problem.bankBytes = 16;
  const auto plan = planMemory(problem, {.placements = 0});
  ASSERT_TRUE(plan) << plan.status().message();
  EXPECT_EQ(plan->size, 19u)
      << "for example 6 and its halo, 4, 5 and its halo across the border, 1";
}

// The exact search finds a plan at the least capacity of all, and proves that there is none below.
TEST(ExactSearch, EqualsBruteForce) {
  constexpr uint64_t kSeed = 17;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  int solved = 0, contradictory = 0, aboveMaxLive = 0;
  for (int round = 0; round < CANDELA_ROUNDS; ++round) {
    MemoryProblem problem = drawn(random, {.buffers = 2 + random() % 7});
    problem.capacity = kTooLarge;
    const auto made =
        planMemory(problem, {.placements = 0, .nodes = 100'000, .shrinkNodes = 100'000});
    if (!made && made.status().code() == Code::invalid_argument) {
      ASSERT_FALSE(BruteForce(problem).fits(kTooLarge))
          << "round " << round << ": " << made.status().message();
      ++contradictory;
      continue;
    }
    ASSERT_TRUE(made) << "round " << round << ": " << made.status().message();
    ++solved;
    uint64_t least = maxLive(problem);
    while (!BruteForce(problem).fits(least)) ++least;
    aboveMaxLive += least > maxLive(problem);
    ASSERT_EQ(made->size, least) << "round " << round;
    ASSERT_EQ(made->bound, least) << "round " << round;
    problem.capacity = least;
    const auto tight = planMemory(problem, {.placements = 0});
    ASSERT_TRUE(tight) << "round " << round << ": " << tight.status().message();
    if (least == 0) continue;
    problem.capacity = least - 1;
    const auto none = planMemory(problem, {.placements = 0});
    ASSERT_EQ(none.status().code(), Code::out_of_memory) << "round " << round;
    ASSERT_THAT(none.status().message(), Not(HasSubstr("none better found"))) << "round " << round;
  }
  EXPECT_GT(solved, CANDELA_ROUNDS / 2);
  EXPECT_GT(contradictory, 0);
  EXPECT_GT(aboveMaxLive, CANDELA_ROUNDS / 50);
}

TEST(RandomProblems, EveryPlanIsValid) {
  constexpr uint64_t kSeed = 23;
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  int planned = 0;
  for (int round = 0; round < CANDELA_ROUNDS * 10; ++round) {
    const bool large = random() % 2 == 0;
    MemoryProblem problem = drawn(random, {.buffers = 1 + random() % 40,
                                           .steps = 4 + static_cast<int64_t>(random() % 40),
                                           .size = large ? 100'000u : 30u,
                                           .stackedTies = true});
    const auto plan = planMemory(problem, {.placements = 1'000, .shrinkNodes = 20});
    if (!plan) {
      ASSERT_EQ(plan.status().code(), Code::invalid_argument)
          << "round " << round << ": " << plan.status().message();
      continue;
    }
    ++planned;
    const auto wrong = validate(problem, *plan);
    ASSERT_EQ(wrong, std::nullopt) << "round " << round << ": " << *wrong;
    ASSERT_GE(plan->size, plan->bound) << "round " << round;
  }
  EXPECT_GT(planned, CANDELA_ROUNDS * 5);
}

} // namespace
} // namespace candela::solvers::memory
