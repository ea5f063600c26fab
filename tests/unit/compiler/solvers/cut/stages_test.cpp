// Stages against every way to cut the order of items.
#include "core/compiler/solvers/cut/stages.h"

#include <gmock/gmock.h>

#include "tests/unit/compiler/solvers/cut/problems.h"

namespace candela::solvers::cut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PlanStages, BalancesWhatTheyDoAndMove) {
  CutProblem problem;
  problem.labels = 2;
  for (const uint64_t cost : {6, 2, 4, 4}) problem.costs.push_back({cost, cost});
  for (uint32_t item = 0; item < 3; ++item)
    problem.values.push_back({item, {item + 1}, false, {1, 1}, {1, 1}});
  const Result<StagePlan> plan = planStages(problem);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_THAT(plan->labels, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(plan->times, ElementsAre(9, 9));
  EXPECT_EQ(plan->slowest, 9u);
  EXPECT_EQ(plan->moved, 2u);
}

TEST(PlanStages, OfEquallyFastOnesTakesThatWhichMovesLeast) {
  CutProblem problem;
  problem.labels = 2;
  problem.costs = {{10, 10}, {1, 1}, {1, 1}};
  problem.values.push_back({0, {1}, false, {5, 5}, {5, 5}});
  problem.values.push_back({1, {2}, false, {2, 2}, {2, 2}});
  // All in one stage moves nothing and takes 12, to cut takes 15 or 13.
  const Result<StagePlan> plan = planStages(problem);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->slowest, 12u);
  EXPECT_EQ(plan->moved, 0u);
}

TEST(PlanStages, AreTheLeastOfAll) {
  int allowed = 0;
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const CutProblem problem = drawProblem(seed, {.mostItems = 8, .labels = 3});
    const std::optional<StageCost> least = leastOfAllStages(problem);
    const Result<StagePlan> plan = planStages(problem);
    ASSERT_EQ(plan.isOk(), least.has_value()) << "seed " << seed;
    if (!least) continue;
    ++allowed;
    EXPECT_EQ(plan->slowest, least->slowest) << "seed " << seed;
    EXPECT_EQ(plan->moved, least->moved) << "seed " << seed;
    EXPECT_EQ(*std::ranges::max_element(plan->times), least->slowest) << "seed " << seed;
    EXPECT_TRUE(std::ranges::is_sorted(plan->labels)) << "seed " << seed;
  }
  EXPECT_GT(allowed, 100);
}

TEST(PlanStages, RefusesWhatHasNoStages) {
  CutProblem problem;
  problem.labels = 2;
  problem.costs = {{kForbidden, 1}, {1, kForbidden}};
  EXPECT_THAT(planStages(problem).status().message(),
              HasSubstr("no 2 contiguous stages are allowed"));
  problem.costs = {{1, 1}, {1, 1}};
  problem.values.push_back({1, {0}, false, {0, 0}, {0, 0}});
  EXPECT_THAT(planStages(problem).status().message(),
              HasSubstr("value 0 of item 1 is read by item 0 before it"));
}

} // namespace
} // namespace candela::solvers::cut
