// RESCALE: y = clamp(rne((a*Ma*2^ka + b*Mb*2^kb) / 2^s) + zp). TABLE: y = table[x]. Both are exact:
// numerics.h.
#include "../template.hpp"

namespace {

template <class X, class Y> cdl::Status rescaleTo(const cdl::Rescale& op) {
  const auto ma = op.aMultiplier<const int32_t>(), shift = op.shift<const int32_t>(),
             zero = op.zero<const int32_t>();
  const int64_t lo = op.clampMin(std::numeric_limits<Y>::min()),
                hi = op.clampMax(std::numeric_limits<Y>::max());
  const int ka = op.aLeftShift(), kb = op.bLeftShift();
  // of a product, or of the sum of two
  const int bits = std::numeric_limits<X>::digits + 24 + (op.hasB() ? 1 : 0);
  if (bits + ka > 63 || (op.hasB() && bits + kb > 63))
    return cdl::error(CDL_BAD_MODEL, cdl::text("left shifts ", ka, " and ", kb, " on ", bits,
                                               " bits, more than 63 together"));
  if (!op.hasB()) {
    map([=](X a, int32_t m, int32_t s,
            int32_t z) { return static_cast<Y>(cdl_rescale1(a, m, ka, s, z, lo, hi)); },
        op.y<Y>(), op.a<const X>(), ma, shift, zero);
    return cdl::ok();
  }
  map([=](X a, int32_t m, int32_t s, int32_t z, X b,
          int32_t mb) { return static_cast<Y>(cdl_rescale2(a, b, m, mb, ka, kb, s, z, lo, hi)); },
      op.y<Y>(), op.a<const X>(), ma, shift, zero, op.b<const X>(),
      op.bMultiplier<const int32_t>());
  return cdl::ok();
}

/// Calls body(a value of the type) for the integer types.
template <class F> cdl::Status withInteger(const cdl::Op& op, uint8_t elem, F&& body) {
  switch (elem) {
  case CDL_I8: return body(int8_t());
  case CDL_U8: return body(uint8_t());
  case CDL_I32: return body(int32_t());
  default: return unknownFunction(op, elem);
  }
}

template <class T> cdl::Status lookUp(const cdl::Table& op) {
  const auto table = op.table<const T>();
  map([=](T x) { return table(x - std::numeric_limits<T>::min()); }, op.y<T>(), op.x<const T>());
  return cdl::ok();
}

} // namespace

cdl::Status Template::rescale(const cdl::Rescale& op) {
  return withInteger(op, op.a().elem, [&](auto a) {
    return withInteger(op, op.y().elem,
                       [&](auto y) { return rescaleTo<decltype(a), decltype(y)>(op); });
  });
}

cdl::Status Template::table(const cdl::Table& op) {
  switch (op.x().elem) {
  case CDL_I8: return lookUp<int8_t>(op);
  case CDL_U8: return lookUp<uint8_t>(op);
  default: return unknownFunction(op, op.x().elem);
  }
}
