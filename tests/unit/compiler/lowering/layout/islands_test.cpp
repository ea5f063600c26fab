// Layout islands: where conversions stand, and that a Program on them gives the graph's numbers.
#include <gmock/gmock.h>

#include "core/compiler/lowering/decompose/lower.h"
#include "core/compiler/lowering/emit/emit.h"
#include "core/compiler/lowering/fusion/fuse.h"
#include "core/compiler/lowering/layout/layout.h"
#include "core/compiler/program/passes/schedule/schedule.h"
#include "core/compiler/program/text.h"
#include "core/reference/interpreter/interp.h"
#include "tests/unit/compiler/graph/passes/random_graph.h"
#include "tests/unit/compiler/lowering/layout/blocking.h"
#include "tests/unit/compiler/lowering/layout/random_network.h"

namespace candela {
namespace {

using graph::Graph;
using ::testing::HasSubstr;
using ::testing::Not;

Graph parsed(const std::string& text) {
  Diagnostics diagnostics;
  auto graph = graph::parse(text, "test.cdl", diagnostics);
  EXPECT_TRUE(graph.isOk()) << diagnostics.status().message();
  return std::move(*graph);
}

struct Laid {
  int conversions = -1;
  std::string text; ///< of the graph
  program::Program program;
};

/// Lowers the graph for the target and emits it.
Laid laid(Graph& graph, const capabilities::Target& target = testing::blocking()) {
  Laid result;
  EXPECT_TRUE(lowering::decompose::lower(graph, target));
  EXPECT_TRUE(lowering::layout::chooseLayouts(graph, target).isOk());
  EXPECT_TRUE(lowering::fusion::fuse(graph, target).isOk());
  lowering::layout::giveHalos(graph, target);
  const Status status = graph::verify(graph);
  EXPECT_TRUE(status.isOk()) << status.message() << testing::textOf(graph);
  result.conversions = 0;
  for (const auto& node : graph.nodes())
    result.conversions += lowering::decompose::convertsLayout(*node);
  result.text = testing::textOf(graph);
  auto program = lowering::emit::emit(graph, target);
  EXPECT_TRUE(program.isOk()) << program.status().message() << result.text;
  if (!program) return result;
  result.program = std::move(*program);
  EXPECT_TRUE(program::passes::schedule::schedule(result.program));
  const auto placed = program::passes::schedule::place(result.program);
  EXPECT_TRUE(placed.isOk()) << placed.status().message();
  return result;
}

/// The Program's numbers are those of the graph that it was made from.
void expectSame(const Laid& net, const std::vector<Tensor>& expected,
                const std::vector<Tensor>& inputs) {
  auto got = reference::interpret(net.program, inputs);
  ASSERT_TRUE(got.isOk()) << got.status().message() << net.text;
  // coalesced in the Program
  for (size_t i = 0; i < got->size(); ++i) (*got)[i].dims = expected[i].dims;
  testing::expectSame(expected, *got, 1e-4);
}

constexpr const char* kBlocked = "layout [d0, d1, d2, d3, d1%4]";

TEST(Islands, FromTheFirstConvolutionToTheSumOverSpace) {
  Graph graph = parsed(R"(
graph @net(%x: f32[1,3,9,9]) -> (%y: f32[1,10]) {
  %w0 = constant random(1) : f32[8,3,3,3]
  %b0 = constant random(2) : f32[8]
  %c0 = conv %x, %w0, %b0 {pads = [1,1,1,1]}
  %r0 = relu %c0
  %w1 = constant random(3) : f32[8,1,3,3]
  %c1 = conv %r0, %w1 {pads = [1,1,1,1], group = 8}
  %w2 = constant random(4) : f32[8,8,1,1]
  %c2 = conv %c1, %w2
  %a = add %c2, %r0
  %p = max_pool %a {kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,2]}
  %g = global_average_pool %p
  %f = reshape %g {shape = [1,8]}
  %w3 = constant random(5) : f32[8,10]
  %y = matmul %f, %w3
}
)");
  const std::vector<Tensor> inputs{*randomTensor(Elem::f32_, {1, 3, 9, 9}, 7)};
  const auto expected = reference::run(graph, inputs);
  const Laid net = laid(graph);
  EXPECT_EQ(net.conversions, 0) << net.text;
  EXPECT_THAT(net.text, HasSubstr(kBlocked));
  EXPECT_THAT(net.text, HasSubstr("halo [0, 0, 1, 1, 0] [0, 0, 1, 1, 0] 0.0"));
  EXPECT_THAT(net.text, HasSubstr("halo [0, 0, 1, 1, 0] [0, 0, 1, 1, 0] -inf")) << "of the pool";
  expectSame(net, *expected, inputs);
}

TEST(Islands, ConvertOnceWhereTheyEnd) {
  // The transpose wants rows; what it and the output read is converted once.
  Graph graph = parsed(R"(
graph @border(%x: f32[1,4,5,5]) -> (%y: f32[1,8,5,5], %z: f32[1,5,5,8]) {
  %w = constant random(1) : f32[8,4,3,3]
  %c = conv %x, %w {pads = [1,1,1,1]}
  %y = relu %c
  %z = transpose %y {perm = [0,2,3,1]}
}
)");
  const Laid net = laid(graph);
  EXPECT_EQ(net.conversions, 2) << "x in, y out" << net.text;
}

TEST(Islands, NeedASeed) {
  Graph graph = parsed(R"(
graph @plain(%x: f32[1,8,5,5]) -> (%y: f32[1,8,5,5]) {
  %r = relu %x
  %y = add %r, %x
}
)");
  const Laid net = laid(graph);
  EXPECT_EQ(net.conversions, 0);
  EXPECT_THAT(net.text, Not(HasSubstr("layout")));
}

TEST(Islands, KeepOddChannelsInRows) {
  // 6 channels fill no blocks: the convolutions beside them begin and end blocks, and nothing is
  // converted.
  Graph graph = parsed(R"(
graph @odd(%x: f32[1,3,5,5]) -> (%y: f32[1,6,5,5]) {
  %w0 = constant random(1) : f32[8,3,3,3]
  %c0 = conv %x, %w0 {pads = [1,1,1,1]}
  %w1 = constant random(2) : f32[6,8,1,1]
  %c1 = conv %c0, %w1
  %r1 = relu %c1
  %w2 = constant random(3) : f32[8,6,1,1]
  %c2 = conv %r1, %w2
  %w3 = constant random(4) : f32[6,8,1,1]
  %y = conv %c2, %w3
}
)");
  const std::vector<Tensor> inputs{*randomTensor(Elem::f32_, {1, 3, 5, 5}, 7)};
  const auto expected = reference::run(graph, inputs);
  const Laid net = laid(graph);
  EXPECT_EQ(net.conversions, 0) << net.text;
  expectSame(net, *expected, inputs);
}

TEST(Islands, LeaveGroupsThatShareABlock) {
  Graph graph = parsed(R"(
graph @groups(%x: f32[1,8,5,5]) -> (%y: f32[1,16,5,5]) {
  %w = constant random(1) : f32[16,1,3,3]
  %y = conv %x, %w {pads = [1,1,1,1], group = 8}
}
)");
  EXPECT_THAT(laid(graph).text, Not(HasSubstr("layout"))) << "two results per channel";
}

TEST(Islands, RandomNetworksKeepTheirNumbers) {
  const capabilities::Target target = testing::blocking();
  int blocked = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    testing::Network network = testing::NetworkMaker(seed).make();
    const auto expected = reference::run(network.graph, network.inputs);
    ASSERT_TRUE(expected.isOk()) << expected.status().message();
    const Laid net = laid(network.graph, target);
    blocked += net.text.find(kBlocked) != std::string::npos;
    expectSame(net, *expected, network.inputs);
  }
  EXPECT_GT(blocked, 40);
}

} // namespace
} // namespace candela
