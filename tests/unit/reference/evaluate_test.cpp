#include "tests/unit/reference/evaluate_op.h"

#include "core/compiler/graph/text.h"

namespace candela::reference {
namespace {

graph::Graph parse(const std::string& text) {
  Diagnostics diagnostics;
  auto graph = graph::parse(text, "test.cdl", diagnostics);
  EXPECT_TRUE(graph) << graph.status().message();
  return graph ? std::move(graph).value() : graph::Graph();
}

TEST(Tensors, EveryPatternSurvives) {
  for (const Elem elem : {Elem::f16_, Elem::bf16_, Elem::f8e4m3_, Elem::f8e5m2_, Elem::i8_,
                          Elem::u8_, Elem::i16_, Elem::u16_, Elem::i4_, Elem::u4_, Elem::i2_,
                          Elem::u2_, Elem::f4e2m1_, Elem::f8e4m3fnuz_, Elem::f8e8m0_}) {
    const int64_t count = int64_t(1) << elemBits(elem);
    const Tensor all = Payload::iota(elem, count, 0, 1).materialize({count}).value();
    const Tensor back = toTensor(fromTensor(all).value()).value();
    EXPECT_EQ(std::memcmp(all.bytes.data(), back.bytes.data(), all.sizeBytes()), 0)
        << elemName(elem);
  }
}

TEST(Run, KeepsTheOrderOfOutputs) {
  const graph::Graph graph = parse(R"(graph @g(%x: f32[2]) -> (%z: f32[2], %x: f32[2], %k: i8[3]) {
    %k = constant iota(-1, 1) : i8[3]
    %one = constant splat(1.0) : f32[2]
    %y = add %x, %one
    %z = mul %y, %y
    %unused = neg %y
  })");
  const std::vector<Tensor> inputs = {f32({2}, {2, 3})};
  const auto outputs = run(graph, inputs);
  ASSERT_TRUE(outputs) << outputs.status().message();
  EXPECT_THAT(numbers((*outputs)[0]), are({9, 16}));
  EXPECT_THAT(numbers((*outputs)[1]), are({2, 3}));
  EXPECT_THAT(numbers((*outputs)[2]), are({-1, 0, 1}));
}

TEST(Run, RefusesInputsThatDoNotFit) {
  const graph::Graph graph = parse("graph @g(%x: f32[2]) -> (%x: f32[2]) {}");
  EXPECT_EQ(run(graph, {}).status().message(), "graph 'g' has 1 inputs, given 0");
  const std::vector<Tensor> inputs = {f32({3}, {1, 2, 3})};
  EXPECT_EQ(run(graph, inputs).status().message(), "input 'x' is f32[3], expected f32[2]");
}

TEST(Run, SaysWhatIsTooLarge) {
  const graph::Graph graph = parse(R"(graph @g(%x: f32[]) -> (%y: f32[1048576,1048576]) {
    %y = expand %x {shape = [1048576, 1048576]} loc("Expand_3")
  })");
  const std::vector<Tensor> inputs = {f32({}, {1})};
  EXPECT_EQ(run(graph, inputs).status().message(),
            "expand 'Expand_3': a tensor of shape 1048576x1048576 is above the "
            "oracle's limit of 1073741824 elements");
}

TEST(Evaluate, RefusesOperandsThatAreNotTheNodes) {
  graph::Graph graph;
  graph::Value* x = graph.addInput("x", graph::TensorType(Elem::f32_, {2}));
  const graph::Node* node = graph.addNode(OpKind::Add, {x, x}, {}, {"Add_0"}).value();
  const std::vector<Tensor> one = {f32({2}, {1, 2})}, wrong = {one[0], i32({2}, {1, 2})};
  EXPECT_EQ(evaluate(*node, one).status().message(), "add 'Add_0': operand 1 is missing");
  EXPECT_EQ(evaluate(*node, wrong).status().message(),
            "add 'Add_0': operand 1 is i32 2, expected f32[2]");
}

TEST(Evaluate, ResultsAreRoundedToTheirType) {
  EXPECT_THAT(op(OpKind::Exp, {tensor(Elem::f16_, {1}, {1})}), are({2.71875}));
}

} // namespace
} // namespace candela::reference
