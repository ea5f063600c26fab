#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace candela::npu {

/// What a number of the timing model rests on.
enum class Tag : uint8_t {
  kRtl,    ///< equal to the hardware description, cycle by cycle, in a test
  kSpec,   ///< a data sheet, or the configuration itself
  kFitted, ///< chosen so that results come near measured ones
  kAssumed ///< usual in designs of this kind; nothing of ours confirms it
};
inline constexpr int kTags = 4;
std::string_view tagName(Tag tag);

/// Constants of the timing model, by index into timingConstants().
enum class Timing : uint8_t {
  kComputeSetup,
  kMatrixBeat,
  kMatrixPipeline,
  kLdwPipeline,
  kDwconvPipeline,
  kRequantBeat,
  kRequantPipeline,
  kRequantInterpolation,
  kMovePipeline,
  kVectorBeat,
  kVectorPipeline,
  kOutputBeat,
  kOutputPipeline,
  kNop,
  kControlWord,
  kQueueLatency,
  kSemaphoreLatency,
  kFetchAhead,
  kFetchBuffer,
  kDmaSetup,
  kDmaIssue,
  kDmaRead,
  kDmaPipeline,
  kDmaRequests,
  kExpandPipeline,
  kFabricLatency,
  kControllerLatency,
  kControllerWrites,
  kControllerTurn,
};
inline constexpr int kTimings = 29;

struct TimingConstant {
  std::string_view name;
  int64_t value;
  std::string_view unit;
  Tag tag;
  std::string_view source;
};

/// All of them, in the order of Timing.
std::span<const TimingConstant> timingConstants();
const TimingConstant& timingConstant(Timing which);
inline int64_t valueOf(Timing which) { return timingConstant(which).value; }

/// Cycles by what they rest on.
using TaggedCycles = std::array<int64_t, kTags>;

} // namespace candela::npu
