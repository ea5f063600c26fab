#pragma once

#include "core/runtime/plugin/plugin.h"
#include "core/support/tensor.h"

namespace candela::runtime::session {

/// Where the bytes of a value lie: on the host, in memory of a device, or in such memory that the
/// host sees too.
struct BufferRef {
  std::byte* host = nullptr;                              ///< null where the host does not see them
  std::shared_ptr<plugin::DeviceMemory> memory = nullptr; ///< null: of no device
  std::shared_ptr<plugin::Device> device = nullptr;
  uint32_t space = 0;  ///< of the device, as images count: 1 is the default one
  uint64_t offset = 0; ///< bytes from the start of `memory`
  bool isState = false;

  static BufferRef onHost(const std::byte* data) {
    BufferRef ref;
    ref.host = const_cast<std::byte*>(data); // which nobody writes who got it to read
    return ref;
  }
  bool isNowhere() const { return !host && !memory; }
  bool isOn(const plugin::Device* other) const { return memory && device.get() == other; }
  /// Whether both begin at the same byte.
  bool isSame(const BufferRef& other) const {
    if (host || other.host) return host == other.host;
    return memory == other.memory && offset == other.offset;
  }
};

/// Whether two values of these sizes share bytes.
bool overlap(const BufferRef& a, uint64_t aBytes, const BufferRef& b, uint64_t bBytes);

/// Memory that is kept for a value.
struct Room {
  Bytes bytes; ///< as the host sees it; empty where it does not
  BufferRef at;
};

} // namespace candela::runtime::session
