// The least cut against every assignment, and what it refuses.
#include "core/compiler/solvers/cut/cut.h"

#include <gmock/gmock.h>

#include "core/compiler/solvers/cut/flow.h"
#include "tests/unit/compiler/solvers/cut/problems.h"

namespace candela::solvers::cut {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CutPlan planned(const CutProblem& problem, const std::vector<uint32_t>& start) {
  Result<CutPlan> plan = leastCut(problem, start);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return plan ? *plan : CutPlan{};
}

/// Two labels, the second one the host. A chain of items.
CutProblem chain(std::vector<std::vector<uint64_t>> costs, uint64_t crossing) {
  CutProblem problem;
  problem.labels = 2;
  problem.costs = std::move(costs);
  for (uint32_t item = 0; item + 1 < problem.costs.size(); ++item)
    problem.values.push_back({item, {item + 1}, false, {crossing, 0}, {crossing, 0}});
  return problem;
}

TEST(FlowNetwork, ALeastCutIsAsLargeAsTheGreatestFlow) {
  FlowNetwork network;
  const uint32_t a = network.addNode(), b = network.addNode();
  network.addArc(FlowNetwork::kSource, a, 3);
  network.addArc(FlowNetwork::kSource, b, 2);
  network.addArc(a, b, 5);
  network.addArc(a, FlowNetwork::kSink, 2);
  network.addArc(b, FlowNetwork::kSink, 2);
  EXPECT_EQ(network.leastCut(), 4u);
  EXPECT_TRUE(network.isWithSource(a));
  EXPECT_TRUE(network.isWithSource(b));
  EXPECT_FALSE(network.isWithSource(FlowNetwork::kSink));
}

TEST(LeastCut, CrossesWhereThatPays) {
  const std::vector<uint32_t> onHost(3, 1);
  // The middle one is slow on the device: to go to the host and back costs 2 * crossing.
  EXPECT_THAT(planned(chain({{1, 50}, {90, 10}, {1, 50}}, 30), onHost).labels,
              ElementsAre(0, 1, 0));
  EXPECT_THAT(planned(chain({{1, 50}, {90, 10}, {1, 50}}, 45), onHost).labels,
              ElementsAre(0, 0, 0));
}

TEST(LeastCut, PaysForAValueOnceHoweverManyRead) {
  CutProblem problem;
  problem.labels = 2;
  problem.costs = {{kForbidden, 0}, {0, 4}, {0, 4}, {0, 4}};
  problem.values.push_back({0, {1, 2, 3}, false, {0, 0}, {10, 0}});
  const CutPlan plan = planned(problem, {1, 1, 1, 1});
  EXPECT_THAT(plan.labels, ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(plan.cost, 10u);
  EXPECT_TRUE(plan.isOptimal);
}

TEST(LeastCut, ATiedItemStaysBehindItsLeader) {
  CutProblem problem = chain({{kForbidden, 5}, {0, 20}}, 1);
  EXPECT_THAT(planned(problem, {1, 1}).labels, ElementsAre(1, 0));
  problem.ties.push_back({1, 0, 0});
  EXPECT_THAT(planned(problem, {1, 1}).labels, ElementsAre(1, 1));
}

TEST(LeastCut, TheWorldOutsideIsPaidTo) {
  CutProblem problem;
  problem.labels = 2;
  problem.costs = {{0, 15}};
  problem.values.push_back({kOutside, {0}, false, {0, 0}, {8, 0}});
  problem.values.push_back({0, {}, true, {8, 0}, {0, 0}});
  EXPECT_THAT(planned(problem, {1}).labels, ElementsAre(1)); // 16 against 15
  problem.costs[0][1] = 17;
  EXPECT_THAT(planned(problem, {1}).labels, ElementsAre(0));
}

TEST(LeastCut, TwoLabelsAreOptimalWhereverItBegins) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const CutProblem problem = drawProblem(seed, {.mostItems = 9, .labels = 2});
    const CutPlan plan = planned(problem, startOf(problem));
    EXPECT_TRUE(plan.isOptimal);
    EXPECT_EQ(plan.cost, costByPairs(problem, plan.labels)) << "seed " << seed;
    EXPECT_EQ(plan.cost, leastOfAll(problem)) << "seed " << seed;
    EXPECT_EQ(planned(problem, plan.labels).cost, plan.cost);
  }
}

TEST(LeastCut, MoreLabelsAreNeverWorseThanWhereItBegins) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const CutProblem problem = drawProblem(seed, {.mostItems = 24, .labels = 4});
    const CutPlan plan = planned(problem, startOf(problem));
    EXPECT_EQ(plan.cost, costByPairs(problem, plan.labels)) << "seed " << seed;
    EXPECT_LE(plan.cost, costByPairs(problem, startOf(problem))) << "seed " << seed;
  }
}

TEST(LeastCut, RefusesWhatIsMalformed) {
  const auto refused = [](const CutProblem& problem, const std::vector<uint32_t>& start) {
    return leastCut(problem, start).status().message();
  };
  const CutProblem good = chain({{1, 2}, {3, 4}}, 1);
  EXPECT_THAT(refused(good, {0}), HasSubstr("1 labels to begin with for 2 items"));
  EXPECT_THAT(refused(good, {0, 2}), HasSubstr("item 1 begins with label 2 of 2"));
  CutProblem bad = good;
  bad.values[0].readers = {7};
  EXPECT_THAT(refused(bad, {0, 0}), HasSubstr("value 0 is read by item 7 of 2"));
  bad = good;
  bad.costs[1] = {1};
  EXPECT_THAT(refused(bad, {0, 0}), HasSubstr("item 1 has 1 costs for 2 labels"));
  bad = good;
  bad.costs[0][0] = uint64_t(1) << 60;
  EXPECT_THAT(refused(bad, {0, 0}), HasSubstr("all costs together are"));
  bad = good;
  bad.costs[0][0] = kForbidden;
  EXPECT_THAT(refused(bad, {0, 0}), HasSubstr("the labels to begin with are not allowed"));
  bad = good;
  bad.ties.push_back({0, 1, 2});
  EXPECT_THAT(refused(bad, {0, 0}), HasSubstr("by label 2: there are 2 items, 2 labels"));
}

} // namespace
} // namespace candela::solvers::cut
