#pragma once

#include "conformance/random/random_ops.h"

/// Slopes by central differences: what gradients are compared with.
namespace candela::conformance::judge {

/// In the space of a graph's inputs: a number for each element of those of f64, none for others.
using Direction = std::vector<std::vector<double>>;
/// A number for each element of each output of f64, none for others.
using Weights = std::vector<std::vector<double>>;

/// The slope of the weighted sum of a graph's outputs along a direction.
struct Slope {
  Direction direction;
  double value = 0;
  /// How far `value` may be off. With D(h) the difference of step h, D(h/2) is off by a third of
  /// D(h) - D(h/2) up to terms of h^4, and by the roundings of two sums, divided by h: the bound is
  /// twice that difference and 256 such roundings.
  double bound = 0;
  double magnitude = 0; ///< of the terms of the sum
  /// False where an edge or a jump lies within the step: value and bound say nothing.
  bool isSmooth = true;

  /// The bound is below 1e-6 of the numbers that it is made of: what a wrong gradient, whose terms
  /// have this magnitude, would not pass.
  bool isSharp(double ofGradient) const {
    return isSmooth && bound <= 1e-6 * (1 + ofGradient + magnitude);
  }
};

/// Along random directions and along single elements. The graph is that of f64, and runs on the
/// oracle. Aborts where it does not run.
std::vector<Slope> centralDifferences(const graph::Graph& graph, std::span<const Tensor> inputs,
                                      const Weights& weights, random::Random& random);

/// What the cotangent inputs of differentiate::differentiateGraph() are for these weights of the
/// outputs, in their order: one for each value that is a float output; of one that is several
/// outputs the weights add up. None where one number is differentiated.
std::vector<std::vector<double>> cotangentsOf(const graph::Graph& graph, const Weights& weights);
/// Whether that is so: the weight of the number is 1 then.
bool isOneNumber(const graph::Graph& graph);
/// Random ones, from -1 to 1; 1 for one number.
Weights randomWeights(const graph::Graph& graph, random::Random& random);

} // namespace candela::conformance::judge
