// Element types as C++ types: how each is loaded into the type in which it is computed, and stored
// back.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "candela/cdl.h"
#include "candela/numerics.h"

namespace candela::runtime::host_executor {

/// A type as a value.
template <class T> struct Tag {};

/// Storage of a float type that C++ lacks: computed with as float, and its bits for a float, or a
/// double where that is wider.
#define CDL_NARROW_FLOAT(T, Bits, name)                                                            \
  struct T {                                                                                       \
    Bits bits;                                                                                     \
  };                                                                                               \
  inline float load(T x) { return cdl_##name##_to_f32(x.bits); }                                   \
  inline T encode(Tag<T>, float x, bool saturate) {                                                \
    return {saturate ? cdl_f32_to_##name##_sat(x) : cdl_f32_to_##name(x)};                         \
  }                                                                                                \
  inline T encode(Tag<T>, double x, bool saturate) {                                               \
    return {saturate ? cdl_f64_to_##name##_sat(x) : cdl_f64_to_##name(x)};                         \
  }
CDL_NARROW_FLOAT(F16, uint16_t, f16)
CDL_NARROW_FLOAT(Bf16, uint16_t, bf16)
#undef CDL_NARROW_FLOAT
/// A byte; anything but 0 is true, results are 0 or 1.
struct Bool {
  uint8_t bits;
};
inline bool load(Bool x) { return x.bits != 0; }
template <class T>
  requires std::is_arithmetic_v<T>
T load(T x) {
  return x;
}

/// The type in which arithmetic on T is done.
template <class T> using Compute = decltype(load(T{}));
template <class T> constexpr bool isFloating = std::is_floating_point_v<Compute<T>>;

template <class T> T store(Compute<T> x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x;
  else if constexpr (std::is_same_v<T, Bool>)
    return {static_cast<uint8_t>(x)};
  else
    return encode(Tag<T>{}, x, false);
}

/// X(name in numerics.h, element type, its C++ type)
#define CDL_INTEGERS(X)                                                                            \
  X(i8, I8, int8_t)                                                                                \
  X(u8, U8, uint8_t)                                                                               \
  X(i16, I16, int16_t)                                                                             \
  X(u16, U16, uint16_t)                                                                            \
  X(i32, I32, int32_t)                                                                             \
  X(u32, U32, uint32_t)                                                                            \
  X(i64, I64, int64_t)                                                                             \
  X(u64, U64, uint64_t)

/// Each calls f(Tag<storage type>) for an element type of its group and returns what it returns;
/// for others a value of that type that is empty.
template <class F> auto withFloat(uint8_t elem, F&& f) -> decltype(f(Tag<float>{})) {
  switch (elem) {
  case CDL_F32: return f(Tag<float>{});
  case CDL_F16: return f(Tag<F16>{});
  case CDL_BF16: return f(Tag<Bf16>{});
  case CDL_F64: return f(Tag<double>{});
  default: return decltype(f(Tag<float>{}))();
  }
}
template <class F> auto withInteger(uint8_t elem, F&& f) -> decltype(f(Tag<int8_t>{})) {
  switch (elem) {
#define CDL_CASE(name, ID, T)                                                                      \
  case CDL_##ID: return f(Tag<T>{});
    CDL_INTEGERS(CDL_CASE)
#undef CDL_CASE
  default: return decltype(f(Tag<int8_t>{}))();
  }
}
template <class F> auto withNumber(uint8_t elem, F&& f) {
  return elem <= CDL_F64 ? withFloat(elem, f) : withInteger(elem, f);
}
template <class F> auto withAny(uint8_t elem, F&& f) {
  return elem == CDL_BOOL ? f(Tag<Bool>{}) : withNumber(elem, f);
}
/// By the size alone, for what moves elements whatever they mean; 1 to 8 bytes, packed ones as
/// bytes.
template <class F> auto withBits(uint8_t elem, F&& f) {
  switch (cdl_elem_bits(elem)) {
  case 2:
  case 4:
  case 8: return f(Tag<uint8_t>{});
  case 16: return f(Tag<uint16_t>{});
  case 32: return f(Tag<uint32_t>{});
  default: return f(Tag<uint64_t>{});
  }
}

inline bool isArithmetic(uint8_t elem) { return elem >= CDL_F32 && elem <= CDL_BOOL; }
inline bool isFloatElem(uint8_t elem) { return elem >= CDL_F32 && elem <= CDL_F64; }
/// Floats of 8 bits and less.
inline bool isStorageFloat(uint8_t elem) { return elem >= CDL_F8E4M3 && elem <= CDL_F4E2M1; }
inline bool isPackedElem(uint8_t elem) { return cdl_elem_bits(elem) < 8; }
inline bool isIntegerElem(uint8_t elem) { return elem >= CDL_I8 && elem <= CDL_U64; }

/// What an integer type below u64 holds: |value| <= 2^bits.
struct IntegerRange {
  int bits;
  int64_t lowest, highest;
  explicit IntegerRange(uint8_t elem) {
    const bool isUnsigned = elem == CDL_U8 || elem == CDL_U16 || elem == CDL_U32;
    bits = static_cast<int>(cdl_elem_bits(elem)) - (isUnsigned ? 0 : 1);
    highest = INT64_MAX >> (63 - bits);
    lowest = isUnsigned ? 0 : -highest - 1;
  }
};

/// The semantics of numerics.h as overloads on the compute types, so that templates find it.
namespace semantics {
#define CDL_INTEGER(N, ID, T)                                                                      \
  inline T add(T a, T b) { return cdl_add_##N(a, b); }                                             \
  inline T sub(T a, T b) { return cdl_sub_##N(a, b); }                                             \
  inline T mul(T a, T b) { return cdl_mul_##N(a, b); }                                             \
  inline T div(T a, T b) { return cdl_div_##N(a, b); }                                             \
  inline T rem(T a, T b) { return cdl_rem_##N(a, b); }                                             \
  inline T shl(T a, T b) { return cdl_shl_##N(a, b); }                                             \
  inline T shr(T a, T b) { return cdl_shr_##N(a, b); }                                             \
  inline T neg(T a) { return cdl_neg_##N(a); }                                                     \
  inline T abs(T a) { return cdl_abs_##N(a); }                                                     \
  inline T min(T a, T b) { return cdl_min_##N(a, b); }                                             \
  inline T max(T a, T b) { return cdl_max_##N(a, b); }
CDL_INTEGERS(CDL_INTEGER)
#undef CDL_INTEGER
#define CDL_FLOAT(N, T)                                                                            \
  inline T add(T a, T b) { return a + b; }                                                         \
  inline T sub(T a, T b) { return a - b; }                                                         \
  inline T mul(T a, T b) { return a * b; }                                                         \
  inline T div(T a, T b) { return a / b; }                                                         \
  inline T rem(T a, T b) { return std::fmod(a, b); }                                               \
  inline T pow(T a, T b) { return std::pow(a, b); }                                                \
  inline T min(T a, T b) { return cdl_min_##N(a, b); }                                             \
  inline T max(T a, T b) { return cdl_max_##N(a, b); }
CDL_FLOAT(f32, float)
CDL_FLOAT(f64, double)
#undef CDL_FLOAT
// Of bools, as of integers with what is not 0 being true.
inline bool add(bool a, bool b) { return a | b; }
inline bool mul(bool a, bool b) { return a & b; }
inline bool min(bool a, bool b) { return a & b; }
inline bool max(bool a, bool b) { return a | b; }
template <std::integral T> T bitAnd(T a, T b) { return static_cast<T>(a & b); }
template <std::integral T> T bitOr(T a, T b) { return static_cast<T>(a | b); }
template <std::integral T> T bitXor(T a, T b) { return static_cast<T>(a ^ b); }
/// a to a negative power, without its fraction.
template <std::integral T> T negativePow(T a, bool odd) {
  if (a == 1) return T{1};
  if (a == static_cast<T>(-1)) return odd ? a : T{1};
  return T{0};
}
/// By squaring, wrapping. A negative exponent gives the truncated power: 0 but for the bases 1 and
/// -1.
template <std::integral T> T pow(T a, T b) {
  if (b < T{1} && b != 0) return negativePow(a, (b & 1) != 0);
  T result = 1;
  for (uint64_t e = static_cast<uint64_t>(b); e != 0; e >>= 1) {
    if (e & 1) result = mul(result, a);
    a = mul(a, a);
  }
  return result;
}
} // namespace semantics

/// X(function of BINARY, its type, its name in them)
#define CDL_BINARIES(X)                                                                            \
  X(ADD, Add, add)                                                                                 \
  X(SUB, Sub, sub)                                                                                 \
  X(MUL, Mul, mul)                                                                                 \
  X(DIV, Div, div)                                                                                 \
  X(MIN, Min, min)                                                                                 \
  X(MAX, Max, max)                                                                                 \
  X(AND, And, bitAnd)                                                                              \
  X(OR, Or, bitOr)                                                                                 \
  X(XOR, Xor, bitXor)                                                                              \
  X(SHL, Shl, shl)                                                                                 \
  X(SHR, Shr, shr)                                                                                 \
  X(POW, Pow, pow)                                                                                 \
  X(REM, Rem, rem)

/// Those functions of two elements as types, for the compute types that have them.
#define CDL_FUNCTION(ID, Name, function)                                                           \
  struct Name {                                                                                    \
    template <class C>                                                                             \
      requires requires(C a) {                                                                     \
        { semantics::function(a, a) } -> std::same_as<C>;                                          \
      }                                                                                            \
    static C apply(C a, C b) {                                                                     \
      return semantics::function(a, b);                                                            \
    }                                                                                              \
  };
CDL_BINARIES(CDL_FUNCTION)
#undef CDL_FUNCTION

} // namespace candela::runtime::host_executor
