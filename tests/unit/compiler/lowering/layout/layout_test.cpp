// Constants are packed while compiling: the same numbers, and nothing grows by more than 4 KB.
#include "core/compiler/lowering/layout/layout.h"

#include <gmock/gmock.h>

#include "tests/unit/compiler/capabilities/tables.h"
#include "tests/unit/compiler/graph/passes/random_graph.h"

namespace candela {
namespace {

using graph::Graph;
using ::testing::HasSubstr;
using ::testing::Not;

capabilities::Target anyTarget() {
  capabilities::Table table = capabilities::Table::all();
  return *table.target();
}

Graph parsed(const std::string& text) {
  Diagnostics diagnostics;
  auto graph = graph::parse(text, "test.cdl", diagnostics);
  EXPECT_TRUE(graph.isOk()) << diagnostics.status().message();
  return std::move(*graph);
}

int pack(Graph& graph) {
  const auto count = lowering::layout::chooseLayouts(graph, anyTarget());
  EXPECT_TRUE(count.isOk()) << count.status().message();
  const Status status = graph::verify(graph);
  EXPECT_TRUE(status.isOk()) << status.message() << testing::textOf(graph);
  return count ? *count : -1;
}

TEST(Layout, PacksMovedConstantsWithTheSameNumbers) {
  Graph graph = parsed(R"(
graph @pack(%x: f32[3,4], %m: i8[4,6]) -> (%y: f32[3,4], %z: i8[4,6]) {
  %w = constant random(3) : f32[4,3]
  %t = affine %w {offset = 0, dims = [3,4], strides = [1,3]} loc("Transpose_0")
  %flipped = affine %t {offset = 11, dims = [12], strides = [-1]}
  %back = reshape %flipped {shape = [3,4]}
  %y = add %x, %back
  %a = constant random(4) : i8[2,3]
  %b = constant random(5) : i8[2,3]
  %p = place %a, %b {dims = [4,6], offsets = [0,0,1,1], steps = [2,2], value = 253}
  %z = max %m, %p
}
)");
  std::vector<Tensor> inputs{*randomTensor(Elem::f32_, {3, 4}, 1),
                             *randomTensor(Elem::i8_, {4, 6}, 2)};
  const auto expected = reference::run(graph, inputs);
  ASSERT_TRUE(expected.isOk()) << expected.status().message();
  EXPECT_EQ(pack(graph), 4);
  const std::string text = testing::textOf(graph);
  EXPECT_THAT(text, Not(HasSubstr("affine")));
  EXPECT_THAT(text, Not(HasSubstr("reshape")));
  EXPECT_THAT(text, Not(HasSubstr("place")));
  EXPECT_THAT(text, HasSubstr(R"t(loc("Transpose_0"))t"));
  const auto got = reference::run(graph, inputs);
  ASSERT_TRUE(got.isOk()) << got.status().message();
  testing::expectSame(*expected, *got, 0);
}

TEST(Layout, KeepsSplatsShort) {
  Graph graph = parsed(R"(
graph @splat(%x: f32[100000]) -> (%y: f32[100000]) {
  %c = constant splat(2.0) : f32[1]
  %wide = affine %c {offset = 0, dims = [100000], strides = [0]}
  %y = mul %x, %wide
}
)");
  EXPECT_EQ(pack(graph), 1);
  EXPECT_THAT(testing::textOf(graph), HasSubstr("constant splat(2.0) : f32[100000]"));
}

TEST(Layout, LeavesWhatWouldGrow) {
  const char* text = R"(
graph @grow(%x: f32[{0},4]) -> (%y: f32[{0},4]) {{
  %c = constant [1.0, 2.0, 3.0, 4.0] : f32[4]
  %rows = affine %c {{offset = 0, dims = [{0},4], strides = [0,1]}}
  %y = mul %x, %rows
}}
)";
  Graph fits = parsed(fmt::format(fmt::runtime(text), 257)),
        grows = parsed(fmt::format(fmt::runtime(text), 258));
  EXPECT_EQ(pack(fits), 1) << "16 bytes and 4096 more";
  EXPECT_EQ(pack(grows), 0);
}

TEST(Layout, LeavesWhatIsNotConstantAndOutputs) {
  Graph graph = parsed(R"(
graph @keep(%x: f32[4]) -> (%y: f32[2,2], %z: f32[2]) {
  %y = reshape %x {shape = [2,2]}
  %c = constant [1.0, 2.0] : f32[2]
  %z = affine %c {offset = 1, dims = [2], strides = [-1]}
}
)");
  EXPECT_EQ(pack(graph), 0);
}

} // namespace
} // namespace candela
