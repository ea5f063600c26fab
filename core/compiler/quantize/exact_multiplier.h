#pragma once

#include <optional>

/// Steps of weights that make rescaling exact, whoever computes it.
///
/// A sum of integers becomes steps of the result by a factor, the multiplier: step of the input
/// times step of the weights over step of the result. RESCALE rounds the product once. ONNX Runtime
/// and others multiply in f32 and round that, so they round twice, and now and then to the other
/// side. f32 holds every product below 256 whose multiplier has no more than 16 bits behind the
/// point, and of larger ones the result is a limit of a byte: with such multipliers nothing is
/// rounded twice, and all runtimes give the same integers.
namespace candela::quantize {

/// Of a product's operand and of its result, as files have them.
struct StepsAround {
  float input = 1, result = 1;
};

/// The least step within [least, most] that makes the multiplier such a number, both where f32 is
/// rounded after each operation and where it is rounded at the end. nullopt where there is none.
std::optional<float> stepOfExactMultiplier(double least, double most, const StepsAround& around);

} // namespace candela::quantize
