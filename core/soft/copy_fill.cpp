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

cdl_code_t runCopy(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (x.elem != y.elem || elemBits(x.elem) < 8) return call.failElems();
  if (!sameDims(x, y)) return call.fail(CDL_BAD_MODEL, "x has dims %s but y has %s", dimsText(x), dimsText(y));
  if (call.checkOnly()) return CDL_OK;
  const Loop loop = makeLoop({&y, &x});
  switch (elemBits(x.elem)) {
  case 8: copyRows<uint8_t>(loop, x, y); break;
  case 16: copyRows<uint16_t>(loop, x, y); break;
  case 32: copyRows<uint32_t>(loop, x, y); break;
  default: copyRows<uint64_t>(loop, x, y); break;
  }
  return CDL_OK;
}

cdl_code_t runFill(const Call& call) {
  const Operand y = call.output();
  if (elemBits(y.elem) < 8) return call.failElems();
  const cdl_attr_t* value = cdl_find_attr(call.image, call.instr, CDL_ATTR_VALUE);
  if (!value) return call.fail(CDL_BAD_MODEL, "the attribute value is missing");
  if (call.checkOnly()) return CDL_OK;
  const uint64_t bits = static_cast<uint64_t>(value->values[0]);
  switch (elemBits(y.elem)) {
  case 8: fillRows<uint8_t>(y, bits); break;
  case 16: fillRows<uint16_t>(y, bits); break;
  case 32: fillRows<uint32_t>(y, bits); break;
  default: fillRows<uint64_t>(y, bits); break;
  }
  return CDL_OK;
}

} // namespace candela::soft
