// What programs begin with that are written for one model: see program/text.hpp.
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

// The smaller and the larger; NaN propagates. For vectors and scalars alike; arguments are names.
#define SMALLER(a, b) select(b, a, isless(a, b) | isnan(a))
#define LARGER(a, b) select(b, a, isgreater(a, b) | isnan(a))

// x rounded to a whole number by `f`. What is whole, infinite or NaN stays: compilers whose own rounding knows finite numbers
// alone give anything for the constants among those. Arguments are names.
#define ROUNDED(f, x) (fabs(x) < 0x1p23f ? f(x) : (x))

// a / b to the nearest. By itself a device may divide less exactly.
float quotient(float a, float b) {
#ifdef cl_khr_fp64
  return (float)((double)a / b);
#else
  return a / b;
#endif
}

// 1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) below 0, so that neither tail overflows.
#define SIGMOID(x) (exp(fmin(x, 0.0f)) / (1.0f + exp(-fabs(x))))

// clamp(rne(a * m / 2^s) + zero). Shifts of 64 and more round to 0, which is even; negative ones shift nothing.
int rescaled(int a, int m, int s, int zero, int lo, int hi) {
  const long sum = (long)a * m;
  long value = s >= 64 ? 0 : sum;
  if (s > 0 && s < 64) {
    value = sum >> s;
    const ulong rest = (ulong)sum - ((ulong)value << s), half_ = 1UL << (s - 1);
    value += rest > half_ || (rest == half_ && (value & 1));
  }
  return (int)clamp(value + zero, (long)lo, (long)hi);
}

// The same of 16, one by one.
__attribute__((noinline)) int16 rescaledOneByOne(int16 a, int16 m, int16 s, int16 zero, int lo, int hi) {
  int x[16], y[16], z[16], w[16];
  vstore16(a, 0, x);
  vstore16(m, 0, y);
  vstore16(s, 0, z);
  vstore16(zero, 0, w);
  for (int e = 0; e < 16; ++e) x[e] = rescaled(x[e], y[e], z[e], w[e], lo, hi);
  return vload16(0, x);
}

// The same of 16. In f64, which is exact while it holds the product, and that has at most 53 bits. Inlined, so that what
// depends on m, s and zero alone, the same for all results of a channel, is computed once.
__attribute__((always_inline)) int16 rescaled16(int16 a, int16 m, int16 s, int16 zero, int lo, int hi) {
#ifdef cl_khr_fp64
  const double16 sum = convert_double16(a) * convert_double16(m);
  if (all(fabs(sum) < 9007199254740992.0)) {
    const long16 exponent = convert_long16(1023 - clamp(s, 0, 1000)) << 52;
    const double16 value = rint(sum * as_double16(exponent));
    return convert_int16(clamp(value + convert_double16(zero), (double)lo, (double)hi));
  }
#endif
  return rescaledOneByOne(a, m, s, zero, lo, hi);
}

// Halves by their bits, as numerics.h of the interface has them: one, and 16 side by side. The smallest ones are whole units of
// 2^-24; on the way back 0.5 has that unit, so that the addition rounds as they do.
#define HALVES(F, I, U, suffix)                                                                                        \
  F fromF16##suffix(I h) {                                                                                             \
    const I magnitude = h & 0x7fff, normal = (magnitude << 13) + (112 << 23);                                          \
    const I special = select((I)(0x7f800000), (magnitude << 13) | 0x7fc00000, magnitude > 0x7c00);                     \
    const I small = as_##I(convert_##F(magnitude) * 0x1p-24f);                                                         \
    const I large = select(special, normal, magnitude < 0x7c00);                                                       \
    return as_##F(((h & 0x8000) << 16) | select(large, small, magnitude < 0x400));                                     \
  }                                                                                                                    \
  I toF16##suffix(F x) {                                                                                               \
    const I bits = as_##I(x), magnitude = bits & 0x7fffffff, isSmall = magnitude < 0x38800000;                         \
    const I small = as_##I(as_##F(select((I)(0), magnitude, isSmall)) + 0.5f) - 0x3f000000;                            \
    const I normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112 << 23)) >> 13;                                \
    const I special = select((I)(0x7c00), (I)(0x7e00), magnitude > 0x7f800000);                                        \
    const I large = select(special, normal, magnitude < 0x477ff000);                                                   \
    return ((bits >> 16) & 0x8000) | select(large, small, isSmall);                                                    \
  }                                                                                                                    \
  F fromBF16##suffix(I h) { return as_##F(h << 16); }                                                                  \
  I toBF16##suffix(F x) {                                                                                              \
    const I bits = as_##I(x), magnitude = bits & 0x7fffffff, sign = (bits >> 16) & 0x8000;                             \
    const I rounded = as_##I((as_##U(magnitude) + 0x7fff + as_##U((magnitude >> 16) & 1)) >> 16);                      \
    return sign | select(rounded, (I)(0x7fc0), magnitude > 0x7f800000);                                                \
  }                                                                                                                    \
  /* The largest number where it is infinite. */                                                                       \
  I finite##suffix(I h, int infinity) { return select(h, h - 1, (h & 0x7fff) == infinity); }
HALVES(float, int, uint, )
HALVES(float16, int16, uint16, x16)
