#include "conformance/random/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/random/random_graphs.h"
#include "conformance/random/run_on.h"
#include "core/compiler/driver/pipeline.h"
#include "core/support/file.h"

namespace candela::conformance {
namespace {

using graph::OpKind;

/// The oracle with a wrong answer to one op.
random::Executor faulty(OpKind kind, OpKind instead) {
  return {"faulty",
          [kind, instead](const random::Recipe& recipe, Work&) -> Result<std::vector<Tensor>> {
            random::Recipe wrong = recipe;
            for (random::Recipe::Step& step : wrong.steps)
              if (step.kind == kind) step.kind = instead;
            CDL_ASSIGN(const graph::Graph graph, wrong.build());
            return reference::run(graph, wrong.inputs());
          }};
}

/// Graphs with lowered forms among their nodes are no excuse: only what nobody takes may be
/// refused.
TEST(MayRefuse, OnlyWhatTheHostRefusesToo) {
  const auto isLowered = [](const random::Recipe::Step& step) {
    return graph::opInfo(step.kind).has(graph::kTraitPrimitive);
  };
  int lowered = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const random::Recipe recipe = random::randomGraph(seed);
    lowered += std::ranges::any_of(recipe.steps, isLowered);
    EXPECT_FALSE(random::mayRefuse(recipe)) << "seed " << seed << " runs everywhere";
  }
  EXPECT_GE(lowered, 3);
  uint64_t refused = 13;
  while (refused < 200 && !random::mayRefuse(random::randomGraph(refused))) ++refused;
  EXPECT_LT(refused, 200u) << "no op of a type that no row of the host takes";
}

bool isWrong(const random::Recipe& recipe, const random::Executor& executor) {
  const auto expected = random::expect(recipe);
  return expected &&
         random::judge(recipe, *expected, executor).kind == random::Finding::Kind::wrong;
}

struct Fault {
  OpKind kind, instead;
};
class Reduce : public ::testing::TestWithParam<Fault> {};

TEST_P(Reduce, LeavesTheFaultAndLittleElse) {
  const auto [kind, instead] = GetParam();
  const random::Executor executor = faulty(kind, instead);
  int found = 0;
  for (uint64_t seed = 1; seed < 400 && found < 3; ++seed) {
    const random::Recipe recipe = random::randomGraph(seed);
    if (recipe.steps.size() < 10 || !isWrong(recipe, executor)) continue;
    ++found;
    SCOPED_TRACE(seed);
    const random::Recipe small = random::reduce(
        recipe, [&](const random::Recipe& candidate) { return isWrong(candidate, executor); });
    EXPECT_TRUE(isWrong(small, executor));
    EXPECT_LE(small.steps.size(), 3u);
    EXPECT_LE(small.elements(), 64u);
    EXPECT_EQ(small.outputs.size(), 1u);
    EXPECT_TRUE(std::ranges::any_of(
        small.steps, [&](const random::Recipe::Step& step) { return step.kind == kind; }));
  }
  EXPECT_EQ(found, 3);
}
INSTANTIATE_TEST_SUITE_P(Faults, Reduce,
                         ::testing::Values(Fault{OpKind::Abs, OpKind::Neg},
                                           Fault{OpKind::Add, OpKind::Sub},
                                           Fault{OpKind::ReduceMax, OpKind::ReduceMin},
                                           Fault{OpKind::Max, OpKind::Add}));

TEST(Case, OnDiskIsTheCase) {
  const random::Executor executor = faulty(OpKind::Add, OpKind::Sub);
  uint64_t seed = 1;
  while (!isWrong(random::randomGraph(seed), executor)) ++seed;
  const std::string folder = ::testing::TempDir() + "candela_case";
  const auto judged = [&](const random::Recipe& recipe, const random::Expected& expected) {
    return random::judge(recipe, expected, executor);
  };
  const auto small = random::writeReduced(random::randomGraph(seed), random::Finding::Kind::wrong,
                                          judged, folder, "soft");
  ASSERT_TRUE(small.isOk()) << small.status().message();
  EXPECT_EQ(small->finding.kind, random::Finding::Kind::wrong);
  EXPECT_LE(small->recipe.steps.size(), 3u);
  const std::string& line = small->command;
  EXPECT_EQ(line.substr(0, line.find(" --backend")), "candela run " + folder + "/model.cdl");
  const auto expected = random::expect(small->recipe);
  ASSERT_TRUE(expected.isOk());
  auto ir = driver::loadAny(folder + "/model.cdl", {});
  ASSERT_TRUE(ir.isOk()) << ir.status().message();
  const auto& graph = std::get<graph::Graph>(*ir);
  std::vector<Tensor> inputs;
  for (const graph::Value* input : graph.inputs()) {
    auto tensor = readNpy(fmt::format("{}/{}.npy", folder, input->name));
    ASSERT_TRUE(tensor.isOk()) << tensor.status().message();
    tensor->elem = input->type.elem; // bf16 stands there as u16
    inputs.push_back(*tensor);
  }
  const auto got = reference::run(graph, inputs);
  ASSERT_TRUE(got.isOk()) << got.status().message();
  EXPECT_EQ(judge::outside(expected->intervals[0], (*got)[0]), "");
}

} // namespace
} // namespace candela::conformance
