// GATHER and SCATTER along the middle dim of x[O,N,I].
#include <cstring>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

int64_t indexAt(const Operand& index, int64_t k) {
  const int64_t at = index.start + k * index.strides[0];
  return index.elem == CDL_I32 ? *index.at<int32_t>(at) : *index.at<int64_t>(at);
}

template <class T> void gather(const Operand& x, const Operand& index, const Operand& y, bool clamp) {
  const int64_t count = y.dims[2], sx = x.strides[2], sy = y.strides[2];
  for (int64_t o = 0; o < y.dims[0]; ++o)
    for (int64_t k = 0; k < y.dims[1]; ++k) {
      int64_t at = indexAt(index, k);
      T* to = y.at<T>(y.start + o * y.strides[0] + k * y.strides[1]);
      const bool outside = at < 0 || at >= x.dims[1];
      if (outside && !clamp) {
        for (int64_t i = 0; i < count; ++i) to[i * sy] = 0;
        continue;
      }
      at = at < 0 ? 0 : outside ? x.dims[1] - 1 : at;
      const T* from = x.at<T>(x.start + o * x.strides[0] + at * x.strides[1]);
      if (sx == 1 && sy == 1)
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i) to[i * sy] = from[i * sx];
    }
}

struct Set {
  template <class C> static C apply(C, C b) { return b; }
};

template <class T, class Op> void scatter(const Operand& index, const Operand& updates, const Operand& y) {
  for (int64_t o = 0; o < y.dims[0]; ++o)
    for (int64_t k = 0; k < updates.dims[1]; ++k) {
      const int64_t at = indexAt(index, k);
      if (at < 0 || at >= y.dims[1]) continue;
      const T* from = updates.at<T>(updates.start + o * updates.strides[0] + k * updates.strides[1]);
      T* to = y.at<T>(y.start + o * y.strides[0] + at * y.strides[1]);
      for (int64_t i = 0; i < y.dims[2]; ++i) {
        T& place = to[i * y.strides[2]];
        place = store<T>(Op::apply(load(place), load(from[i * updates.strides[2]])));
      }
    }
}

template <class T> using ScatterFunction = void (*)(const Operand&, const Operand&, const Operand&);

template <class T> ScatterFunction<T> findScatter(uint16_t fn) {
  switch (fn) {
  case CDL_SCATTER_SET: return scatter<T, Set>;
  case CDL_SCATTER_ADD: return scatter<T, Add>;
  case CDL_SCATTER_MIN: return scatter<T, Min>;
  case CDL_SCATTER_MAX: return scatter<T, Max>;
  case CDL_SCATTER_MUL: return scatter<T, Mul>;
  default: return nullptr;
  }
}

bool isIndex(const Operand& operand) { return operand.elem == CDL_I32 || operand.elem == CDL_I64; }

// The dims of `narrow`[O,K,I] against `wide`[O,N,I] and index[K].
cdl_code_t checkShapes(const Call& call, const char* wideName, const Operand& wide, const Operand& index,
                       const char* narrowName, const Operand& narrow) {
  if (wide.rank != 3 || narrow.rank != 3 || index.rank != 1)
    return call.fail(CDL_BAD_MODEL, "%s, index and %s have ranks %d, %d and %d, not 3, 1 and 3", wideName, narrowName,
                     wide.rank, index.rank, narrow.rank);
  if (wide.dims[0] != narrow.dims[0] || wide.dims[2] != narrow.dims[2])
    return call.fail(CDL_BAD_MODEL, "%s has dims %s but %s has %s", wideName, dimsText(wide), narrowName,
                     dimsText(narrow));
  if (index.dims[0] != narrow.dims[1])
    return call.fail(CDL_BAD_MODEL, "there are %lld indices but %s has dims %s", static_cast<long long>(index.dims[0]),
                     narrowName, dimsText(narrow));
  return CDL_OK;
}

} // namespace

cdl_code_t runGather(const Call& call) {
  const Operand x = call.input(0), index = call.input(1), y = call.output();
  if (x.elem != y.elem || elemBits(x.elem) < 8 || !isIndex(index) || call.instr->fn > CDL_GATHER_ZERO)
    return call.failElems();
  const cdl_code_t code = checkShapes(call, "x", x, index, "y", y);
  if (code != CDL_OK) return code;
  const bool clamp = call.instr->fn == CDL_GATHER_CLAMP;
  if (clamp && x.dims[1] == 0 && y.elements() != 0)
    return call.fail(CDL_BAD_MODEL, "cannot clamp an index into x of dims %s", dimsText(x));
  if (call.checkOnly()) return CDL_OK;
  switch (elemBits(x.elem)) {
  case 8: gather<uint8_t>(x, index, y, clamp); break;
  case 16: gather<uint16_t>(x, index, y, clamp); break;
  case 32: gather<uint32_t>(x, index, y, clamp); break;
  default: gather<uint64_t>(x, index, y, clamp); break;
  }
  return CDL_OK;
}

cdl_code_t runScatter(const Call& call) {
  const Operand index = call.input(0), updates = call.input(1), y = call.output();
  if (updates.elem != y.elem || !isArithmetic(y.elem) || !isIndex(index) || call.instr->fn > CDL_SCATTER_MUL)
    return call.failElems();
  const cdl_code_t code = checkShapes(call, "y", y, index, "updates", updates);
  if (code != CDL_OK || call.checkOnly()) return code;
  return withAny<cdl_code_t>(y.elem, CDL_UNSUPPORTED, [&](auto tag) {
    findScatter<typename decltype(tag)::Type>(call.instr->fn)(index, updates, y);
    return cdl_code_t{CDL_OK};
  });
}

} // namespace candela::soft
