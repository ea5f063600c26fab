// What the gradients of a graph are of, and what is refused. What each rule builds is told by
// tests/ir/differentiate/, whether it is right by gradients_test.
#include "core/compiler/differentiate/differentiate.h"

#include <gmock/gmock.h>

#include "core/compiler/graph/text.h"
#include "core/reference/reference.h"

namespace candela {
namespace {

using differentiate::Cotangent, differentiate::Gradient;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

graph::Graph parsed(const std::string& text) {
  Diagnostics diagnostics;
  Result<graph::Graph> graph = graph::parse(text, "graph.cdl", diagnostics);
  EXPECT_TRUE(graph.isOk()) << diagnostics.status().message();
  return std::move(graph).orAbort();
}

/// What each of `values` is, on these inputs.
std::vector<std::vector<float>> computed(graph::Graph& graph,
                                         const std::vector<Gradient>& gradients,
                                         const std::vector<Tensor>& inputs) {
  const size_t before = graph.outputs().size();
  for (const Gradient& gradient : gradients)
    graph.addOutput(gradient.value, graph.uniqueName("gradient"));
  const std::vector<Tensor> all = reference::run(graph, inputs).orAbort();
  std::vector<std::vector<float>> out;
  for (size_t i = before; i < all.size(); ++i)
    out.emplace_back(all[i].as<float>(), all[i].as<float>() + all[i].count());
  return out;
}

TEST(Differentiate, TakesInputsConstantsAndResults) {
  graph::Graph graph = parsed(R"(graph @loss(%x: f32[2], %apart: f32[1]) -> (%y: f32[]) {
  %w = constant [3.0, 5.0] : f32[2]
  %h = mul %x, %w : f32[2]
  %squares = mul %h, %h : f32[2]
  %y = reduce_sum %squares {axes = [0], keepdims = 0} : f32[]
}
)");
  const Cotangent of{graph.outputs()[0], nullptr};
  const std::vector<graph::Value*> wrt{graph.find("x"), graph.find("w"), graph.find("h"),
                                       graph.find("apart")};
  const auto gradients = differentiate::differentiate(graph, std::span(&of, 1), wrt).orAbort();
  EXPECT_TRUE(graph::verify(graph).isOk());
  std::vector<bool> reached;
  for (const Gradient& gradient : gradients) reached.push_back(gradient.isReached);
  EXPECT_THAT(reached, ElementsAre(true, true, true, false));
  const auto numbers = computed(
      graph, gradients,
      {Tensor::of<float>(Elem::f32_, {2}, {1, 2}), Tensor::of<float>(Elem::f32_, {1}, {7})});
  EXPECT_THAT(numbers, ElementsAre(ElementsAre(18, 100), ElementsAre(6, 40), ElementsAre(6, 20),
                                   ElementsAre(0)));
}

TEST(Differentiate, WeighsSeveralValues) {
  graph::Graph graph =
      parsed(R"(graph @two(%x: f32[2], %wy: f32[2], %wz: f32[2]) -> (%y: f32[2], %z: f32[2]) {
  %y = neg %x : f32[2]
  %z = add %x, %y : f32[2]
}
)");
  const Cotangent of[] = {{graph.find("y"), graph.find("wy")}, {graph.find("z"), graph.find("wz")}};
  const std::vector<graph::Value*> wrt{graph.find("x")};
  const auto gradients = differentiate::differentiate(graph, of, wrt).orAbort();
  const Tensor any = Tensor::of<float>(Elem::f32_, {2}, {1, 1});
  const auto numbers =
      computed(graph, gradients, {any, Tensor::of<float>(Elem::f32_, {2}, {2, 3}), any});
  EXPECT_THAT(numbers, ElementsAre(ElementsAre(-2, -3)));
}

TEST(Differentiate, RefusesWhatHasNoGradient) {
  graph::Graph graph = parsed(R"(graph @no(%i: i32[2], %x: f32[2], %w: f32[3]) -> (%y: f32[2]) {
  %y = neg %x : f32[2]
}
)");
  const std::vector<graph::Value*> integers{graph.find("i")}, floats{graph.find("x")};
  const Cotangent many{graph.find("y"), nullptr}, other{graph.find("y"), graph.find("w")},
      integer{graph.find("i"), nullptr};
  const auto messageOf = [&](const Cotangent& of, const std::vector<graph::Value*>& wrt) {
    return differentiate::differentiate(graph, std::span(&of, 1), wrt).status().message();
  };
  EXPECT_THAT(messageOf(many, integers), HasSubstr("'y' is f32[2]: without a cotangent"));
  EXPECT_THAT(messageOf(other, floats),
              HasSubstr("the cotangent of 'y' is f32[3], expected f32[2]"));
  EXPECT_THAT(messageOf(integer, floats), HasSubstr("'i' is i32[2]: only floats have a gradient"));
}

/// The switch over rules.inc does not compile without a record; this one finds a reason that says
/// nothing, and a rule of an op that gives no float at all.
TEST(Rules, AreThereOrSayWhyNot) {
  int rules = 0;
  for (const graph::OpInfo& info : graph::allOps()) {
    const std::string_view reason = differentiate::reasonWithout(info.kind);
    rules += reason.empty();
    if (reason.empty()) {
      const bool givesFloats = std::ranges::any_of(
          info.results, [](const graph::OperandInfo& y) { return y.accepts(Elem::f32_); });
      EXPECT_TRUE(givesFloats) << info.name << " gives no floats and needs no rule";
    } else {
      EXPECT_GT(reason.size(), 15u) << info.name;
    }
  }
  EXPECT_GE(rules, 65);
}

} // namespace
} // namespace candela
