/* The arithmetic of Candela's element types, for everyone who must agree to the bit: soft,
 * simulator, backends.
 *
 * C11 and C++, no dependency. Conversions round to nearest, ties to even, once. Integers: add, sub,
 * mul and shl wrap; division truncates, x / 0 = 0, lowest / -1 wraps; x rem 0 = x; a shift by at
 * least the width (a negative amount counts as huge) gives 0, or the sign for shr of a signed type.
 * Nothing here depends on the floating-point environment but the plain float and double operators.
 * All functions are pure: any thread. */
#ifndef CANDELA_NUMERICS_H
#define CANDELA_NUMERICS_H

#include <stdint.h>
#include <string.h>

#include "candela/cdl_enums.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Bits ------------------------------------------------------------------------------------ */

static inline uint32_t cdl_f32_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float cdl_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint64_t cdl_f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline double cdl_f64_of_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* value / 2^shift to nearest, ties to even. A negative shift counts as 0, one of 64 and more gives
 * 0. */
static inline uint64_t cdl_rne_shift_u64(uint64_t value, int32_t shift) {
  if (shift <= 0) return value;
  if (shift >= 64) return shift == 64 && value > (UINT64_C(1) << 63);
  uint64_t down = value >> shift, rest = value - (down << shift), half = UINT64_C(1) << (shift - 1);
  return down + (rest > half || (rest == half && (down & 1)));
}
static inline int64_t cdl_rne_shift_i64(int64_t value, int32_t shift) {
  if (shift <= 0) return value;
  if (shift >= 64) return 0; /* |value| <= 2^63 is at most half, and half goes to the even 0 */
  int64_t down = value >> shift;
  uint64_t rest = (uint64_t)value - ((uint64_t)down << shift), half = UINT64_C(1) << (shift - 1);
  return down + (rest > half || (rest == half && (down & 1)));
}

/* ---- Narrow floats --------------------------------------------------------------------------- */

/* What a narrow format holds at its highest exponent: infinity and NaN, or numbers and one NaN (the
 * last), or numbers alone. FNUZ: the same, and a NaN in place of -0. */
enum { CDL_FLOAT_IEEE = 0, CDL_FLOAT_FN = 1, CDL_FLOAT_FNUZ = 2, CDL_FLOAT_FINITE = 3 };

/* The magnitude of a narrow format's largest finite value, from that of the lowest number of its
 * highest exponent, and all bits of a magnitude. */
static inline uint32_t cdl_float_max(uint32_t top, uint32_t all, int special) {
  if (special == CDL_FLOAT_IEEE) return top - 1u;
  return special == CDL_FLOAT_FN ? all - 1u : all;
}
/* What a NaN becomes in a narrow format, its sign in place. */
static inline uint32_t cdl_float_nan(uint32_t sign, int exp_bits, int man_bits, int special) {
  const uint32_t minus = 1u << (exp_bits + man_bits), all = minus - 1u;
  const uint32_t top = ((1u << exp_bits) - 1u) << man_bits;
  if (special == CDL_FLOAT_IEEE) return sign | top | 1u << (man_bits - 1);
  if (special == CDL_FLOAT_FN) return sign | all;
  return special == CDL_FLOAT_FNUZ ? minus : sign ^ minus;
}

/* The narrow float of exp_bits and man_bits nearest to x. Beyond the largest finite value, infinity
 * included: that value when `saturate` or FINITE, else infinity, or NaN where there is none. NaN
 * keeps its sign and becomes the quiet one without payload; FNUZ has one only, and FINITE a zero of
 * the other sign instead. */
static inline uint32_t cdl_float_encode(double x, int exp_bits, int man_bits, int special,
                                        int saturate) {
  const uint64_t bits = cdl_f64_bits(x), fraction = bits & ((UINT64_C(1) << 52) - 1);
  const int field = (int)((bits >> 52) & 0x7ff);
  const uint32_t minus = 1u << (exp_bits + man_bits), sign = bits >> 63 ? minus : 0;
  const uint32_t top = ((1u << exp_bits) - 1u) << man_bits, all = top + (1u << man_bits) - 1u;
  const uint32_t max = cdl_float_max(top, all, special);
  const uint32_t nan = cdl_float_nan(sign, exp_bits, man_bits, special);
  const uint32_t infinity = special == CDL_FLOAT_IEEE ? sign | top : nan;
  const uint32_t over = saturate || special == CDL_FLOAT_FINITE ? sign | max : infinity;
  if (field == 0x7ff) return fraction ? nan : over;
  /* Zero, or a subnormal f64, far below half of every format's smallest. */
  if (field == 0) return special == CDL_FLOAT_FNUZ ? 0 : sign;
  const int exponent =
      field - 1023 + (1 << (exp_bits - 1)) - (special == CDL_FLOAT_FNUZ ? 0 : 1); /* narrow field */
  const int shift = 52 - man_bits + (exponent < 1 ? 1 - exponent : 0);
  uint64_t value = cdl_rne_shift_u64(fraction | UINT64_C(1) << 52, shift);
  if (exponent > 1) value += (uint64_t)(exponent - 1) << man_bits;
  if (value > max) return over;
  return special == CDL_FLOAT_FNUZ && value == 0 ? 0 : sign | (uint32_t)value;
}
/* The value of a narrow float of at most 8 bits. */
static inline float cdl_float_decode(uint32_t bits, int exp_bits, int man_bits, int special) {
  const uint32_t minus = 1u << (exp_bits + man_bits), all = minus - 1u,
                 top = all ^ ((1u << man_bits) - 1u);
  const uint32_t sign = bits & minus ? 0x80000000u : 0, mag = bits & all, fraction = mag & ~top;
  const int bias = (1 << (exp_bits - 1)) - (special == CDL_FLOAT_FNUZ ? 0 : 1),
            field = (int)(mag >> man_bits);
  if (special == CDL_FLOAT_FNUZ && sign && mag == 0) return cdl_f32_of_bits(0x7fc00000u);
  if (special == CDL_FLOAT_IEEE && mag >= top)
    return cdl_f32_of_bits(sign | 0x7f800000u |
                           (fraction ? 0x400000u | fraction << (23 - man_bits) : 0));
  if (special == CDL_FLOAT_FN && mag == all) return cdl_f32_of_bits(sign | 0x7fc00000u);
  const float unit = cdl_f32_of_bits((uint32_t)((field ? field : 1) - bias - man_bits + 127) << 23);
  const float value = (float)(int32_t)(field ? fraction | 1u << man_bits : fraction) * unit;
  return cdl_f32_of_bits(sign | cdl_f32_bits(value));
}

static inline float cdl_f16_to_f32(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, mag = h & 0x7fffu;
  const uint32_t normal = (mag << 13) + (112u << 23);
  const uint32_t special = mag > 0x7c00u ? 0x7fc00000u | mag << 13 : 0x7f800000u;
  const uint32_t small = cdl_f32_bits((float)(int32_t)mag * 0x1p-24f);
  const uint32_t large = mag < 0x7c00u ? normal : special;
  return cdl_f32_of_bits(sign | (mag < 0x400u ? small : large));
}
static inline uint16_t cdl_f32_to_f16(float x) {
  const uint32_t bits = cdl_f32_bits(x), sign = (bits >> 16) & 0x8000u, mag = bits & 0x7fffffffu;
  /* 0.5 has the unit 2^-24 of the subnormals of f16, so that the addition rounds as they do. */
  const uint32_t small =
      cdl_f32_bits(cdl_f32_of_bits(mag < 0x38800000u ? mag : 0) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (mag + 0xfffu + ((mag >> 13) & 1u) - (112u << 23)) >> 13;
  const uint32_t special = mag > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t large = mag < 0x477ff000u ? normal : special;
  return (uint16_t)(sign | (mag < 0x38800000u ? small : large));
}
static inline uint16_t cdl_f32_to_f16_sat(float x) {
  const uint16_t h = cdl_f32_to_f16(x);
  return (h & 0x7fffu) == 0x7c00u ? (uint16_t)(h - 1u) : h;
}
static inline uint16_t cdl_f64_to_f16(double x) {
  return (uint16_t)cdl_float_encode(x, 5, 10, 0, 0);
}
static inline uint16_t cdl_f64_to_f16_sat(double x) {
  return (uint16_t)cdl_float_encode(x, 5, 10, 0, 1);
}

static inline float cdl_bf16_to_f32(uint16_t h) { return cdl_f32_of_bits((uint32_t)h << 16); }
static inline uint16_t cdl_f32_to_bf16(float x) {
  const uint32_t bits = cdl_f32_bits(x);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) & 0x8000u) | 0x7fc0u
                                                       : rounded);
}
static inline uint16_t cdl_f32_to_bf16_sat(float x) {
  const uint16_t h = cdl_f32_to_bf16(x);
  return (h & 0x7fffu) == 0x7f80u ? (uint16_t)(h - 1u) : h;
}
static inline uint16_t cdl_f64_to_bf16(double x) {
  return (uint16_t)cdl_float_encode(x, 8, 7, 0, 0);
}
static inline uint16_t cdl_f64_to_bf16_sat(double x) {
  return (uint16_t)cdl_float_encode(x, 8, 7, 0, 1);
}

/* f8e8m0: the power of two of a biased exponent, or NaN. To nearest, ties up; outside of the
 * powers, which is also what is not above 0: the largest or smallest one when `saturate`, else
 * NaN. */
static inline float cdl_f8e8m0_to_f32(uint8_t v) {
  if (v == 255) return cdl_f32_of_bits(0x7fc00000u);
  return cdl_f32_of_bits(v == 0 ? 0x400000u : (uint32_t)v << 23);
}
static inline uint8_t cdl_f64_to_f8e8m0(double x, int saturate) {
  const uint64_t bits =
      cdl_f64_bits(x) + (UINT64_C(1) << 51); /* from half of the way to the next one on */
  const int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + 127;
  if (x != x) return 255;
  if (!(x > 0.0) || exponent < 0) return saturate ? 0 : 255;
  if (exponent > 254) return saturate ? 254 : 255;
  return (uint8_t)exponent;
}

/* Any storage float of 8 bits and less, by its element type; the unused bits of `bits` are not
 * looked at. Integers of 64 bits come by way of cdl_u64_to_f64_odd. */
static inline float cdl_storage_to_f32(uint8_t elem, uint8_t bits) {
  switch (elem) {
  case CDL_F8E4M3: return cdl_float_decode(bits, 4, 3, CDL_FLOAT_FN);
  case CDL_F8E5M2: return cdl_float_decode(bits, 5, 2, CDL_FLOAT_IEEE);
  case CDL_F8E4M3FNUZ: return cdl_float_decode(bits, 4, 3, CDL_FLOAT_FNUZ);
  case CDL_F8E5M2FNUZ: return cdl_float_decode(bits, 5, 2, CDL_FLOAT_FNUZ);
  case CDL_F8E8M0: return cdl_f8e8m0_to_f32(bits);
  case CDL_F6E2M3: return cdl_float_decode(bits, 2, 3, CDL_FLOAT_FINITE);
  case CDL_F6E3M2: return cdl_float_decode(bits, 3, 2, CDL_FLOAT_FINITE);
  default: return cdl_float_decode(bits, 2, 1, CDL_FLOAT_FINITE); /* f4e2m1 */
  }
}
static inline uint8_t cdl_f64_to_storage(uint8_t elem, double x, int saturate) {
  switch (elem) {
  case CDL_F8E4M3: return (uint8_t)cdl_float_encode(x, 4, 3, CDL_FLOAT_FN, saturate);
  case CDL_F8E5M2: return (uint8_t)cdl_float_encode(x, 5, 2, CDL_FLOAT_IEEE, saturate);
  case CDL_F8E4M3FNUZ: return (uint8_t)cdl_float_encode(x, 4, 3, CDL_FLOAT_FNUZ, saturate);
  case CDL_F8E5M2FNUZ: return (uint8_t)cdl_float_encode(x, 5, 2, CDL_FLOAT_FNUZ, saturate);
  case CDL_F8E8M0: return cdl_f64_to_f8e8m0(x, saturate);
  case CDL_F6E2M3: return (uint8_t)cdl_float_encode(x, 2, 3, CDL_FLOAT_FINITE, saturate);
  case CDL_F6E3M2: return (uint8_t)cdl_float_encode(x, 3, 2, CDL_FLOAT_FINITE, saturate);
  default: return (uint8_t)cdl_float_encode(x, 2, 1, CDL_FLOAT_FINITE, saturate); /* f4e2m1 */
  }
}

/* The f64 nearest to an integer, but rounded to odd: a further rounding to a format of at most 51
 * bits is then as if there had been one only. For integers on their way to f16, bf16 and f8. */
static inline double cdl_u64_to_f64_odd(uint64_t value) {
  if (value < (UINT64_C(1) << 53)) return (double)value;
  int shift = 0;
  uint64_t v = value;
  while (v >= (UINT64_C(1) << 53)) {
    v >>= 1;
    ++shift;
  }
  const uint64_t lost = value & ((UINT64_C(1) << shift) - 1);
  return (double)(v | (lost != 0)) * (double)(UINT64_C(1) << shift);
}
static inline double cdl_i64_to_f64_odd(int64_t value) {
  return value < 0 ? -cdl_u64_to_f64_odd(UINT64_C(0) - (uint64_t)value)
                   : cdl_u64_to_f64_odd((uint64_t)value);
}

/* ---- Packed elements: 8 / bits in a byte, the low bits first; bits is 2 or 4, `index` counts
 * elements ----------- */

static inline uint8_t cdl_packed_get(const void* data, int64_t index, int bits) {
  const int64_t at = index * bits;
  return (uint8_t)(((const uint8_t*)data)[at >> 3] >> (at & 7) & ((1u << bits) - 1u));
}
/* Of a signed type. */
static inline int8_t cdl_packed_get_signed(const void* data, int64_t index, int bits) {
  const int half = 1 << (bits - 1);
  return (int8_t)((cdl_packed_get(data, index, bits) ^ half) - half);
}
/* Stores the low bits of value; signed and unsigned alike. */
static inline void cdl_packed_set(void* data, int64_t index, int bits, int value) {
  const int64_t at = index * bits;
  uint8_t* byte = (uint8_t*)data + (at >> 3);
  const unsigned mask = ((1u << bits) - 1u) << (at & 7);
  *byte = (uint8_t)((*byte & ~mask) | ((unsigned)value << (at & 7) & mask));
}

/* ---- Integer semantics ----------------------------------------------------------------------- */

/* W: the unsigned type in which the arithmetic wraps without promotion to int. */
#define CDL_INTEGER_SEMANTICS(N, T, W, WIDTH)                                                      \
  static inline T cdl_add_##N(T a, T b) { return (T)((W)a + (W)b); }                               \
  static inline T cdl_sub_##N(T a, T b) { return (T)((W)a - (W)b); }                               \
  static inline T cdl_mul_##N(T a, T b) { return (T)((W)a * (W)b); }                               \
  static inline T cdl_neg_##N(T a) { return (T)((W)0 - (W)a); }                                    \
  static inline T cdl_abs_##N(T a) { return a < (T)1 ? cdl_neg_##N(a) : a; }                       \
  static inline T cdl_div_##N(T a, T b) {                                                          \
    if (b == 0) return 0;                                                                          \
    return b == (T) - 1 && (T) - 1 < (T)1 ? cdl_neg_##N(a) : (T)(a / b);                           \
  }                                                                                                \
  static inline T cdl_rem_##N(T a, T b) {                                                          \
    if (b == 0) return a;                                                                          \
    return b == (T) - 1 && (T) - 1 < (T)1 ? (T)0 : (T)(a % b);                                     \
  }                                                                                                \
  static inline T cdl_shl_##N(T a, T b) {                                                          \
    return (uint64_t)b < WIDTH ? (T)((W)a << ((W)b & (WIDTH - 1))) : (T)0;                         \
  }                                                                                                \
  static inline T cdl_shr_##N(T a, T b) {                                                          \
    return (uint64_t)b < WIDTH ? (T)(a >> ((W)b & (WIDTH - 1)))                                    \
                               : (T)(a < (T)1 && a != 0 ? -1 : 0);                                 \
  }                                                                                                \
  static inline T cdl_min_##N(T a, T b) { return a < b ? a : b; }                                  \
  static inline T cdl_max_##N(T a, T b) { return a > b ? a : b; }
CDL_INTEGER_SEMANTICS(i8, int8_t, uint32_t, 8)
CDL_INTEGER_SEMANTICS(u8, uint8_t, uint32_t, 8)
CDL_INTEGER_SEMANTICS(i16, int16_t, uint32_t, 16)
CDL_INTEGER_SEMANTICS(u16, uint16_t, uint32_t, 16)
CDL_INTEGER_SEMANTICS(i32, int32_t, uint32_t, 32)
CDL_INTEGER_SEMANTICS(u32, uint32_t, uint32_t, 32)
CDL_INTEGER_SEMANTICS(i64, int64_t, uint64_t, 64)
CDL_INTEGER_SEMANTICS(u64, uint64_t, uint64_t, 64)
#undef CDL_INTEGER_SEMANTICS

/* ---- Float minimum and maximum: NaN propagates; of two zeros, either ------------------------- */

static inline float cdl_min_f32(float a, float b) { return a < b || a != a ? a : b; }
static inline float cdl_max_f32(float a, float b) { return a > b || a != a ? a : b; }
static inline double cdl_min_f64(double a, double b) { return a < b || a != a ? a : b; }
static inline double cdl_max_f64(double a, double b) { return a > b || a != a ? a : b; }

/* ---- Float to integer ------------------------------------------------------------------------ */

/* Toward zero, down, and to nearest even, as doubles; infinities, NaN and values from 2^52 on come
 * back as they are. */
static inline double cdl_trunc_f64(double x) {
  return x > -0x1p52 && x < 0x1p52 ? (double)(int64_t)x : x;
}
static inline double cdl_floor_f64(double x) {
  const double t = cdl_trunc_f64(x);
  return t > x ? t - 1.0 : t;
}
static inline double cdl_rne_f64(double x) {
  if (!(x > -0x1p52 && x < 0x1p52)) return x;
  const double down = cdl_floor_f64(x), rest = x - down;
  return rest > 0.5 || (rest == 0.5 && ((int64_t)down & 1)) ? down + 1.0 : down;
}
enum { CDL_ROUND_TRUNC = 0, CDL_ROUND_RNE = 1, CDL_ROUND_FLOOR = 2 }; /* the functions of CONVERT */
static inline double cdl_round_f64(double x, int rounding) {
  if (rounding == CDL_ROUND_TRUNC) return cdl_trunc_f64(x);
  return rounding == CDL_ROUND_RNE ? cdl_rne_f64(x) : cdl_floor_f64(x);
}

/* The integral or infinite x in 64 bits, two's complement: clamped to -2^63 .. 2^64 - 1; NaN gives
 * 0. Narrower integers take its low bits, which is what "wrapping" means in CONVERT. */
static inline uint64_t cdl_f64_to_wide(double x) {
  if (x != x) return 0;
  if (x >= 0x1p64) return UINT64_MAX;
  if (x >= 0x1p63) return (uint64_t)x;
  if (x <= -0x1p63) return UINT64_C(1) << 63;
  return (uint64_t)(int64_t)x;
}
/* The value, or the end of [lo, hi] that it lies beyond. */
static inline int64_t cdl_clamp_i64(int64_t value, int64_t lo, int64_t hi) {
  if (value < lo) return lo;
  return value > hi ? hi : value;
}
/* x rounded, then in [lo, hi] (saturating); NaN gives 0. The second for u64. */
static inline int64_t cdl_f64_to_int_sat(double x, int rounding, int64_t lo, int64_t hi) {
  if (x != x) return 0;
  x = cdl_round_f64(x, rounding);
  if (x >= 0x1p63) return hi;
  if (x < -0x1p63) return lo;
  const int64_t i = (int64_t)x;
  return cdl_clamp_i64(i, lo, hi);
}
static inline uint64_t cdl_f64_to_u64_sat(double x, int rounding) {
  x = cdl_round_f64(x, rounding);
  return x > 0.0 ? cdl_f64_to_wide(x) : 0; /* NaN is not above 0 */
}
/* x rounded, modulo 2^64; the caller keeps the low bits. */
static inline uint64_t cdl_f64_to_int_wrap(double x, int rounding) {
  return cdl_f64_to_wide(cdl_round_f64(x, rounding));
}

/* ---- RESCALE and TABLE ----------------------------------------------------------------------- */

/* scale = multiplier24 * 2^-shift with 2^23 <= multiplier24 < 2^24; scale 0 gives 0 and 0. The
 * shift of a scale of 2^24 and more is negative: it belongs into the operand's left shift. Returns
 * 0 and writes nothing for a scale that is negative, infinite or NaN, else 1. */
static inline int cdl_scale_split(float scale, int32_t* multiplier24, int32_t* shift) {
  const uint32_t bits = cdl_f32_bits(scale);
  if (bits == 0x80000000u || bits == 0) {
    *multiplier24 = 0;
    *shift = 0;
    return 1;
  }
  if (bits >= 0x7f800000u) return 0;
  int32_t field = (int32_t)(bits >> 23), m = (int32_t)(bits & 0x7fffffu);
  if (field == 0) {
    for (field = 1; m < 0x800000; --field) m <<= 1;
  } else {
    m |= 0x800000;
  }
  *multiplier24 = m;
  *shift = 150 - field;
  return 1;
}

static inline int64_t cdl_rescale_finish(int64_t sum, int32_t s, int32_t zp, int64_t lo,
                                         int64_t hi) {
  int64_t value = cdl_rne_shift_i64(sum, s);
  if (zp > 0 && value > INT64_MAX - zp)
    value = INT64_MAX;
  else if (zp < 0 && value < INT64_MIN - zp)
    value = INT64_MIN;
  else
    value += zp;
  return cdl_clamp_i64(value, lo, hi);
}

/* clamp(rne(a*Ma*2^ka / 2^s) + zp, lo, hi), exact while |a*Ma*2^ka| < 2^63: the caller sees to that
 * (i32 operands: ka <= 8; i64 ones: |a| < 2^39 with a 24-bit Ma). Beyond it the product wraps
 * modulo 2^64. ka in 0..63. */
static inline int64_t cdl_rescale1(int64_t a, int32_t Ma, int32_t ka, int32_t s, int32_t zp,
                                   int64_t lo, int64_t hi) {
  return cdl_rescale_finish((int64_t)(((uint64_t)a * (uint64_t)(int64_t)Ma) << ka), s, zp, lo, hi);
}
/* clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp, lo, hi), exact while the sum stays below 2^63. One
 * rounding. */
static inline int64_t cdl_rescale2(int64_t a, int64_t b, int32_t Ma, int32_t Mb, int32_t ka,
                                   int32_t kb, int32_t s, int32_t zp, int64_t lo, int64_t hi) {
  const uint64_t pa = ((uint64_t)a * (uint64_t)(int64_t)Ma) << ka,
                 pb = ((uint64_t)b * (uint64_t)(int64_t)Mb) << kb;
  return cdl_rescale_finish((int64_t)(pa + pb), s, zp, lo, hi);
}

/* 256 entries, entry 0 for the type's lowest value. */
static inline int8_t cdl_table_i8(const int8_t table[256], int8_t x) { return table[x + 128]; }
static inline uint8_t cdl_table_u8(const uint8_t table[256], uint8_t x) { return table[x]; }
/* 513 entries; entry i stands for x = -32768 + 128 * i. Between base and next, with frac = x's
 * distance from base in 0..127: base + floor(((next - base) * frac + 64) / 128), that is to nearest
 * and halves up. Never leaves base..next.
 */
static inline int16_t cdl_table_i16(const int16_t table[513], int16_t x) {
  const int32_t position = (int32_t)x + 32768, base = table[position >> 7],
                next = table[(position >> 7) + 1];
  return (int16_t)(base + (((next - base) * (position & 127) + 64) >> 7));
}

/* ---- SOFTMAX, LAYER NORM and RMS NORM of bytes ------------------------------------------------
 *
 * What core lowers softmax_integer, layer_norm_integer and rms_norm_integer to, for a kernel that
 * computes a row at once: rescales, tables and products, no division, no root. All sums and
 * products fit 32 bits. */

/* A falling function of a positive sum, such as 1 / v, in segments of growing width: each maps its
 * part of the sums to i16, where a table has the height above the segment's end in units of
 * `weight`, 0 beyond it and the whole height before it. */
typedef struct {
  int32_t begin;             /* the sum that -32768 stands for */
  int32_t multiplier, shift; /* of the RESCALE of what is beyond it to i16 */
  int32_t weight;
} cdl_segment_t;

/* base + what each segment adds. tables: 513 entries of each segment. */
static inline int32_t cdl_segments(int32_t v, int32_t base, const cdl_segment_t* segments,
                                   const int16_t* tables, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const cdl_segment_t* s = &segments[i];
    const int64_t x = cdl_rescale1((int64_t)v - s->begin, s->multiplier, 0, s->shift, INT16_MIN,
                                   INT16_MIN, INT16_MAX);
    base += s->weight * cdl_table_i16(tables + 513 * (int64_t)i, (int16_t)x);
  }
  return base;
}

typedef struct {
  const int16_t* exponential;    /* 513 entries: of x - largest = -255..0 at the entries 256..511 */
  const cdl_segment_t* segments; /* of the reciprocal of the sum of exponentials */
  const int16_t* tables;
  int32_t segment_count, base;
  int32_t multiplier, shift, zero; /* of the RESCALE of exponential * reciprocal to y */
  int32_t lowest, highest;         /* y's type */
} cdl_softmax_integer_t;

/* y = softmax(x) of a row of n bytes, widened. n in 1..65536. */
static inline void cdl_softmax_integer(const cdl_softmax_integer_t* p, const int32_t* x, int32_t* y,
                                       int32_t n) {
  int32_t largest = x[0], sum = 0;
  for (int32_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  for (int32_t i = 0; i < n; ++i) {
    y[i] = cdl_table_i16(p->exponential, (int16_t)(128 * (x[i] - largest) + 32640));
    sum += y[i];
  }
  const int32_t reciprocal = cdl_segments(sum, p->base, p->segments, p->tables, p->segment_count);
  for (int32_t i = 0; i < n; ++i)
    y[i] = (int32_t)cdl_rescale1((int64_t)y[i] * reciprocal, p->multiplier, 0, p->shift, p->zero,
                                 p->lowest, p->highest);
}

typedef struct {
  const int32_t *scale, *bias; /* n each: y in units of the last RESCALE is normal * scale + bias */
  const cdl_segment_t* segments; /* of the reciprocal of the standard deviation */
  const int16_t* tables;
  int32_t segment_count, base;
  int32_t fraction;                /* bits behind the point of the sum of squares */
  int32_t epsilon;                 /* added to it */
  int32_t normal_shift;            /* of (x - mean) * reciprocal to i16 */
  int32_t multiplier, shift, zero; /* of the RESCALE to y */
  int32_t lowest, highest;         /* y's type */
  int32_t x_lowest, x_highest;     /* x's type */
} cdl_layer_norm_integer_t;

/* v * factor to nearest even, clamped. */
static inline int32_t cdl_scaled(int32_t v, double factor, int32_t lo, int32_t hi) {
  int32_t multiplier = 0, shift = 0, left = 0;
  cdl_scale_split((float)factor, &multiplier, &shift);
  if (shift < 0) {
    left = -shift;
    shift = 0;
  }
  return (int32_t)cdl_rescale1(v, multiplier, left, shift, 0, lo, hi);
}

/* y = layer_norm(x) of a row of n bytes, widened. n in 1..16384. The sum of squares is exact: of
 * the distances from the mean as an integer, less what its rounding adds. */
static inline void cdl_layer_norm_integer(const cdl_layer_norm_integer_t* p, const int32_t* x,
                                          int32_t* y, int32_t n) {
  int32_t sum = 0, squares = 0;
  for (int32_t i = 0; i < n; ++i) sum += x[i];
  const int32_t mean = cdl_scaled(sum, 1.0 / n, p->x_lowest, p->x_highest);
  for (int32_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const int32_t rest = sum - n * mean;
  const int32_t excess =
      cdl_scaled(rest * rest, (double)(1 << p->fraction) / n, INT16_MIN, INT16_MAX);
  const int32_t spread = squares * (1 << p->fraction) - excess + p->epsilon;
  const int32_t reciprocal =
      cdl_segments(spread, p->base, p->segments, p->tables, p->segment_count);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t centred = cdl_scaled(n * (x[i] - mean) - rest, 128.0 / n, INT16_MIN, INT16_MAX);
    const int64_t normal = cdl_rescale1((int64_t)centred * reciprocal, 1 << 23, 0,
                                        23 + p->normal_shift, 0, INT16_MIN, INT16_MAX);
    y[i] = (int32_t)cdl_rescale1(normal * p->scale[i] + p->bias[i], p->multiplier, 0, p->shift,
                                 p->zero, p->lowest, p->highest);
  }
}

typedef struct {
  const int32_t* scale;          /* n: y in units of the last RESCALE is normal * scale */
  const cdl_segment_t* segments; /* of the reciprocal of the root of the mean square */
  const int16_t* tables;
  int32_t segment_count, base;
  int32_t x_zero;                  /* the byte that is 0 */
  int32_t fraction;                /* bits behind the point of the sum of squares */
  int32_t epsilon;                 /* added to it */
  int32_t normal_shift;            /* of (x - x_zero) * reciprocal to i16 */
  int32_t multiplier, shift, zero; /* of the RESCALE to y */
  int32_t lowest, highest;         /* y's type */
} cdl_rms_norm_integer_t;

/* y = rms_norm(x) of a row of n bytes, widened. n in 1..16384. The sum of squares is exact. */
static inline void cdl_rms_norm_integer(const cdl_rms_norm_integer_t* p, const int32_t* x,
                                        int32_t* y, int32_t n) {
  int32_t squares = 0;
  for (int32_t i = 0; i < n; ++i) squares += (x[i] - p->x_zero) * (x[i] - p->x_zero);
  const int32_t spread = squares * (1 << p->fraction) + p->epsilon;
  const int32_t reciprocal =
      cdl_segments(spread, p->base, p->segments, p->tables, p->segment_count);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t distance = 128 * (x[i] - p->x_zero);
    const int64_t normal = cdl_rescale1((int64_t)distance * reciprocal, 1 << 23, 0,
                                        23 + p->normal_shift, 0, INT16_MIN, INT16_MAX);
    y[i] = (int32_t)cdl_rescale1(normal * p->scale[i], p->multiplier, 0, p->shift, p->zero,
                                 p->lowest, p->highest);
  }
}

/* ---- Activations that are rounded to i8 on the way (SCALED_MATMUL.dynamic) ---------------------
 * Each block of a row has a step of its own, by its largest magnitude. All of it is f32, one
 * operation at a time, so that everyone gets the same bits. */

/* The step of a block whose largest magnitude this is: 0 below 2^-100, where all count as 0; NaN of
 * what is not finite. */
static inline float cdl_dynamic_step(float largest) {
  if (largest < 0x1p-100f) return 0;
  return largest <= 0x1.fffffep127f ? largest / 127 : cdl_f32_of_bits(0x7fc00000u);
}
/* x in steps, -127..127, to nearest even. */
static inline int32_t cdl_dynamic_i8(float x, float largest) {
  if (!(largest >= 0x1p-100f && largest <= 0x1.fffffep127f)) return 0;
  const float steps = x * (127 / largest);
  return (int32_t)cdl_rne_f64(steps);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
