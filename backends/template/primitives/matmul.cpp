// MATMUL: y[b] = a[b] . b[b]; a[B,M,K], b[B,K,N], y[B,M,N], rows contiguous, batch strides free.
#include "../template.hpp"

#ifndef TEMPLATE_MATMUL
#define TEMPLATE_MATMUL TEMPLATE_DEFAULT
#endif
const cdl::Support matMulSupport = cdl::Support::TEMPLATE_MATMUL;

namespace {

constexpr int kRows = 4, kCols = 16; // of the tile of y that stays in registers

// acc = ROWS rows of a times a panel of b: k rows of kCols, contiguous. Each element is summed in
// the order of k.
template <int ROWS>
void multiplyTile(const float* a, int64_t aStride, const float* panel, int64_t k, float acc[][kCols]) {
  float sum[ROWS][kCols] = {};
  for (int64_t r = 0; r < k; ++r, panel += kCols)
    for (int i = 0; i < ROWS; ++i) {
      const float value = a[i * aStride + r];
      for (int j = 0; j < kCols; ++j) sum[i][j] += value * panel[j];
    }
  std::memcpy(acc, sum, sizeof sum);
}

// kCols columns of b side by side in `panel`, zero beyond `cols`.
void packPanel(const float* b, int64_t bStride, int64_t k, int64_t cols, float* panel) {
  for (int64_t r = 0; r < k; ++r)
    for (int64_t j = 0; j < kCols; ++j) panel[r * kCols + j] = j < cols ? b[r * bStride + j] : 0.0f;
}

cdl::Status matMulF32(const cdl::MatMul& op) {
  const auto a = op.a<const float>(), b = op.b<const float>();
  const auto y = op.y<float>();
  const int64_t m = op.m(), n = op.n(), k = op.k();
  std::vector<float> panel(static_cast<size_t>(k * kCols));
  float acc[kRows][kCols];
  for (auto batch : y.range(0))
    for (int64_t col = 0; col < n; col += kCols) {
      const int64_t cols = n - col < kCols ? n - col : kCols;
      packPanel(b[batch].data() + col, b.stride(1), k, cols, panel.data());
      for (int64_t row = 0; row < m;) {
        const float* from = a[batch].data() + row * a.stride(1);
        const int rows = m - row < kRows ? 1 : kRows;
        if (rows == kRows)
          multiplyTile<kRows>(from, a.stride(1), panel.data(), k, acc);
        else
          multiplyTile<1>(from, a.stride(1), panel.data(), k, acc);
        for (int i = 0; i < rows; ++i) {
          float* to = y[batch].data() + (row + i) * y.stride(1) + col;
          for (int64_t j = 0; j < cols; ++j) to[j] = op.accumulate() ? to[j] + acc[i][j] : acc[i][j];
        }
        row += rows;
      }
    }
  return cdl::ok();
}

// Zero points come in the operands' types or as i32. Unsigned, as all sums here: it wraps.
uint32_t integerAt(const cdl::Operand& operand, int64_t i) {
  i = operand.rank && operand.dims[0] > 1 ? i * operand.strides[0] : 0;
  switch (operand.elem) {
  case CDL_I8: return static_cast<uint32_t>(static_cast<const int8_t*>(operand.data)[i]);
  case CDL_U8: return static_cast<const uint8_t*>(operand.data)[i];
  case CDL_I32: return static_cast<uint32_t>(static_cast<const int32_t*>(operand.data)[i]);
  default: throw cdl::BadAccess(std::string("zero points of ") + cdl::elemName(operand.elem));
  }
}

template <class A> cdl::Status matMulI32(const cdl::MatMul& op) {
  const auto a = op.a<const A>();
  const auto b = op.b<const int8_t>();
  const auto y = op.y<int32_t>();
  const int64_t m = op.m(), n = op.n(), k = op.k();
  const uint32_t aZero = op.hasAZero() ? integerAt(op.aZero(), 0) : 0;
  std::vector<uint32_t> bZero(static_cast<size_t>(n), 0);
  for (int64_t j = 0; j < n && op.hasBZero(); ++j) bZero[static_cast<size_t>(j)] = integerAt(op.bZero(), j);
  std::vector<uint32_t> sum(static_cast<size_t>(n));
  for (auto batch : y.range(0))
    for (int64_t i = 0; i < m; ++i) {
      int32_t* to = y[batch].data() + i * y.stride(1);
      for (int64_t j = 0; j < n; ++j) sum[static_cast<size_t>(j)] = op.accumulate() ? static_cast<uint32_t>(to[j]) : 0;
      for (int64_t r = 0; r < k; ++r) {
        const uint32_t value = static_cast<uint32_t>(a(batch, i, r)) - aZero;
        const int8_t* row = b[batch].data() + r * b.stride(1);
        for (int64_t j = 0; j < n; ++j)
          sum[static_cast<size_t>(j)] += value * (static_cast<uint32_t>(row[j]) - bZero[static_cast<size_t>(j)]);
      }
      for (int64_t j = 0; j < n; ++j) to[j] = static_cast<int32_t>(sum[static_cast<size_t>(j)]);
    }
  return cdl::ok();
}

} // namespace

cdl::Status Template::matMul(const cdl::MatMul& op) {
  switch (op.a().elem) {
  case CDL_F32: return matMulF32(op);
  case CDL_I8: return matMulI32<int8_t>(op);
  case CDL_U8: return matMulI32<uint8_t>(op);
  default: return unknownFunction(op, op.a().elem);
  }
}
