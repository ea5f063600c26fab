// COPY and FILL: by the size of the element, whatever it means.
#include <cstring>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

template <class T> void copyRows(const Loop& loop, const Operand& x, const Operand& y) {
  const int64_t n = loop.row(), sy = loop.rowStride(0), sx = loop.rowStride(1);
  forEachRow(loop, [&](const int64_t* position) {
    T* to = y.at<T>(position[0]);
    const T* from = x.at<T>(position[1]);
    if (sy == 1 && sx == 1) {
      std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    } else if (sy == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * sx];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) to[i * sy] = from[i * sx];
    }
  });
}

template <class T> void fillRows(const Operand& y, uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  const Loop loop = makeLoop({&y});
  const int64_t n = loop.row(), stride = loop.rowStride(0);
  forEachRow(loop, [&](const int64_t* position) {
    T* to = y.at<T>(position[0]);
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = value;
    else
      for (int64_t i = 0; i < n; ++i) to[i * stride] = value;
  });
}

} // namespace

cdl::Status runCopy(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (x.elem != y.elem || cdl_elem_bits(x.elem) < 8) return call.failElems();
  const Loop loop = makeLoop({&y, &x});
  withBits(y.elem, [&](auto tag) { copyRows<typename decltype(tag)::Type>(loop, x, y); });
  return cdl::ok();
}

cdl::Status runFill(const Call& call) {
  const Operand y = call.output();
  if (cdl_elem_bits(y.elem) < 8) return call.failElems();
  const auto bits = static_cast<uint64_t>(call.attr(CDL_ATTR_VALUE, 0));
  withBits(y.elem, [&](auto tag) { fillRows<typename decltype(tag)::Type>(y, bits); });
  return cdl::ok();
}

} // namespace candela::soft
