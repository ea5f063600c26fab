// The expression of a product. The device has one form of epilogue, in integers alone: for each
// channel a bias, then a multiplier and a shift in the place of a real scale (Jacob et al.,
// "Quantization and training of neural networks for efficient integer-arithmetic-only inference",
// CVPR 2018). An expression is read step by step as that form; one that is another form is refused,
// and one that ends in sums is done by the vector engine. Of floats the form is a scale, a bias, a
// residual and bounds, all in f32.
#pragma once

#include "lowering.hpp"

#include <limits>

namespace npu_sim {

/// The expression of a product of bf16 as the device does it: clamp(acc * scale + bias + residual),
/// then rounded to the type of the result.
struct FloatEpilogue {
  std::vector<float> scale, bias;     ///< by channel
  std::optional<DeviceView> residual; ///< of the dims of the result
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

/// The expression of a CONV2D or MATMUL as the device does it: clamp(rne((acc + start + bias) *
/// mult / 2^shift) + zero).
struct Epilogue {
  std::vector<int32_t> bias, mult, shift; ///< by channel
  std::optional<DeviceView> start;        ///< what the sums begin with, where that is no constant
  int32_t zero = 0, low = 0, high = 0;
  bool wide = false;                   ///< the sums have 40 bits
  std::optional<FloatEpilogue> floats; ///< of sums of f32; then bias, mult and shift are empty
  npu::Type type = npu::Type::kI8;
};

/// The type of the sums of a product: CDL_I64 of activations of 16 bits, of which the device has 40
/// bits; CDL_F32 of bf16.
uint8_t sumsOf(const cdl::Op& op);

/// The expression of `op` in the device's form; `channelDim`: of the result. Throws Refusal for an
/// expression that is another one. Of floats none is one too: the sums, rounded.
Epilogue epilogueOf(LoweringState& l, const cdl::Op& op, int channelDim);

/// Lowers the expression of a product whose result has i32: step by step, from `first` on, on what
/// the product left in the scratchpad.
void lowerSteps(LoweringState& l, const cdl::Op& op, uint32_t first);

/// The form of sums of floats that are rounded to the result's type and nothing else.
Epilogue sumsAlone(const LoweringState& l, const cdl::Op& op, int channelDim);
/// Lowers an expression of floats that is in no form: on what the product left in the scratchpad.
/// Throws Refusal for steps that the vector engine does not have, and constants that differ
/// otherwise than by channel.
void lowerFloatSteps(LoweringState& l, const cdl::Op& op);

/// The view that the expression adds to the product first, where it lies in the result's place,
/// element by element: what the sums begin with.
std::optional<uint32_t> viewUnderResult(const LoweringState& l, const cdl::Op& op);

} // namespace npu_sim
