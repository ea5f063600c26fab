#pragma once

#include "simulator/npu_device.h"

namespace candela::npu {

struct FunctionalOptions {
  bool checks = true;       ///< races and uninitialised reads; ranges are always checked
  bool plainKernels = false; ///< no AVX2 even where there is
  /// Products and elements, and 64 for each instruction, in a run: loops could otherwise run for years.
  uint64_t maxOperations = uint64_t{1} << 40;
};

/// The model without time.
std::unique_ptr<Device> makeFunctionalDevice(Configuration configuration, FunctionalOptions options = {});

} // namespace candela::npu
