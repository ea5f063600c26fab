#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace candela::npu {

/// Constants as weights.compression = zero_run keeps them in memory, for time and for counts: what
/// the program computes is of the expanded bytes.
///
/// A page of 4 KiB is kept as it is behind one byte, unless its blocks of 64 bytes are shorter. A
/// block is then one byte and, unless all of it is zero, a bit for each of its bytes and those that
/// are not zero, or all of them where that is shorter. Loads are known when the program is made, so
/// that each names the first block that it needs; it moves whole blocks.
class CompressedConstants {
public:
  static constexpr int64_t kBlock = 64;  ///< bytes, expanded
  static constexpr int64_t kPage = 4096; ///< bytes, expanded

  CompressedConstants() = default;
  explicit CompressedConstants(std::span<const std::byte> constants);

  /// Whether there is nothing to expand.
  bool empty() const { return starts_.size() <= 1; }
  /// The place of the block in which byte `at` lies, and the bytes of the blocks from..to - 1 are
  /// of: in memory. 0 <= from < to <= the constants' bytes.
  int64_t placeOf(int64_t at) const { return starts_[static_cast<size_t>(at / kBlock)]; }
  int64_t bytesOf(int64_t from, int64_t to) const {
    return starts_[static_cast<size_t>((to + kBlock - 1) / kBlock)] - placeOf(from);
  }
  /// All of them.
  int64_t bytes() const { return empty() ? 0 : starts_.back(); }

private:
  std::vector<int64_t> starts_; ///< of each block, and the end
};

/// A page of up to kPage bytes, the last block of which may be shorter: its form in memory, where
/// each block begins in it added to `starts`, from `starts`' last element on where there is one.
std::vector<std::byte> compressPage(std::span<const std::byte> page, std::vector<int64_t>& starts);
/// The `bytes` bytes of a page again.
std::vector<std::byte> expandPage(std::span<const std::byte> kept, size_t bytes);

} // namespace candela::npu
