#pragma once

#include "conformance/judge/primitive_bounds.h"

/// What is right for products of floats with scales.
namespace candela::conformance::judge {

/// Whether the instruction is SCALED_MATMUL of floats that nothing rounds before the product.
bool isScaledFloatProduct(const program::Instr& instr);

/// Of one such instruction without an epilogue or loops (unsupported with them). With y the sum of
/// a * a_scale * (w - w_zero) * w_scale in f64, b that of |a| * |a_scale| * (|w| + |w_zero|) *
/// |w_scale|, K the terms and u the unit of f32: a term is rounded by its difference and by three
/// products at most, and any order of summation, whatever stands outside of the sums of blocks,
/// ends within (K + 6) u b of y, and is rounded to the result's type once. A sum that some order
/// takes out of the range of f32 may be anything.
Result<Expectation> scaledBounds(const program::Program& program, std::span<const Tensor> inputs);

} // namespace candela::conformance::judge
