#include "core/support/float_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/support/status.h"

namespace candela {
namespace {

struct Format {
  int exponentBits, mantissaBits;
  bool infinity; ///< false: the highest exponent holds numbers, and one NaN
  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint64_t mantissaMask() const { return (uint64_t(1) << mantissaBits) - 1; }
  uint64_t exponentMask() const { return (uint64_t(1) << exponentBits) - 1; }
};

Format formatOf(Elem elem) {
  switch (elem) {
  case Elem::f32_: return {8, 23, true};
  case Elem::f16_: return {5, 10, true};
  case Elem::bf16_: return {8, 7, true};
  case Elem::f64_: return {11, 52, true};
  case Elem::f8e4m3_: return {4, 3, false};
  case Elem::f8e5m2_: return {5, 2, true};
  default: CDL_CHECK(false, "{} is no float type", elemName(elem));
  }
}

constexpr int kDoubleMantissa = 52;
constexpr uint64_t kDoubleExponent = uint64_t(0x7ff) << kDoubleMantissa;

} // namespace

double toReal(Elem elem, uint64_t bits) {
  if (elem == Elem::f64_) return std::bit_cast<double>(bits);
  // The machine widens f32 exactly; of a NaN it would change the payload.
  if (const float value = std::bit_cast<float>(static_cast<uint32_t>(bits)); elem == Elem::f32_ && value == value)
    return value;
  const Format format = formatOf(elem);
  const uint64_t sign = bits >> (format.exponentBits + format.mantissaBits) & 1;
  const uint64_t exponent = bits >> format.mantissaBits & format.exponentMask();
  const uint64_t mantissa = bits & format.mantissaMask();
  const bool special = exponent == format.exponentMask() && (format.infinity || mantissa == format.mantissaMask());
  if (special)
    return std::bit_cast<double>(sign << 63 | kDoubleExponent | mantissa << (kDoubleMantissa - format.mantissaBits));
  const int scale = static_cast<int>(exponent ? exponent : 1) - format.bias() - format.mantissaBits;
  const double significand = static_cast<double>(exponent ? mantissa | (format.mantissaMask() + 1) : mantissa);
  const double value = std::ldexp(significand, scale);
  return sign ? -value : value;
}

uint64_t fromReal(Elem elem, double value) {
  const uint64_t whole = std::bit_cast<uint64_t>(value);
  if (elem == Elem::f64_) return whole;
  if (elem == Elem::f32_ && !std::isnan(value)) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Format format = formatOf(elem);
  const uint64_t sign = (whole >> 63) << (format.exponentBits + format.mantissaBits);
  const uint64_t infinity = format.exponentMask() << format.mantissaBits;
  if (std::isnan(value)) {
    if (!format.infinity) return sign | infinity | format.mantissaMask();
    const uint64_t payload = whole >> (kDoubleMantissa - format.mantissaBits) & format.mantissaMask();
    return sign | infinity | (payload ? payload : uint64_t(1) << (format.mantissaBits - 1));
  }
  const uint64_t overflow = format.infinity ? infinity : infinity | format.mantissaMask();
  uint64_t magnitude = overflow;
  if (!std::isinf(value) && value != 0) {
    int exponent = 0;
    std::frexp(value, &exponent); // |value| is in [2^(exponent-1), 2^exponent)
    const int unit = std::max(exponent - 1, 1 - format.bias()) - format.mantissaBits;
    const uint64_t steps = static_cast<uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
    // A step count that was rounded up to the next power of two carries into the exponent by
    // itself.
    magnitude = steps <= format.mantissaMask()
                    ? steps
                    : (static_cast<uint64_t>(unit + format.mantissaBits + format.bias()) << format.mantissaBits) +
                          (steps - format.mantissaMask() - 1);
  } else if (value == 0) {
    magnitude = 0;
  }
  return sign | std::min(magnitude, overflow);
}

uint64_t lowestBits(Elem elem) {
  if (isFloat(elem)) return fromReal(elem, -std::numeric_limits<double>::infinity());
  return static_cast<uint64_t>(integerRange(elem).lowest) & elemMask(elem);
}

} // namespace candela
