#include "simulator/timing/compression.h"

#include <algorithm>
#include <bit>

namespace candela::npu {
namespace {

constexpr auto kPlain = std::byte{0};
constexpr auto kMasked = std::byte{1};
constexpr auto kZero = std::byte{2};

using Bytes = std::span<const std::byte>;

void append(std::vector<std::byte>& to, Bytes from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Of a block a bit for each of its bytes, lowest first, and how many there are.
uint64_t maskOf(Bytes block) {
  uint64_t mask = 0;
  for (size_t i = 0; i < block.size(); ++i)
    if (block[i] != std::byte{0}) mask |= uint64_t{1} << i;
  return mask;
}

/// Bytes of a mask of a block of so many.
size_t maskBytes(size_t block) { return (block + 7) / 8; }

void compressBlock(Bytes block, std::vector<std::byte>& to) {
  const uint64_t mask = maskOf(block);
  const size_t masked = maskBytes(block.size()) + static_cast<size_t>(std::popcount(mask));
  if (mask == 0) return to.push_back(kZero);
  if (masked >= block.size()) {
    to.push_back(kPlain);
    return append(to, block);
  }
  to.push_back(kMasked);
  for (size_t b = 0; b < maskBytes(block.size()); ++b)
    to.push_back(static_cast<std::byte>(mask >> (8 * b)));
  std::ranges::copy_if(block, std::back_inserter(to),
                       [](std::byte b) { return b != std::byte{0}; });
}

/// Expands the block at the front of `kept`, which moves behind it.
void expandBlock(Bytes& kept, size_t bytes, std::vector<std::byte>& to) {
  const std::byte form = kept[0];
  kept = kept.subspan(1);
  uint64_t mask = 0;
  if (form == kPlain) mask = ~uint64_t{0};
  if (form == kMasked) {
    for (size_t b = 0; b < maskBytes(bytes); ++b) mask |= static_cast<uint64_t>(kept[b]) << (8 * b);
    kept = kept.subspan(maskBytes(bytes));
  }
  for (size_t i = 0; i < bytes; ++i) {
    const bool isKept = mask >> i & 1;
    to.push_back(isKept ? kept[0] : std::byte{0});
    if (isKept) kept = kept.subspan(1);
  }
}

constexpr auto kBlockBytes = static_cast<size_t>(CompressedConstants::kBlock);

} // namespace

std::vector<std::byte> compressPage(Bytes page, std::vector<int64_t>& starts) {
  const int64_t begin = starts.empty() ? 0 : starts.back();
  if (!starts.empty()) starts.pop_back();
  std::vector<std::byte> kept{kMasked};
  std::vector<int64_t> places;
  for (size_t at = 0; at < page.size(); at += kBlockBytes) {
    places.push_back(begin + static_cast<int64_t>(at ? kept.size() : 0));
    compressBlock(page.subspan(at, std::min(kBlockBytes, page.size() - at)), kept);
  }
  if (kept.size() > page.size()) {
    kept.assign(1, kPlain);
    append(kept, page);
    for (size_t b = 1; b < places.size(); ++b)
      places[b] = begin + 1 + static_cast<int64_t>(b * kBlockBytes);
  }
  starts.insert(starts.end(), places.begin(), places.end());
  starts.push_back(begin + static_cast<int64_t>(kept.size()));
  return kept;
}

std::vector<std::byte> expandPage(Bytes kept, size_t bytes) {
  std::vector<std::byte> page;
  const std::byte form = kept[0];
  kept = kept.subspan(1);
  if (form == kPlain) return {kept.begin(), kept.end()};
  for (size_t at = 0; at < bytes; at += kBlockBytes)
    expandBlock(kept, std::min(kBlockBytes, bytes - at), page);
  return page;
}

CompressedConstants::CompressedConstants(Bytes constants) {
  constexpr auto kPageBytes = static_cast<size_t>(kPage);
  for (size_t at = 0; at < constants.size(); at += kPageBytes)
    compressPage(constants.subspan(at, std::min(kPageBytes, constants.size() - at)), starts_);
}

} // namespace candela::npu
