// CONVERT on dense blocks. The frequent pairs go directly; all others through a wide block of
// doubles or 64-bit integers, which hold every value of every type, so that there is one rounding.
#include <limits>

#include "core/soft/block.h"
#include "core/soft/elements.h"

namespace candela::soft {
namespace {

constexpr int64_t kWide = 128;
enum class Form { Real, Signed, Unsigned };
union Wide {
  double real[kWide];
  uint64_t bits[kWide];
};

template <class T> Form widen(const void* from, int64_t n, Wide& wide) {
  const T* x = static_cast<const T*>(from);
  if constexpr (isFloating<T>) {
    for (int64_t i = 0; i < n; ++i) wide.real[i] = static_cast<double>(load(x[i]));
    return Form::Real;
  } else {
    for (int64_t i = 0; i < n; ++i) wide.bits[i] = static_cast<uint64_t>(load(x[i]));
    return std::is_same_v<T, uint64_t> ? Form::Unsigned : Form::Signed;
  }
}

Form widenElem(uint8_t elem, const void* from, int64_t n, Wide& wide) {
  switch (elem) {
  case CDL_I4: return widen<int8_t>(from, n, wide);
  case CDL_U4: return widen<uint8_t>(from, n, wide);
  case CDL_F8E4M3: return widen<F8e4m3>(from, n, wide);
  case CDL_F8E5M2: return widen<F8e5m2>(from, n, wide);
  default:
    return withAny<Form>(elem, Form::Real,
                         [&](auto tag) { return widen<typename decltype(tag)::Type>(from, n, wide); });
  }
}

double realOf(const Wide& wide, Form form, int64_t i) {
  switch (form) {
  case Form::Real: return wide.real[i];
  case Form::Signed: return cdl_i64_to_f64_odd(static_cast<int64_t>(wide.bits[i]));
  default: return cdl_u64_to_f64_odd(wide.bits[i]);
  }
}

// F: double -> bits of a narrow float.
template <class T, class F> void narrowFloat(const Wide& wide, Form form, int64_t n, void* to, F encode) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(to)[i] = T{encode(realOf(wide, form, i))};
}

// Saturation of f32 and f64: an infinity becomes the largest finite value.
template <class T> T finite(T x, bool saturate) {
  constexpr T max = std::numeric_limits<T>::max();
  return !saturate ? x : x > max ? max : x < -max ? -max : x;
}

template <class T> void narrowReal(const Wide& wide, Form form, int64_t n, void* to, bool saturate) {
  T* y = static_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) {
    const T value = form == Form::Real     ? static_cast<T>(wide.real[i])
                    : form == Form::Signed ? static_cast<T>(static_cast<int64_t>(wide.bits[i]))
                                           : static_cast<T>(wide.bits[i]);
    y[i] = finite(value, saturate);
  }
}

template <class T> T clampInteger(uint64_t bits, Form form) {
  using Limits = std::numeric_limits<T>;
  if (form == Form::Unsigned) return bits > static_cast<uint64_t>(Limits::max()) ? Limits::max() : static_cast<T>(bits);
  const int64_t value = static_cast<int64_t>(bits);
  if constexpr (std::is_same_v<T, uint64_t>)
    return value < 0 ? 0 : bits;
  else
    return value < static_cast<int64_t>(Limits::min())   ? Limits::min()
           : value > static_cast<int64_t>(Limits::max()) ? Limits::max()
                                                         : static_cast<T>(value);
}

template <class T> void narrowInteger(const Wide& wide, Form form, int64_t n, void* to, int rounding, bool saturate) {
  T* y = static_cast<T*>(to);
  using Limits = std::numeric_limits<T>;
  for (int64_t i = 0; i < n; ++i) {
    if (form != Form::Real) {
      y[i] = saturate ? clampInteger<T>(wide.bits[i], form) : static_cast<T>(wide.bits[i]);
    } else if (!saturate) {
      y[i] = static_cast<T>(cdl_f64_to_int_wrap(wide.real[i], rounding));
    } else if constexpr (std::is_same_v<T, uint64_t>) {
      y[i] = cdl_f64_to_u64_sat(wide.real[i], rounding);
    } else {
      y[i] = static_cast<T>(cdl_f64_to_int_sat(wide.real[i], rounding, Limits::min(), Limits::max()));
    }
  }
}

// To bool: whatever is not 0 is true, NaN too.
void narrowBool(const Wide& wide, Form form, int64_t n, void* to) {
  uint8_t* y = static_cast<uint8_t*>(to);
  for (int64_t i = 0; i < n; ++i) y[i] = form == Form::Real ? wide.real[i] != 0 : wide.bits[i] != 0;
}

void narrowElem(const BlockOp& op, const Wide& wide, Form form, int64_t n, void* to) {
  const bool sat = op.saturate;
  switch (op.to) {
  case CDL_F16: return narrowFloat<F16>(wide, form, n, to, sat ? cdl_f64_to_f16_sat : cdl_f64_to_f16);
  case CDL_BF16: return narrowFloat<Bf16>(wide, form, n, to, sat ? cdl_f64_to_bf16_sat : cdl_f64_to_bf16);
  case CDL_F8E4M3: return narrowFloat<F8e4m3>(wide, form, n, to, sat ? cdl_f64_to_f8e4m3_sat : cdl_f64_to_f8e4m3);
  case CDL_F8E5M2: return narrowFloat<F8e5m2>(wide, form, n, to, sat ? cdl_f64_to_f8e5m2_sat : cdl_f64_to_f8e5m2);
  case CDL_F32: return narrowReal<float>(wide, form, n, to, sat);
  case CDL_F64: return narrowReal<double>(wide, form, n, to, sat);
  case CDL_BOOL: return narrowBool(wide, form, n, to);
  default:
    withInteger<int>(op.to, 0, [&](auto tag) {
      narrowInteger<typename decltype(tag)::Type>(wide, form, n, to, op.fn, sat);
      return 0;
    });
  }
}

void wideBlock(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  const int64_t inBytes = elemBits(op.from) <= 8 ? 1 : elemBits(op.from) / 8, outBytes = elemBits(op.to) / 8;
  Wide wide;
  for (int64_t i = 0; i < n; i += kWide) {
    const int64_t count = n - i < kWide ? n - i : kWide;
    const Form form = widenElem(op.from, static_cast<const char*>(in[0]) + i * inBytes, count, wide);
    narrowElem(op, wide, form, count, static_cast<char*>(out) + i * outBytes);
  }
}

// Pairs for which the compiler's own conversion is the law.
template <class From, class To> void directBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<To>(static_cast<Compute<To>>(load(x[i])));
}

BlockOp::Function findDirect(uint8_t from, uint8_t to) {
  if (to == CDL_F32) {
    switch (from) {
    case CDL_F16: return directBlock<F16, float>;
    case CDL_BF16: return directBlock<Bf16, float>;
    case CDL_I8: return directBlock<int8_t, float>;
    case CDL_U8: return directBlock<uint8_t, float>;
    case CDL_I16: return directBlock<int16_t, float>;
    case CDL_I32: return directBlock<int32_t, float>;
    default: return nullptr;
    }
  }
  if (from == CDL_F32 && to == CDL_F16) return directBlock<float, F16>;
  if (from == CDL_F32 && to == CDL_BF16) return directBlock<float, Bf16>;
  if (to == CDL_I32) {
    if (from == CDL_I8) return directBlock<int8_t, int32_t>;
    if (from == CDL_U8) return directBlock<uint8_t, int32_t>;
    if (from == CDL_I16) return directBlock<int16_t, int32_t>;
  }
  return nullptr;
}

} // namespace

BlockOp::Function findConvert(uint16_t fn, uint8_t from, uint8_t to, bool saturate) {
  if (fn > CDL_CONVERT_FLOOR || elemBits(from) == 0 || elemBits(to) < 8) return nullptr;
  const BlockOp::Function direct = saturate ? nullptr : findDirect(from, to);
  return direct ? direct : wideBlock;
}

} // namespace candela::soft
