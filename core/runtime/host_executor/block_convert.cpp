// CONVERT on dense blocks: one rounding, whatever the pair of types.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/runtime/host_executor/block.h"
#include "core/runtime/host_executor/operand.h"

namespace candela::runtime::host_executor {
namespace {

// An integer on its way to a float narrower than f64.
double oddReal(int64_t x) { return cdl_i64_to_f64_odd(x); }
double oddReal(uint64_t x) { return cdl_u64_to_f64_odd(x); }

template <class T, class C> T toFloat(C x, bool saturate) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T max = std::numeric_limits<T>::max();
    const T y = static_cast<T>(x);
    if (saturate && y > max) return max;
    if (saturate && y < -max) return -max;
    return y;
  } else if constexpr (std::is_floating_point_v<C>) {
    return encode(Tag<T>{}, x, saturate);
  } else if constexpr (sizeof(C) < 4) {
    return encode(Tag<T>{}, static_cast<float>(x), saturate); // exact
  } else {
    return encode(
        Tag<T>{},
        oddReal(static_cast<std::conditional_t<std::is_signed_v<C>, int64_t, uint64_t>>(x)),
        saturate);
  }
}

template <class T, class C> T toInteger(C x, int rounding, bool saturate) {
  using Limits = std::numeric_limits<T>;
  if constexpr (!std::is_floating_point_v<C>) {
    if (saturate && std::cmp_less(x, Limits::min())) return Limits::min();
    if (saturate && std::cmp_greater(x, Limits::max())) return Limits::max();
    return static_cast<T>(x);
  } else if (!saturate) {
    return static_cast<T>(cdl_f64_to_int_wrap(x, rounding));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return cdl_f64_to_u64_sat(x, rounding);
  } else {
    return static_cast<T>(cdl_f64_to_int_sat(x, rounding, Limits::min(), Limits::max()));
  }
}

// Of bools as of bytes: the standard's comparisons take no bool.
uint8_t number(bool x) { return x; }
template <class C> C number(C x) { return x; }

template <class From, class To>
void convertBlock(const BlockOp& op, const void* const* in, void* out, int64_t n) {
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

/// The byte type in which elements of a packed integer type come and go; other types as they are.
uint8_t unpacked(uint8_t elem) {
  if (elem == CDL_I4 || elem == CDL_I2) return CDL_I8;
  return elem == CDL_U4 || elem == CDL_U2 ? uint8_t{CDL_U8} : elem;
}

/// By way of f64, which holds every value that is no integer of 64 bits, and of those what decides.
template <class From>
void convertToStorage(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  const From* x = static_cast<const From*>(in[0]);
  for (int64_t i = 0; i < n; ++i) {
    double value = 0;
    if constexpr (std::is_same_v<From, int64_t> || std::is_same_v<From, uint64_t>)
      value = oddReal(x[i]);
    else
      value = static_cast<double>(load(x[i]));
    static_cast<uint8_t*>(out)[i] = cdl_f64_to_storage(op.to, value, op.saturate);
  }
}

/// Storage floats are widened to f32, exactly, and then converted.
void convertFromStorage(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  BlockOp next = op;
  next.from = CDL_F32;
  float wide[kBlock];
  const void* inputs[] = {wide};
  for (int64_t i = 0; i < n; ++i)
    wide[i] = cdl_storage_to_f32(op.from, static_cast<const uint8_t*>(in[0])[i]);
  findConvert(next.from, next.to)(next, inputs, out, n);
}

/// To a packed integer type: whole bytes when wrapping, of which the low bits are kept; else within
/// the limits.
void convertToPacked(const BlockOp& op, const void* const* in, void* out, int64_t n) {
  BlockOp whole = op;
  whole.to = unpacked(op.to);
  findConvert(whole.from, whole.to)(whole, in, out, n);
  if (!op.saturate) return;
  const int range = 1 << cdl_elem_bits(op.to);
  const bool isSigned = whole.to == CDL_I8;
  const int lowest = isSigned ? -range / 2 : 0, highest = lowest + range - 1;
  uint8_t* y = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<uint8_t>(
        std::clamp(isSigned ? static_cast<int8_t>(y[i]) : int{y[i]}, lowest, highest));
}

} // namespace

BlockOp::Function findConvert(uint8_t from, uint8_t to) {
  if (unpacked(to) != to) return convertToPacked;
  from = unpacked(from);
  if (isStorageFloat(from)) return convertFromStorage;
  return withAny(from, [&]<class From>(Tag<From>) -> BlockOp::Function {
    if (isStorageFloat(to)) return convertToStorage<From>;
    return withAny(to,
                   []<class To>(Tag<To>) -> BlockOp::Function { return convertBlock<From, To>; });
  });
}

} // namespace candela::runtime::host_executor
