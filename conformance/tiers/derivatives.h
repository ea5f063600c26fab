#pragma once

#include "conformance/judge/slopes.h"

/// Derivatives as tables of them say: by nothing that differentiates.
namespace candela::conformance::tiers {

/// By each input of a graph of one node of f32, of the outputs' weighted sum: a number for each
/// element; none for inputs and ops whose derivative is not short.
std::vector<std::vector<double>> derivativesOf(const graph::Graph& node,
                                               std::span<const Tensor> inputs,
                                               const judge::Weights& weights);

} // namespace candela::conformance::tiers
