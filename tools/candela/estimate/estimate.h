#pragma once

#include "core/runtime/plugin/plugin.h"
#include "tools/candela/estimate/schedule.h"
#include "tools/candela/simulate/measure.h"
#include "tools/candela/simulate/timeline.h"
#include "tools/candela/support/planned.h"

/// How long a model takes on a device by what that says of itself, without a run.
namespace candela::tool {

/// Where the cost of an instruction is from.
enum class CostSource : uint8_t {
  device,   ///< cost_batch, asked for each instruction
  declared, ///< the rates of cdl_tiling_t
};

struct Estimate {
  /// As of a simulation: layers, time, programs. Its counters are {macs}.
  Measured measured;
  Timeline timeline; ///< all programs, one behind the other
  CostSource source = CostSource::declared;
  DeviceRates rates; ///< declared or described: the peak and the bandwidth that shares are of
  double macUtilization = 0; ///< 0..1, of the cycles that products at the unit's rate would take
  /// What cost_batch says that the whole programs take; nullopt where it does not.
  std::optional<uint64_t> deviceCycles;
};

/// Of the parts of the model on the device; `described`: its rates where a file describes it.
/// Throws Failure where it says nothing to go by.
Estimate estimateOf(const PlannedModel& model,
                    const std::shared_ptr<runtime::plugin::Device>& device,
                    const std::optional<DeviceRates>& described);

/// Cycles in a second, by the device's option clock_mhz; nullopt without one.
std::optional<double> clockOf(const runtime::plugin::Device& device);

} // namespace candela::tool
