#include "core/compiler/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace candela::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorType f32(const Shape& shape) { return TensorType(Elem::f32_, shape); }

Value* add(Graph& graph, Value* a, Value* b, Provenance provenance = {}) {
  auto node = graph.addNode(OpKind::Add, {a, b}, {}, std::move(provenance));
  EXPECT_TRUE(node) << node.status().message();
  return (*node)->result();
}

TEST(Graph, AddNodeInfersAndLeavesNothingBehindOnFailure) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2, 1}));
  Value* y = graph.addInput("y", f32({3}));
  EXPECT_EQ(add(graph, x, y)->type, f32({2, 3}));
  Value* bad = graph.addInput("bad", f32({7}));
  const auto node = graph.addNode(OpKind::Add, {y, bad}, {}, {"Add_3"});
  EXPECT_EQ(node.status().message(), "add 'Add_3': shapes 3 and 7 do not broadcast (add_c1)");
  EXPECT_EQ(node.status().code(), Code::bad_model);
  EXPECT_EQ(graph.nodeCount(), 1u);
  EXPECT_EQ(y->users().size(), 1u);
  EXPECT_TRUE(verify(graph));
  EXPECT_EQ(graph.addNode(OpKind::Add, {x, x}, {}, {}, nullptr, 2).status().message(),
            "add: 2 results, expected 1 to 1");
}

TEST(Graph, NamesStayUnique) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  Value* a = add(graph, x, x, {"Conv_0", "Relu_1"});
  Value* b = add(graph, x, a, {"Conv_0"});
  EXPECT_EQ(a->name, "Conv_0");
  EXPECT_EQ(b->name, "Conv_0_1");
  graph.rename(b, "x");
  EXPECT_EQ(b->name, "x_1");
  EXPECT_EQ(graph.find("x_1"), b);
  EXPECT_EQ(graph.find("Conv_0_1"), nullptr);
  EXPECT_EQ(graph.uniqueName(""), "value");
}

TEST(Graph, OutputsFollowEveryChange) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  std::vector<Value*> values{x};
  for (int i = 0; i < 6; ++i) values.push_back(add(graph, values.back(), x));
  for (const size_t i : {6u, 1u, 6u, 3u, 1u}) graph.addOutput(values[i], "out");
  const auto expectKnown = [&] {
    for (const Value* value : values)
      EXPECT_EQ(graph.isOutput(value), std::ranges::count(graph.outputs(), value) > 0)
          << value->name;
  };
  expectKnown();
  graph.replaceAllUses(values[6], values[3]);
  EXPECT_THAT(graph.outputs(), ElementsAre(values[3], values[1], values[3], values[3], values[1]));
  expectKnown();
  graph.replaceAllUses(values[1], values[6]); // what is no output any more may become one again
  graph.replaceAllUses(values[3], values[1]);
  EXPECT_THAT(graph.outputs(), ElementsAre(values[1], values[6], values[1], values[1], values[6]));
  expectKnown();
  Graph moved = std::move(graph);
  EXPECT_TRUE(moved.isOutput(values[1]));
  EXPECT_FALSE(moved.isOutput(values[3]));
}

TEST(Graph, UsesFollowEveryChange) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  Value* a = add(graph, x, x);
  Value* b = add(graph, a, a);
  graph.addOutput(a, "out");
  EXPECT_EQ(a->users().size(), 2u);
  graph.replaceAllUses(a, x);
  EXPECT_EQ(a->users().size(), 0u);
  EXPECT_EQ(x->users().size(), 4u);
  EXPECT_EQ(graph.outputs()[0], x);
  graph.addOutput(b, "second");
  EXPECT_EQ(graph.eraseDead(), 1);
  EXPECT_EQ(graph.find("add"), nullptr);
  EXPECT_TRUE(verify(graph));
  graph.replaceAllUses(b, x);
  EXPECT_EQ(graph.eraseDead(), 1);
  EXPECT_EQ(graph.nodeCount(), 0u);
}

TEST(Graph, EraseDeadTakesWholeChains) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  graph.addOutput(x, "x");
  Value* last = x;
  for (int i = 0; i < 100; ++i) last = add(graph, last, x);
  EXPECT_EQ(graph.eraseDead(), 100);
  EXPECT_TRUE(x->users().empty());
}

TEST(Graph, InsertsBeforeANode) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  Value* a = add(graph, x, x);
  const auto relu = graph.addNode(OpKind::Relu, {x}, {}, {}, a->producer);
  ASSERT_TRUE(relu);
  a->producer->setOperand(0, (*relu)->result());
  EXPECT_TRUE(verify(graph));
  EXPECT_EQ(graph.nodes().front().get(), *relu);
}

TEST(Graph, VerifyFindsUseBeforeDefinitionAndWrongTypes) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  Value* a = add(graph, x, x);
  Value* b = add(graph, a, x);
  a->producer->setOperand(0, b);
  EXPECT_THAT(verify(graph).message(),
              HasSubstr("add 'add': operand 'add_1' is used before it is defined"));
  a->producer->setOperand(0, x);
  b->type = f32({3});
  EXPECT_EQ(verify(graph).message(), "add 'add_1': result 'add_1' is f32[3] but should be f32[2]");
}

TEST(Graph, MovesWithItsValues) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2}));
  graph.addOutput(add(graph, x, x), "y");
  Graph moved = std::move(graph);
  EXPECT_TRUE(verify(moved));
  EXPECT_EQ(moved.eraseDead(), 0);
}

TEST(Graph, AttributesComeFromTheRecordWhenAbsent) {
  Graph graph;
  Value* x = graph.addInput("x", f32({2, 2}));
  const Node* gemm = graph.addNode(OpKind::Gemm, {x, x}, {{"transA", int64_t(1)}}).value();
  EXPECT_EQ(gemm->floatAttr("alpha"), 1.0);
  EXPECT_EQ(gemm->intAttr("transA"), 1);
  EXPECT_EQ(gemm->intAttr("transB"), 0);
  EXPECT_FALSE(gemm->hasAttr("transB"));
  const Node* softmax = graph.addNode(OpKind::Softmax, {x}).value();
  EXPECT_EQ(softmax->intAttr("axis"), -1);
  const Node* pad =
      graph.addNode(OpKind::Pad, {x}, {{"lo", Shape{0, 0}}, {"hi", Shape{1, 1}}}).value();
  EXPECT_EQ(pad->stringAttr("mode"), "constant");
  EXPECT_THAT(pad->intsAttr("hi"), ElementsAre(1, 1));
  EXPECT_DEATH(softmax->intAttr("nothing"), "attribute nothing is absent");
}

TEST(Provenance, KeepsTheOrderOfFirstMention) {
  Provenance names{"a", "b"};
  mergeProvenance(names, {"c", "a", "d"});
  EXPECT_THAT(names, ElementsAre("a", "b", "c", "d"));
}

TEST(OpTable, KindsAndNamesAgree) {
  for (const OpInfo& info : allOps()) {
    EXPECT_EQ(&opInfo(info.kind), &info);
    EXPECT_EQ(parseOp(info.name), info.kind);
  }
  EXPECT_EQ(parseOp("constant"), OpKind::Constant);
  EXPECT_EQ(parseOp("convolve"), std::nullopt);
}

TEST(BroadcastShapes, FollowsNumPy) {
  EXPECT_EQ(broadcastShapes({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcastShapes({4, 1, 3}, {2, 1}), (Shape{4, 2, 3}));
  EXPECT_EQ(broadcastShapes({0}, {1}), (Shape{0}));
  EXPECT_EQ(broadcastShapes({2}, {3}), std::nullopt);
  EXPECT_EQ(broadcastShapes({0}, {2}), std::nullopt);
}

} // namespace
} // namespace candela::graph
