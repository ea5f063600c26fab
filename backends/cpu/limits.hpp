// What kernels hold, for those who claim rows and those who emit.
#pragma once

#include <cstdint>

namespace cpu {

/// Weights of a block of SCALED_MATMUL are a multiple of this.
constexpr int64_t kScaledBlockLanes = 8;
/// The most of them.
constexpr int64_t kMostInScaledBlock = 65536;
/// The most of them that are multiplied by i8: so many products with unsigned weights of these bits
/// are exact in f32.
constexpr int64_t mostInWholeBlock(int bits) { return bits == 8 ? 512 : 4096; }
/// Weights of a column that lie in one word of a packed panel.
constexpr int64_t weightsOfWord(int bits) { return 32 / bits; }

/// Queries of ATTENTION that keys and values are read for at once.
constexpr int64_t kMostAttentionRows = 24;
/// Elements of a query, key or value are a multiple of this.
constexpr int64_t kAttentionLanes = 16;
/// The most elements of a query, key or value.
constexpr int64_t kMostAttentionWidth = 512;

} // namespace cpu
