#pragma once

#include <span>

#include "core/support/elem.h"

/// The functions of UNARY, BINARY, COMPARE and CONVERT on one element: floats in f64, integers in
/// 128 bits. The caller rounds or wraps to the element type. `fn` is CDL_UNARY_*, CDL_BINARY_*,
/// CDL_COMPARE_* or CDL_CONVERT_*.
namespace candela::reference {

using Whole = __int128;

/// One element of any type while it is computed with.
struct Scalar {
  double real = 0; ///< of float types
  Whole whole = 0; ///< of integer types and bool
};

/// Bits beyond the type's are 0, and not looked at.
Scalar decode(Elem elem, uint64_t bits);
uint64_t encode(Elem elem, const Scalar& value);

/// A function of UNARY, BINARY, COMPARE, SELECT or CONVERT, or COPY. `from`: the type of the last
/// operand.
struct Function {
  uint16_t kind = 0, fn = 0;
  Elem from = Elem::none, to = Elem::none;
  bool saturate = false;
};
/// Integers wrap; floats are rounded by a conversion only.
Scalar apply(const Function& function, const Scalar* operands);

/// The value modulo 2^bits, as the type reads it; bool: whether it is not 0.
Whole wrap(Elem elem, Whole value);
/// The nearest value of a float type, ties to even.
double roundReal(Elem elem, double value);

double unary(uint16_t fn, double x);
/// neg and abs only.
Whole unary(uint16_t fn, Whole x);

double binary(uint16_t fn, double a, double b);
/// `elem` decides about shifts: by its width, and arithmetic when it is signed.
Whole binary(uint16_t fn, Elem elem, Whole a, Whole b);

Scalar binary(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b);

bool compare(uint16_t fn, double a, double b);
bool compare(uint16_t fn, Whole a, Whole b);
bool compare(uint16_t fn, Elem elem, const Scalar& a, const Scalar& b);

/// Rounded by `fn` (CDL_CONVERT_TRUNC, _RNE, _FLOOR) and then clamped or wrapped; NaN gives 0. To
/// bool: whether it is not 0.
Whole realToWhole(Elem to, double value, uint16_t fn, bool saturate);
/// To nearest even, in one rounding also for integers that f64 cannot hold.
double wholeToReal(Elem to, Whole value);
Whole wholeToWhole(Elem to, Whole value, bool saturate);
double realToReal(Elem to, double value, bool saturate);

/// sum += a * b; integers modulo 2^128, whose low bits are those of every type.
inline void addProduct(double& sum, double a, double b) { sum += a * b; }
inline void addProduct(Whole& sum, Whole a, Whole b) {
  using Wide = unsigned __int128;
  sum = static_cast<Whole>(static_cast<Wide>(sum) + static_cast<Wide>(a) * static_cast<Wide>(b));
}

/// One operand of RESCALE: value * multiplier * 2^leftShift.
struct Term {
  Whole value, multiplier;
  int64_t leftShift;
};
/// clamp(rne(sum of the terms / 2^shift) + zero, low, high), exact up to its one rounding; shift >=
/// 0.
Whole rescale(std::span<const Term> terms, int64_t shift, Whole zero, Whole low, Whole high);

/// The same as a step of an expression: a, its multiplier, shift and zero.
Scalar rescaleStep(const Scalar* operands, Whole low, Whole high);

/// value / 2^shift to the nearest integer, ties to even; shift >= 0.
Whole shiftRightEven(Whole value, int64_t shift);

} // namespace candela::reference
