// Kernels that compute each element of a result from one element of each operand: a loop nest over
// strided views with the innermost loop in vectors.
#pragma once

#include "arithmetic.hpp"

namespace cpu {

/// What is computed of one element of each input (a broadcast one is a vector of equal lanes).
using Element = std::function<Typed(Builder&, const std::vector<Typed>&)>;

/// Computes y[i] = element(inputs[i]...). All have the dims of y; a broadcast dim has stride 0.
/// `what` names `element` in full.
void map(Lowering& lowering, const std::string& what, const std::vector<Operand>& inputs,
         const Operand& y, const Element& element);

/// Copies x to y, of equal dims; storage moves as it is, 4-bit types excepted.
void copy(Lowering& lowering, const Operand& x, const Operand& y);
/// Fills y with elements of these bits.
void fill(Lowering& lowering, const Operand& y, uint64_t bits);

/// A view that this backend lays out itself: dims and strides in elements.
Operand view(uint8_t elem, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
             Arg at);
/// The same element type and place, other dims and strides.
Operand restrided(const Operand& base, const std::vector<int64_t>& dims,
                  const std::vector<int64_t>& strides, int64_t offset = 0);

} // namespace cpu
