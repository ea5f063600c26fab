#include "core/support/scaled_product.h"

#include <fmt/format.h>

namespace candela {

namespace {

bool isComputed(Elem elem) {
  return elem == Elem::f32_ || elem == Elem::f16_ || elem == Elem::bf16_;
}

bool isScale(Elem elem) {
  return isComputed(elem) || elem == Elem::f8e8m0_ || elem == Elem::f8e4m3_;
}

/// A float that hardware multiplies.
bool isFactor(Elem elem) { return isFloat(elem) && elem != Elem::f64_ && elem != Elem::f8e8m0_; }

bool isSmallWhole(Elem elem) { return isInteger(elem) && elemBits(elem) <= 8; }

std::string whyNoZeroPoint(const ScaledProductTypes& types) {
  if (types.wZero == Elem::none) return {};
  const bool isByte = types.wZero == Elem::i8_ || types.wZero == Elem::u8_;
  const bool hasFloatSums = !types.isDynamic && isFloat(types.a);
  const bool fits = (isByte && isInteger(types.w)) || (isComputed(types.wZero) && hasFloatSums);
  return fits ? std::string()
              : fmt::format("a zero point of {} cannot be {}", elemName(types.w),
                            elemName(types.wZero));
}

} // namespace

bool isProduct(Elem a, Elem b, Elem y) {
  const auto isNumber = [](Elem e) { return e != Elem::bool_ && !isStorageOnly(e); };
  const auto isByte = [](Elem e) { return e == Elem::i8_ || e == Elem::u8_; };
  if (!(a == b || (isInteger(a) && isInteger(b))) || !isNumber(a) || !isNumber(b)) return false;
  if (isFloat(a)) return y == a || (y == Elem::f32_ && (a == Elem::f16_ || a == Elem::bf16_));
  if (a == b && y == a && elemBits(a) >= 32) return true;
  if (isByte(a) && isByte(b)) return y == Elem::i32_;
  return elemBits(a) <= 16 && elemBits(b) <= 16 && y == Elem::i64_;
}

std::string whyNoScaledProduct(const ScaledProductTypes& types) {
  const bool isWhole = types.isDynamic || isInteger(types.a);
  if (types.isDynamic ? !isComputed(types.a) : !isFactor(types.a) && types.a != Elem::i8_)
    return fmt::format("a cannot be {}", elemName(types.a));
  if (!isSmallWhole(types.w) && (isWhole || !isFactor(types.w) || types.w == Elem::f32_))
    return fmt::format("w cannot be {}", elemName(types.w));
  if (!isScale(types.wScale)) return fmt::format("w_scale cannot be {}", elemName(types.wScale));
  if (std::string why = whyNoZeroPoint(types); !why.empty()) return why;
  if (types.aScale != Elem::none && (types.isDynamic || !isScale(types.aScale)))
    return types.isDynamic ? "a gets its own scales"
                           : fmt::format("a_scale cannot be {}", elemName(types.aScale));
  return isComputed(types.y) ? std::string() : fmt::format("sums cannot be {}", elemName(types.y));
}

} // namespace candela
