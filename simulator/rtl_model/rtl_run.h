#pragma once

#include <array>
#include <functional>
#include <optional>

#include "simulator/npu_device.h"
#include "simulator/rtl_model/axi_memory.h"

namespace candela::npu {

/// What an engine of the hardware did, in cycles from the first one of the program.
struct RtlEvent {
  enum class Kind : uint8_t { kBegin, kFirstBeat, kRetire };
  Kind kind;
  uint8_t engine;
  uint32_t instruction;
  int64_t cycle;
};

/// Which cycles of a run are written as waves, and where. `sink` outlives the run.
struct RtlWaves {
  RtlWaveSink* sink = nullptr; ///< none: no waves
  int64_t from = 0, to = INT64_MAX;

  bool has(int64_t cycle) const { return sink && cycle >= from && cycle <= to; }
};

struct RtlRunOptions {
  int64_t maxCycles = int64_t{1} << 33;
  MemoryPort* memory = nullptr;      ///< what answers bursts; none: a Dram of the configuration
  uint64_t refusedFrom = UINT64_MAX; ///< accesses to addresses from here on are refused
  std::optional<int64_t> resetAt;    ///< writes a reset to CONTROL in about that cycle
  RtlWaves waves;
  size_t profileRecords = 0; ///< that the buffer for them has room for; 0: marks write none
  bool readsCounters = true;
  bool resetsFirst = true; ///< by the pin; false: it goes on from the run before
  /// Called for each event, in the order of cycles. False stops the run there.
  std::function<bool(const RtlEvent&)> onEvent;
  /// Called in each cycle, behind settle().
  std::function<void(int64_t)> onCycle;
};

struct RtlResult {
  bool isStopped = false; ///< by onEvent
  uint32_t status = 0;    ///< the register
  uint32_t faultPc = 0, faultCode = 0;
  int64_t cycles = 0;  ///< until the control processor has run halt and all is in the memory
  Counters counters{}; ///< the PMU; its cycles are those until halt has run
  std::array<Counters, kSnapshotSlots> snapshots{};
  std::vector<ProfileRecord> profile; ///< of marked instructions, in the order of their writing
  uint32_t profileLost = 0;           ///< marked instructions without one
};

/// Runs a program on a verilated NPU as a driver would: registers, start, interrupt. `memory` is
/// all of DRAM as `placement` says. Errors: it does not end, waves of an NPU that was built
/// without.
Result<RtlResult> runRtl(RtlTop& top, const Configuration& configuration, const Binary& binary,
                         const Placement& placement, std::span<std::byte> memory,
                         const RtlRunOptions& options = {});

/// The memory of a program before its run: constants, and what else `regions` hold.
std::vector<std::byte> memoryOf(const Binary& binary, const Placement& placement,
                                std::span<const std::span<std::byte>> regions);

/// Bits of STATUS.
inline constexpr uint32_t kRtlRunning = 1, kRtlHalted = 2, kRtlFaulted = 4;

} // namespace candela::npu
