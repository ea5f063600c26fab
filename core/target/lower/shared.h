#pragma once

#include "core/graph/window.h"
#include "core/target/lower/lower.h"

/// What several decompositions use.
namespace candela::target {

/// All windows of x[n,c,spatial..] side by side: [n*c, taps, places], places of the spatial dims
/// `out`. What lies outside of x is `bits`.
Lowering::Value unfold(Lowering& l, Lowering::Value x, const graph::Window& window, const Shape& out, uint64_t bits);

/// fn over these dims of x, which stay as 1.
Lowering::Value reduceDims(Lowering& l, Lowering::Value x, const std::vector<bool>& reduced, const char* fn);
/// Their mean. Integers of less than 32 bits sum in i32; the quotient truncates. Halves go by way
/// of f32 where the target can; else f16 is scaled in two halves so that a sum near the mean's own
/// size does not overflow.
Lowering::Value meanDims(Lowering& l, Lowering::Value x, const std::vector<bool>& reduced);

/// The bits of an integer in a type, zero-extended.
uint64_t wholeBits(Elem elem, int64_t value);

/// The bits of the lowest value of a type: -inf for floats.
uint64_t lowestBits(Elem elem);

/// batch_matmul of [batch.., m, k] and [batch.., k, n], whose batch dims broadcast; of integers with zero points.
Lowering::Value matmulAnyRank(Lowering& l, Lowering::Value a, Lowering::Value b, Elem to,
                              Lowering::Value aZero = nullptr, Lowering::Value bZero = nullptr);

/// A constant i32 tensor.
Lowering::Value indexConstant(Lowering& l, const std::vector<int32_t>& values, Shape dims);

} // namespace candela::target
