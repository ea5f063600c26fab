// GATHER: y[o,k,i] = x[o,index[k],i]. SCATTER: y[o,index[k],i] = fn(y[o,index[k],i],
// updates[o,k,i]), k in order.
#include "../template.hpp"

cdl::Status Template::gather(const cdl::Gather& op) {
  const auto indices = op.indices<const int32_t>();
  return withElem(op, op.y().elem, [&](auto type) -> cdl::Status {
    using T = typename decltype(type)::Value;
    const auto x = op.x<const T>();
    const auto y = op.y<T>();
    const int64_t last = x.dim(1) - 1;
    if (last < 0 && op.fn() == CDL_GATHER_CLAMP && y.elements() > 0)
      return cdl::error(CDL_BAD_MODEL, "clamps an index into a dim of 0");
    for (auto o : y.range(0))
      for (auto k : y.range(1)) {
        const int64_t at = indices(k), atMost = at > last ? last : at;
        const int64_t clamped = at < 0 ? 0 : atMost;
        if (at != clamped && op.fn() == CDL_GATHER_ZERO)
          map([] { return T(0); }, y[o][k]);
        else
          map([](T v) { return v; }, y[o][k], x[o][clamped]);
      }
    return cdl::ok();
  });
}

namespace {

template <class T, class F> cdl::Status scatterWith(const cdl::Scatter& op, F f) {
  const auto indices = op.indices<const int32_t>();
  const auto updates = op.updates<const T>();
  const auto y = op.y<T>();
  for (auto o : y.range(0))
    for (auto k : updates.range(1)) {
      const int64_t at = indices(k);
      if (at < 0 || at >= y.dim(1)) continue;
      map(f, y[o][at], y[o][at], updates[o][k]);
    }
  return cdl::ok();
}

} // namespace

cdl::Status Template::scatter(const cdl::Scatter& op) {
  return withElem(op, op.y().elem, [&](auto type) {
    using T = typename decltype(type)::Value;
    constexpr bool isBool = decltype(type)::isBool; // sum is or, of which max is the same
    switch (op.fn()) {
    case CDL_SCATTER_SET: return scatterWith<T>(op, [](T, T update) { return update; });
    case CDL_SCATTER_ADD: return isBool ? scatterWith<T>(op, Max()) : scatterWith<T>(op, Add());
    case CDL_SCATTER_MIN: return scatterWith<T>(op, Min());
    case CDL_SCATTER_MAX: return scatterWith<T>(op, Max());
    default: return unknownFunction(op, op.y().elem);
    }
  });
}
