// Compiled for AVX2; nothing here runs before bestKernels has asked the processor.
#include "simulator/func/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "simulator/func/kernels_lanes.inc"

namespace candela::npu {

extern const Kernels kAvx2Kernels;

namespace {

int32_t valueOf(uint8_t bits, bool isUnsigned) {
  return isUnsigned ? bits : static_cast<int8_t>(bits);
}

__m256i widened16(const uint8_t* from, bool isUnsigned) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return isUnsigned ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}
__m128i widened8(const uint8_t* from, bool isUnsigned) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return isUnsigned ? _mm_cvtepu8_epi16(bytes) : _mm_cvtepi8_epi16(bytes);
}

void widen(const uint8_t* from, int64_t count, bool isUnsigned, int32_t zero, int16_t* to) {
  const __m256i zeros = _mm256_set1_epi16(static_cast<int16_t>(zero));
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_sub_epi16(widened16(from + i, isUnsigned), zeros));
  for (; i < count; ++i) to[i] = static_cast<int16_t>(valueOf(from[i], isUnsigned) - zero);
}

void interleave(const uint8_t* row0, const uint8_t* row1, int64_t n, int64_t padded,
                bool isUnsigned, int32_t zero, int16_t* to) {
  const __m128i zeros = _mm_set1_epi16(static_cast<int16_t>(zero));
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i even = _mm_sub_epi16(widened8(row0 + i, isUnsigned), zeros);
    const __m128i odd =
        row1 ? _mm_sub_epi16(widened8(row1 + i, isUnsigned), zeros) : _mm_setzero_si128();
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i), _mm_unpacklo_epi16(even, odd));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 2 * i + 8), _mm_unpackhi_epi16(even, odd));
  }
  for (; i < n; ++i) {
    to[2 * i] = static_cast<int16_t>(valueOf(row0[i], isUnsigned) - zero);
    to[2 * i + 1] = row1 ? static_cast<int16_t>(valueOf(row1[i], isUnsigned) - zero) : int16_t{0};
  }
  std::memset(to + 2 * n, 0, static_cast<size_t>(4 * (padded - n)));
}

/// M rows by V vectors of 8 columns. A pair of products with a weight of -255..255 fits 32 bits,
/// and sums wrap as they must.
template <int M, int V>
void block(const int16_t* a, int64_t aPitch, int64_t pairs, const int16_t* b, int64_t padded,
           int64_t n, int32_t* c, int64_t pitch, bool accumulate) {
  __m256i sums[M][V];
  for (auto& row : sums)
    for (auto& sum : row) sum = _mm256_setzero_si256();
  for (int64_t k = 0; k < pairs; ++k) {
    __m256i weights[V];
    for (int v = 0; v < V; ++v)
      weights[v] =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + k * padded * 2 + v * 16));
    for (int p = 0; p < M; ++p) {
      int32_t two;
      std::memcpy(&two, a + p * aPitch + 2 * k, sizeof two);
      const __m256i x = _mm256_set1_epi32(two);
      for (int v = 0; v < V; ++v)
        sums[p][v] = _mm256_add_epi32(sums[p][v], _mm256_madd_epi16(x, weights[v]));
    }
  }
  for (int p = 0; p < M; ++p)
    for (int v = 0; v < V; ++v) {
      int32_t* const out = c + p * pitch + v * 8;
      const int64_t left = n - v * 8;
      if (left >= 8) {
        auto* const at = reinterpret_cast<__m256i*>(out);
        _mm256_storeu_si256(at, accumulate ? _mm256_add_epi32(_mm256_loadu_si256(at), sums[p][v])
                                           : sums[p][v]);
        continue;
      }
      alignas(32) uint32_t values[8];
      _mm256_store_si256(reinterpret_cast<__m256i*>(values), sums[p][v]);
      for (int64_t i = 0; i < left; ++i)
        out[i] = static_cast<int32_t>(values[i] + (accumulate ? static_cast<uint32_t>(out[i]) : 0));
    }
}

template <int V>
void columns(const int16_t* a, int64_t aPitch, int64_t m, int64_t pairs, const int16_t* b,
             int64_t padded, int64_t n, int32_t* c, int64_t pitch, bool accumulate) {
  int64_t p = 0;
  for (; p + 6 <= m; p += 6)
    block<6, V>(a + p * aPitch, aPitch, pairs, b, padded, n, c + p * pitch, pitch, accumulate);
  for (; p + 2 <= m; p += 2)
    block<2, V>(a + p * aPitch, aPitch, pairs, b, padded, n, c + p * pitch, pitch, accumulate);
  if (p < m)
    block<1, V>(a + p * aPitch, aPitch, pairs, b, padded, n, c + p * pitch, pitch, accumulate);
}

void multiply(const int16_t* a, int64_t aPitch, int64_t m, int64_t pairs, const int16_t* b,
              int64_t padded, int64_t n, int32_t* c, int64_t pitch, bool accumulate) {
  int64_t i = 0;
  for (; i + 16 <= padded; i += 16)
    columns<2>(a, aPitch, m, pairs, b + 2 * i, padded, n - i, c + i, pitch, accumulate);
  if (i < padded)
    columns<1>(a, aPitch, m, pairs, b + 2 * i, padded, n - i, c + i, pitch, accumulate);
}

/// M rows by V vectors of 8 columns, one product and one sum at a time.
template <int M, int V>
void floatBlock(const float* a, int64_t k, const float* b, int64_t padded, int64_t n, int64_t first,
                float* c) {
  __m256 sums[M][V];
  alignas(32) float edge[8];
  for (int p = 0; p < M; ++p)
    for (int v = 0; v < V; ++v) {
      const int64_t left = n - first - v * 8;
      const float* from = c + p * n + first + v * 8;
      if (left < 8) {
        for (int64_t i = 0; i < 8; ++i) edge[i] = i < left ? from[i] : 0;
        from = edge;
      }
      sums[p][v] = _mm256_loadu_ps(from);
    }
  for (int64_t t = 0; t < k; ++t) {
    __m256 weights[V];
    for (int v = 0; v < V; ++v) weights[v] = _mm256_loadu_ps(b + t * padded + first + v * 8);
    for (int p = 0; p < M; ++p) {
      const __m256 x = _mm256_set1_ps(a[p * k + t]);
      for (int v = 0; v < V; ++v)
        sums[p][v] = _mm256_add_ps(sums[p][v], _mm256_mul_ps(x, weights[v]));
    }
  }
  for (int p = 0; p < M; ++p)
    for (int v = 0; v < V; ++v) {
      const int64_t left = n - first - v * 8;
      float* const out = c + p * n + first + v * 8;
      if (left >= 8) {
        _mm256_storeu_ps(out, sums[p][v]);
        continue;
      }
      _mm256_store_ps(edge, sums[p][v]);
      for (int64_t i = 0; i < left; ++i) out[i] = edge[i];
    }
}

template <int V>
void floatColumns(const float* a, int64_t m, int64_t k, const float* b, int64_t padded, int64_t n,
                  int64_t first, float* c) {
  int64_t p = 0;
  for (; p + 6 <= m; p += 6) floatBlock<6, V>(a + p * k, k, b, padded, n, first, c + p * n);
  for (; p < m; ++p) floatBlock<1, V>(a + p * k, k, b, padded, n, first, c + p * n);
}

void multiplyFloats(const float* a, int64_t m, int64_t k, const float* b, int64_t padded, int64_t n,
                    float* c) {
  int64_t first = 0;
  for (; first + 16 <= padded; first += 16) floatColumns<2>(a, m, k, b, padded, n, first, c);
  if (first < padded) floatColumns<1>(a, m, k, b, padded, n, first, c);
}

void depthwise(const uint8_t* x, bool xUnsigned, int32_t xZero, const uint8_t* w, bool wUnsigned,
               int32_t wZero, int64_t n, int32_t* c) {
  const __m128i xZeros = _mm_set1_epi16(static_cast<int16_t>(xZero)),
                wZeros = _mm_set1_epi16(static_cast<int16_t>(wZero));
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i left = _mm256_cvtepi16_epi32(_mm_sub_epi16(widened8(x + i, xUnsigned), xZeros));
    const __m256i right = _mm256_cvtepi16_epi32(_mm_sub_epi16(widened8(w + i, wUnsigned), wZeros));
    auto* const at = reinterpret_cast<__m256i*>(c + i);
    _mm256_storeu_si256(at,
                        _mm256_add_epi32(_mm256_loadu_si256(at), _mm256_mullo_epi32(left, right)));
  }
  for (; i < n; ++i) {
    const int32_t product = (valueOf(x[i], xUnsigned) - xZero) * (valueOf(w[i], wUnsigned) - wZero);
    c[i] = static_cast<int32_t>(static_cast<uint32_t>(c[i]) + static_cast<uint32_t>(product));
  }
}

void depthwise16(const int16_t* x, int32_t xZero, const uint8_t* w, bool wUnsigned, int32_t wZero,
                 int64_t n, int32_t* c) {
  const __m128i wZeros = _mm_set1_epi16(static_cast<int16_t>(wZero));
  const __m256i xZeros = _mm256_set1_epi32(xZero);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    const __m256i left = _mm256_sub_epi32(_mm256_cvtepi16_epi32(halves), xZeros);
    const __m256i right = _mm256_cvtepi16_epi32(_mm_sub_epi16(widened8(w + i, wUnsigned), wZeros));
    auto* const at = reinterpret_cast<__m256i*>(c + i);
    _mm256_storeu_si256(at,
                        _mm256_add_epi32(_mm256_loadu_si256(at), _mm256_mullo_epi32(left, right)));
  }
  for (; i < n; ++i) c[i] += (x[i] - xZero) * (valueOf(w[i], wUnsigned) - wZero);
}

__m256i select(__m256i mask, __m256i yes, __m256i no) { return _mm256_blendv_epi8(no, yes, mask); }

/// Four at a time. 64-bit shifts of the sign are not there: of a negative value its complement is
/// shifted.
void scaleWide(const int64_t* sums, const int32_t* shifts, int64_t n, int32_t zero, int32_t low,
               int32_t high, int32_t* to) {
  const __m256i none = _mm256_setzero_si256(), one = _mm256_set1_epi64x(1),
                zeros = _mm256_set1_epi64x(zero);
  const __m256i least = _mm256_set1_epi64x(low), most = _mm256_set1_epi64x(high);
  const __m128i few = _mm_set1_epi32(61);
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shifts + i));
    // Shifts of 1..62: half a unit, and what is left below a unit, have room in 63 bits.
    const __m128i less = _mm_sub_epi32(four, _mm_set1_epi32(1));
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(_mm_min_epu32(less, few), less)) != 0xffff) {
      scale(sums + i, shifts + i, 4, zero, low, high, to + i);
      continue;
    }
    const __m256i shift = _mm256_cvtepi32_epi64(four),
                  value = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + i));
    const __m256i sign = _mm256_cmpgt_epi64(none, value);
    const __m256i down =
        _mm256_xor_si256(_mm256_srlv_epi64(_mm256_xor_si256(value, sign), shift), sign);
    const __m256i rest = _mm256_sub_epi64(value, _mm256_sllv_epi64(down, shift));
    const __m256i half = _mm256_srli_epi64(_mm256_sllv_epi64(one, shift), 1);
    // Up where rest is above half, or half and down odd; the comparison gives -1.
    const __m256i up =
        _mm256_cmpgt_epi64(_mm256_add_epi64(rest, _mm256_and_si256(down, one)), half);
    __m256i result = _mm256_add_epi64(_mm256_sub_epi64(down, up), zeros);
    result = select(_mm256_cmpgt_epi64(least, result), least, result);
    result = select(_mm256_cmpgt_epi64(result, most), most, result);
    const __m256i packed =
        _mm256_permutevar8x32_epi32(result, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm256_castsi256_si128(packed));
  }
  scale(sums + i, shifts + i, n - i, zero, low, high, to + i);
}

} // namespace

const Kernels kAvx2Kernels{"avx2",      widen,          interleave,      multiply, depthwise,
                           depthwise16, multiplyFloats, depthwiseFloats, load,     store,
                           maximum,     addLess,        scaleWide};

} // namespace candela::npu
#endif
