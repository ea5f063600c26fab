#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "simulator/isa/isa.h"
#include "simulator/isa/registers.h"
#include "simulator/timing/constants.h"

namespace candela::npu {

/// Counters of the PMU by static_cast<int>(Counter).
using Counters = std::array<uint64_t, kCounterSlots>;
/// The one that counts the instructions of an engine.
inline Counter instructionCounter(int engine) {
  if (isLoad(engine)) return Counter::kInstructionsLoad;
  if (isStore(engine)) return Counter::kInstructionsStore;
  switch (static_cast<Engine>(engine)) {
  case Engine::kMatrix: return Counter::kInstructionsMatrix;
  case Engine::kRequant: return Counter::kInstructionsRequant;
  case Engine::kVector: return Counter::kInstructionsVector;
  default: return Counter::kInstructionsControl;
  }
}

/// How finely time is modelled; what instructions do is the same.
enum class Fidelity : uint8_t {
  kFast,     ///< closed forms: transfers by bandwidth and latency
  kAccurate, ///< bursts, banks and rows of the memory
  kExact     ///< each cycle of rtl/top, word by word: what streams do to each other's ports too
};
std::string_view fidelityName(Fidelity fidelity);

/// Why an engine stood still.
enum class Stall : uint8_t {
  kNone,
  kQueue,     ///< its queue was empty; control: a queue was full, or a fence waited
  kSemaphore, ///< tokens were not there
  kBank,      ///< others used the same banks of the scratchpad
  /// the memory was slower than the channel's own port; control: a word was not yet fetched
  kDram,
  kCore ///< another core had not posted what it awaits
};
inline constexpr int kStalls = 6;
std::string_view stallName(Stall stall);
/// Cycles by cause; those of kNone stay 0.
using StallCycles = std::array<int64_t, kStalls>;

inline constexpr int kMostAfter = 7; ///< tokens that one wait takes at most

/// One instruction that ended. Cycles of the NPU from the start of the program; queue and semaphore
/// lie before `start` and behind the end of the one before it in its engine, bank and dram within.
struct InstructionTime {
  uint32_t sequence = 0; ///< how many ended before
  uint32_t instruction = 0;
  uint8_t core = 0;
  uint8_t engine = 0;
  Op op = Op::kNop;
  int64_t start = 0, done = 0;
  int64_t firstBeat = -1; ///< when it moved its first data; -1: it moves none, or nobody knows
  StallCycles stalls{};
  uint8_t waitSemaphore = 0, waitCount = 0, signalSemaphore = 0, signalCount = 0;
  /// sequence of those whose tokens it took, waitCount of them
  std::array<uint32_t, kMostAfter> after{};
  int64_t awaited = -1; ///< of an await: the sequence of the post that it began behind
  int64_t bytes = 0;    ///< of a transfer: what it writes
  /// of a load or a store: what crosses the bus of the memory (static_cast<int>(MemoryId)) in which
  /// its region lies, whole bursts aside
  int64_t memoryBytes = 0;
  uint8_t memory = 0;
  int64_t expandedBytes = 0; ///< of a load of compressed constants: what they become

  /// The cause of most cycles.
  Stall stall() const;
};

struct EngineTime {
  int64_t busy = 0; ///< from start to done of its instructions; control: words
  StallCycles stalls{};
};

/// What the code of one core took.
struct CoreTime {
  int64_t cycles = 0; ///< to its halt
  std::array<EngineTime, kEngineCount> engines{};
};

/// What a memory did.
struct MemoryTime {
  double bytesPerCycle = 0; ///< of all channels, at most
  uint64_t bytes = 0;       ///< that crossed the bus, in whole bursts
  uint64_t bursts = 0;
  uint64_t rowHits = 0;
  uint64_t rowMisses = 0;
  int64_t busy = 0; ///< cycles of the NPU, mean over channels
};

/// What a program took.
struct TimeReport {
  Fidelity fidelity = Fidelity::kAccurate;
  int64_t cycles = 0;
  std::array<EngineTime, kEngineCount> engines{}; ///< sums over cores
  std::vector<CoreTime> cores;                    ///< of a program for several; else empty
  TaggedCycles tagged{};        ///< busy cycles of all engines by what they rest on
  double dramBytesPerCycle = 0; ///< of all channels, at most
  uint64_t dramBytes = 0;       ///< that crossed the bus, in whole bursts, instructions too
  /// rows and refreshes: accurate alone
  uint64_t dramBursts = 0, rowHits = 0, rowMisses = 0, refreshes = 0;
  /// cycles of the NPU, mean over channels
  int64_t dramBusy = 0;
  std::optional<MemoryTime> second; ///< where something lies in it
  /// The PMU's, as the program controls them: cycles, and with ScheduleOptions::counts all.
  Counters counters{};
  std::array<Counters, kSnapshotSlots> snapshots{};
};

} // namespace candela::npu
