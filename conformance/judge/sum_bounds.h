#pragma once

#include "conformance/judge/primitive_bounds.h"

/// What is right where many floats become one: MATMUL, and REDUCE by sum or product.
namespace candela::conformance::judge {

bool isFloatSum(const program::Instr& instr);

/// Of one such instruction without an epilogue (unsupported with one). With y the sum in f64, b
/// that of magnitudes, K the terms and u the unit of the accumulator (f32; of f64, f64): any order
/// of summation ends within (K + 2) u b of y, and is rounded to the result's type once. Where all
/// terms are whole multiples of a step of which b counts less than 1 / u, no order rounds, and the
/// result is y rounded. NaN and infinities are what they are in every order; a sum that some order
/// takes out of the accumulator's range may be anything.
Result<Expectation> sumBounds(const program::Program& program, std::span<const Tensor> inputs);

/// The same, and the errors of all results together are those of an accumulator that rounds to
/// nearest: for terms of random digits, as errors of few different terms are not independent.
Result<Expectation> sumStatistics(const program::Program& program, std::span<const Tensor> inputs);

/// The oracle's answer and nothing else: for data on which no step of the instruction rounds.
Result<Expectation> exactBounds(const program::Program& program, std::span<const Tensor> inputs);

} // namespace candela::conformance::judge
