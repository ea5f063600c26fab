#pragma once

#include <cstdint>
#include <span>

#include "tests/rtl/bench.h"

namespace candela::rtl {

/// A read port of the scratchpad: what it was asked for comes in the cycle behind, and random bits
/// otherwise.
struct ReadPort {
  bool taken = false;
  uint32_t address = 0;
  template <typename Data>
  void answer(std::span<const uint8_t> scratchpad, int bytes, Dice& dice, Data& data) const {
    for (int i = 0; i < bytes; ++i) {
      const uint32_t at = (address + static_cast<uint32_t>(i)) & 0x1ffffff;
      const bool isThere = taken && at < scratchpad.size();
      setBits(data, 8 * i, 8, isThere ? scratchpad[at] : static_cast<uint64_t>(dice.of(0, 255)));
    }
  }
};

/// What a write port of `width` bytes puts into the scratchpad in a cycle in which it is granted:
/// those that `bytes` has a bit for. False for a byte outside.
template <typename Bytes, typename Data>
bool write(std::span<uint8_t> scratchpad, uint32_t address, int width, const Bytes& bytes,
           const Data& data) {
  for (int i = 0; i < width; ++i) {
    if (!getBits(bytes, i, 1)) continue;
    if (address + static_cast<uint32_t>(i) >= scratchpad.size()) return false;
    scratchpad[address + static_cast<uint32_t>(i)] = static_cast<uint8_t>(getBits(data, 8 * i, 8));
  }
  return true;
}

} // namespace candela::rtl
