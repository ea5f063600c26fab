#pragma once

#include <span>
#include <vector>

#include "simulator/npu_device.h"

namespace candela::npu {

/// The memory of a run with a buffer for profile records behind it.
class ProfileBuffer {
public:
  /// A copy of `memory`, and room for so many records.
  ProfileBuffer(std::span<const std::byte> memory, size_t records);
  std::span<std::byte> memory() { return memory_; }
  uint64_t address() const { return address_; }
  uint32_t bytes() const { return static_cast<uint32_t>(memory_.size() - address_); }

  /// The first `count` records.
  std::vector<ProfileRecord> records(uint32_t count) const;

private:
  uint64_t address_;
  std::vector<std::byte> memory_;
};

} // namespace candela::npu
