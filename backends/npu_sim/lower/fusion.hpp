// What follows a product in its pass, which takes the sums in the accumulators to bytes: the
// largest of windows is taken before they are scaled, a residual is added behind that, and a table
// comes last. Instructions join a pass as long as each alone reads what the one before it leaves,
// and as long as nothing that a later part of the pass still reads lies under the result.
#pragma once

#include "epilogue.hpp"

namespace npu_sim {

/// What the two-operand RESCALE behind a product adds to it.
struct Residual {
  DeviceView from; ///< of the dims of the result
  Scale scale;     ///< a is the product, b the residual
};

/// What the device does with sums in the pass that computes them.
struct Fusion {
  std::optional<Epilogue> epilogue;
  std::optional<Residual> residual;
  std::optional<PoolWindow> pool;    ///< the largest of a window, taken before the sums are scaled
  std::optional<DeviceView> entries; ///< of a table
  bool addsToResult = false;         ///< sums begin with what stands in the result's place
  npu::Type type = npu::Type::kI32;  ///< of the result
};

/// A product with what the device does behind it in the same pass.
struct Pass {
  DeviceView y; ///< where it ends
  Fusion fusion;
  uint32_t taken = 1; ///< instructions, with the product
};

/// Finds the pass of a product that has an epilogue and ends in bytes.
Pass passOf(LoweringState& l, const cdl::Op& op);

} // namespace npu_sim
