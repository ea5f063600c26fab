#include "tests/unit/compiler/differentiate/central_differences.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/judge/slopes.h"
#include "core/compiler/graph/loop.h"
#include "core/compiler/graph/text.h"
#include "core/reference/reference.h"

namespace candela::testing {
namespace {

using namespace conformance;

/// The gradients of the weighted outputs at the inputs; those of other types than f64 are empty.
Result<std::vector<Tensor>> gradientsAt(const graph::Graph& graph,
                                        const graph::Graph& differentiated,
                                        const std::vector<Tensor>& inputs,
                                        const judge::Weights& weights) {
  std::vector<Tensor> all = inputs;
  for (const std::vector<double>& cotangent : judge::cotangentsOf(graph, weights))
    all.push_back(
        Tensor::of(Elem::f64_, differentiated.inputs()[all.size()]->type.shape(), cotangent));
  CDL_ASSIGN(const std::vector<Tensor> results, reference::run(differentiated, all));
  size_t next = graph.outputs().size();
  std::vector<Tensor> gradients;
  for (const Tensor& input : inputs)
    gradients.push_back(input.elem == Elem::f64_ ? results[next++] : Tensor());
  return gradients;
}

struct Along {
  double value = 0;
  double magnitude = 0;
};
Along along(const judge::Direction& direction, const std::vector<Tensor>& gradients) {
  Along sum;
  for (size_t i = 0; i < direction.size(); ++i)
    for (size_t e = 0; e < direction[i].size(); ++e) {
      const double term = direction[i][e] * gradients[i].as<double>()[e];
      sum.value += term;
      sum.magnitude += std::abs(term);
    }
  return sum;
}

} // namespace

Result<std::string> disagreement(const graph::Graph& graph, const graph::Graph& differentiated,
                                 const std::vector<Tensor>& inputs, random::Random& random,
                                 Comparison& comparison) {
  const judge::Weights weights = judge::randomWeights(graph, random);
  CDL_ASSIGN(const std::vector<Tensor> gradients,
             gradientsAt(graph, differentiated, inputs, weights));
  for (const judge::Slope& slope : judge::centralDifferences(graph, inputs, weights, random)) {
    ++comparison.compared;
    if (!slope.isSmooth) continue;
    const Along got = along(slope.direction, gradients);
    comparison.sharp += slope.isSharp(got.magnitude);
    if (!(std::abs(got.value - slope.value) <= slope.bound))
      return fmt::format("gradient {}, central difference {}", got.value, slope.value);
  }
  return std::string();
}

void compareGradients(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                      random::Random& random, Comparison& comparison) {
  graph::Graph differentiated = graph::clone(graph);
  Status status = differentiate::differentiateGraph(differentiated);
  if (status) status = graph::verify(differentiated);
  ASSERT_TRUE(status.isOk()) << status.message() << graph::print(graph).orAbort();
  const auto found = disagreement(graph, differentiated, inputs, random, comparison);
  ASSERT_TRUE(found) << found.status().message() << graph::print(graph).orAbort();
  EXPECT_EQ(*found, "") << graph::print(graph).orAbort();
}

} // namespace candela::testing
