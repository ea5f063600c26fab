// Elementwise chains become expressions: the same numbers, only where the target's rows permit.
#include "core/target/fuse/fuse.h"

#include <gmock/gmock.h>

#include "tests/unit/passes/random_graph.h"
#include "tests/unit/target/tables.h"

namespace candela {
namespace {

using graph::Graph;
using target::Table;
using target::Target;
using ::testing::HasSubstr;
using ::testing::Not;

uint64_t kinds(std::initializer_list<unsigned> list) {
  uint64_t mask = 0;
  for (const unsigned kind : list) mask |= uint64_t{1} << kind;
  return mask;
}
const uint64_t kAllSteps =
    kinds({CDL_KIND_UNARY, CDL_KIND_BINARY, CDL_KIND_COMPARE, CDL_KIND_SELECT, CDL_KIND_CONVERT});

Target fusing(uint64_t steps, uint8_t support = CDL_SUPPORT_NATIVE, bool isHost = false) {
  Table table = Table::all();
  table.add(CDL_KIND_ELEMENTWISE, 0, {}, CDL_CLASS_BROADCAST, support).steps_mask = steps;
  auto target = table.target("acme", isHost);
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return *target;
}

Graph parsed(const char* text) {
  Diagnostics diagnostics;
  auto graph = graph::parse(text, "test.cdl", diagnostics);
  EXPECT_TRUE(graph.isOk()) << diagnostics.status().message();
  return std::move(*graph);
}

int fuseOrFail(Graph& graph, const Target& target) {
  const auto count = target::fuse(graph, target);
  EXPECT_TRUE(count.isOk()) << count.status().message();
  const Status status = graph::verify(graph);
  EXPECT_TRUE(status.isOk()) << status.message() << testing::textOf(graph);
  return count ? *count : -1;
}

TEST(Fuse, KeepsNumbers) {
  const Target target = fusing(kAllSteps);
  int fused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    auto random = testing::GraphMaker(seed).makeElementwise(30);
    random.graph.eraseDead();
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const std::string before = testing::textOf(random.graph);
    const std::string interface = testing::interfaceOf(random.graph);
    fused += fuseOrFail(random.graph, target);
    EXPECT_EQ(interface, testing::interfaceOf(random.graph));
    const auto got = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    testing::expectSame(*expected, *got, 0);
    if (HasFailure()) FAIL() << before << testing::textOf(random.graph);
  }
  EXPECT_GT(fused, 300);
}

constexpr const char* kChain = R"(
graph @chain(%x: f32[2,3], %row: f32[3], %full: f32[2,3]) -> (%y: f32[2,3]) {
  %half = constant [0.5] : f32[]
  %zero = constant [0.0] : f32[1]
  %a = add %x, %row loc("Add_0")
  %b = mul %a, %half loc("Mul_1")
  %c = less %b, %zero
  %d = sub %full, %x
  %y = select %c, %d, %full loc("Where_2")
}
)";

TEST(Fuse, WritesTheChainAsOneExpression) {
  Graph graph = parsed(kChain);
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps)), 4);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, HasSubstr(R"t(expr %x, %row, %full {steps = )t"
                              R"t("select(lt(mul(add(v0, v1), 0.5), 0.0), sub(v2, v0), v2)", )t"
                              R"t(to = f32} loc("Add_0", "Mul_1", "Where_2") : f32[2,3])t"));
  EXPECT_THAT(text, Not(HasSubstr("mul %")));
}

TEST(Fuse, LeavesOutStepsThatTheTargetDoesNotTake) {
  Graph graph = parsed(kChain);
  EXPECT_EQ(fuseOrFail(graph, fusing(kinds({CDL_KIND_UNARY, CDL_KIND_BINARY}))), 1);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, HasSubstr(R"t(steps = "mul(add(v0, v1), 0.5)")t"));
  EXPECT_THAT(text, HasSubstr("select %c, %d, %full"));
}

TEST(Fuse, DoesNothingWithoutRows) {
  Graph graph = parsed(kChain);
  Table table = Table::all();
  const auto plain = table.target();
  ASSERT_TRUE(plain.isOk());
  EXPECT_EQ(fuseOrFail(graph, *plain), 0);
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps, CDL_SUPPORT_EMULATED)), 0);
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps, CDL_SUPPORT_EMULATED, true)), 4) << "the host does its own emulation";
}

TEST(Fuse, KeepsValuesWithSeveralUses) {
  Graph graph = parsed(R"(
graph @uses(%x: f32[4]) -> (%y: f32[4], %z: f32[4], %out: f32[4]) {
  %a = neg %x
  %b = abs %a
  %y = floor %b
  %z = mul %b, %a
  %out = neg %x
  %w = neg %out
}
)");
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps)), 0);
}

TEST(Fuse, BroadcastsOperandsOnly) {
  // %s is smaller than the result: it is computed once, not for every row.
  Graph graph = parsed(R"(
graph @rows(%x: f32[8,4], %v: f32[4]) -> (%y: f32[8,4]) {
  %s = neg %v
  %t = abs %s
  %u = add %x, %t
  %y = neg %u
}
)");
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps)), 2);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, HasSubstr(R"t(steps = "abs(neg(v0))")t"));
  EXPECT_THAT(text, HasSubstr(R"t(steps = "neg(add(v0, v1))")t"));
}

TEST(Fuse, StopsAtTheLimits) {
  std::string text = "graph @long(%x: f32[4]) -> (%n40: f32[4]) {\n  %n0 = neg %x\n";
  for (int i = 1; i <= 40; ++i) text += fmt::format("  %n{} = neg %n{}\n", i, i - 1);
  Graph steps = parsed((text + "}\n").c_str());
  EXPECT_EQ(fuseOrFail(steps, fusing(kAllSteps)), 39) << "32 steps and 9 steps";

  text = "graph @wide(%x0: f32[4]";
  for (int i = 1; i <= 20; ++i) text += fmt::format(", %x{}: f32[4]", i);
  text += ") -> (%a20: f32[4]) {\n  %a1 = add %x0, %x1\n";
  for (int i = 2; i <= 20; ++i) text += fmt::format("  %a{} = add %a{}, %x{}\n", i, i - 1, i);
  Graph wide = parsed((text + "}\n").c_str());
  EXPECT_EQ(fuseOrFail(wide, fusing(kAllSteps)), 18) << "16 operands and 6 operands";
}

} // namespace
} // namespace candela
