// UNARY on dense blocks. Transcendental functions come from libm in the compute type: f32 for f32,
// f16 and bf16.
#include <cmath>

#include "core/soft/block.h"
#include "core/soft/elements.h"

namespace candela::soft {
namespace {

// exp of the negative magnitude only, so that neither tail overflows on the way.
template <class C> C sigmoid(C x) {
  const C e = std::exp(-std::fabs(x));
  return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

template <int Fn, class C> C apply(C x) {
  if constexpr (std::is_floating_point_v<C>) {
    switch (Fn) {
    case CDL_UNARY_NEG: return -x;
    case CDL_UNARY_ABS: return std::fabs(x);
    case CDL_UNARY_FLOOR: return std::floor(x);
    case CDL_UNARY_SQRT: return std::sqrt(x);
    case CDL_UNARY_RCP: return 1 / x;
    case CDL_UNARY_EXP: return std::exp(x);
    case CDL_UNARY_LOG: return std::log(x);
    case CDL_UNARY_CEIL: return std::ceil(x);
    case CDL_UNARY_TRUNC: return std::trunc(x);
    case CDL_UNARY_ROUND_EVEN: return std::nearbyint(x);
    case CDL_UNARY_RSQRT: return 1 / std::sqrt(x);
    case CDL_UNARY_LOG1P: return std::log1p(x);
    case CDL_UNARY_EXPM1: return std::expm1(x);
    case CDL_UNARY_SIN: return std::sin(x);
    case CDL_UNARY_COS: return std::cos(x);
    case CDL_UNARY_TAN: return std::tan(x);
    case CDL_UNARY_TANH: return std::tanh(x);
    case CDL_UNARY_ERF: return std::erf(x);
    default: return sigmoid(x);
    }
  } else {
    return Fn == CDL_UNARY_NEG ? law::neg(x) : law::abs(x);
  }
}

template <class T, int Fn> void unaryBlock(const BlockOp&, const void* const* in, void* out, int64_t n) {
  const T* x = static_cast<const T*>(in[0]);
  T* y = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = store<T>(apply<Fn>(load(x[i])));
}

template <class T, int Fn> BlockOp::Function pick(uint16_t fn) {
  constexpr int last = isFloating<T> ? CDL_UNARY_SIGMOID : CDL_UNARY_ABS;
  if (fn == Fn) return unaryBlock<T, Fn>;
  if constexpr (Fn < last)
    return pick<T, Fn + 1>(fn);
  else
    return nullptr;
}

} // namespace

BlockOp::Function findUnary(uint16_t fn, uint8_t elem) {
  return withNumber(elem, [&](auto tag) { return pick<typename decltype(tag)::Type, 0>(fn); });
}

} // namespace candela::soft
