// COPY: y = x. FILL: every element of y becomes one value.
#include "../template.hpp"

cdl::Status Template::copy(const cdl::Copy& op) {
  if (op.x().elem != op.y().elem)
    return cdl::unsupported(std::string("copy from ") + cdl::elemName(op.x().elem) + " to " +
                            cdl::elemName(op.y().elem));
  return withElem(op, op.y().elem, [&](auto type) {
    using T = typename decltype(type)::Value;
    map([](T x) { return x; }, op.y<T>(), op.x<const T>());
    return cdl::ok();
  });
}

cdl::Status Template::fill(const cdl::Fill& op) {
  return withElem(op, op.y().elem, [&](auto type) {
    using T = typename decltype(type)::Value;
    map([value = op.value<T>()]() { return value; }, op.y<T>());
    return cdl::ok();
  });
}
