#pragma once

#include <map>
#include <span>

#include "core/compiler/program/program.h"

/// How many bytes a Program moves: a count, not an estimate.
namespace candela::program::report {

/// Bytes. Activations are all values but constants, and so are inputs, outputs and states.
struct Traffic {
  uint64_t read = 0, written = 0; ///< of activations
  uint64_t constants = 0;         ///< read
  uint64_t activations() const { return read + written; }
  Traffic& operator+=(const Traffic& other);
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// What a group of instructions may hold between its bands without a trip to memory.
inline constexpr uint64_t kBandBytes = 1 << 20;

struct ProgramTraffic {
  Traffic total;
  std::vector<Traffic> instrs;  ///< all runs of each, in their order
  std::vector<Traffic> buffers; ///< all that moves to and from each
  /// Per buffer, as bits: only instructions of one group touch it, and its band stays within
  /// kBandBytes.
  std::vector<bool> withinGroup;
};

/// The logical bytes of the views that instructions read and write: every element of a view once,
/// whatever its strides repeat; the same view of an instruction once; no padding of blocks, no
/// border. An instruction of a loop counts in every run. TEMP buffers that only one group touches
/// count nothing where the largest sum of them that it holds at once, of a group in bands in the
/// rows that one band needs, is at most kBandBytes. `contentBytes`: what the value in each buffer
/// has without padding; empty: as much as the buffer.
ProgramTraffic trafficOf(const Program& program, std::span<const uint64_t> contentBytes = {});

/// How many elements of a buffer the view reaches in one run of its loops: those that overlapping
/// strides meet twice count once.
uint64_t distinctElements(const View& view);

/// A value that one instruction writes to memory only for another one to read it there.
struct Passage {
  uint32_t buffer = kNone, writer = kNone, reader = kNone;
  uint64_t bytes = 0; ///< that would not move if both were one instruction
};
/// TEMP buffers of one writer and one reader, one of which is elementwise or a copy: what fusion
/// could still save. The largest first; of equal ones, the earlier.
std::vector<Passage> missedFusions(const Program& program, const ProgramTraffic& traffic);

} // namespace candela::program::report
