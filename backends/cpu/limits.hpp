// What kernels hold, for those who claim rows and those who emit.
#pragma once

#include <cstdint>

namespace cpu {

/// Weights of a block of SCALED_MATMUL: sums of so many products of u4 and i8 are exact in f32.
constexpr int64_t kMostInScaledBlock = 4096;
/// Weights of a column that lie in one word of a packed panel.
constexpr int64_t kScaledWord = 8;

/// Queries of ATTENTION that go by one kernel; more of them are matrix products.
constexpr int64_t kMostAttentionRows = 16;
/// Elements of a query, key or value are a multiple of this.
constexpr int64_t kAttentionLanes = 16;
/// The most elements of a query, key or value.
constexpr int64_t kMostAttentionWidth = 512;

} // namespace cpu
