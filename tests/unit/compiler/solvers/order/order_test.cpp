// The search against all allowed orders, judged by lifetimes that are computed here.
#include "core/compiler/solvers/order/order.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OrderPlan planned(const OrderProblem& problem, const OrderOptions& options = {}) {
  Result<OrderPlan> plan = planOrder(problem, options);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return plan ? *plan : OrderPlan{};
}

std::vector<uint32_t> ownOrder(const OrderProblem& problem) {
  std::vector<uint32_t> order(problem.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// By the first and the last step that touches each buffer, counted from 1; 0 and the end stand for
/// before and behind.
uint64_t peakByLifetimes(const OrderProblem& problem, const std::vector<uint32_t>& order) {
  std::vector<const OrderStep*> steps;
  for (const uint32_t task : order)
    for (const OrderStep& step : problem.tasks[task].steps) steps.push_back(&step);
  std::vector<size_t> first(problem.buffers.size(), SIZE_MAX), last(problem.buffers.size(), 0);
  for (size_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].liveIn) first[b] = 0;
    if (problem.buffers[b].liveOut) last[b] = steps.size() + 1;
    for (size_t s = 0; s < steps.size(); ++s)
      if (std::ranges::count(steps[s]->buffers, b)) {
        first[b] = std::min(first[b], s + 1);
        last[b] = std::max(last[b], s + 1);
      }
  }
  uint64_t peak = 0;
  for (size_t at = 0; at <= steps.size() + 1; ++at) {
    uint64_t live = problem.base;
    for (size_t b = 0; b < problem.buffers.size(); ++b)
      if (first[b] <= at && at <= last[b]) live += problem.buffers[b].bytes;
    if (at >= 1 && at <= steps.size()) {
      live += steps[at - 1]->transient;
      for (const auto& [a, b] : steps[at - 1]->inPlace)
        if (first[a] == at && last[b] == at) {
          live -= problem.buffers[a].bytes;
          break;
        }
    }
    peak = std::max(peak, live);
  }
  return peak;
}

bool isAllowed(const OrderProblem& problem, const std::vector<uint32_t>& order) {
  std::vector<size_t> at(problem.tasks.size(), SIZE_MAX);
  for (size_t i = 0; i < order.size(); ++i) at[order[i]] = i;
  if (order.size() != problem.tasks.size() || std::ranges::count(at, SIZE_MAX)) return false;
  for (size_t t = 0; t < at.size(); ++t)
    for (const uint32_t before : problem.tasks[t].after)
      if (at[before] > at[t]) return false;
  return true;
}

/// The least of all allowed orders.
uint64_t leastPeak(const OrderProblem& problem) {
  std::vector<uint32_t> order = ownOrder(problem);
  uint64_t least = UINT64_MAX;
  std::vector<uint32_t> prefix;
  const std::function<void()> extend = [&] {
    if (prefix.size() == problem.tasks.size())
      least = std::min(least, peakByLifetimes(problem, prefix));
    for (const uint32_t task : order) {
      const auto isDone = [&](uint32_t t) { return std::ranges::count(prefix, t) > 0; };
      if (isDone(task) || !std::ranges::all_of(problem.tasks[task].after, isDone)) continue;
      prefix.push_back(task);
      extend();
      prefix.pop_back();
    }
  };
  extend();
  return least;
}

class Maker {
public:
  explicit Maker(uint32_t seed) : random_(seed) {}
  uint64_t pick(uint64_t count) { return random_() % count; }

  /// Tasks write one or two buffers each and read earlier ones; some have steps, room of their own,
  /// results in place of operands, and neighbours outside.
  OrderProblem graph(uint32_t tasks) {
    OrderProblem problem;
    problem.base = pick(3) ? 0 : pick(50);
    std::vector<uint32_t> writer;
    for (uint32_t t = 0; t < tasks; ++t) {
      OrderTask task;
      const size_t known = problem.buffers.size();
      for (uint64_t s = 1 + (pick(4) == 0); s > 0; --s) {
        OrderStep step;
        const uint64_t bytes = pick(4) ? 1 + pick(9) : pick(100);
        for (uint64_t r = pick(3); r > 0 && known > 0; --r) {
          const auto b = static_cast<uint32_t>(known - 1 - pick(std::min<uint64_t>(known, 4)));
          if (std::ranges::count(step.buffers, b)) continue;
          step.buffers.push_back(b);
          task.after.push_back(writer[b]);
        }
        if (pick(8)) {
          const auto result = static_cast<uint32_t>(problem.buffers.size());
          problem.buffers.push_back({bytes, false, pick(10) == 0});
          writer.push_back(t);
          if (!step.buffers.empty() && pick(2)) {
            const uint32_t operand = step.buffers[pick(step.buffers.size())];
            problem.buffers[result].bytes = problem.buffers[operand].bytes;
            step.inPlace.emplace_back(result, operand);
          }
          step.buffers.push_back(result);
        }
        if (pick(6) == 0) step.transient = pick(20);
        task.steps.push_back(step);
      }
      if (t > 0 && pick(8) == 0) task.after.push_back(static_cast<uint32_t>(pick(t)));
      std::erase(task.after, t);
      std::ranges::sort(task.after);
      task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
      problem.tasks.push_back(std::move(task));
    }
    // What came from outside, and who reads it.
    if (pick(3) == 0) {
      const auto b = static_cast<uint32_t>(problem.buffers.size());
      problem.buffers.push_back({pick(30), true, pick(2) == 0});
      for (uint64_t r = 1 + pick(2); r > 0; --r) {
        std::vector<uint32_t>& touched = problem.tasks[pick(tasks)].steps.back().buffers;
        if (!std::ranges::count(touched, b)) touched.push_back(b);
      }
    }
    return problem;
  }

  /// Series and parallel parts; every buffer has one writer and one reader.
  OrderProblem seriesParallel(uint32_t tasks) {
    OrderProblem problem;
    problem.tasks.resize(tasks);
    for (OrderTask& task : problem.tasks)
      task.steps.resize(1), task.steps[0].transient = pick(3) ? 0 : pick(40);
    compose(problem, 0, tasks);
    return problem;
  }

private:
  void connect(OrderProblem& problem, uint32_t from, uint32_t to) {
    const auto b = static_cast<uint32_t>(problem.buffers.size());
    problem.buffers.push_back({pick(30), false, false});
    problem.tasks[from].steps[0].buffers.push_back(b);
    problem.tasks[to].steps[0].buffers.push_back(b);
    problem.tasks[to].after.push_back(from);
  }
  struct Ends {
    std::vector<uint32_t> sources, sinks;
  };
  Ends compose(OrderProblem& problem, uint32_t begin, uint32_t end) {
    if (end - begin == 1) return {{begin}, {begin}};
    const auto middle = static_cast<uint32_t>(begin + 1 + pick(end - begin - 1));
    Ends a = compose(problem, begin, middle), b = compose(problem, middle, end);
    if (pick(2)) { // series: every sink before every source
      for (const uint32_t from : a.sinks)
        for (const uint32_t to : b.sources) connect(problem, from, to);
      return {a.sources, b.sinks};
    }
    a.sources.insert(a.sources.end(), b.sources.begin(), b.sources.end());
    a.sinks.insert(a.sinks.end(), b.sinks.begin(), b.sinks.end());
    return a;
  }
  std::mt19937 random_;
};

TEST(Order, IsTheBestOfAllOrders) {
  int lowered = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    const OrderProblem problem = Maker(seed).graph(1 + seed % 8);
    const OrderPlan plan = planned(problem);
    ASSERT_TRUE(isAllowed(problem, plan.order));
    ASSERT_EQ(plan.peak, peakByLifetimes(problem, plan.order));
    ASSERT_EQ(plan.peak, leastPeak(problem));
    ASSERT_TRUE(plan.optimal);
    ASSERT_LE(lowerBound(problem), plan.peak);
    lowered += plan.peak < peakByLifetimes(problem, ownOrder(problem));
  }
  EXPECT_GT(lowered, 500);
}

TEST(Order, MergesSeriesParallelPartsExactly) {
  int lowered = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const OrderProblem problem = Maker(seed).seriesParallel(2 + seed % 7);
    const std::vector<uint32_t> order = mergedOrder(problem);
    ASSERT_TRUE(isAllowed(problem, order));
    const uint64_t least = leastPeak(problem);
    ASSERT_EQ(peakByLifetimes(problem, order), least);
    lowered += least < peakByLifetimes(problem, ownOrder(problem));
  }
  EXPECT_GT(lowered, 200);
}

TEST(Order, OfLargeGraphsIsNeverWorse) {
  int lowered = 0;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const OrderProblem problem = Maker(seed).graph(20 + 3 * seed);
    const uint64_t own = peakByLifetimes(problem, ownOrder(problem));
    for (const OrderOptions& options : {OrderOptions{}, OrderOptions{0, 1}, OrderOptions{300, 4}}) {
      const OrderPlan plan = planned(problem, options);
      ASSERT_TRUE(isAllowed(problem, plan.order));
      ASSERT_EQ(plan.peak, peakByLifetimes(problem, plan.order));
      ASSERT_LE(plan.peak, own);
      ASSERT_LE(plan.states, options.states);
      ASSERT_EQ(plan.order, planned(problem, options).order);
      lowered += plan.peak < own;
    }
  }
  EXPECT_GT(lowered, 60);
}

TEST(Order, ReadsTheSameFromItsEnd) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const OrderProblem problem = Maker(seed).graph(1 + seed % 12), other = reversed(problem);
    ASSERT_EQ(peakOf(problem, ownOrder(problem)), peakByLifetimes(problem, ownOrder(problem)));
    ASSERT_EQ(peakOf(other, ownOrder(other)), peakOf(problem, ownOrder(problem)));
  }
}

TEST(Order, FallsApartWhereAllGoesThroughOneTask) {
  // 0 -> {1, 2} -> 3 -> {4, 5}: nothing passes 0 and 3; 4 and 5 stand side by side. Then 2 leads
  // past 3; then both pairs meet without 3.
  OrderProblem problem;
  problem.tasks.resize(6);
  problem.tasks[1].after = problem.tasks[2].after = {0};
  problem.tasks[3].after = {1, 2};
  problem.tasks[4].after = problem.tasks[5].after = {3};
  EXPECT_THAT(cutsOf(problem), ElementsAre(1, 3, 4));
  problem.tasks[5].after = {2};
  EXPECT_THAT(cutsOf(problem), ElementsAre(1));
  problem.tasks[4].after = problem.tasks[5].after = {1, 2};
  problem.tasks[3].after = {1, 2};
  EXPECT_THAT(cutsOf(problem), ElementsAre(1, 3));
}

TEST(Order, RunsOneBranchToItsEndBeforeTheNext) {
  // Two sources of 100 bytes, each made small by a task of its own.
  OrderProblem problem;
  problem.buffers = {{100}, {100}, {1}, {1}};
  for (const std::vector<uint32_t>& touched :
       {std::vector<uint32_t>{0}, {1}, {0, 2}, {1, 3}, {2, 3}})
    problem.tasks.push_back({{{touched, 0, {}}}, {}});
  problem.tasks[2].after = {0};
  problem.tasks[3].after = {1};
  problem.tasks[4].after = {2, 3};
  const OrderPlan plan = planned(problem);
  EXPECT_THAT(plan.order, ElementsAre(0, 2, 1, 3, 4));
  EXPECT_EQ(plan.peak, 102u);
  EXPECT_TRUE(plan.optimal);
}

TEST(Order, SaysWhatIsWrongWithAProblem) {
  const auto message = [](const OrderProblem& problem, const OrderOptions& options = {}) {
    const Result<OrderPlan> plan = planOrder(problem, options);
    EXPECT_EQ(plan.status().code(), Code::invalid_argument);
    return plan.status().message();
  };
  OrderProblem good;
  good.buffers = {{8}, {8}, {4}};
  good.tasks = {{{{{0}, 0, {}}}, {}}, {{{{0, 1}, 0, {{1, 0}}}}, {0}}, {{{{1, 2}, 0, {}}}, {1}}};
  EXPECT_EQ(planned(good).peak, 12u);
  EXPECT_EQ(message(good, {100, 0}), "a beam of width 0 keeps nothing");
  OrderProblem bad = good;
  bad.tasks[0].after = {1};
  EXPECT_EQ(message(bad), "task 0 stands behind task 1, which is not before it");
  bad = good;
  bad.tasks[1].steps[0].buffers.push_back(3);
  EXPECT_EQ(message(bad), "task 1 touches buffer 3 of 3");
  bad = good;
  bad.tasks[1].steps[0].buffers.push_back(0);
  EXPECT_EQ(message(bad), "task 1 names buffer 0 twice in a step");
  bad = good;
  bad.tasks[2].steps[0].inPlace = {{2, 1}};
  EXPECT_EQ(message(bad), "task 2 puts buffer 2 of 4 bytes in the place of 1, which has 8");
  bad.tasks[2].steps[0].inPlace = {{2, 0}};
  EXPECT_EQ(message(bad), "task 2 puts buffer 2 in the place of 0, and does not touch both");
  bad = good;
  bad.buffers[0].bytes = UINT64_MAX;
  EXPECT_THAT(message(bad), HasSubstr("beyond 64 bits"));
  bad = good;
  bad.buffers.push_back({8, true, false});
  EXPECT_EQ(message(bad), "buffer 3 is live at one end alone, and no task touches it");
}

} // namespace
} // namespace candela::solvers::order
