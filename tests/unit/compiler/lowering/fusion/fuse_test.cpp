// Elementwise nodes become expressions and epilogues: the same numbers, only where the target's
// rows permit.
#include "core/compiler/lowering/fusion/fuse.h"

#include <gmock/gmock.h>

#include "core/compiler/capabilities/views.h"
#include "core/compiler/lowering/decompose/lower.h"
#include "core/runtime/host_executor/soft.h"
#include "tests/unit/compiler/capabilities/tables.h"
#include "tests/unit/compiler/graph/passes/random_graph.h"

namespace candela {
namespace {

using capabilities::Table;
using capabilities::Target;
using graph::Graph;
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
  const auto count = lowering::fusion::fuse(graph, target);
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
  EXPECT_EQ(fuseOrFail(graph, fusing(kAllSteps, CDL_SUPPORT_EMULATED, true)), 4)
      << "the host does its own emulation";
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

/// MATMUL and REDUCE of f32 with an epilogue of these steps, and RELU's max but no tanh by itself.
Target finishing(uint64_t steps) {
  Table table = Table::all();
  const auto mark = [&](uint16_t kind, uint16_t fn, std::vector<uint8_t> elems) {
    cdl_row_t& row = table.add(kind, fn, std::move(elems), CDL_CLASS_DENSE);
    row.flags = CDL_ROW_EPILOGUE;
    row.steps_mask = steps;
  };
  mark(CDL_KIND_MATMUL, 0, {CDL_F32, CDL_F32, CDL_F32});
  for (const uint16_t fn : {CDL_REDUCE_SUM, CDL_REDUCE_MAX})
    mark(CDL_KIND_REDUCE, fn, {CDL_F32, CDL_F32});
  auto target = table.target("acme", false);
  EXPECT_TRUE(target.isOk()) << target.status().message();
  return *target;
}

TEST(Epilogues, TakeBiasActivationAndResidual) {
  // The bias stands behind a reshape, and the later product takes the sum of both.
  Graph graph = parsed(R"(
graph @block(%x: f32[1,6,4], %v: f32[1,4,5], %w: f32[1,4,5], %bias: f32[5], %r: f32[2,3,5]) -> (%y: f32[2,3,5]) {
  %zero = constant [0.0] : f32[]
  %p = batch_matmul %x, %v {to = f32} loc("MatMul_0")
  %q = batch_matmul %x, %w {to = f32} loc("MatMul_1")
  %q3 = reshape %q {shape = [2,3,5]} loc("Reshape_2")
  %b = add %q3, %bias loc("Add_3")
  %a = max %b, %zero loc("Relu_4")
  %p3 = reshape %p {shape = [2,3,5]}
  %s = add %p3, %a loc("Add_5")
  %y = mul %s, %r loc("Mul_6")
}
)");
  const Target target = finishing(kAllSteps);
  EXPECT_EQ(fuseOrFail(graph, target), 5);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(
      text,
      HasSubstr(
          R"t(steps = "mul(add(v1, max(add(acc, v2), 0.0)), v3)", to = f32} )t"
          R"t(loc("MatMul_1", "Reshape_2", "Add_3", "Relu_4", "Add_5", "Mul_6") : f32[1,6,5])t"))
      << text;
  EXPECT_THAT(text, HasSubstr("shape = [1, 6, 5]"))
      << "a residual is seen in the shape of the product";
  EXPECT_THAT(text, Not(HasSubstr("= add"))) << text;
  // The product that carries the epilogue has no instruction of its own.
  int products = 0;
  for (const auto& node : graph.nodes()) products += node->kind == graph::OpKind::BatchMatmul;
  EXPECT_EQ(products, 2);
  for (const auto& node : graph.nodes())
    if (node->kind == graph::OpKind::Expr) {
      ASSERT_NE(lowering::decompose::accumulatorOf(*node), nullptr);
      EXPECT_EQ(lowering::decompose::epilogueOf(*lowering::decompose::accumulatorOf(*node)),
                node.get());
      const auto instrs = lowering::decompose::instructionsOf(*node);
      ASSERT_EQ(instrs.size(), 1u);
      EXPECT_EQ(instrs[0].kind, CDL_KIND_MATMUL);
      EXPECT_EQ(instrs[0].views.size(), 3u);
      EXPECT_EQ(lowering::decompose::ask(*node, target).support, capabilities::Support::native);
    }
}

TEST(Epilogues, TakeWhatUsesOnlyTheValueItself) {
  Graph graph = parsed(R"(
graph @swish(%x: f32[2,3,4], %w: f32[2,4,5]) -> (%y: f32[2,3,5]) {
  %one = constant [1.0] : f32[]
  %v = batch_matmul %x, %w {to = f32}
  %n = neg %v
  %e = exp %n
  %d = add %e, %one
  %y = div %v, %d
}
)");
  EXPECT_EQ(fuseOrFail(graph, finishing(kAllSteps)), 4);
  EXPECT_THAT(testing::textOf(graph),
              HasSubstr(R"t(steps = "div(acc, add(exp(neg(acc)), 1.0))")t"));
}

TEST(Epilogues, StopWhereAValueLeaves) {
  // %a is read twice, %b is an output.
  constexpr const char* kText = R"(
graph @leaves(%x: f32[2,3,4], %w: f32[2,4,4]) -> (%b: f32[2,3,4], %y: f32[2,3,4]) {
  %v = batch_matmul %x, %w {to = f32}
  %a = neg %v
  %b = abs %a
  %c = batch_matmul %a, %w {to = f32}
  %y = neg %c
}
)";
  Graph graph = parsed(kText);
  EXPECT_EQ(fuseOrFail(graph, finishing(kAllSteps)), 2);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, HasSubstr("%b = abs %a"));
  EXPECT_THAT(text, HasSubstr(R"t(%a = expr %v {steps = "neg(acc)")t"));
  EXPECT_THAT(text, HasSubstr(R"t(%y = expr %c {steps = "neg(acc)")t"));
}

TEST(Epilogues, HoldNoFunctionThatTheTargetLacks) {
  // Masks name kinds alone: tanh is a UNARY that the target does not have.
  constexpr const char* kText = R"(
graph @lacks(%x: f32[2,3,4], %w: f32[2,4,5]) -> (%y: f32[2,3,5]) {
  %v = batch_matmul %x, %w {to = f32}
  %a = neg %v
  %y = tanh %a
}
)";
  Graph graph = parsed(kText);
  EXPECT_EQ(fuseOrFail(graph, finishing(kAllSteps)), 1);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, HasSubstr(R"t(steps = "neg(acc)")t"));
  EXPECT_THAT(text, HasSubstr("%y = tanh %a"));
  Graph without = parsed(kText);
  EXPECT_EQ(fuseOrFail(without, finishing(kinds({CDL_KIND_BINARY}))), 0) << "no step of that kind";
  Graph plain = parsed(kText);
  const auto required = Table::all().target();
  ASSERT_TRUE(required.isOk());
  const std::string before = testing::textOf(plain);
  EXPECT_EQ(fuseOrFail(plain, *required), 0) << "no row with an epilogue";
  EXPECT_EQ(testing::textOf(plain), before);
}

TEST(Epilogues, KeepNumbers) {
  const auto host = Target::fromCapabilities("soft", runtime::host_executor::capabilities(), true);
  ASSERT_TRUE(host.isOk()) << host.status().message();
  const Target& target = *host;
  int fused = 0, epilogues = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    auto random = testing::GraphMaker(seed).makeMixed(20);
    const Status lowered = lowering::decompose::lower(random.graph, target);
    ASSERT_TRUE(lowered.isOk()) << lowered.message();
    const auto expected = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const std::string before = testing::textOf(random.graph),
                      interface = testing::interfaceOf(random.graph);
    fused += fuseOrFail(random.graph, target);
    for (const auto& node : random.graph.nodes())
      epilogues += lowering::decompose::accumulatorOf(*node) != nullptr;
    EXPECT_EQ(interface, testing::interfaceOf(random.graph));
    const auto got = reference::run(random.graph, random.inputs);
    ASSERT_TRUE(got.isOk()) << got.status().message();
    testing::expectSame(*expected, *got, 1e-5);
    if (HasFailure()) FAIL() << before << testing::textOf(random.graph);
  }
  EXPECT_GT(fused, 100);
  EXPECT_GT(epilogues, 20);
}

TEST(Epilogues, SeeBroadcastsThroughReshapes) {
  using capabilities::shapeOver;
  EXPECT_EQ(shapeOver({5}, {2, 3, 5}, {1, 6, 5}), Shape({1, 1, 5}));
  EXPECT_EQ(shapeOver({2, 3, 5}, {2, 3, 5}, {1, 6, 5}), Shape({1, 6, 5}));
  EXPECT_EQ(shapeOver({2, 3, 1}, {2, 3, 5}, {1, 6, 5}), Shape({1, 6, 1}));
  EXPECT_EQ(shapeOver({3, 1}, {2, 3, 5}, {1, 6, 5}), std::nullopt) << "repeats within a dim";
  EXPECT_EQ(shapeOver({1, 1, 4, 4}, {1, 12, 4, 4}, {12, 4, 4}), Shape({1, 4, 4}));
  EXPECT_EQ(shapeOver({12, 1, 1}, {1, 12, 4, 4}, {12, 4, 4}), Shape({12, 1, 1}));
  EXPECT_EQ(shapeOver({}, {6}, {2, 3}), Shape({1, 1}));
  EXPECT_EQ(shapeOver({4}, {4}, {4, 1}), Shape({4, 1}));
  EXPECT_EQ(shapeOver({2, 2}, {2, 2}, {3}), std::nullopt) << "not the same elements";
}

} // namespace
} // namespace candela
