#include "core/compiler/lowering/partition/capacity.h"

#include <gmock/gmock.h>

#include <random>

#include "tests/unit/compiler/capabilities/tables.h"

namespace candela::lowering::partition {
namespace {

using graph::Graph;
using graph::Node;
using graph::OpKind;
using graph::TensorType;
using graph::Value;
using testing::HasSubstr;

constexpr uint64_t kBytes = 64 * 64 * 4; // of each matrix

capabilities::Target accelerator() {
  auto target =
      capabilities::Table::required({CDL_PROFILE_BASE, CDL_PROFILE_FP32}, CDL_SUPPORT_NATIVE)
          .target("acme");
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return std::move(target).value();
}

/// A chain of products of matrices, each with a constant of its own.
Graph chain(size_t length) {
  Graph graph;
  Value* value = graph.addInput("x", TensorType(Elem::f32_, {64, 64}));
  for (size_t i = 0; i < length; ++i) {
    Value* weight = graph.addConstant(Payload::random(Elem::f32_, 64 * 64, i),
                                      TensorType(Elem::f32_, {64, 64}));
    value = graph.addNode(OpKind::Matmul, {value, weight}).value()->result();
  }
  graph.addOutput(value, "y");
  return graph;
}

Partitioning inOnePart(const Graph& graph) {
  Partitioning partitioning;
  partitioning.parts.push_back({0, graph.snapshot()});
  return partitioning;
}

/// Constants, and two values at a time: what a product reads and writes.
Result<Demand> demandOf(const Part& part) {
  Demand demand;
  for (const Node* node : part.nodes)
    if (node->kind == OpKind::Constant && !node->result()->users().empty())
      demand.constants += kBytes;
  demand.arena = 2 * kBytes;
  return demand;
}

class FitParts : public testing::Test {
protected:
  Result<Fitting> fit(const Graph& graph, uint64_t bytes, const Measure& measure = demandOf) {
    return fit(graph, Capacity{bytes, {}}, measure);
  }
  Result<Fitting> fit(const Graph& graph, const Capacity& capacity,
                      const Measure& measure = demandOf) {
    const Capacity capacities[] = {capacity};
    return fitParts(graph, inOnePart(graph), targets_, capacities, measure);
  }

  const capabilities::Target target_ = accelerator();
  const std::vector<const capabilities::Target*> targets_{&target_};
};

void expectConsecutive(const Graph& graph, const std::vector<Part>& parts) {
  std::map<const Node*, size_t> partOf;
  for (size_t p = 0; p < parts.size(); ++p)
    for (const Node* node : parts[p].nodes)
      EXPECT_TRUE(partOf.emplace(node, p).second) << node->userName() << " appears twice";
  EXPECT_EQ(partOf.size(), graph.nodeCount());
  for (const auto& node : graph.nodes())
    for (const Value* operand : node->operands())
      if (operand && operand->producer && !operand->isConstant()) {
        EXPECT_LE(partOf.at(operand->producer), partOf.at(node.get())) << node->userName();
      }
}

TEST_F(FitParts, LeavesWhatFits) {
  const Graph graph = chain(6);
  const Result<Fitting> fitting = fit(graph, 8 * kBytes);
  ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
  ASSERT_EQ(fitting->parts.size(), 1u);
  EXPECT_EQ(fitting->parts[0].nodes, graph.snapshot());
  EXPECT_EQ(fitting->demands[0].total(), 8 * kBytes);
}

TEST_F(FitParts, WithoutALimitAsksNobody) {
  const Graph graph = chain(6);
  const Result<Fitting> fitting = fit(
      graph, 0, [](const Part&) -> Result<Demand> { return failure(Code::internal, "was asked"); });
  ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
  EXPECT_EQ(fitting->parts.size(), 1u);
}

TEST_F(FitParts, CutsIntoPartsThatFit) {
  const Graph graph = chain(16);
  for (const uint64_t matrices : {3, 4, 6, 9, 17}) {
    const Result<Fitting> fitting = fit(graph, matrices * kBytes);
    ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
    EXPECT_TRUE(fitting->tooLarge.empty());
    EXPECT_GT(fitting->parts.size(), 1u);
    expectConsecutive(graph, fitting->parts);
    for (const Demand& demand : fitting->demands) EXPECT_LE(demand.total(), matrices * kBytes);
  }
}

TEST_F(FitParts, LooksAtAMemoryForConstantsForItself) {
  const Graph graph = chain(16);
  for (const uint64_t matrices : {1, 2, 5}) {
    const Result<Fitting> fitting = fit(graph, Capacity{2 * kBytes, matrices * kBytes});
    ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
    EXPECT_TRUE(fitting->tooLarge.empty());
    EXPECT_GE(fitting->parts.size(), 16 / matrices);
    expectConsecutive(graph, fitting->parts);
    for (const Demand& demand : fitting->demands) EXPECT_LE(demand.constants, matrices * kBytes);
  }
  const Result<Fitting> whole = fit(graph, Capacity{2 * kBytes, 0});
  ASSERT_TRUE(whole.isOk()) << whole.status().message();
  EXPECT_EQ(whole->parts.size(), 1u) << "constants have no limit, and the rest fits";
}

TEST_F(FitParts, NamesWhatDoesNotFitAlone) {
  const Graph graph = chain(2);
  const Result<Fitting> fitting = fit(graph, 2 * kBytes);
  ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
  ASSERT_EQ(fitting->tooLarge.size(), 2u);
  const Bar& bar = fitting->tooLarge.begin()->second;
  EXPECT_EQ(bar.reason, CDL_REASON_MEMORY);
  EXPECT_THAT(bar.why, HasSubstr("49152 bytes (constants 16384, values 0, arena 32768)"));
  EXPECT_THAT(bar.why, HasSubstr("holds 32768"));
}

TEST_F(FitParts, GoesOnCuttingWhereEstimatesAreTooLow) {
  const Graph graph = chain(12);
  // Thrice of what the graph says of its constants, as a layout with much padding would be.
  const Result<Fitting> fitting = fit(graph, 6 * kBytes, [](const Part& part) {
    Result<Demand> demand = demandOf(part);
    demand->constants *= 3;
    return demand;
  });
  ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
  EXPECT_TRUE(fitting->tooLarge.empty());
  EXPECT_EQ(fitting->parts.size(), 12u);
  expectConsecutive(graph, fitting->parts);
}

TEST_F(FitParts, APlanThatDoesNotExistIsTooLarge) {
  const Graph graph = chain(4);
  const Result<Fitting> fitting = fit(graph, 100 * kBytes, [](const Part& part) -> Result<Demand> {
    if (part.nodes.size() > 4) return failure(Code::out_of_memory, "no plan");
    return demandOf(part);
  });
  ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
  EXPECT_TRUE(fitting->tooLarge.empty());
  expectConsecutive(graph, fitting->parts);
  for (const Part& part : fitting->parts) EXPECT_LE(part.nodes.size(), 4u);
}

TEST_F(FitParts, OtherFailuresAreFailures) {
  const Graph graph = chain(4);
  const Result<Fitting> fitting = fit(graph, kBytes, [](const Part&) -> Result<Demand> {
    return failure(Code::unsupported, "something else");
  });
  EXPECT_EQ(fitting.status().code(), Code::unsupported);
}

// Graphs of additions, any value with any, cut at any size: every value that crosses comes from an
// earlier part.
TEST_F(FitParts, RandomGraphsHaveNoCycles) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    std::vector<Value*> values{graph.addInput("x", TensorType(Elem::f32_, {64, 64}))};
    for (int i = 0; i < 20; ++i) {
      if (random() % 3 == 0)
        values.push_back(graph.addConstant(Payload::random(Elem::f32_, 64 * 64, i),
                                           TensorType(Elem::f32_, {64, 64})));
      Value* a = values[random() % values.size()];
      Value* b = values[random() % values.size()];
      values.push_back(graph.addNode(OpKind::Add, {a, b}).value()->result());
    }
    graph.addOutput(values.back(), "y");
    const Result<Fitting> fitting = fit(graph, (4 + random() % 8) * kBytes);
    ASSERT_TRUE(fitting.isOk()) << fitting.status().message();
    expectConsecutive(graph, fitting->parts);
  }
}

} // namespace
} // namespace candela::lowering::partition
