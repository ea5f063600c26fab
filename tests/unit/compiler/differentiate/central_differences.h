#pragma once

#include "conformance/random/random_ops.h"
#include "core/compiler/differentiate/differentiate.h"

/// Gradients against central differences, both computed by the oracle in f64.
namespace candela::testing {

/// What some comparisons came to.
struct Comparison {
  int compared = 0; ///< slopes
  /// Of them, those whose bound is below 1e-6 of the numbers that they are made of: what a wrong
  /// gradient would not pass.
  int sharp = 0;
};

/// Compares the gradient of a random weighted sum of the graph's float outputs with its central
/// differences (conformance/judge/slopes.h). The graph's float values are f64. Reports differences
/// as failures of the test.
void compareGradients(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                      conformance::random::Random& random, Comparison& comparison);

/// The same of a graph that was differentiated already: what does not agree; empty where all does.
/// Failure: it does not run.
Result<std::string> disagreement(const graph::Graph& graph, const graph::Graph& differentiated,
                                 const std::vector<Tensor>& inputs,
                                 conformance::random::Random& random, Comparison& comparison);

} // namespace candela::testing
