// Functions of f32 as polynomials: LLVM would call libm once per lane.
#include "arithmetic.hpp"

#include <cmath>
#include <initializer_list>

namespace cpu {

namespace {

/// Computes c[0] * x^(n-1) + ... + c[n-1] by Horner.
Value polynomial(Builder& b, Value x, std::initializer_list<double> c) {
  auto at = c.begin();
  Value sum = b.splat(b.f32(static_cast<float>(*at++)), x.lanes);
  for (; at != c.end(); ++at) sum = b.fma(sum, x, b.f32(static_cast<float>(*at)));
  return sum;
}

/// Computes 2^n for n of -126 .. 127 (a vector of I32).
Value powerOfTwo(Builder& b, Value n) {
  return b.bitcast(b.shl(b.add(n, b.i32(127)), b.i32(23)), Ty::F32);
}

/// Gives y, which is not negative, the sign of x, be it -0.
Value withSignOf(Builder& b, Value y, Value x) {
  const Value sign = b.bitAnd(b.bitcast(x, Ty::I32), b.integer(Ty::I32, INT32_MIN));
  return b.bitcast(b.bitOr(b.bitcast(y, Ty::I32), sign), Ty::F32);
}

} // namespace

// x = n ln 2 + r, |r| <= ln 2 / 2; e^r by the polynomial of Cephes' expf (S. Moshier), ln 2 in two
// parts.
Value expF32(Builder& b, Value x) {
  x = b.min(b.max(x, b.f32(-104.0f)), b.f32(89.0f)); // NaN stays
  const Value n = b.round(b.mul(x, b.f32(1.44269504088896341f)), Round::EVEN);
  Value r = b.fma(n, b.f32(-0.693359375f), x);
  r = b.fma(n, b.f32(2.12194440e-4f), r);
  const Value p = polynomial(b, r,
                             {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2,
                              1.6666665459e-1, 5.0000001201e-1});
  const Value y = b.add(b.fma(p, b.mul(r, r), r), b.f32(1.0f));
  // The integer n stands in the low bits of n + 1.5 * 2^23. In two factors: results down to the
  // smallest denormal, and infinity.
  const Value whole = b.sub(b.bitcast(b.add(n, b.f32(12582912.0f)), Ty::I32), b.i32(0x4b400000));
  const Value half = b.shr(whole, b.i32(1), true);
  return b.mul(b.mul(y, powerOfTwo(b, half)), powerOfTwo(b, b.sub(whole, half)));
}

// x = 2^e * m, m in [sqrt(1/2), sqrt(2)); log m by the polynomial of Cephes' logf.
Value logF32(Builder& b, Value x) {
  const Value isTiny = b.compare(Cmp::LT, x, b.f32(1.17549435e-38f)); // denormals: scaled by 2^23
  const Value scaled = b.select(isTiny, b.mul(x, b.f32(8388608.0f)), x);
  const Value bits = b.bitcast(scaled, Ty::I32);
  Value e = b.sub(b.shr(bits, b.i32(23), false), b.i32(126));
  e = b.sub(e, b.select(isTiny, b.i32(23), b.i32(0)));
  // The fraction lies in [1/2, 1).
  const Value fraction =
      b.bitcast(b.bitOr(b.bitAnd(bits, b.i32(0x7fffff)), b.i32(0x3f000000)), Ty::F32);
  const Value isLow = b.compare(Cmp::LT, fraction, b.f32(0.707106781186547524f));
  const Value exponent = b.cast(b.sub(e, b.select(isLow, b.i32(1), b.i32(0))), Ty::F32, true);
  const Value m = b.sub(b.select(isLow, b.add(fraction, fraction), fraction), b.f32(1.0f)),
              z = b.mul(m, m);
  Value y = polynomial(b, m,
                       {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
                        1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
                        3.3333331174e-1});
  y = b.mul(b.mul(y, m), z);
  y = b.fma(exponent, b.f32(-2.12194440e-4f), y);
  y = b.fma(z, b.f32(-0.5f), y);
  y = b.fma(exponent, b.f32(0.693359375f), b.add(m, y));
  const float inf = INFINITY, nan = NAN;
  y = b.select(b.compare(Cmp::EQ, x, b.f32(inf)), b.f32(inf), y);
  y = b.select(b.compare(Cmp::EQ, x, b.f32(0.0f)), b.f32(-inf), y);
  const Value isNan = b.bitOr(b.compare(Cmp::LT, x, b.f32(0.0f)), b.compare(Cmp::UNORDERED, x, x));
  return b.select(isNan, b.f32(nan), y);
}

Value sigmoidF32(Builder& b, Value x) {
  // The power is e to the minus |x|, which does not overflow.
  const Value e = expF32(b, b.neg(b.abs(x))), one = b.splat(b.f32(1.0f), x.lanes),
              sum = b.add(one, e);
  return b.div(b.select(b.compare(Cmp::LT, x, b.f32(0.0f)), e, one), sum);
}

// Near 0 the polynomial of Cephes' tanhf, elsewhere 1 - 2 / (e^2|x| + 1).
Value tanhF32(Builder& b, Value x) {
  const Value z = b.mul(x, x), size = b.abs(x);
  const Value p = polynomial(b, z,
                             {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                              1.33314422036e-1, -3.33332819422e-1});
  const Value near = b.fma(b.mul(p, z), size, size);
  const Value e = expF32(b, b.add(size, size));
  const Value far = b.sub(b.f32(1.0f), b.div(b.f32(2.0f), b.add(e, b.f32(1.0f))));
  const Value y = b.select(b.compare(Cmp::LT, size, b.f32(0.625f)), near, far);
  return withSignOf(b, y, x);
}

// x * P(x^2) / Q(x^2) with the coefficients that Eigen publishes, up to |x| = 3.8325, where erf is
// 1 - 2^-24; then 1.
Value erfF32(Builder& b, Value x) {
  const Value z = b.mul(x, x);
  const Value p = polynomial(b, z,
                             {-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06,
                              -5.69250639462346e-05, -7.34990630326855e-04, -2.95459980854025e-03,
                              -1.60960333262415e-02});
  const Value q = polynomial(b, z,
                             {-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03,
                              -7.37332916720468e-03, -1.42647390514189e-02});
  const Value y = b.mul(x, b.div(p, q)); // x * p would be denormal too soon
  return b.select(b.compare(Cmp::GT, b.abs(x), b.f32(3.8325f)), withSignOf(b, b.f32(1.0f), x), y);
}

} // namespace cpu
