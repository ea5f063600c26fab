// What follows a product in one pass: bias, scale, residual, table.
#pragma once

#include "lowering.hpp"

namespace npu_sim {

/// The expression of a CONV2D or MATMUL as the device does it: clamp(rne((acc + start + bias) * mult / 2^shift) + zero).
struct Epilogue {
  std::vector<int32_t> bias, mult, shift; ///< by channel
  std::optional<Operand> start;           ///< what the sums begin with, where that is no constant
  int32_t zero = 0, low = 0, high = 0;
  bool wide = false;                      ///< the sums have 40 bits
  npu::Type type = npu::Type::kI8;
};

/// The type of the sums of a product: CDL_I64 of activations of 16 bits, of which the device has 40 bits.
uint8_t sumsOf(const cdl::Op& op);

/// `channelDim`: of the result. Throws Refusal for an expression that is another one.
Epilogue epilogueOf(Lowering& l, const cdl::Op& op, int channelDim);

/// The expression of a product whose result has i32: step by step on what the product left in the scratchpad.
void lowerSteps(Lowering& l, const cdl::Op& op);

/// What the two-operand RESCALE behind a product adds to it.
struct Residual {
  Operand from; ///< of the dims of the result
  Scale scale;  ///< a is the product, b the residual
};

/// The instruction `next` as part of `op`, whose result it reads alone; nullopt where it is none, or another one.
std::optional<Residual> residualOf(Lowering& l, const cdl::Op& op, uint32_t next, const Epilogue& epilogue);

} // namespace npu_sim
