// CONVERT: y = x in y's element type. Bounds and rounding are those of numerics.h.
#include "../template.hpp"

namespace {

template <class To, class From> To toNumber(From x, int rounding, bool saturate) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::is_floating_point_v<To>)
    return static_cast<To>(x); // to nearest, ties to even
  else if constexpr (std::is_floating_point_v<From>)
    return static_cast<To>(saturate ? cdl_f64_to_int_sat(x, rounding, Limits::min(), Limits::max())
                                    : static_cast<int64_t>(cdl_f64_to_int_wrap(x, rounding)));
  else if (saturate && x < Limits::min())
    return Limits::min();
  else if (saturate && x > Limits::max())
    return Limits::max();
  else
    return static_cast<To>(x); // wraps
}

} // namespace

cdl::Status Template::convert(const cdl::Convert& op) {
  return withElem(op, op.x().elem, [&](auto fromType) {
    return withElem(op, op.y().elem, [&](auto toType) {
      using From = typename decltype(fromType)::Value;
      using To = typename decltype(toType)::Value;
      const int rounding = op.fn(); // CDL_CONVERT_*, as numerics.h counts them
      const bool saturate = op.saturate();
      if constexpr (decltype(toType)::isBool)
        map([](From x) { return static_cast<To>(x != 0); }, op.y<To>(), op.x<const From>());
      else
        map(
            [=](From x) {
              return toNumber<To>(
                  static_cast<std::conditional_t<std::is_integral_v<From>, int64_t, From>>(x),
                  rounding, saturate);
            },
            op.y<To>(), op.x<const From>());
      return cdl::ok();
    });
  });
}
