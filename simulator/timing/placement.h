#pragma once

#include <cstdint>
#include <vector>

#include "simulator/binary/binary.h"

namespace candela::npu {

/// Where the regions and the program of a binary lie in DRAM: addresses in bytes.
struct Placement {
  std::vector<uint64_t> bases; ///< of each region, by its index in the binary
  uint64_t program = 0;        ///< of the first instruction word, a multiple of 16
  /// The first byte behind all of it: the end of the page (4 KiB) that the program ends in, where
  /// the last burst of its fetch may end.
  uint64_t end = 0;
};

/// Places the regions one after the other from address 0 on, each from a page of 4 KiB on, the
/// program last. A platform whose memory begins elsewhere adds its address to all of them.
Placement placementOf(const Binary& binary);

} // namespace candela::npu
