#pragma once

#include <memory>
#include <random>
#include <string>

#include "simulator/rtl_model/library.h"
#include "simulator/rtl_model/lockstep.h"
#include "simulator/rtl_model/rtl_run.h"

namespace candela::rtl {

/// A program on the RTL, on the functional model and on the exact schedule. Empty: memory,
/// counters, status, and the cycles of each instruction are the same; else what is not.
struct NpuComparison {
  std::string difference;
  int64_t cycles = 0, accurateCycles = 0; ///< of both, and of Fidelity::kAccurate
  size_t instructions = 0;
  double seconds = 0; ///< that the RTL took
  /// of instructions: the exact schedule's, which are the RTL's where there is no difference
  npu::ScheduledTimes times, accurateTimes;
};

struct NpuComparisonOptions {
  uint32_t seed = 1; ///< of what regions hold, and of registers without a reset
  bool hasRandomMemory =
      false; ///< bursts take a random time, of the same seed, instead of a DRAM's
};

/// Errors of what was not to be compared: a program that the models refuse, say.
npu::Result<NpuComparison> compareNpu(const npu::Configuration& configuration,
                                      const npu::Binary& binary, const npu::RtlLibrary& library,
                                      const NpuComparisonOptions& options);

/// The library of a configuration, from where a process looks for it: one that counts its lines
/// where the environment has CANDELA_RTL_COVERAGE, the folder for the counts.
npu::Result<std::shared_ptr<npu::RtlLibrary>> rtlLibraryOf(const npu::Configuration& configuration);

} // namespace candela::rtl
