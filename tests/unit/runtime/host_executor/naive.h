// Element types from their definitions, sharing nothing with numerics.h: values are exact long
// doubles or __int128.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "candela/cdl.h"

namespace candela::testing {

using Int = __int128;
using Real = long double;

enum class Special {
  ieee,
  oneNan,    // f8e4m3: the last number of each sign
  zeroIsNan, // fnuz: in place of -0
  none,
  power, // f8e8m0
};
struct ElemInfo {
  int bits;
  int kind; // 0 float, 1 signed, 2 unsigned, 3 bool
  int expBits = 0, manBits = 0;
  Special special = Special::ieee;
  int bias() const { return (1 << (expBits - 1)) - (special == Special::zeroIsNan ? 0 : 1); }
};
inline ElemInfo info(int elem) {
  switch (elem) {
  case CDL_F32: return {32, 0, 8, 23};
  case CDL_F16: return {16, 0, 5, 10};
  case CDL_BF16: return {16, 0, 8, 7};
  case CDL_F64: return {64, 0, 11, 52};
  case CDL_F8E4M3: return {8, 0, 4, 3, Special::oneNan};
  case CDL_F8E5M2: return {8, 0, 5, 2};
  case CDL_F8E4M3FNUZ: return {8, 0, 4, 3, Special::zeroIsNan};
  case CDL_F8E5M2FNUZ: return {8, 0, 5, 2, Special::zeroIsNan};
  case CDL_F8E8M0: return {8, 0, 8, 0, Special::power};
  case CDL_F6E2M3: return {8, 0, 2, 3, Special::none};
  case CDL_F6E3M2: return {8, 0, 3, 2, Special::none};
  case CDL_F4E2M1: return {4, 0, 2, 1, Special::none};
  case CDL_I2: return {2, 1};
  case CDL_U2: return {2, 2};
  case CDL_I4: return {4, 1};
  case CDL_U4: return {4, 2};
  case CDL_I8: return {8, 1};
  case CDL_U8: return {8, 2};
  case CDL_I16: return {16, 1};
  case CDL_U16: return {16, 2};
  case CDL_I32: return {32, 1};
  case CDL_U32: return {32, 2};
  case CDL_I64: return {64, 1};
  case CDL_U64: return {64, 2};
  default: return {8, 3};
  }
}
inline bool isFloat(int elem) { return info(elem).kind == 0; }
inline Int lowest(int elem) {
  return info(elem).kind == 1 ? -(Int{1} << (info(elem).bits - 1)) : 0;
}
inline Int highest(int elem) {
  const ElemInfo e = info(elem);
  return e.kind == 3 ? 1 : (Int{1} << (e.bits - (e.kind == 1))) - 1;
}
/// The product modulo 2^128, of which the low bits are what types keep.
inline Int times(Int a, Int b) {
  using Unsigned = unsigned __int128;
  return static_cast<Int>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
}
/// Modulo 2^bits into the type; bool: not 0.
inline Int wrap(int elem, Int value) {
  const ElemInfo e = info(elem);
  if (e.kind == 3) return value != 0;
  Int low = value & ((Int{1} << e.bits) - 1);
  if (e.kind == 1 && low > highest(elem)) low -= Int{1} << e.bits;
  return low;
}

inline Real maxFinite(int elem) {
  const ElemInfo e = info(elem);
  const int top = (1 << e.expBits) - 1 - e.bias(); // exponent of the highest field
  switch (e.special) {
  case Special::oneNan: return 448;
  case Special::power: return 0x1p127L;
  case Special::ieee: return std::ldexp(Real{2} - std::ldexp(Real{1}, -e.manBits), top - 1);
  default: return std::ldexp(Real{2} - std::ldexp(Real{1}, -e.manBits), top);
  }
}
/// The unit in the last place of the type at x; of integers, 1.
inline Real ulpAt(int elem, Real x) {
  const ElemInfo e = info(elem);
  if (e.kind != 0) return 1;
  const int minExponent = 1 - e.bias();
  const int exponent = x == 0 || std::isinf(x) ? minExponent : std::max(minExponent, std::ilogb(x));
  return std::ldexp(Real{1}, exponent - e.manBits);
}
/// To nearest, ties to even, by scaling instead of by bits.
inline Real roundTo(int elem, Real x, bool saturate = false) {
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  const Special special = info(elem).special;
  if (std::isnan(x) && special == Special::none)
    return std::copysign(Real{0}, std::signbit(x) ? 1 : -1);
  if (std::isnan(x) || !isFloat(elem)) return x;
  if (special == Special::power) {
    if (x >= 0x0.cp-127L && x < 0x1.8p127L) { // the rounded exponent is within -127 .. 127
      const int below = std::ilogb(x);
      return std::ldexp(Real{1}, x >= std::ldexp(Real{1.5}, below) ? below + 1 : below);
    }
    return !saturate ? nan : x < 1 ? 0x1p-127L : 0x1p127L;
  }
  if (x == 0) return special == Special::zeroIsNan ? 0 : x;
  const Real overflow = saturate || special == Special::none ? maxFinite(elem)
                        : special == Special::ieee           ? std::numeric_limits<Real>::infinity()
                                                             : nan;
  if (std::isinf(x)) return std::copysign(overflow, x);
  const Real unit = ulpAt(elem, x), rounded = std::nearbyint(x / unit) * unit;
  if (special == Special::zeroIsNan && rounded == 0) return 0;
  return std::fabs(rounded) > maxFinite(elem) ? std::copysign(overflow, x) : rounded;
}
/// The value of the float with these bits, from the definition of the format.
inline Real decode(int elem, uint64_t bits) {
  const ElemInfo e = info(elem);
  const int bias = e.bias();
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  if (e.special == Special::power)
    return bits == 255 ? nan : std::ldexp(Real{1}, static_cast<int>(bits) - 127);
  const uint64_t fraction = bits & ((uint64_t{1} << e.manBits) - 1);
  const int field = static_cast<int>((bits >> e.manBits) & ((uint64_t{1} << e.expBits) - 1));
  const Real sign = (bits >> (e.expBits + e.manBits)) & 1 ? -1 : 1;
  const bool top = field == (1 << e.expBits) - 1;
  if (top && e.special == Special::ieee)
    return fraction ? std::copysign(nan, sign) : sign * HUGE_VALL;
  if (top && e.special == Special::oneNan && fraction == (uint64_t{1} << e.manBits) - 1)
    return std::copysign(nan, sign);
  if (e.special == Special::zeroIsNan && sign < 0 && field == 0 && fraction == 0) return nan;
  const Real significand =
      static_cast<Real>(fraction) + (field ? std::ldexp(Real{1}, e.manBits) : 0);
  return sign * std::ldexp(significand, (field ? field : 1) - bias - e.manBits);
}

/// Memory of one element type with those of less than a byte packed; values go in and out as
/// definitions have them.
class Array {
public:
  Array(int elem, int64_t count)
      : elem_(elem), count_(count), bytes_(static_cast<size_t>(count) + 8) {}
  int elem() const { return elem_; }
  int64_t size() const { return count_; }
  void* data() { return bytes_.data(); }
  uint64_t byteSize() const { return bytes_.size() * 8; }

  uint64_t bits(int64_t i) const {
    const auto* raw = reinterpret_cast<const unsigned char*>(bytes_.data());
    const int width = info(elem_).bits;
    if (const int per = 8 / width; per > 1)
      return raw[i / per] >> (i % per * width) & ((1 << width) - 1);
    uint64_t value = 0;
    std::memcpy(&value, raw + i * (width / 8), static_cast<size_t>(width / 8));
    return value;
  }
  void setBits(int64_t i, uint64_t value) {
    auto* raw = reinterpret_cast<unsigned char*>(bytes_.data());
    const int width = info(elem_).bits;
    if (const int per = 8 / width; per > 1) {
      const int shift = static_cast<int>(i % per * width), mask = ((1 << width) - 1) << shift;
      raw[i / per] = static_cast<unsigned char>((raw[i / per] & ~mask) |
                                                (static_cast<int>(value) << shift & mask));
      return;
    }
    std::memcpy(raw + i * (width / 8), &value, static_cast<size_t>(width / 8));
  }
  Int integer(int64_t i) const { return wrap(elem_, static_cast<Int>(bits(i))); }
  Real real(int64_t i) const {
    return isFloat(elem_) ? decode(elem_, bits(i)) : static_cast<Real>(integer(i));
  }
  void setInteger(int64_t i, Int value) { setBits(i, static_cast<uint64_t>(value)); }

  /// Corners first, then random bits (floats: random values of moderate size when `moderate`).
  void fill(std::mt19937_64& random, bool moderate = false) {
    const ElemInfo e = info(elem_);
    for (int64_t i = 0; i < count_; ++i) {
      const uint64_t mask = e.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << e.bits) - 1;
      uint64_t value = random() & mask;
      if (e.kind == 3) value &= 1;
      if (e.kind != 0 && e.kind != 3 && random() % 3 == 0)
        value = static_cast<uint64_t>(wrap(elem_, Int(random() % 9) - 4));
      if (e.kind != 0 && e.kind != 3 && random() % 4 == 0)
        value = static_cast<uint64_t>(random() % 2 ? lowest(elem_) : highest(elem_));
      if (e.kind == 0) {
        const uint64_t sign = uint64_t{1} << (e.expBits + e.manBits),
                       one = ((uint64_t{1} << (e.expBits - 1)) - 1) << e.manBits;
        const uint64_t top = ((uint64_t{1} << e.expBits) - 1) << e.manBits;
        const uint64_t corners[] = {0,   sign,       one,     one | sign, 1,      top - 1,
                                    top, top | sign, top | 1, one + 1,    one / 2};
        if (!moderate && random() % 3 == 0) value = corners[random() % 11];
        if (moderate || random() % 2) // exponents around 0
          value = (value & (sign | ((uint64_t{1} << e.manBits) - 1))) |
                  (((one >> e.manBits) - 2 + random() % 5) << e.manBits);
      }
      // Quiet NaNs only: what a function makes of a signalling one is nobody's promise.
      if (e.kind == 0 && e.special == Special::ieee && std::isnan(decode(elem_, value)))
        value |= uint64_t{1} << (e.manBits - 1);
      setBits(i, value);
    }
  }

private:
  int elem_;
  int64_t count_;
  std::vector<uint64_t> bytes_;
};

/// True when `got` is the float `exact` within `ulps` units; NaN for NaN, and an infinity only
/// where rounding gives it.
inline bool near(int elem, Real got, Real exact, Real ulps) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) && std::isnan(got);
  if (std::isinf(exact)) return got == exact;
  const Real limit = maxFinite(elem);
  if (std::isinf(got))
    return std::fabs(exact) + ulps * ulpAt(elem, limit) > limit &&
           std::signbit(got) == std::signbit(exact);
  const Real reach = std::min(std::fabs(exact), limit);
  return std::fabs(got - exact) <= ulps * ulpAt(elem, reach) * (1 + 1e-3L);
}

} // namespace candela::testing
