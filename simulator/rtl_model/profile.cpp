#include "simulator/rtl_model/profile.h"

#include <algorithm>
#include <cstring>

#include "simulator/isa/trace.h"

namespace candela::npu {
namespace {

constexpr uint64_t kAlignment = 4096; ///< of a multiple of any burst

template <typename T> T fieldAt(const std::byte* record, int place) {
  T value{};
  std::memcpy(&value, record + place, sizeof value);
  return value;
}

} // namespace

ProfileBuffer::ProfileBuffer(std::span<const std::byte> memory, size_t records)
    : address_((memory.size() + kAlignment - 1) / kAlignment * kAlignment),
      memory_(address_ + records * profile::kBytes) {
  std::copy(memory.begin(), memory.end(), memory_.begin());
}

std::vector<ProfileRecord> ProfileBuffer::records(uint32_t count) const {
  std::vector<ProfileRecord> records;
  for (uint32_t i = 0; i < std::min(count, bytes() / profile::kBytes); ++i) {
    const std::byte* const record = memory_.data() + address_ + i * profile::kBytes;
    records.push_back({.instruction = fieldAt<uint32_t>(record, profile::kInstruction),
                       .tag = fieldAt<uint32_t>(record, profile::kTag),
                       .engine = fieldAt<uint8_t>(record, profile::kEngine),
                       .start = fieldAt<int64_t>(record, profile::kStart),
                       .done = fieldAt<int64_t>(record, profile::kDone)});
  }
  return records;
}

} // namespace candela::npu
