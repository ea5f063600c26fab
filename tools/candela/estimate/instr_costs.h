#pragma once

#include "core/compiler/capabilities/target.h"
#include "tools/candela/estimate/description.h"

/// What an instruction of an image takes, by the rates of a device: the roofline of one instruction
/// (S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for
/// Multicore Architectures", CACM 52(4), 2009). The larger one of what is computed and what is
/// moved counts, and what goes before both.
namespace candela::tool {

/// More than any instruction takes: 18 minutes at 1 GHz. Sums of millions of them are numbers
/// still.
inline constexpr uint64_t kMostInstrCycles = uint64_t{1} << 40;

enum class Unit : uint8_t { matrix, vector, load, store };
inline constexpr const char* kUnits[] = {"matrix", "vector", "load", "store"};

/// What an instruction itself reads and writes outside of local memories. Of what it picks from,
/// only what it picks.
struct MemoryBytes {
  uint64_t constants = 0;
  uint64_t read = 0;
  uint64_t written = 0;
  uint64_t all() const { return constants + read + written; }
};
MemoryBytes memoryBytesOf(const cdl_image_t* image, uint32_t instr);

/// Of one execution, in cycles of the device.
struct InstrCost {
  Unit unit = Unit::vector;
  uint64_t cycles = 0;    ///< that its engine has no time for anything else
  uint64_t busCycles = 0; ///< of them, at their end: those of the memory behind the default space
  uint64_t bytes = 0;     ///< to and from that memory
  uint64_t macs = 0;
  bool isBoundByMemory() const { return busCycles > 0 && 2 * busCycles > cycles; }
};

/// Rates of a device, from its description or from what a plugin declares.
struct DeviceRates {
  DescribedMatrix matrix;
  DescribedVector vector;
  double bytesPerCycle = 0;
  uint32_t copyStartCycles = 0; ///< of a copy between memories, and of an access without one
};

DeviceRates ratesOf(const DeviceDescription& device);
/// What the backend declares in cdl_tiling_t; nullopt where it declares none.
std::optional<DeviceRates> declaredRates(const capabilities::Target& target);

/// Of an instruction of a checked image; `instr` counts from 1. What takes more than
/// kMostInstrCycles has one cycle more than these.
InstrCost costOf(const cdl_image_t* image, uint32_t instr, const DeviceRates& rates);

/// What the products of an instruction take when the whole unit works; 0 for what is no product,
/// and where the rate is not known.
uint64_t usefulCycles(const cdl_image_t* image, uint32_t instr, const DeviceRates& rates);

/// Multiply-accumulates of an instruction; 0 for what is no product.
uint64_t macsOf(const cdl_image_t* image, uint32_t instr);
/// Which unit does it.
Unit unitOf(const cdl_image_t* image, uint32_t instr);

} // namespace candela::tool
