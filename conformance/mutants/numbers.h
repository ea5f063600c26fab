#pragma once

#include <algorithm>
#include <cmath>

#include "core/support/float_bits.h"

/// Arithmetic that is wrong on purpose.
namespace candela::conformance::mutants {

/// The bits of a computing float's fraction; 0 of any other type.
inline int fractionDigits(Elem elem) {
  switch (elem) {
  case Elem::f64_: return 52;
  case Elem::f32_: return 23;
  case Elem::f16_: return 10;
  case Elem::bf16_: return 7;
  default: return 0;
  }
}

inline bool isSubnormal(Elem elem, uint64_t bits) {
  if (!isFloat(elem)) return false;
  const uint64_t size = bits & elemMask(elem) >> 1;
  return size != 0 && size >> fractionDigits(elem) == 0;
}

/// The number of the type next to `value` that is not farther from zero.
inline uint64_t towardZero(Elem elem, double value) {
  const uint64_t near = fromReal(elem, value);
  const double rounded = toReal(elem, near);
  return std::isfinite(rounded) && std::abs(rounded) > std::abs(value) ? near - 1 : near;
}

/// Where a number goes that lies half-way between two others.
enum class Ties : uint8_t {
  up,   ///< to the larger one
  away, ///< to the one farther from zero
};

/// The whole number next to x, which lies half-way between two.
inline double halfRounded(double x, Ties ties) {
  const double down = std::floor(x);
  return ties == Ties::up || x > 0 ? down + 1 : down;
}

/// The number of the type on the other side of `value` than `near`, which it was rounded to.
inline uint64_t otherSide(Elem elem, double value, uint64_t near) {
  return std::abs(toReal(elem, near)) < std::abs(value) ? near + 1 : near - 1;
}

/// The number of the type nearest to `value`, ties as said.
inline uint64_t nearestReal(Elem elem, double value, Ties ties) {
  const uint64_t even = fromReal(elem, value);
  const double rounded = toReal(elem, even);
  if (!std::isfinite(value) || !std::isfinite(rounded) || rounded == value) return even;
  const uint64_t bits = otherSide(elem, value, even) & elemMask(elem);
  const double other = toReal(elem, bits);
  if (!std::isfinite(other) || std::abs(other - value) != std::abs(rounded - value)) return even;
  const bool takesLarger = ties == Ties::up || value > 0;
  return takesLarger == (other > rounded) ? bits : even;
}

/// The f64 nearest to sum + error, where `sum` is what ties to even make of it and `error` the
/// exact rest.
inline double nearestDouble(double sum, double error, Ties ties) {
  if (error == 0 || !std::isfinite(sum) || !std::isfinite(error)) return sum;
  const double other = std::nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
  if (std::abs(other - sum) != 2 * std::abs(error)) return sum;
  const bool takesLarger = ties == Ties::up || sum > 0;
  return takesLarger == (other > sum) ? other : sum;
}

/// The integer of the type that is nearest.
inline uint64_t clamped(Elem elem, __int128 value) {
  const IntegerRange range = integerRange(elem);
  return static_cast<uint64_t>(std::clamp(value, range.lowest, range.highest));
}

} // namespace candela::conformance::mutants
