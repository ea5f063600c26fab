#include "simulator/func/kernels.h"

#include "simulator/func/kernels_lanes.inc"

namespace candela::npu {

#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
#endif

namespace {

int32_t valueOf(uint8_t bits, bool isUnsigned) {
  return isUnsigned ? bits : static_cast<int8_t>(bits);
}
void addWrapping(int32_t& to, int32_t product) {
  to = static_cast<int32_t>(static_cast<uint32_t>(to) + static_cast<uint32_t>(product));
}

void widen(const uint8_t* from, int64_t count, bool isUnsigned, int32_t zero, int16_t* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = static_cast<int16_t>(valueOf(from[i], isUnsigned) - zero);
}

void interleave(const uint8_t* row0, const uint8_t* row1, int64_t n, int64_t padded,
                bool isUnsigned, int32_t zero, int16_t* to) {
  for (int64_t i = 0; i < n; ++i) {
    to[2 * i] = static_cast<int16_t>(valueOf(row0[i], isUnsigned) - zero);
    to[2 * i + 1] = row1 ? static_cast<int16_t>(valueOf(row1[i], isUnsigned) - zero) : int16_t{0};
  }
  std::memset(to + 2 * n, 0, static_cast<size_t>(4 * (padded - n)));
}

void multiply(const int16_t* a, int64_t aPitch, int64_t m, int64_t pairs, const int16_t* b,
              int64_t padded, int64_t n, int32_t* c, int64_t pitch, bool accumulate) {
  for (int64_t p = 0; p < m; ++p) {
    int32_t* const row = c + p * pitch;
    if (!accumulate) std::memset(row, 0, static_cast<size_t>(n) * sizeof(int32_t));
    for (int64_t k = 0; k < 2 * pairs; ++k) {
      const int32_t x = a[p * aPitch + k];
      const int16_t* const weights = b + (k / 2) * padded * 2 + k % 2;
      for (int64_t i = 0; i < n; ++i) addWrapping(row[i], x * weights[2 * i]);
    }
  }
}

void depthwise(const uint8_t* x, bool xUnsigned, int32_t xZero, const uint8_t* w, bool wUnsigned,
               int32_t wZero, int64_t n, int32_t* c) {
  for (int64_t i = 0; i < n; ++i)
    addWrapping(c[i], (valueOf(x[i], xUnsigned) - xZero) * (valueOf(w[i], wUnsigned) - wZero));
}

void depthwise16(const int16_t* x, int32_t xZero, const uint8_t* w, bool wUnsigned, int32_t wZero,
                 int64_t n, int32_t* c) {
  for (int64_t i = 0; i < n; ++i) c[i] += (x[i] - xZero) * (valueOf(w[i], wUnsigned) - wZero);
}

void multiplyFloats(const float* a, int64_t m, int64_t k, const float* b, int64_t padded, int64_t n,
                    float* c) {
  for (int64_t p = 0; p < m; ++p)
    for (int64_t t = 0; t < k; ++t)
      for (int64_t i = 0; i < n; ++i) c[p * n + i] += a[p * k + t] * b[t * padded + i];
}

} // namespace

const Kernels& plainKernels() {
  static constexpr Kernels kernels{
      "plain",         widen, interleave, multiply, depthwise, depthwise16, multiplyFloats,
      depthwiseFloats, load,  store,      maximum,  addLess,   scale};
  return kernels;
}

const Kernels& bestKernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return kAvx2Kernels;
#endif
  return plainKernels();
}

} // namespace candela::npu
