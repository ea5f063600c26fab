#include "core/support/float_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/support/status.h"

namespace candela {
namespace {

/// What a format has besides numbers, and where.
enum class Special : uint8_t {
  ieee,      ///< infinity and NaN at the highest exponent
  lastIsNan, ///< one NaN of each sign in place of the largest numbers
  zeroIsNan, ///< one NaN, in place of -0
  none,
};

struct Format {
  int exponentBits, mantissaBits;
  Special special;
  int bias() const { return (1 << (exponentBits - 1)) - (special == Special::zeroIsNan ? 0 : 1); }
  uint64_t mantissaMask() const { return (uint64_t(1) << mantissaBits) - 1; }
  uint64_t exponentMask() const { return (uint64_t(1) << exponentBits) - 1; }
};

Format formatOf(Elem elem) {
  switch (elem) {
  case Elem::f32_: return {8, 23, Special::ieee};
  case Elem::f16_: return {5, 10, Special::ieee};
  case Elem::bf16_: return {8, 7, Special::ieee};
  case Elem::f64_: return {11, 52, Special::ieee};
  case Elem::f8e4m3_: return {4, 3, Special::lastIsNan};
  case Elem::f8e5m2_: return {5, 2, Special::ieee};
  case Elem::f8e4m3fnuz_: return {4, 3, Special::zeroIsNan};
  case Elem::f8e5m2fnuz_: return {5, 2, Special::zeroIsNan};
  case Elem::f6e2m3_: return {2, 3, Special::none};
  case Elem::f6e3m2_: return {3, 2, Special::none};
  case Elem::f4e2m1_: return {2, 1, Special::none};
  default: CDL_CHECK(false, "{} is no float type", elemName(elem));
  }
}

constexpr int kDoubleMantissa = 52;
constexpr uint64_t kDoubleExponent = uint64_t(0x7ff) << kDoubleMantissa;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// f8e8m0: a power of two.
constexpr int kScaleBias = 127;
constexpr uint64_t kScaleNan = 255;

uint64_t scaleBits(double value) {
  if (!(value > 0) || std::isinf(value)) return kScaleNan;
  int exponent = 0;
  const double significand = std::frexp(value, &exponent); // in [1/2, 1)
  const int64_t biased = int64_t{exponent} - 1 + (significand >= 0.75) + kScaleBias;
  return biased < 0 || biased >= static_cast<int64_t>(kScaleNan) ? kScaleNan
                                                                 : static_cast<uint64_t>(biased);
}

} // namespace

double toReal(Elem elem, uint64_t bits) {
  if (elem == Elem::f64_) return std::bit_cast<double>(bits);
  // The machine widens f32 exactly; of a NaN it would change the payload.
  if (const float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      elem == Elem::f32_ && value == value)
    return value;
  if (elem == Elem::f8e8m0_)
    return bits == kScaleNan ? kNan : std::ldexp(1, static_cast<int>(bits) - kScaleBias);
  const Format format = formatOf(elem);
  const uint64_t sign = bits >> (format.exponentBits + format.mantissaBits) & 1;
  const uint64_t exponent = bits >> format.mantissaBits & format.exponentMask();
  const uint64_t mantissa = bits & format.mantissaMask();
  if (format.special == Special::zeroIsNan && sign && exponent == 0 && mantissa == 0) return kNan;
  const bool top = exponent == format.exponentMask();
  if (top && (format.special == Special::ieee ||
              (format.special == Special::lastIsNan && mantissa == format.mantissaMask())))
    return std::bit_cast<double>(sign << 63 | kDoubleExponent |
                                 mantissa << (kDoubleMantissa - format.mantissaBits));
  const int scale = static_cast<int>(exponent ? exponent : 1) - format.bias() - format.mantissaBits;
  const double significand =
      static_cast<double>(exponent ? mantissa | (format.mantissaMask() + 1) : mantissa);
  const double value = std::ldexp(significand, scale);
  return sign ? -value : value;
}

uint64_t fromReal(Elem elem, double value) {
  const uint64_t whole = std::bit_cast<uint64_t>(value);
  if (elem == Elem::f64_) return whole;
  if (elem == Elem::f32_ && !std::isnan(value))
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (elem == Elem::f8e8m0_) return scaleBits(value);
  const Format format = formatOf(elem);
  const uint64_t signBit = uint64_t(1) << (format.exponentBits + format.mantissaBits);
  const uint64_t sign = whole >> 63 ? signBit : 0;
  const uint64_t infinity = format.exponentMask() << format.mantissaBits,
                 all = infinity | format.mantissaMask();
  if (std::isnan(value)) {
    if (format.special == Special::zeroIsNan) return signBit;
    if (format.special == Special::none) return sign ^ signBit;
    if (format.special == Special::lastIsNan) return sign | all;
    const uint64_t payload =
        whole >> (kDoubleMantissa - format.mantissaBits) & format.mantissaMask();
    return sign | infinity | (payload ? payload : uint64_t(1) << (format.mantissaBits - 1));
  }
  // What stands for more than the largest: infinity, NaN, or the largest itself.
  uint64_t overflow = all;
  if (format.special == Special::ieee) overflow = infinity;
  if (format.special == Special::zeroIsNan) overflow = all + 1;
  uint64_t magnitude = overflow;
  if (!std::isinf(value) && value != 0) {
    int exponent = 0;
    std::frexp(value, &exponent); // |value| is in [2^(exponent-1), 2^exponent)
    const int unit = std::max(exponent - 1, 1 - format.bias()) - format.mantissaBits;
    const uint64_t steps =
        static_cast<uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
    // A step count that was rounded up to the next power of two carries into the exponent by
    // itself.
    magnitude = steps <= format.mantissaMask()
                    ? steps
                    : (static_cast<uint64_t>(unit + format.mantissaBits + format.bias())
                       << format.mantissaBits) +
                          (steps - format.mantissaMask() - 1);
  } else if (value == 0) {
    magnitude = 0;
  }
  magnitude = std::min(magnitude, overflow);
  if (format.special == Special::zeroIsNan && (magnitude == 0 || magnitude > all)) return magnitude;
  return sign | magnitude;
}

double largestReal(Elem elem) {
  if (elem == Elem::f8e8m0_) return toReal(elem, kScaleNan - 1);
  const Format format = formatOf(elem);
  const uint64_t infinity = format.exponentMask() << format.mantissaBits,
                 all = infinity | format.mantissaMask();
  if (format.special == Special::ieee) return toReal(elem, infinity - 1);
  return toReal(elem, format.special == Special::lastIsNan ? all - 1 : all);
}

uint64_t lowestBits(Elem elem) {
  if (isFloat(elem)) return fromReal(elem, -std::numeric_limits<double>::infinity());
  return static_cast<uint64_t>(integerRange(elem).lowest) & elemMask(elem);
}

} // namespace candela
