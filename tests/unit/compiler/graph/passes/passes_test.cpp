// Random graphs give the same numbers before and after each pass. What each pass does is told by
// tests/ir/passes/.
#include "core/compiler/graph/passes/passes.h"

#include <gmock/gmock.h>

#include <set>

#include "tests/unit/compiler/graph/passes/random_graph.h"

namespace candela {
namespace {

using graph::Graph;
using graph::Value;
using ::testing::HasSubstr;

constexpr int kGraphs = 200, kSteps = 25;

/// Each output is the only one of its value, which is no input and no constant.
void expectOwnOutputs(const Graph& graph) {
  std::set<const Value*> seen;
  for (const Value* output : graph.outputs()) {
    EXPECT_TRUE(seen.insert(output).second);
    EXPECT_TRUE(output->producer && !output->isConstant());
  }
}

class PassTest : public ::testing::TestWithParam<graph::passes::PassInfo> {};

TEST_P(PassTest, KeepsNumbersAndInterface) {
  const std::vector<std::string> name{std::string(GetParam().name)};
  const double tolerance = GetParam().effect == graph::passes::Effect::rounds ? 1e-4 : 0;
  int rewrites = 0;
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    auto random = testing::GraphMaker(seed).makeMixed(kSteps);
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const std::string interface = testing::interfaceOf(random.graph),
                      before = testing::textOf(random.graph);
    const Status status = graph::passes::runPasses(random.graph, name);
    ASSERT_TRUE(status.isOk()) << status.message() << before;
    EXPECT_EQ(interface, testing::interfaceOf(random.graph));
    expectOwnOutputs(random.graph);
    rewrites += before != testing::textOf(random.graph);
    const auto got = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    testing::expectSame(*expected, *got, tolerance);
    if (HasFailure()) FAIL() << before << testing::textOf(random.graph);
  }
  EXPECT_GE(rewrites, kGraphs / 4) << "the graphs give the pass too little to do";
}

INSTANTIATE_TEST_SUITE_P(All, PassTest,
                         ::testing::ValuesIn(graph::passes::allPasses().begin(),
                                             graph::passes::allPasses().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::erase(name, '-');
                           return name;
                         });

TEST(Passes, SayWhatBecomesOfNumbers) {
  for (const graph::passes::PassInfo& pass : graph::passes::allPasses()) {
    EXPECT_FALSE(pass.values.empty()) << pass.name;
    const bool keeps = pass.values.find("bits") != std::string_view::npos &&
                       pass.values.find("round") == std::string_view::npos;
    EXPECT_EQ(keeps, pass.effect == graph::passes::Effect::sameBits)
        << pass.name << ": " << pass.values;
  }
}

TEST(Optimize, KeepsNumbersAndSettles) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    auto random = testing::GraphMaker(seed).makeMixed(kSteps);
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk());
    const size_t before = random.graph.nodeCount();
    ASSERT_TRUE(graph::passes::optimize(random.graph).isOk());
    EXPECT_LT(random.graph.nodeCount(), before);
    expectOwnOutputs(random.graph);
    const auto got = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(got.isOk());
    testing::expectSame(*expected, *got, 1e-4);
    int more = 0;
    ASSERT_TRUE(graph::passes::optimize(random.graph, [&](std::string_view, const Graph&) {
                  ++more;
                }).isOk());
    EXPECT_EQ(more, 0) << "a second run finds more";
  }
}

TEST(Optimize, KeepsEveryNameOfTheModel) {
  auto random = testing::GraphMaker(7).makeMixed(kSteps);
  std::set<std::string> reachable;
  ASSERT_TRUE(graph::passes::runPasses(random.graph,
                                       std::vector<std::string>{"dead-code", "fold-constants"})
                  .isOk());
  for (const auto& node : random.graph.nodes())
    if (node->kind != graph::OpKind::Constant)
      reachable.insert(node->provenance.begin(), node->provenance.end());
  ASSERT_TRUE(
      graph::passes::runPasses(random.graph,
                               std::vector<std::string>{"common-subexpressions", "fold-batch-norm"})
          .isOk());
  std::set<std::string> kept;
  for (const auto& node : random.graph.nodes())
    kept.insert(node->provenance.begin(), node->provenance.end());
  for (const std::string& name : reachable) EXPECT_TRUE(kept.count(name)) << name;
}

TEST(RunPasses, NamesTheKnownOnes) {
  Graph graph;
  const Status status = graph::passes::runPasses(graph, std::vector<std::string>{"fold"});
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_THAT(status.message(),
              HasSubstr("no pass 'fold'; there are canonicalize, simplify-loops, algebra"));
}

} // namespace
} // namespace candela
