#pragma once

#include <cmath>
#include <cstdint>

namespace candela::graph {

/// What RESCALE multiplies by: significand / 2^shift, the significand of 24 bits, negative for a
/// negative factor. A factor of 2^24 and more has a negative shift.
struct RescaleFactor {
  int64_t significand = 0;
  int shift = 0;
};

/// `factor` rounded to f32; it is normal there.
inline RescaleFactor rescaleFactor(double factor) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(static_cast<float>(factor)), &exponent);
  return {static_cast<int64_t>(std::ldexp(fraction, 24)), 24 - exponent};
}

} // namespace candela::graph
