#pragma once

#include <algorithm>
#include <cmath>

#include "core/support/float_bits.h"

/// Arithmetic that is wrong on purpose.
namespace candela::conform {

inline bool isSubnormal(Elem elem, uint64_t bits) {
  if (!isFloat(elem)) return false;
  const int digits = elem == Elem::f64_    ? 52
                     : elem == Elem::f32_  ? 23
                     : elem == Elem::f16_  ? 10
                     : elem == Elem::bf16_ ? 7
                                           : 0;
  const uint64_t size = bits & elemMask(elem) >> 1;
  return size != 0 && size >> digits == 0;
}

/// The number of the type next to `value` that is not farther from zero.
inline uint64_t towardZero(Elem elem, double value) {
  const uint64_t near = fromReal(elem, value);
  const double rounded = toReal(elem, near);
  return std::isfinite(rounded) && std::abs(rounded) > std::abs(value) ? near - 1 : near;
}

/// The integer of the type that is nearest.
inline uint64_t clamped(Elem elem, __int128 value) {
  const IntegerRange range = integerRange(elem);
  return static_cast<uint64_t>(std::clamp(value, range.lowest, range.highest));
}

} // namespace candela::conform
