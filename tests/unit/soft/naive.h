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

struct ElemInfo {
  int bits;
  int kind; // 0 float, 1 signed, 2 unsigned, 3 bool
  int expBits, manBits;
  bool finiteOnly; // f8e4m3: no infinity
};
inline ElemInfo info(int elem) {
  switch (elem) {
  case CDL_F32: return {32, 0, 8, 23, false};
  case CDL_F16: return {16, 0, 5, 10, false};
  case CDL_BF16: return {16, 0, 8, 7, false};
  case CDL_F64: return {64, 0, 11, 52, false};
  case CDL_F8E4M3: return {8, 0, 4, 3, true};
  case CDL_F8E5M2: return {8, 0, 5, 2, false};
  case CDL_I4: return {4, 1, 0, 0, false};
  case CDL_U4: return {4, 2, 0, 0, false};
  case CDL_I8: return {8, 1, 0, 0, false};
  case CDL_U8: return {8, 2, 0, 0, false};
  case CDL_I16: return {16, 1, 0, 0, false};
  case CDL_U16: return {16, 2, 0, 0, false};
  case CDL_I32: return {32, 1, 0, 0, false};
  case CDL_U32: return {32, 2, 0, 0, false};
  case CDL_I64: return {64, 1, 0, 0, false};
  case CDL_U64: return {64, 2, 0, 0, false};
  default: return {8, 3, 0, 0, false};
  }
}
inline bool isFloat(int elem) { return info(elem).kind == 0; }
inline Int lowest(int elem) { return info(elem).kind == 1 ? -(Int{1} << (info(elem).bits - 1)) : 0; }
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
  const int bias = (1 << (e.expBits - 1)) - 1;
  if (e.finiteOnly) return 448;
  return std::ldexp(Real{2} - std::ldexp(Real{1}, -e.manBits), bias);
}
/// The unit in the last place of the type at x; of integers, 1.
inline Real ulpAt(int elem, Real x) {
  const ElemInfo e = info(elem);
  if (e.kind != 0) return 1;
  const int minExponent = 2 - (1 << (e.expBits - 1));
  const int exponent = x == 0 || std::isinf(x) ? minExponent : std::max(minExponent, std::ilogb(x));
  return std::ldexp(Real{1}, exponent - e.manBits);
}
/// To nearest, ties to even, by scaling instead of by bits.
inline Real roundTo(int elem, Real x, bool saturate = false) {
  if (std::isnan(x) || x == 0 || !isFloat(elem)) return x;
  const Real overflow = saturate                ? maxFinite(elem)
                        : info(elem).finiteOnly ? std::numeric_limits<Real>::quiet_NaN()
                                                : std::numeric_limits<Real>::infinity();
  if (std::isinf(x)) return std::copysign(overflow, x);
  const Real unit = ulpAt(elem, x), rounded = std::nearbyint(x / unit) * unit;
  return std::fabs(rounded) > maxFinite(elem) ? std::copysign(overflow, x) : rounded;
}
/// The value of the float with these bits, from the definition of the format.
inline Real decode(int elem, uint64_t bits) {
  const ElemInfo e = info(elem);
  const int bias = (1 << (e.expBits - 1)) - 1;
  const uint64_t fraction = bits & ((uint64_t{1} << e.manBits) - 1);
  const int field = static_cast<int>((bits >> e.manBits) & ((uint64_t{1} << e.expBits) - 1));
  const Real sign = (bits >> (e.expBits + e.manBits)) & 1 ? -1 : 1;
  const bool top = field == (1 << e.expBits) - 1;
  if (top && !e.finiteOnly) return fraction ? std::numeric_limits<Real>::quiet_NaN() : sign * HUGE_VALL;
  if (top && fraction == (uint64_t{1} << e.manBits) - 1) return std::numeric_limits<Real>::quiet_NaN();
  const Real significand = static_cast<Real>(fraction) + (field ? std::ldexp(Real{1}, e.manBits) : 0);
  return sign * std::ldexp(significand, (field ? field : 1) - bias - e.manBits);
}

/// Memory of one element type with 4-bit ones packed; values go in and out as definitions have
/// them.
class Array {
public:
  Array(int elem, int64_t count) : elem_(elem), count_(count), bytes_(static_cast<size_t>(count) + 8) {}
  int elem() const { return elem_; }
  int64_t size() const { return count_; }
  void* data() { return bytes_.data(); }
  uint64_t byteSize() const { return bytes_.size() * 8; }

  uint64_t bits(int64_t i) const {
    const auto* raw = reinterpret_cast<const unsigned char*>(bytes_.data());
    const int width = info(elem_).bits;
    if (width == 4) return raw[i / 2] >> (i % 2 * 4) & 15;
    uint64_t value = 0;
    std::memcpy(&value, raw + i * (width / 8), static_cast<size_t>(width / 8));
    return value;
  }
  void setBits(int64_t i, uint64_t value) {
    auto* raw = reinterpret_cast<unsigned char*>(bytes_.data());
    const int width = info(elem_).bits;
    if (width == 4) {
      const int shift = static_cast<int>(i % 2 * 4);
      raw[i / 2] = static_cast<unsigned char>((raw[i / 2] & (0xf0 >> shift)) | (value & 15) << shift);
      return;
    }
    std::memcpy(raw + i * (width / 8), &value, static_cast<size_t>(width / 8));
  }
  Int integer(int64_t i) const { return wrap(elem_, static_cast<Int>(bits(i))); }
  Real real(int64_t i) const { return isFloat(elem_) ? decode(elem_, bits(i)) : static_cast<Real>(integer(i)); }
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
        const uint64_t sign = uint64_t{1} << (e.bits - 1), one = ((uint64_t{1} << (e.expBits - 1)) - 1) << e.manBits;
        const uint64_t top = ((uint64_t{1} << e.expBits) - 1) << e.manBits;
        const uint64_t corners[] = {0, sign, one, one | sign, 1, top - 1, top, top | sign, top | 1, one + 1, one / 2};
        if (!moderate && random() % 3 == 0) value = corners[random() % 11];
        if (moderate || random() % 2) // exponents around 0
          value = (value & (sign | ((uint64_t{1} << e.manBits) - 1))) |
                  (((one >> e.manBits) - 2 + random() % 5) << e.manBits);
      }
      // Quiet NaNs only: what a function makes of a signalling one is nobody's promise.
      if (e.kind == 0 && std::isnan(decode(elem_, value))) value |= uint64_t{1} << (e.manBits - 1);
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
    return std::fabs(exact) + ulps * ulpAt(elem, limit) > limit && std::signbit(got) == std::signbit(exact);
  const Real reach = std::min(std::fabs(exact), limit);
  return std::fabs(got - exact) <= ulps * ulpAt(elem, reach) * (1 + 1e-3L);
}

} // namespace candela::testing
