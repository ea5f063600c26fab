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
/// differences: along each of a few elements of the float inputs, and along random directions.
/// The graph's float values are f64. Reports differences as failures of the test.
///
/// With D(h) the difference of step h, D(h/2) is off by a third of D(h) - D(h/2) up to terms of
/// h^4, and by the roundings of two sums, divided by h. The bound is twice that difference and 256
/// such roundings. Where an edge lies within the step nothing is compared.
void compareGradients(const graph::Graph& graph, const std::vector<Tensor>& inputs,
                      conformance::random::Random& random, Comparison& comparison);

} // namespace candela::testing
