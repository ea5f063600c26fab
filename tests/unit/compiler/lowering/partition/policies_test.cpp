// The policies that weigh, on made-up costs: against every placement, and never a cycle.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "tests/unit/compiler/lowering/partition/graphs.h"

namespace candela::lowering::partition {
namespace {

using graph::Graph;
using graph::OpKind;
using graph::TensorType;
using graph::Value;
using testing::ElementsAre;
using testing::HasSubstr;

/// Nodes cost what their name and target are drawn to, in microseconds.
CostModel drawnCosts(size_t targets, unsigned seed, double linkSeconds, double partSeconds) {
  CostModel model;
  for (size_t t = 0; t < targets; ++t) {
    const bool isHost = t + 1 == targets;
    TargetRates rates;
    rates.name = isHost ? "host" : fmt::format("acme:{}", t);
    rates.linkBytesPerSecond = INFINITY;
    rates.linkSeconds = isHost ? 0 : linkSeconds;
    rates.partSeconds = isHost ? 0 : partSeconds;
    model.rates.push_back(rates);
  }
  model.costOf = [seed](const graph::Node& node, size_t target) {
    std::seed_seq mixed{seed, static_cast<unsigned>(std::stoul(node.userName().substr(1))),
                        static_cast<unsigned>(target)};
    return NodeCost{(1 + std::mt19937(mixed)() % 40) * 1e-6, "drawn"};
  };
  return model;
}

/// Nodes n0, n1, ... of f32[4], each of one or two before it.
Graph drawnGraph(unsigned seed, int nodes) {
  std::mt19937 random(seed);
  Graph graph;
  std::vector<Value*> values{graph.addInput("x", TensorType(Elem::f32_, {4}))};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int n = 0; n < nodes; ++n) {
    const bool isUnary = random() % 2 == 0;
    std::vector<Value*> operands{any()};
    if (!isUnary) operands.push_back(any());
    auto node = graph.addNode(isUnary ? OpKind::Exp : OpKind::Add, std::move(operands), {},
                              {fmt::format("n{}", n)});
    EXPECT_TRUE(node.isOk()) << node.status().message();
    values.push_back((*node)->result());
    if (random() % 6 == 0)
      values.push_back(
          add(graph, OpKind::Reshape, {values.back()}, {{"shape", std::vector<int64_t>{4}}}));
  }
  for (const auto& node : graph.nodes())
    if (node->result()->users().empty()) graph.addOutput(node->result(), node->result()->name);
  return graph;
}

class Policies : public testing::Test {
protected:
  const capabilities::Target first_ = accelerator(), second_ = accelerator(), soft_ = host();
  const std::vector<const capabilities::Target*> two_{&first_, &soft_};
  const std::vector<const capabilities::Target*> three_{&first_, &second_, &soft_};

  static Partitioning placed(const Graph& graph,
                             const std::vector<const capabilities::Target*>& targets,
                             const Request& request) {
    auto result = partition(graph, targets, {}, {}, request);
    EXPECT_TRUE(result.isOk()) << result.status().message();
    if (!result) return {};
    expectValid(graph, *result);
    return std::move(*result);
  }
  static std::string refused(const Graph& graph,
                             const std::vector<const capabilities::Target*>& targets,
                             const Request& request) {
    return partition(graph, targets, {}, {}, request).status().message();
  }
};

TEST_F(Policies, CostIsTheLeastOfAllPlacementsOrNearAndSaysSo) {
  int least = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    constexpr int kNodes = 5;
    const Graph graph = drawnGraph(seed, kNodes);
    const CostModel costs = drawnCosts(2, seed, 6e-6, 1e-6);
    const Partitioning found = placed(graph, two_, {.policy = Policy::cost, .costs = &costs});
    double best = INFINITY;
    for (unsigned placement = 0; placement < 1u << kNodes; ++placement) {
      Request request{.policy = Policy::cost, .costs = &costs};
      for (int n = 0; n < kNodes; ++n)
        request.pins.push_back({fmt::format("n{}", n), placement >> n & 1, "", "test"});
      best = std::min(best, placed(graph, two_, request).choice->totals.sum());
    }
    EXPECT_LE(found.choice->totals.sum(), best * 1.05) << "seed " << seed;
    EXPECT_LE(found.choice->totals.sum(), found.choice->byPreference.sum() * (1 + 1e-12));
    least += found.choice->totals.sum() <= best * (1 + 1e-9);
  }
  EXPECT_GE(least, 13);
}

TEST_F(Policies, NeverACycleAndNeverWorseThanByPreference) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Graph graph = drawnGraph(seed, 60);
    const CostModel costs = drawnCosts(3, seed, 2e-6, 1e-6);
    const Partitioning found = placed(graph, three_, {.policy = Policy::cost, .costs = &costs});
    EXPECT_LE(found.choice->totals.sum(), found.choice->byPreference.sum() * (1 + 1e-12));
    EXPECT_EQ(found.reasons.size(), graph.nodeCount());
    const Partitioning stages =
        placed(graph, three_, {.policy = Policy::pipeline, .costs = &costs});
    EXPECT_LE(stages.parts.size(), 2u) << "seed " << seed;
    ASSERT_EQ(stages.choice->stageSeconds.size(), 2u);
  }
}

TEST_F(Policies, APipelineIsAsFastAsTheBestCutOfTheOrder) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    constexpr int kNodes = 8;
    const Graph graph = drawnGraph(seed, kNodes);
    const CostModel costs = drawnCosts(3, seed, 3e-6, 0);
    const Partitioning found = placed(graph, three_, {.policy = Policy::pipeline, .costs = &costs});
    double best = INFINITY;
    for (int cut = 0; cut <= kNodes; ++cut) {
      Request request{.policy = Policy::pipeline, .costs = &costs};
      for (int n = 0; n < kNodes; ++n)
        request.pins.push_back(
            {fmt::format("n{}", n), n < cut ? size_t(0) : size_t(1), "", "test"});
      const std::vector<double> times = placed(graph, three_, request).choice->stageSeconds;
      best = std::min(best, std::max(times[0], times[1]));
    }
    const std::vector<double>& times = found.choice->stageSeconds;
    EXPECT_NEAR(std::max(times[0], times[1]), best, 1e-11) << "seed " << seed;
  }
}

TEST_F(Policies, PinsAreKeptAndNamedByEveryPolicy) {
  const Graph graph = drawnGraph(3, 20);
  const CostModel costs = drawnCosts(3, 3, 1e-6, 0);
  const std::vector<Pin> pins{{"n*", 0, "acme:0", "p:1"}, {"n7", 1, "acme:1", "p:2"}};
  for (const Policy policy : {Policy::preference, Policy::cost, Policy::pipeline}) {
    std::vector<Pin> given = pins;
    if (policy == Policy::pipeline) given = {{"n19", 1, "acme:1", "p:2"}};
    const Partitioning found =
        placed(graph, three_, {.policy = policy, .pins = given, .costs = &costs});
    for (const auto& node : graph.nodes())
      if (node->userName() == (policy == Policy::pipeline ? "n19" : "n7")) {
        EXPECT_EQ(found.targetOf.at(node.get()), 1u) << policyName(policy);
        EXPECT_THAT(found.reasons.at(node.get()), HasSubstr("pinned by p:2"));
      }
  }
}

TEST_F(Policies, WhatCannotBeIsRefusedByName) {
  Graph graph;
  Value* d = graph.addInput("d", TensorType(Elem::f64_, {4}));
  auto node = graph.addNode(OpKind::Sqrt, {d}, {}, {"n0"});
  graph.addOutput((*node)->result(), "y");
  const CostModel costs = drawnCosts(3, 1, 0, 0);
  const auto pinned = [](const std::string& pattern) {
    return Request{.pins = {{pattern, 0, "acme", "pins.txt:4"}}};
  };
  EXPECT_THAT(refused(graph, three_, pinned("n0")),
              HasSubstr("pins.txt:4: sqrt 'n0' cannot be on acme: "));
  EXPECT_THAT(refused(graph, three_, pinned("op:SQRT")),
              HasSubstr("pins.txt:4: sqrt 'n0' cannot be on acme: "));
  EXPECT_THAT(refused(graph, three_, pinned("Conv*")),
              HasSubstr("pins.txt:4: 'Conv*' matches no node that is left after optimization"));
  Request several = pinned("Conv*");
  several.isOneOfSeveral = true;
  EXPECT_EQ(refused(graph, three_, several), "");
  EXPECT_THAT(refused(graph, three_, {.policy = Policy::pipeline, .costs = &costs}),
              HasSubstr("pipeline: sqrt 'n0' is taken by no device; acme:0: "));
  const CostModel alone = drawnCosts(1, 1, 0, 0);
  EXPECT_THAT(refused(graph, {&soft_}, {.policy = Policy::pipeline, .costs = &alone}),
              HasSubstr("pipeline: no device is given"));
}

TEST(Pins, AreLinesOfPatternsAndDevices) {
  const std::vector<std::string> devices{"acme", "acme:1", "host"};
  const auto pins = parsePins("# all\nConv_* = acme:1  # fast\n\n op:MatMul=acme:0\r\na=b = soft\n"
                              "a#b = host\n",
                              "p", devices);
  ASSERT_TRUE(pins.isOk()) << pins.status().message();
  std::vector<std::string> read;
  for (const Pin& pin : *pins)
    read.push_back(fmt::format("{} {} {}", pin.where, pin.pattern, pin.target));
  EXPECT_THAT(read, ElementsAre("p:2 Conv_* 1", "p:4 op:MatMul 0", "p:5 a=b 2", "p:6 a#b 2"));
  const auto refused = [&](std::string_view text) {
    return parsePins(text, "p", devices).status().message();
  };
  EXPECT_EQ(refused("\nConv = other"),
            "p:2: 'other' is no device here; there are acme, acme:1, host");
  EXPECT_EQ(refused("Conv"), "p:1: 'Conv': expected PATTERN = DEVICE");
  EXPECT_EQ(refused("= acme"), "p:1: '= acme': expected PATTERN = DEVICE");
  EXPECT_EQ(refused("Conv ="), "p:1: 'Conv =': expected PATTERN = DEVICE");
}

TEST(Policy, HasNames) {
  for (const Policy policy : {Policy::preference, Policy::cost, Policy::pipeline})
    EXPECT_EQ(*parsePolicy(policyName(policy)), policy);
  EXPECT_THAT(parsePolicy("best").status().message(),
              HasSubstr("'best' is no policy; there are preference, cost, pipeline"));
}

} // namespace
} // namespace candela::lowering::partition
