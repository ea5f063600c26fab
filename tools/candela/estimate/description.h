#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "candela/backend.hpp"
#include "core/support/elem.h"

/// A device that is a file: what an architect knows of a chip before there is a backend for it.
namespace candela::tool {

/// A rate that depends on the element type.
struct RateByElem {
  std::map<Elem, double> known;
  double others = 0; ///< of the types that are not in `known`

  double of(Elem elem) const;
};

struct DescribedMemory {
  std::string name;
  bool isLocal = false;       ///< only copies by DMA fill it
  bool holdsSums = false;     ///< of products, and nothing else
  uint64_t capacityBytes = 0; ///< 0: without a limit
  uint32_t alignment = 64;    ///< bytes, of every buffer
  double bytesPerSecond = 0;  ///< of a memory that is not local
  uint32_t startCycles = 0;   ///< of an access before its first byte
};

/// The unit of MATMUL, CONV2D and the like.
struct DescribedMatrix {
  RateByElem macsPerCycle; ///< by the type of the first operand
  /// Terms of a sum and columns of a result that the unit takes at once: what is left over of a
  /// product's own is lost.
  uint32_t rows = 1;
  uint32_t columns = 1;
  double depthwiseMacsPerCycle = 0; ///< channel by channel; 0: as others, a column at a time
  uint32_t startCycles = 0;
};

/// The unit of everything else.
struct DescribedVector {
  RateByElem elementsPerCycle;
  double functionsPerCycle = 0; ///< of exp, tanh, a quotient and the like; 0: as other elements
  uint32_t startCycles = 0;
};

struct DeviceDescription {
  std::string file; ///< for messages
  std::string name;
  uint32_t clockMhz = 0;
  std::vector<cdl::Profile> profiles;
  std::set<uint16_t> takes; ///< kinds of instructions; the host does the others
  std::set<uint16_t>
      epilogue; ///< kinds of steps that an instruction of a product or a reduction has
  bool hasChannelsLast = false; ///< of images
  bool hasOneDma = false;       ///< for loads and for stores; else there is one for each
  DescribedMatrix matrix;
  DescribedVector vector;
  std::vector<DescribedMemory> memories; ///< the default one first

  bool hasLocalMemory() const;
  double bytesPerCycle(const DescribedMemory& memory) const {
    return memory.bytesPerSecond / (clockMhz * 1e6);
  }
};

/// Reads what docs/reference/device_description.md lists; `file` stands in messages. Throws Failure
/// with file, line and key: TOML that is none, an unknown key, a value of another type or out of
/// its range, numbers that contradict each other.
DeviceDescription parseDescription(std::string_view text, const std::string& file);
/// The same of a file.
DeviceDescription readDescription(const std::string& path);

/// The same text with another value of one key, "matrix.rows" or "memory.dram.gb_per_s"; `value` as
/// TOML writes it, words without their quotes. Throws Failure where there is no such key.
std::string withValue(std::string_view text, const std::string& file, const std::string& key,
                      const std::string& value);

} // namespace candela::tool
