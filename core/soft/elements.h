// Element types as C++ types: how each is loaded into the type in which it is computed, and stored
// back.
#pragma once

#include <type_traits>

#include "candela/cdl.h"
#include "candela/numerics.h"

namespace candela::soft {

/// Storage of the types that C++ lacks. Compute is the type of their arithmetic.
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
struct F8e4m3 {
  uint8_t bits;
};
struct F8e5m2 {
  uint8_t bits;
};
/// A byte; anything but 0 is true, results are 0 or 1.
struct Bool {
  uint8_t bits;
};

template <class T> struct ComputeOf { using Type = T; };
template <> struct ComputeOf<F16> { using Type = float; };
template <> struct ComputeOf<Bf16> { using Type = float; };
template <> struct ComputeOf<F8e4m3> { using Type = float; };
template <> struct ComputeOf<F8e5m2> { using Type = float; };
template <> struct ComputeOf<Bool> { using Type = bool; };
template <class T> using Compute = typename ComputeOf<T>::Type;

template <class T> constexpr bool isFloating = std::is_floating_point_v<Compute<T>>;

template <class T> inline Compute<T> load(T x) {
  if constexpr (std::is_same_v<T, F16>)
    return cdl_f16_to_f32(x.bits);
  else if constexpr (std::is_same_v<T, Bf16>)
    return cdl_bf16_to_f32(x.bits);
  else if constexpr (std::is_same_v<T, F8e4m3>)
    return cdl_f8e4m3_to_f32(x.bits);
  else if constexpr (std::is_same_v<T, F8e5m2>)
    return cdl_f8e5m2_to_f32(x.bits);
  else if constexpr (std::is_same_v<T, Bool>)
    return x.bits != 0;
  else
    return x;
}
template <class T> inline T store(Compute<T> x) {
  if constexpr (std::is_same_v<T, F16>)
    return {cdl_f32_to_f16(x)};
  else if constexpr (std::is_same_v<T, Bf16>)
    return {cdl_f32_to_bf16(x)};
  else if constexpr (std::is_same_v<T, Bool>)
    return {static_cast<uint8_t>(x)};
  else
    return x;
}

/// Storage bits of an element type; 0 for none.
inline int elemBits(uint8_t elem) {
  switch (elem) {
#define CDL_CASE(name, id, bits, ...)                                                                                  \
  case id: return bits;
    CDL_ELEMS(CDL_CASE)
#undef CDL_CASE
  default: return 0;
  }
}
inline const char* elemName(uint8_t elem) {
  switch (elem) {
#define CDL_CASE(name, id, ...)                                                                                        \
  case id: return #name;
    CDL_ELEMS(CDL_CASE)
#undef CDL_CASE
  default: return "?";
  }
}

template <class T> struct Tag { using Type = T; };

/// Calls f(Tag<storage type>) for an arithmetic element type that `f` accepts and returns what it
/// returns; `otherwise` for the others.
template <class R, class F> R withFloat(uint8_t elem, R otherwise, F&& f) {
  switch (elem) {
  case CDL_F32: return f(Tag<float>{});
  case CDL_F16: return f(Tag<F16>{});
  case CDL_BF16: return f(Tag<Bf16>{});
  case CDL_F64: return f(Tag<double>{});
  default: return otherwise;
  }
}
template <class R, class F> R withInteger(uint8_t elem, R otherwise, F&& f) {
  switch (elem) {
  case CDL_I8: return f(Tag<int8_t>{});
  case CDL_U8: return f(Tag<uint8_t>{});
  case CDL_I16: return f(Tag<int16_t>{});
  case CDL_U16: return f(Tag<uint16_t>{});
  case CDL_I32: return f(Tag<int32_t>{});
  case CDL_U32: return f(Tag<uint32_t>{});
  case CDL_I64: return f(Tag<int64_t>{});
  case CDL_U64: return f(Tag<uint64_t>{});
  default: return otherwise;
  }
}
template <class R, class F> R withNumber(uint8_t elem, R otherwise, F&& f) {
  return elem <= CDL_F64 ? withFloat(elem, otherwise, f) : withInteger(elem, otherwise, f);
}
template <class R, class F> R withAny(uint8_t elem, R otherwise, F&& f) {
  return elem == CDL_BOOL ? f(Tag<Bool>{}) : withNumber(elem, otherwise, f);
}

inline bool isArithmetic(uint8_t elem) { return elem >= CDL_F32 && elem <= CDL_BOOL; }
inline bool isFloatElem(uint8_t elem) { return elem >= CDL_F32 && elem <= CDL_F64; }
inline bool isIntegerElem(uint8_t elem) { return elem >= CDL_I8 && elem <= CDL_U64; }

/// The integer law by overloads, so that templates find it.
namespace law {
#define CDL_LAW(N, T)                                                                                                  \
  inline T add(T a, T b) { return cdl_add_##N(a, b); }                                                                 \
  inline T sub(T a, T b) { return cdl_sub_##N(a, b); }                                                                 \
  inline T mul(T a, T b) { return cdl_mul_##N(a, b); }                                                                 \
  inline T div(T a, T b) { return cdl_div_##N(a, b); }                                                                 \
  inline T rem(T a, T b) { return cdl_rem_##N(a, b); }                                                                 \
  inline T shl(T a, T b) { return cdl_shl_##N(a, b); }                                                                 \
  inline T shr(T a, T b) { return cdl_shr_##N(a, b); }                                                                 \
  inline T neg(T a) { return cdl_neg_##N(a); }                                                                         \
  inline T abs(T a) { return cdl_abs_##N(a); }                                                                         \
  inline T min(T a, T b) { return cdl_min_##N(a, b); }                                                                 \
  inline T max(T a, T b) { return cdl_max_##N(a, b); }
CDL_LAW(i8, int8_t)
CDL_LAW(u8, uint8_t)
CDL_LAW(i16, int16_t)
CDL_LAW(u16, uint16_t)
CDL_LAW(i32, int32_t)
CDL_LAW(u32, uint32_t)
CDL_LAW(i64, int64_t)
CDL_LAW(u64, uint64_t)
#undef CDL_LAW
inline float min(float a, float b) { return cdl_min_f32(a, b); }
inline float max(float a, float b) { return cdl_max_f32(a, b); }
inline double min(double a, double b) { return cdl_min_f64(a, b); }
inline double max(double a, double b) { return cdl_max_f64(a, b); }
} // namespace law

/// Addition and multiplication of any compute type; of bools, as of integers with what is not 0
/// being true.
struct Add {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a | b;
    else if constexpr (std::is_floating_point_v<C>)
      return a + b;
    else
      return law::add(a, b);
  }
};
struct Mul {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a & b;
    else if constexpr (std::is_floating_point_v<C>)
      return a * b;
    else
      return law::mul(a, b);
  }
};
struct Min {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a & b;
    else
      return law::min(a, b);
  }
};
struct Max {
  template <class C> static C apply(C a, C b) {
    if constexpr (std::is_same_v<C, bool>)
      return a | b;
    else
      return law::max(a, b);
  }
};

} // namespace candela::soft
