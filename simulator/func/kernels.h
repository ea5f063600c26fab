#pragma once

#include <cstdint>

#include "simulator/isa/isa.h"

namespace candela::npu {

/// The inner loops of the engines. Weights, and activations of 8 bits, are values less their zero
/// point: -255..255 in 16 bits; activations of 16 bits are as they are. Sums wrap modulo 2^32. Of
/// floats each product and each sum is rounded by itself.
/// Every implementation gives the same bits.
struct Kernels {
  const char* name;

  /// to[i] = from[i] - zero, i < count.
  void (*widen)(const uint8_t* from, int64_t count, bool isUnsigned, int32_t zero, int16_t* to);

  /// Two rows of weights side by side: to[2 i] and to[2 i + 1] from row0 and row1 (null: zeros), i
  /// < n; zeros up to padded, a multiple of 8.
  void (*interleave)(const uint8_t* row0, const uint8_t* row1, int64_t n, int64_t padded,
                     bool isUnsigned, int32_t zero, int16_t* to);

  /// c[p * pitch + i] (+)= sum over k of a[p * aPitch + k] * b[k][i], p < m, i < n. a: m rows of 2
  /// * pairs values; b: pairs rows of `padded` pairs, as interleave makes them.
  void (*multiply)(const int16_t* a, int64_t aPitch, int64_t m, int64_t pairs, const int16_t* b,
                   int64_t padded, int64_t n, int32_t* c, int64_t pitch, bool accumulate);

  /// c[i] += (x[i] - xZero) * (w[i] - wZero), i < n.
  void (*depthwise)(const uint8_t* x, bool xUnsigned, int32_t xZero, const uint8_t* w,
                    bool wUnsigned, int32_t wZero, int64_t n, int32_t* c);
  /// The same of 16-bit x; the caller sees to it that sums stay in 32 bits.
  void (*depthwise16)(const int16_t* x, int32_t xZero, const uint8_t* w, bool wUnsigned,
                      int32_t wZero, int64_t n, int32_t* c);

  /// c[p * n + i] += a[p * k + t] * b[t * padded + i] for t = 0, 1, .. k - 1 in this order, p < m,
  /// i < n; padded: n up to the next multiple of 8.
  void (*multiplyFloats)(const float* a, int64_t m, int64_t k, const float* b, int64_t padded,
                         int64_t n, float* c);
  /// c[i] += x[i] * w[i], i < n, of bf16.
  void (*depthwiseFloats)(const uint8_t* x, const uint8_t* w, int64_t n, float* c);

  /// n elements, widened to 32 bits, and their low bits back.
  void (*load)(const uint8_t* from, Type type, int64_t n, int32_t* to);
  void (*store)(const int32_t* from, Type type, int64_t n, uint8_t* to);
  /// to[i] = max(to[i], x[i]), and to[i] += x[i] - zero.
  void (*maximum)(const int32_t* x, int64_t n, int32_t* to);
  void (*addLess)(const int32_t* x, int32_t zero, int64_t n, int32_t* to);
  /// The end of a RESCALE: to[i] = clamp(rne(sums[i] / 2^shifts[i]) + zero, low, high).
  void (*scale)(const int64_t* sums, const int32_t* shifts, int64_t n, int32_t zero, int32_t low,
                int32_t high, int32_t* to);
};

const Kernels& plainKernels();
/// Those for this processor: AVX2 where it has it.
const Kernels& bestKernels();

} // namespace candela::npu
