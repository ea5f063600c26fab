// GATHER and SCATTER along the middle dim of x[O,N,I].
#include <cstring>

#include "core/runtime/host_executor/call.h"
#include "core/runtime/host_executor/share.h"

namespace candela::runtime::host_executor {
namespace {

int64_t indexAt(const Operand& index, int64_t k) {
  const int64_t at = index.start + k * index.strides[0];
  return index.elem == CDL_I32 ? *index.at<int32_t>(at) : *index.at<int64_t>(at);
}

/// The operands of SCATTER, of which each place of y[o, :, i] is combined alone.
struct Updates {
  Operand index, updates, y;
  const Workers* workers;
};

/// f(place, update) for every k in order.
template <class T, class F> void scatter(const Updates& all, F f) {
  const Operand &updates = all.updates, &y = all.y;
  const int64_t columns = y.dims[2];
  const auto part = [&](int64_t o, int64_t first, int64_t end) {
    for (int64_t k = 0; k < updates.dims[1]; ++k) {
      const int64_t at = indexAt(all.index, k);
      if (at < 0 || at >= y.dims[1]) continue;
      const T* from =
          updates.at<T>(updates.start + o * updates.strides[0] + k * updates.strides[1]);
      T* to = y.at<T>(y.start + o * y.strides[0] + at * y.strides[1]);
      for (int64_t i = first; i < end; ++i) f(to[i * y.strides[2]], from[i * updates.strides[2]]);
    }
  };
  shareGrid(all.workers, {y.dims[0], columns, updates.dims[1]}, part);
}

template <class T, class Op> void combine(const Updates& all) {
  scatter<T>(all,
             [](T& place, T update) { place = store<T>(Op::apply(load(place), load(update))); });
}

template <class T> void scatterBy(uint16_t fn, const Updates& all) {
  switch (fn) {
  case CDL_SCATTER_ADD: return combine<T, Add>(all);
  case CDL_SCATTER_MIN: return combine<T, Min>(all);
  case CDL_SCATTER_MAX: return combine<T, Max>(all);
  default: return combine<T, Mul>(all);
  }
}

bool isIndex(const Operand& operand) { return operand.elem == CDL_I32 || operand.elem == CDL_I64; }

} // namespace

cdl::Status runGather(const Call& call) {
  const Operand x = call.input(0), index = call.input(1), y = call.output();
  if (x.elem != y.elem || cdl_elem_bits(x.elem) < 8 || !isIndex(index)) return call.failElems();
  const bool clamp = call.instr->fn == CDL_GATHER_CLAMP;
  if (clamp && x.dims[1] == 0 && y.elements() != 0)
    return call.fail(CDL_BAD_MODEL, "cannot clamp an index into x of dims " + dimsText(x));
  withBits(x.elem, [&]<class T>(Tag<T>) {
    const int64_t count = y.dims[2], sx = x.strides[2], sy = y.strides[2];
    const auto row = [&](int64_t o, int64_t k) {
      const int64_t wanted = indexAt(index, k);
      const bool outside = wanted < 0 || wanted >= x.dims[1];
      int64_t at = wanted;
      if (outside) at = wanted < 0 ? 0 : x.dims[1] - 1;
      T* to = y.at<T>(y.start + o * y.strides[0] + k * y.strides[1]);
      const T* from = x.at<T>(x.start + o * x.strides[0] + at * x.strides[1]);
      if (outside && !clamp)
        for (int64_t i = 0; i < count; ++i) to[i * sy] = 0;
      else if (sx == 1 && sy == 1)
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i) to[i * sy] = from[i * sx];
    };
    shareGrid(hasOwnPlaces(y) ? call.workers : nullptr, {y.dims[0], y.dims[1], count},
              [&](int64_t o, int64_t first, int64_t end) {
                for (int64_t k = first; k < end; ++k) row(o, k);
              });
  });
  return cdl::ok();
}

cdl::Status runScatter(const Call& call) {
  const Operand index = call.input(0), updates = call.input(1), y = call.output();
  if (updates.elem != y.elem || !isArithmetic(y.elem) || !isIndex(index)) return call.failElems();
  const Updates all{index, updates, y, hasOwnPlaces(y) ? call.workers : nullptr};
  if (call.instr->fn == CDL_SCATTER_SET) // moved, not computed with: a NaN keeps its bits
    withBits(y.elem,
             [&]<class T>(Tag<T>) { scatter<T>(all, [](T& place, T update) { place = update; }); });
  else
    withAny(y.elem, [&]<class T>(Tag<T>) { scatterBy<T>(call.instr->fn, all); });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
