#ifndef CANDELA_CORE_REFERENCE_INTERP_SCALAR_H
#define CANDELA_CORE_REFERENCE_INTERP_SCALAR_H

#include <limits>

#include "core/reference/scalar.h"
#include "core/support/float_bits.h"

/// One element while the interpreter computes. Floats are f64, integers and bool 128 bits; they
/// become an element of their type once, in `encode`. The functions are the oracle's.
namespace candela::interp {

using reference::Whole;

struct Scalar {
  double real = 0; ///< of float types
  Whole whole = 0; ///< of integer types and bool
};

/// The lowest bits of the value that the type keeps; bool: whether it is not 0.
inline uint64_t encode(Elem elem, const Scalar& value) {
  if (isFloat(elem)) return fromReal(elem, value.real);
  if (elem == Elem::bool_) return value.whole != 0;
  const auto bits = static_cast<uint64_t>(value.whole);
  return elemBits(elem) == 64 ? bits : bits & ((uint64_t(1) << elemBits(elem)) - 1);
}

inline Scalar decode(Elem elem, uint64_t bits) {
  if (isFloat(elem)) return {toReal(elem, bits), 0};
  return {0, reference::wrap(elem, static_cast<Whole>(bits))};
}

/// What is left after one trip through the type.
inline Scalar rounded(Elem elem, const Scalar& value) { return decode(elem, encode(elem, value)); }

inline Scalar unary(uint16_t fn, Elem elem, const Scalar& x) {
  if (isFloat(elem)) return {reference::unary(fn, x.real), 0};
  return {0, reference::unary(fn, x.whole)};
}

inline Scalar binary(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b) {
  if (isFloat(elem)) return {reference::binary(fn, a.real, b.real), 0};
  return {0, reference::binary(fn, elem, a.whole, b.whole)};
}

inline bool compare(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b) {
  return isFloat(elem) ? reference::compare(fn, a.real, b.real) : reference::compare(fn, a.whole, b.whole);
}

inline Scalar convert(uint16_t fn, bool saturate, Elem from, const Scalar& x, Elem to) {
  if (isFloat(to))
    return {isFloat(from) ? reference::realToReal(to, x.real, saturate) : reference::wholeToReal(to, x.whole), 0};
  return {0, isFloat(from) ? reference::realToWhole(to, x.real, fn, saturate)
                           : reference::wholeToWhole(to, x.whole, saturate)};
}

/// Lowest and highest of a type; of floats the infinities.
inline Scalar lowest(Elem elem) {
  if (isFloat(elem)) return {-std::numeric_limits<double>::infinity(), 0};
  return {0, integerRange(elem).lowest};
}
inline Scalar highest(Elem elem) {
  if (isFloat(elem)) return {std::numeric_limits<double>::infinity(), 0};
  return {0, integerRange(elem).highest};
}

} // namespace candela::interp

#endif
