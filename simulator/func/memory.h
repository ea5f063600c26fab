#pragma once

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "candela/numerics.h"
#include "simulator/func/shadow.h"
#include "simulator/npu_device.h"

namespace candela::npu {

/// Thrown by what an instruction does, caught by the machine, which knows the instruction's name.
struct FaultSignal {
  FaultKind kind;
  std::string text;
};
template <typename... Args>
[[noreturn]] void raise(FaultKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw FaultSignal{kind, fmt::format(format, std::forward<Args>(args)...)};
}

/// The bits of a result of the device: its NaN is one.
inline uint32_t bitsOf(float value) { return value != value ? 0x7fc00000u : cdl_f32_bits(value); }

/// The regions of DRAM with their shadows: one memory for all cores.
struct DramRegions {
  std::vector<Region> regions;
  std::array<std::optional<std::span<std::byte>>, kMaxRegions> bound; ///< the caller's
  std::array<std::unique_ptr<Shadow>, kMaxRegions> shadows;           ///< none of class constants

  /// Nothing is written any more but regions of class constants, input and output.
  void reset(const Configuration& configuration);
};

/// Scratchpad and accumulators of a core with their shadows, and the DRAM that it shares with
/// others. Every access of an instruction is announced here: ranges first, then order and
/// initialisation.
class Memory {
public:
  /// `dram` must outlive it.
  Memory(const Configuration& configuration, bool checks, size_t core, DramRegions& dram);
  /// Nothing is written any more; DRAM stays as it is.
  void reset();

  uint8_t* scratchpad() { return scratchpad_.data(); }
  /// The low 32 bits of a row's accumulators.
  int32_t* row(int64_t row) { return accumulators_.data() + row * columns_; }
  /// The same as floats, and back.
  void readFloats(int64_t row, int64_t columns, float* to) const;
  void writeFloats(int64_t row, int64_t columns, const float* from);
  /// Puts the sign of what was written there into the bits above, where the configuration has them.
  void extend(int64_t row, int64_t rows, int64_t columns);
  /// All 40 bits, with int16 only. Written modulo 2^40.
  void readWide(int64_t row, int64_t columns, int64_t* to) const;
  void writeWide(int64_t row, int64_t columns, const int64_t* from, bool accumulate);
  uint8_t* dram(uint32_t region) { return reinterpret_cast<uint8_t*>(dram_.bound[region]->data()); }
  RegionClass classOf(uint32_t region) const { return dram_.regions[region].kind; }

  /// Bounds of a box: at .. at + bytes in the scratchpad. `what` names the operand in the fault.
  void range(std::string_view what, int64_t at, int64_t bytes) const;
  void dramRange(uint32_t region, int64_t at, int64_t bytes, bool isWrite) const;
  void rowRange(int64_t row, int64_t rows) const;

  // Within ranges that were checked.
  void reads(int64_t at, int64_t bytes, const Accessor& accessor);
  void writes(int64_t at, int64_t bytes, const Accessor& accessor);
  void dramReads(uint32_t region, int64_t at, int64_t bytes, const Accessor& accessor);
  void dramWrites(uint32_t region, int64_t at, int64_t bytes, const Accessor& accessor);
  void rowsRead(int64_t row, int64_t rows, int columns, const Accessor& accessor);
  void rowsWritten(int64_t row, int64_t rows, int columns, bool alsoRead, const Accessor& accessor);

  /// Remembers from now on what is written where, for takeWritten.
  void record() { isRecording_ = true; }
  /// Bytes and CRC-32 of all that was written since the last call (docs/reference/npu_trace.md).
  std::pair<uint64_t, uint32_t> takeWritten();

private:
  struct Written {
    int64_t at, bytes; ///< of accumulators: the row, and the columns
    int memory;        ///< a region, or one of the two below
  };
  static constexpr int kScratchpad = -1, kRows = -2;
  void note(int memory, int64_t at, int64_t bytes) {
    if (isRecording_) written_.push_back({at, bytes, memory});
  }
  [[noreturn]] void race(std::string place, bool isWrite, AccessId other,
                         const Accessor& accessor) const;

  DramRegions& dram_;
  int columns_;
  std::vector<size_t> readers_; ///< slots of the core's engines
  bool hasCores_;               ///< there are others beside this one
  bool checks_, isRecording_ = false;
  std::vector<Written> written_;
  std::vector<uint8_t> scratchpad_;
  std::vector<int32_t> accumulators_;
  std::vector<int8_t> above_; ///< bits 32..39 of each, with int16
  /// of each row: how many were written, from the first on
  std::vector<int32_t> validColumns_;
  std::unique_ptr<Shadow> shadow_, rowShadow_; ///< of rows: one "byte" each
};

} // namespace candela::npu
