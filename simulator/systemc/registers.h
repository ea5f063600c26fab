#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/npu_device.h"
#include "simulator/timing/placement.h"

namespace candela::npu {

/// The byte offset of a register, by its name in docs/reference/npu_registers.md; another name does
/// not compile.
consteval uint32_t registerOffset(std::string_view name) {
  for (const RegisterInfo& info : kRegisters)
    if (info.name == name) return info.offset;
  throw "no such register";
}

/// Bits of CONTROL and STATUS.
inline constexpr uint32_t kStart = 1, kReset = 2;
inline constexpr uint32_t kRunning = 1, kHalted = 2, kFaulted = 4;
/// What ID reads.
inline constexpr uint32_t kDeviceId = 0x43444c4e;

/// What a driver writes before it starts a program that lies there, on the bus of the NPU: pairs of
/// a register's byte offset and its value, to write in any order.
std::vector<std::pair<uint32_t, uint32_t>> registersOf(const Binary& binary,
                                                       const Placement& placement);

/// What the driver writes before a start: the register file but what only the device writes.
class Registers {
public:
  Registers() { values_[registerOffset("PMU_CONTROL") / 4] = 1; }
  /// Whole registers; what is read-only stays as it is. False: none lies there.
  bool write(uint32_t offset, uint32_t value);
  /// What was written; 0 where nothing was.
  uint32_t operator[](uint32_t offset) const { return values_[offset / 4]; }
  uint64_t pair(uint32_t low, uint32_t high) const {
    return uint64_t{values_[high / 4]} << 32 | values_[low / 4];
  }

  struct Window {
    uint64_t base;
    Region region;
  };
  /// Of DRAM, up to the last one that has bytes. Errors: a class that is none, regions that meet,
  /// no end below 2^64.
  Result<std::vector<Window>> regions() const;

private:
  static constexpr uint32_t kEnd = 0x400; ///< the counters of the PMU lie from there on
  std::array<uint32_t, kEnd / 4> values_{};
};

} // namespace candela::npu
