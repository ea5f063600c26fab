// Loops against central differences: recurrences, directions, what is captured, loops in loops.
#include <gtest/gtest.h>

#include "core/compiler/graph/text.h"
#include "tests/unit/compiler/differentiate/central_differences.h"

namespace candela {
namespace {

using conformance::random::Random;
using testing::Comparison;

graph::Graph parsed(const std::string& text) {
  Diagnostics diagnostics;
  Result<graph::Graph> graph = graph::parse(text, "loop.cdl", diagnostics);
  EXPECT_TRUE(graph.isOk()) << diagnostics.status().message();
  return std::move(graph).orAbort();
}

std::vector<Tensor> randomInputs(const graph::Graph& graph, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const graph::Value* input : graph.inputs())
    inputs.push_back(randomTensor(input->type.elem, input->type.shape(), seed++).orAbort());
  return inputs;
}

/// A recurrence with a counter, which is an integer; results in both directions.
std::string recurrence(const std::string& backward) {
  return R"(graph @recurrence(%h0: f64[3], %n0: i64[], %xs: f64[5,3], %zs: f64[5,3], %w: f64[3,3], %unused: f64[2]) ->
    (%h: f64[3], %ys: f64[5,3], %ns: i64[5]) {
  %h, %n, %ys, %ns = loop %h0, %n0, %xs, %zs, %w {backward = )" +
         backward + R"(, carried = 2, scanned = 2, trips = 5} : f64[3], i64[], f64[5,3], i64[5]
    body(%h: f64[3], %n: i64[], %x: f64[3], %z: f64[3], %w: f64[3,3]) -> (%next: f64[3], %more: i64[], %y: f64[3], %n: i64[]) {
      %one = constant [1] : i64[]
      %more = add %n, %one : i64[]
      %wh = matmul %h, %w : f64[3]
      %sum = add %wh, %x : f64[3]
      %next = tanh %sum : f64[3]
      %y = mul %next, %z : f64[3]
    }
}
)";
}

constexpr const char* kNested =
    R"(graph @nested(%h0: f64[2], %xs: f64[3,4,2], %w: f64[2]) -> (%h: f64[2]) {
  %h = loop %h0, %xs, %w {carried = 1, scanned = 1, trips = 3} : f64[2]
    body(%h: f64[2], %x: f64[4,2], %w: f64[2]) -> (%last: f64[2]) {
      %last = loop %h, %x, %w {carried = 1, scanned = 1, trips = 4} : f64[2]
        body(%g: f64[2], %e: f64[2], %v: f64[2]) -> (%next: f64[2]) {
          %vg = mul %g, %v : f64[2]
          %sum = add %vg, %e : f64[2]
          %next = sigmoid %sum : f64[2]
        }
    }
}
)";

void compare(const graph::Graph& graph, uint64_t seeds) {
  Comparison comparison;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    compareGradients(graph, randomInputs(graph, 100 * seed), random, comparison);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GE(comparison.sharp * 4, comparison.compared * 3);
}

TEST(LoopGradient, AgreesWithCentralDifferences) {
  for (const char* backward : {"[0, 0, 0, 0]", "[1, 0, 0, 1]", "[0, 1, 1, 0]", "[1, 1, 1, 1]"}) {
    SCOPED_TRACE(backward);
    compare(parsed(recurrence(backward)), 10);
  }
}

TEST(LoopGradient, OfALoopInALoop) { compare(parsed(kNested), 10); }

TEST(LoopGradient, HasAGradient) {
  graph::Graph once = parsed(recurrence("[1, 0, 0, 1]"));
  const Status status = differentiate::differentiateGraph(once);
  ASSERT_TRUE(status.isOk()) << status.message();
  compare(once, 4);
}

} // namespace
} // namespace candela
