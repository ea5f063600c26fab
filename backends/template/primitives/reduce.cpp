// REDUCE: y[o,i] = fn over r of x[o,r,i].
#include "../template.hpp"

#include <algorithm>

namespace {

// Acc: where values are collected. Sums and products of f32 are collected in f64, so that the order
// hardly matters.
template <class T, class Acc, class F>
cdl::Status reduceWith(const cdl::Reduce& op, Acc start, F f) {
  const auto x = op.x<const T>();
  const auto y = op.y<T>();
  thread_local std::vector<Acc> acc; // kept: a run like the one before allocates nothing
  acc.resize(static_cast<size_t>(x.dim(2)));
  for (auto o : x.range(0)) {
    std::fill(acc.begin(), acc.end(), start);
    for (auto r : x.range(1)) {
      const T* from = x.data() + o * x.stride(0) + r * x.stride(1);
      for (size_t i = 0; i < acc.size(); ++i)
        acc[i] = f(acc[i], static_cast<Acc>(from[static_cast<int64_t>(i) * x.stride(2)]));
    }
    for (auto i : x.range(2)) y(o, i) = static_cast<T>(acc[static_cast<size_t>(i)]);
  }
  return cdl::ok();
}

} // namespace

cdl::Status Template::reduce(const cdl::Reduce& op) {
  return withElem(op, op.y().elem, [&](auto type) -> cdl::Status {
    using T = typename decltype(type)::Value;
    using Limits = std::numeric_limits<T>;
    using Acc = std::conditional_t<std::is_same_v<T, float>, double, T>;
    constexpr bool isBool = decltype(type)::isBool; // sum and max are or, prod and min are and
    const T lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    const T largest = isBool ? T(1) : Limits::max();
    const T highest = Limits::has_infinity ? Limits::infinity() : largest;
    switch (op.fn()) {
    case CDL_REDUCE_SUM:
      return isBool ? reduceWith<T, T>(op, T(0), Max()) : reduceWith<T, Acc>(op, Acc(0), Add());
    case CDL_REDUCE_PROD:
      return isBool ? reduceWith<T, T>(op, T(1), Min()) : reduceWith<T, Acc>(op, Acc(1), Mul());
    case CDL_REDUCE_MAX: return reduceWith<T, T>(op, lowest, Max());
    case CDL_REDUCE_MIN: return reduceWith<T, T>(op, highest, Min());
    default: return unknownFunction(op, op.y().elem);
    }
  });
}
