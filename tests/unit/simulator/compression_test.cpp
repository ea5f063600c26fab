// Compressed constants: the same bytes again, the size that the form has, and places of blocks.
#include <gtest/gtest.h>

#include <random>

#include "simulator/timing/compression.h"

namespace candela::npu {
namespace {

using Content = std::vector<std::byte>;

/// So many bytes, of which about `zeros` of 100 are zero.
Content content(size_t bytes, uint32_t zeros, uint32_t seed) {
  std::mt19937 random(seed);
  Content made(bytes);
  for (std::byte& b : made)
    if (random() % 100 >= zeros) b = static_cast<std::byte>(1 + random() % 255);
  return made;
}

TEST(Compression, PagesComeBackBitByBit) {
  for (const size_t bytes : {1u, 63u, 64u, 65u, 1000u, 4032u, 4095u, 4096u})
    for (const uint32_t zeros : {0u, 3u, 12u, 50u, 95u, 100u}) {
      const Content page = content(bytes, zeros, zeros);
      std::vector<int64_t> starts;
      const Content kept = compressPage(page, starts);
      EXPECT_EQ(expandPage(kept, page.size()), page) << bytes << " bytes, " << zeros << " % zero";
      EXPECT_EQ(starts.size(), (bytes + 63) / 64 + 1);
      EXPECT_EQ(starts.back(), static_cast<int64_t>(kept.size()));
      EXPECT_LE(kept.size(), bytes + 1) << "no page grows by more than a byte";
    }
}

TEST(Compression, SizesAreThoseOfTheForm) {
  // Four pages: zeros; none; a byte that is not in each block; half of them in one block alone.
  Content constants(4 * 4096);
  for (size_t i = 4096; i < 8192; ++i) constants[i] = std::byte{7};
  for (size_t i = 8192; i < 12288; i += 64) constants[i] = std::byte{9};
  for (size_t i = 12288; i < 12320; ++i) constants[i] = std::byte{1};
  const CompressedConstants compressed(constants);
  const int64_t zero = 1 + 64, plain = 1 + 4096, thin = 1 + 64 * (1 + 8 + 1),
                last = 1 + (1 + 8 + 32) + 63;
  EXPECT_EQ(compressed.bytesOf(0, 4096), zero);
  EXPECT_EQ(compressed.bytesOf(4096, 8192), plain);
  EXPECT_EQ(compressed.bytesOf(8192, 12288), thin);
  EXPECT_EQ(compressed.bytesOf(12288, 16384), last);
  EXPECT_EQ(compressed.bytes(), zero + plain + thin + last);
  // Parts take whole blocks, the first of a page with its byte.
  EXPECT_EQ(compressed.placeOf(4096 + 100), zero + 1 + 64);
  EXPECT_EQ(compressed.bytesOf(4096 + 100, 4096 + 130), 128);
  EXPECT_EQ(compressed.bytesOf(8192 + 64, 8192 + 65), 10);
  EXPECT_TRUE(CompressedConstants(Content{}).empty());
}

} // namespace
} // namespace candela::npu
