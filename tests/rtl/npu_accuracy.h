#pragma once

#include <string>
#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/rtl_model/lockstep.h"

namespace candela::rtl {

/// Cycles of the same instructions in the hardware and in Fidelity::kAccurate.
struct AccuracyRow {
  std::string kind; ///< "operation": cycles are sums from begin to end; "layer": from its first
                    ///< begin to its last end
  std::string name; ///< of the operation, or of the ONNX node
  size_t instructions = 0;
  int64_t hardware = 0, accurate = 0;
};

/// By operation and by layer, those of the control processor left out. Both have the same
/// instructions of each engine, in their order.
std::vector<AccuracyRow> accuracyOf(const npu::Binary& binary, const npu::ScheduledTimes& hardware,
                                    const npu::ScheduledTimes& accurate);

} // namespace candela::rtl
