#include "core/reference/scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/support/float_bits.h"
#include "core/support/status.h"

namespace candela::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallestScale = 0x1p-127; // of f8e8m0
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double extreme(bool largest, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  const bool below = a == b ? std::signbit(a) : a < b; // -0 is below 0
  return below == largest ? b : a;
}

/// a^b, b < 0, without its fraction.
Whole negativePower(Whole a, Whole b) {
  if (a == 1) return 1;
  if (a == -1) return b % 2 ? -1 : 1;
  return 0;
}

/// a^b modulo 2^128; of a negative power what is left of the fraction: 1, -1 or 0.
Whole power(Whole a, Whole b) {
  if (b < 0) return negativePower(a, b);
  unsigned __int128 result = 1, factor = static_cast<unsigned __int128>(a);
  for (; b; b >>= 1, factor *= factor)
    if (b & 1) result *= factor;
  return static_cast<Whole>(result);
}

Whole shift(uint16_t fn, Elem elem, Whole a, Whole b) {
  const bool beyond = b < 0 || b >= elemBits(elem);
  if (fn == CDL_BINARY_SHL)
    return beyond ? 0 : static_cast<Whole>(static_cast<unsigned __int128>(a) << b);
  if (beyond) return a < 0 ? -1 : 0;
  return a >> b;
}

double roundedBy(uint16_t fn, double value) {
  if (fn == CDL_CONVERT_TRUNC) return std::trunc(value);
  return fn == CDL_CONVERT_RNE ? std::nearbyint(value) : std::floor(value);
}

/// What 64 bits cannot hold, signed or unsigned, is at their limits.
Whole wholeWithin64(double value) {
  if (value < -0x1p63) return integerRange(Elem::i64_).lowest;
  if (value >= 0x1p64) return integerRange(Elem::u64_).highest;
  return static_cast<Whole>(value);
}

} // namespace

Scalar decode(Elem elem, uint64_t bits) {
  if (isFloat(elem)) return {toReal(elem, bits), 0};
  return {0, wrap(elem, static_cast<Whole>(bits))};
}

uint64_t encode(Elem elem, const Scalar& value) {
  if (isFloat(elem)) return fromReal(elem, value.real);
  const auto bits = static_cast<uint64_t>(wrap(elem, value.whole));
  return bits & (~uint64_t(0) >> (64 - elemBits(elem)));
}

Scalar apply(const Function& function, const Scalar* operands) {
  const auto [kind, fn, from, to, saturate] = function;
  const Scalar& x = operands[0];
  const bool real = isFloat(from);
  switch (kind) {
  case CDL_KIND_UNARY:
    if (real) return {unary(fn, x.real), 0};
    return {0, wrap(from, unary(fn, x.whole))};
  case CDL_KIND_BINARY: {
    const Scalar value = binary(fn, from, x, operands[1]);
    return {value.real, wrap(from, value.whole)};
  }
  case CDL_KIND_COMPARE: return {0, compare(fn, from, x, operands[1])};
  case CDL_KIND_SELECT: return x.whole ? operands[1] : operands[2];
  case CDL_KIND_COPY: return x;
  case CDL_KIND_CONVERT:
    if (isFloat(to)) {
      const double value = real ? x.real : wholeToReal(to, x.whole);
      return {real || !std::isfinite(value)
                  ? realToReal(to, real ? value : static_cast<double>(x.whole), saturate)
                  : value,
              0};
    }
    return {0, real ? realToWhole(to, x.real, fn, saturate) : wholeToWhole(to, x.whole, saturate)};
  }
  CDL_CHECK(false, "kind {} is no function of elements", kind);
}

Whole wrap(Elem elem, Whole value) {
  if (elem == Elem::bool_) return value != 0;
  const int unused = 128 - elemBits(elem);
  if (isUnsigned(elem))
    return static_cast<Whole>(static_cast<unsigned __int128>(value) << unused >> unused);
  return static_cast<Whole>(static_cast<unsigned __int128>(value) << unused) >> unused;
}

double roundReal(Elem elem, double value) { return toReal(elem, fromReal(elem, value)); }

double unary(uint16_t fn, double x) {
  switch (fn) {
  case CDL_UNARY_NEG: return -x;
  case CDL_UNARY_ABS: return std::fabs(x);
  case CDL_UNARY_FLOOR: return std::floor(x);
  case CDL_UNARY_SQRT: return std::sqrt(x);
  case CDL_UNARY_RCP: return 1 / x;
  case CDL_UNARY_EXP: return std::exp(x);
  case CDL_UNARY_LOG: return std::log(x);
  case CDL_UNARY_CEIL: return std::ceil(x);
  case CDL_UNARY_TRUNC: return std::trunc(x);
  case CDL_UNARY_ROUND_EVEN: return std::nearbyint(x);
  case CDL_UNARY_RSQRT: return 1 / std::sqrt(x);
  case CDL_UNARY_LOG1P: return std::log1p(x);
  case CDL_UNARY_EXPM1: return std::expm1(x);
  case CDL_UNARY_SIN: return std::sin(x);
  case CDL_UNARY_COS: return std::cos(x);
  case CDL_UNARY_TAN: return std::tan(x);
  case CDL_UNARY_TANH: return std::tanh(x);
  case CDL_UNARY_ERF: return std::erf(x);
  // exp stays finite
  case CDL_UNARY_SIGMOID: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
  }
  CDL_CHECK(false, "unary function {}", fn);
}

Whole unary(uint16_t fn, Whole x) {
  CDL_CHECK(fn == CDL_UNARY_NEG || fn == CDL_UNARY_ABS, "unary function {} of integers", fn);
  return fn == CDL_UNARY_NEG || x < 0 ? -x : x;
}

double binary(uint16_t fn, double a, double b) {
  switch (fn) {
  case CDL_BINARY_ADD: return a + b;
  case CDL_BINARY_SUB: return a - b;
  case CDL_BINARY_MUL: return a * b;
  case CDL_BINARY_DIV: return a / b;
  case CDL_BINARY_MIN: return extreme(false, a, b);
  case CDL_BINARY_MAX: return extreme(true, a, b);
  case CDL_BINARY_POW: return std::pow(a, b);
  case CDL_BINARY_REM: return std::fmod(a, b);
  }
  CDL_CHECK(false, "binary function {} of floats", fn);
}

Whole binary(uint16_t fn, Elem elem, Whole a, Whole b) {
  switch (fn) {
  case CDL_BINARY_ADD: return a + b;
  case CDL_BINARY_SUB: return a - b;
  // Operands of 64 bits leave room; a product of many factors wraps modulo 2^128, whose low bits
  // are right.
  case CDL_BINARY_MUL:
    return static_cast<Whole>(static_cast<unsigned __int128>(a) *
                              static_cast<unsigned __int128>(b));
  case CDL_BINARY_DIV: return b == 0 ? 0 : a / b;
  case CDL_BINARY_MIN: return a < b ? a : b;
  case CDL_BINARY_MAX: return a > b ? a : b;
  case CDL_BINARY_AND: return a & b;
  case CDL_BINARY_OR: return a | b;
  case CDL_BINARY_XOR: return a ^ b;
  case CDL_BINARY_SHL:
  case CDL_BINARY_SHR: return shift(fn, elem, a, b);
  case CDL_BINARY_POW: return power(a, b);
  case CDL_BINARY_REM: return b == 0 ? a : a % b;
  }
  CDL_CHECK(false, "binary function {}", fn);
}

Scalar binary(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b) {
  if (isFloat(elem)) return {binary(fn, a.real, b.real), 0};
  return {0, binary(fn, elem, a.whole, b.whole)};
}

bool compare(uint16_t fn, double a, double b) { return fn == CDL_COMPARE_EQ ? a == b : a < b; }
bool compare(uint16_t fn, Whole a, Whole b) { return fn == CDL_COMPARE_EQ ? a == b : a < b; }
bool compare(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b) {
  return isFloat(elem) ? compare(fn, a.real, b.real) : compare(fn, a.whole, b.whole);
}

Whole realToWhole(Elem to, double value, uint16_t fn, bool saturate) {
  if (to == Elem::bool_) return value != 0;
  if (std::isnan(value)) return 0;
  return wholeToWhole(to, wholeWithin64(roundedBy(fn, value)), saturate);
}

double wholeToReal(Elem to, Whole value) {
  // 53 bits, the last one also standing for everything below it (rounding to odd), so that the
  // rounding to a narrower type that follows is the only one. f64 itself rounds here.
  const unsigned __int128 magnitude = static_cast<unsigned __int128>(value < 0 ? -value : value);
  if (magnitude >> 53 == 0 || to == Elem::f64_) return roundReal(to, static_cast<double>(value));
  int exponent = 0;
  unsigned __int128 rest = magnitude;
  bool sticky = false;
  for (; rest >> 53 != 0; rest >>= 1, ++exponent) sticky = sticky || (rest & 1);
  const double odd =
      std::ldexp(static_cast<double>(static_cast<uint64_t>(rest | (sticky ? 1 : 0))), exponent);
  return roundReal(to, value < 0 ? -odd : odd);
}

Whole wholeToWhole(Elem to, Whole value, bool saturate) {
  if (to == Elem::bool_ || !saturate) return wrap(to, value);
  const IntegerRange range = integerRange(to);
  return std::clamp<Whole>(value, range.lowest, range.highest);
}

double realToReal(Elem to, double value, bool saturate) {
  const double rounded = roundReal(to, value);
  const bool overflow =
      std::fabs(rounded) == kInfinity || (std::isnan(rounded) && !std::isnan(value));
  if (!saturate || !overflow) return rounded;
  if (to == Elem::f8e8m0_ && value < 1) return kSmallestScale; // it has neither 0 nor a sign
  return std::copysign(largestReal(to), value);
}

Whole rescale(std::span<const Term> terms, int64_t shift, Whole zero, Whole low, Whole high) {
  int64_t common = shift; // both ways: nothing is gained by it, and bits could leave the 128
  for (const Term& term : terms) common = std::min(common, term.leftShift);
  Whole sum = 0;
  for (const Term& term : terms) {
    const int64_t left = term.leftShift - common;
    const Whole most = (static_cast<Whole>(1) << 125) >> left; // more is outside of every clamp
    sum += std::clamp(term.value * term.multiplier, -most, most) << left;
  }
  return std::clamp(shiftRightEven(sum, shift - common) + zero, low, high);
}

Scalar rescaleStep(const Scalar* operands, Whole low, Whole high) {
  const Term term{operands[0].whole, operands[1].whole, 0};
  const auto shift = static_cast<int64_t>(std::max<Whole>(operands[2].whole, 0));
  return {0, rescale({&term, 1}, shift, operands[3].whole, low, high)};
}

Whole shiftRightEven(Whole value, int64_t shift) {
  if (shift == 0) return value;
  if (shift > 126) return 0; // the values here are far below half of 2^127
  const Whole down = value >> shift, rest = value - (down << shift),
              half = static_cast<Whole>(1) << (shift - 1);
  return down + (rest > half || (rest == half && (down & 1)));
}

} // namespace candela::reference
