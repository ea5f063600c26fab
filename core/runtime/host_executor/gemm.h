// The register tile of MATMUL and the packing that feeds it.
#pragma once

#include <cstring>

#include "core/runtime/host_executor/operand.h"

namespace candela::runtime::host_executor {

/// Tiles of kTileRows x tileColumns<S> accumulators of S: eight 16-byte vectors, which every x86-64
/// and every AArch64 holds in registers next to what it multiplies. Wider vectors would give the
/// same bits, for no product is contracted.
constexpr int kTileRows = 4;
template <class S> constexpr int tileColumns = static_cast<int>(32 / sizeof(S));

/// c[4][tileColumns] += a[depth][4] * b[depth][tileColumns], depth in order.
template <class S> void multiplyTile(int64_t depth, const S* a, const S* b, S* c) {
  typedef S Vector __attribute__((vector_size(16)));
  constexpr int lanes = static_cast<int>(16 / sizeof(S)), columns = tileColumns<S>;
  Vector acc[kTileRows][2];
  std::memcpy(acc, c, sizeof acc);
  for (int64_t k = 0; k < depth; ++k, a += kTileRows, b += columns) {
    Vector left, right;
    std::memcpy(&left, b, sizeof left);
    std::memcpy(&right, b + lanes, sizeof right);
    for (int m = 0; m < kTileRows; ++m) {
      acc[m][0] += left * a[m];
      acc[m][1] += right * a[m];
    }
  }
  std::memcpy(c, acc, sizeof acc);
}

/// A matrix operand of one batch: element (i, j) is at start + i * rowStride + j * columnStride.
struct Matrix {
  const Operand* operand;
  int64_t start, rowStride, columnStride;
};

/// Rows first .. first + rows - 1 and columns of depth k of `from` as panels of `width` rows:
/// to[panel][k][width], less the zero point of the row (zeros[row * zeroStride]); the rest of the
/// last panel is 0.
template <class T, class S>
void packPanels(const Matrix& from, int64_t first, int64_t rows, int64_t firstDepth, int64_t depth,
                int width, const int64_t* zeros, int64_t zeroStride, S* to) {
  for (int64_t p = 0; p < rows; p += width) {
    const int64_t n = rows - p < width ? rows - p : width;
    const T* source = from.operand->at<T>(from.start + (first + p) * from.rowStride +
                                          firstDepth * from.columnStride);
    S zero[16];
    for (int j = 0; j < width; ++j)
      zero[j] = zeros && j < n ? static_cast<S>(zeros[(first + p + j) * zeroStride]) : S(0);
    if (n == width && from.rowStride == 1 && std::is_same_v<T, S> && !zeros) {
      for (int64_t k = 0; k < depth; ++k, to += width)
        std::memcpy(to, source + k * from.columnStride, static_cast<size_t>(width) * sizeof(S));
      continue;
    }
    for (int64_t k = 0; k < depth; ++k, to += width) {
      const T* column = source + k * from.columnStride;
      for (int64_t j = 0; j < n; ++j)
        to[j] = static_cast<S>(load(column[j * from.rowStride])) - zero[j];
      for (int64_t j = n; j < width; ++j) to[j] = S(0);
    }
  }
}

} // namespace candela::runtime::host_executor
