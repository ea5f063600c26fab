#pragma once

#include "simulator/config/configuration.h"
#include "tools/candela/run/run.h"

/// What a network would take on configurations around the one that was asked for.
namespace candela::tool {

/// The same model compiled anew for half and twice of each size, timed without bursts: rows of
/// {change, cycles, speed, dram_bytes}. Configurations that cannot be are left out.
Json whatIf(const RunOptions& run, const npu::Configuration& npu);
void printWhatIf(const Json& rows, Console& console);

} // namespace candela::tool
