// CONVERT on dense blocks: one rounding, whatever the pair of types.
#include <limits>
#include <utility>

#include "core/soft/block.h"
#include "core/soft/elements.h"

namespace candela::soft {
namespace {

// An integer on its way to a float narrower than f64.
double oddReal(int64_t x) { return cdl_i64_to_f64_odd(x); }
double oddReal(uint64_t x) { return cdl_u64_to_f64_odd(x); }

template <class T, class C> T toFloat(C x, bool saturate) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T max = std::numeric_limits<T>::max();
    const T y = static_cast<T>(x);
    return !saturate ? y : y > max ? max : y < -max ? -max : y;
  } else if constexpr (std::is_floating_point_v<C>) {
    return encode(Tag<T>{}, x, saturate);
  } else if constexpr (sizeof(C) < 4) {
    return encode(Tag<T>{}, static_cast<float>(x), saturate); // exact
  } else {
    return encode(Tag<T>{}, oddReal(static_cast<std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>>(x)),
                  saturate);
  }
}

template <class T, class C> T toInteger(C x, int rounding, bool saturate) {
  using Limits = std::numeric_limits<T>;
  if constexpr (!std::is_floating_point_v<C>)
    return !saturate                            ? static_cast<T>(x)
           : std::cmp_less(x, Limits::min())    ? Limits::min()
           : std::cmp_greater(x, Limits::max()) ? Limits::max()
                                                : static_cast<T>(x);
  else if (!saturate)
    return static_cast<T>(cdl_f64_to_int_wrap(x, rounding));
  else if constexpr (std::is_same_v<T, uint64_t>)
    return cdl_f64_to_u64_sat(x, rounding);
  else
    return static_cast<T>(cdl_f64_to_int_sat(x, rounding, Limits::min(), Limits::max()));
}

// Of bools as of bytes: the standard's comparisons take no bool.
uint8_t number(bool x) { return x; }
template <class C> C number(C x) { return x; }

template <class From, class To> void convertBlock(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  const auto run = [&](auto saturate) { // known here: the loop is vectorized
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto value = number(load(x[i]));
      if constexpr (std::is_same_v<To, Bool>)
        y[i] = {value != 0}; // whatever is not 0 is true, NaN too
      else if constexpr (std::is_integral_v<To>)
        y[i] = toInteger<To>(value, op.fn, saturate);
      else
        y[i] = toFloat<To>(value, saturate);
    }
  };
  op.saturate ? run(std::true_type()) : run(std::false_type());
}

template <class F> BlockOp::Function withStored(uint8_t elem, F&& f) {
  switch (elem) {
  case CDL_F8E4M3: return f(Tag<F8e4m3>{});
  case CDL_F8E5M2: return f(Tag<F8e5m2>{});
  default: return withAny(elem, f);
  }
}

} // namespace

BlockOp::Function findConvert(uint8_t from, uint8_t to) {
  if (from == CDL_I4 || from == CDL_U4) from = from == CDL_I4 ? CDL_I8 : CDL_U8; // 4 bits come as bytes
  return withStored(from, [&]<class From>(Tag<From>) {
    return withStored(to, []<class To>(Tag<To>) -> BlockOp::Function { return convertBlock<From, To>; });
  });
}

} // namespace candela::soft
