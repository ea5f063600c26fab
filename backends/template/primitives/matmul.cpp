// MATMUL: y[b] = a[b] . b[b]; a[B,M,K], b[B,K,N], y[B,M,N], rows contiguous, batch strides free.
#include "../template.hpp"

#include <algorithm>

namespace {

constexpr int kRows = 4, kCols = 16; // of the tile of y that stays in registers

// acc = ROWS rows of a less their zero point, times a panel: k rows of kCols, contiguous. Each
// element is summed in the order of k.
template <int ROWS, class A, class Sum>
void multiplyTile(const A* a, int64_t aStride, Sum aZero, const Sum* panel, int64_t k,
                  Sum acc[][kCols]) {
  Sum sum[ROWS][kCols] = {};
  for (int64_t r = 0; r < k; ++r, panel += kCols)
    for (int i = 0; i < ROWS; ++i) {
      const Sum value = static_cast<Sum>(a[i * aStride + r]) - aZero;
      for (int j = 0; j < kCols; ++j) sum[i][j] += value * panel[j];
    }
  std::memcpy(acc, sum, sizeof sum);
}

// Zero points come in the operands' types or as i32. Unsigned, as all integer sums here: it wraps.
uint32_t integerAt(const cdl::Operand& operand, int64_t i) {
  i = operand.rank && operand.dims[0] > 1 ? i * operand.strides[0] : 0;
  switch (operand.elem) {
  case CDL_I8: return static_cast<uint32_t>(static_cast<const int8_t*>(operand.data)[i]);
  case CDL_U8: return static_cast<const uint8_t*>(operand.data)[i];
  case CDL_I32: return static_cast<uint32_t>(static_cast<const int32_t*>(operand.data)[i]);
  default: throw cdl::BadAccess(std::string("zero points of ") + cdl::elemName(operand.elem));
  }
}

template <class A, class B, class Y, class Sum> cdl::Status multiply(const cdl::MatMul& op) {
  const auto a = op.a<const A>();
  const auto b = op.b<const B>();
  const auto y = op.y<Y>();
  const int64_t m = op.m(), n = op.n(), k = op.k();
  const Sum aZero = op.hasAZero() ? static_cast<Sum>(integerAt(op.aZero(), 0)) : Sum(0);
  // kCols columns of b side by side, less their zero points. Kept: a run like the one before
  // allocates nothing.
  thread_local std::vector<Sum> panel;
  panel.resize(std::max(panel.size(), static_cast<size_t>(k * kCols)));
  Sum acc[kRows][kCols];
  for (auto batch : y.range(0))
    for (int64_t col = 0; col < n; col += kCols) {
      const int64_t cols = n - col < kCols ? n - col : kCols;
      Sum bZero[kCols] = {};
      for (int64_t j = 0; j < cols && op.hasBZero(); ++j)
        bZero[j] = static_cast<Sum>(integerAt(op.bZero(), col + j));
      for (int64_t r = 0; r < k; ++r) {
        const B* row = b[batch].data() + r * b.stride(1) + col;
        for (int64_t j = 0; j < cols; ++j)
          panel[static_cast<size_t>(r * kCols + j)] = static_cast<Sum>(row[j]) - bZero[j];
      }
      for (int64_t row = 0; row < m;) {
        const A* from = a[batch].data() + row * a.stride(1);
        const int rows = m - row < kRows ? 1 : kRows;
        if (rows == kRows)
          multiplyTile<kRows>(from, a.stride(1), aZero, panel.data(), k, acc);
        else
          multiplyTile<1>(from, a.stride(1), aZero, panel.data(), k, acc);
        for (int i = 0; i < rows; ++i) {
          Y* to = y[batch].data() + (row + i) * y.stride(1) + col;
          for (int64_t j = 0; j < cols; ++j)
            to[j] =
                static_cast<Y>(op.accumulate() ? static_cast<Sum>(to[j]) + acc[i][j] : acc[i][j]);
        }
        row += rows;
      }
    }
  return cdl::ok();
}

} // namespace

cdl::Status Template::matMul(const cdl::MatMul& op) {
  switch (op.a().elem) {
  case CDL_F32: return multiply<float, float, float, float>(op);
  case CDL_I8: return multiply<int8_t, int8_t, int32_t, uint32_t>(op);
  case CDL_U8: return multiply<uint8_t, int8_t, int32_t, uint32_t>(op);
  default: return unknownFunction(op, op.a().elem);
  }
}
