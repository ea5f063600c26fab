// Intervals of results hold what numbers inside of their operands' intervals give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "conformance/judge/bounds.h"
#include "core/compiler/driver/pipeline.h"
#include "core/compiler/graph/text.h"
#include "core/support/float_bits.h"

namespace candela::conformance {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>(Elem::f32_, {static_cast<int64_t>(values.size())}, values);
}
judge::Interval between(const std::vector<float>& low, const std::vector<float>& high) {
  return {reference::fromTensor(floats(low)).orAbort(),
          reference::fromTensor(floats(high)).orAbort()};
}
/// The interval of the one output of a Graph.
judge::Interval boundsOf(const std::string& text, const judge::Interval& x) {
  Diagnostics diagnostics;
  const graph::Graph graph = graph::parse(text, "bounds_test", diagnostics).orAbort();
  return judge::analyze(graph, std::span(&x, 1), driver::hostTarget()).orAbort().at(0);
}

TEST(Bounds, AQuotientByAnIntervalThatHoldsAZeroMayBeEitherInfinity) {
  const std::string text =
      "graph @g(%x: f32[4]) -> (%y: f32[4]) {\n  %y = reciprocal %x : f32[4]\n}\n";
  const judge::Interval y = boundsOf(text, between({-0.0f, -2, -1e-3f, 1}, {2, 0.0f, 1e-3f, 4}));
  for (const std::vector<float>& of : {std::vector<float>{0.0f, -2, 0.0f, 1},
                                       {-0.0f, 0.0f, -0.0f, 4},
                                       {2, -0.0f, 1e-6f, 2},
                                       {1e-6f, -1e-6f, -1e-6f, 3}}) {
    std::vector<float> got;
    for (const float x : of) got.push_back(1 / x);
    EXPECT_EQ(judge::outside(y, floats(got)), "");
  }
  EXPECT_THAT(judge::outside(y, floats({1, -1, 1, 0.2f})), testing::HasSubstr("element 3 is 0.2"));
}

TEST(Bounds, BitsOfANanAreNobodysPromise) {
  const std::string text =
      "graph @g(%x: f32[2]) -> (%y: i32[2]) {\n  %y = bitcast %x {to = i32} : i32[2]\n}\n";
  const judge::Interval y = boundsOf(text, between({kNan, 1}, {kNan, 1}));
  EXPECT_TRUE(y.isWild(0));
  EXPECT_TRUE(y.isPoint(1));
  EXPECT_FALSE(boundsOf(text, between({kInfinity, 1}, {kInfinity, 1})).isWild(0));
}

/// Whether so many are a right answer for `text`, a Graph without inputs.
std::string outsideOf(const std::string& text, double number) {
  Diagnostics diagnostics;
  const graph::Graph graph = graph::parse(text, "bounds_test", diagnostics).orAbort();
  const judge::Interval y = judge::analyze(graph, {}, driver::hostTarget()).orAbort().at(0);
  Tensor got = Tensor::zeros(Elem::f16_, {1}).orAbort();
  storeElement(Elem::f16_, got.bytes.mutableData(), 0, fromReal(Elem::f16_, number));
  return judge::outside(y, got);
}

TEST(Bounds, AHalfOverflowsWhereItIsLookedAtAndNeedNotInBetween) {
  const std::string power = "  %x = constant [0.02592] : f16[1]\n  %e = constant [-5.0] : f16[1]\n"
                            "  %p = pow %x, %e\n";
  const std::string end = "graph @g() -> (%p: f16[1]) {\n" + power + "}\n";
  EXPECT_EQ(outsideOf(end, kInfinity), "");
  EXPECT_NE(outsideOf(end, 65504), "");
  const std::string root = "graph @g() -> (%y: f16[1]) {\n" + power + "  %y = sqrt %p\n}\n";
  EXPECT_EQ(outsideOf(root, kInfinity), "");
  EXPECT_EQ(outsideOf(root, 9240), "");
  EXPECT_NE(outsideOf(root, 200), "");
  EXPECT_NE(outsideOf(root, kNan), "");
  // What comes apart is narrowed by a conversion at its end.
  const std::string whole = "graph @g() -> (%y: f16[1]) {\n  %x = constant [20.0] : f16[1]\n"
                            "  %c = cosh %x\n  %y = sqrt %c\n}\n";
  EXPECT_EQ(outsideOf(whole, kInfinity), "");
  EXPECT_EQ(outsideOf(whole, 15576), "");
  EXPECT_NE(outsideOf(whole, 200), "");
}

} // namespace
} // namespace candela::conformance
