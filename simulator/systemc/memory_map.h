#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>

namespace candela::npu {

/// Bytes at addresses: spans of somebody's memory, disjoint.
class MemoryMap {
public:
  void clear() { spans_.clear(); }
  void add(uint64_t address, std::span<std::byte> memory) {
    if (!memory.empty()) spans_[address] = memory;
  }
  /// Those bytes, all within one span; else nothing.
  std::byte* find(uint64_t address, uint64_t bytes) const {
    auto after = spans_.upper_bound(address);
    if (after == spans_.begin()) return nullptr;
    const auto& [begin, memory] = *std::prev(after);
    const uint64_t at = address - begin;
    return at <= memory.size() && bytes <= memory.size() - at ? memory.data() + at : nullptr;
  }

private:
  std::map<uint64_t, std::span<std::byte>> spans_;
};

} // namespace candela::npu
