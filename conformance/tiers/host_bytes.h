#pragma once

#include <algorithm>

#include "conformance/tiers/bench.h"

namespace candela::conformance::tiers {

/// Bytes of the host, with others around them that no work may touch.
class HostBytes {
public:
  /// `bytes` of them, `shift` behind the begin of a page, at most a page.
  HostBytes(uint64_t bytes, uint64_t seed, uint64_t shift = 0)
      : bytes_(bytes), all_(pattern(bytes + 4 * kPage, seed)) {
    const uint64_t behindPage = reinterpret_cast<uintptr_t>(all_.data()) % kPage;
    first_ = 2 * kPage - behindPage + shift;
    expected_ = all_;
  }
  HostBytes(HostBytes&&) = default; // keeps the place; a copy would lie elsewhere on its page
  std::span<std::byte> bytes() { return std::span(all_).subspan(first_, bytes_); }
  /// What the host writes there.
  void fill(const ByteVector& content) {
    expect(0, content);
    std::ranges::copy(content, bytes().begin());
  }
  /// What work writes at `offset` is expected from now on.
  void expect(uint64_t offset, std::span<const std::byte> content) {
    std::ranges::copy(content, expected_.begin() + static_cast<ptrdiff_t>(first_ + offset));
  }
  Status check(std::string_view who) const { return same(who, all_, expected_); }

private:
  uint64_t bytes_, first_ = 0;
  ByteVector all_, expected_;
};

} // namespace candela::conformance::tiers
