#pragma once

#include <cstdint>
#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"

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
/// The same where regions may lie in a second memory, whose addresses begin at 0 too; program and
/// end are of the first. The bytes of the second: secondEnd().
Placement placementOf(const Configuration& configuration, const Binary& binary);
/// The first byte behind the regions in the second memory; 0: none lies there.
uint64_t secondEnd(const Configuration& configuration, const Binary& binary);

} // namespace candela::npu
