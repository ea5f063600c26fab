#include <algorithm>
#include <array>

#include "core/reference/interp/machine.h"

namespace candela::reference::interp {

using program::Instr;
using program::View;

namespace {

/// The function on every element of operands that are all alike.
template <typename F> void mapAlike(Call& call, const F& function) {
  std::vector<Array> in;
  for (size_t i = 0; i < call.instr.inputs.size(); ++i) in.push_back(call.input(i));
  std::array<Scalar, 6> operands;
  Array y(call.instr.outputs[0].elem, call.instr.outputs[0].dims);
  for (int64_t i = 0; i < y.count() && !call.failed(); ++i) {
    for (size_t n = 0; n < in.size(); ++n) operands[n] = in[n].at(i);
    y.set(i, function(operands));
  }
  call.write(y);
}

void fill(Call& call) {
  Array y(call.instr.outputs[0].elem, call.instr.outputs[0].dims);
  y.fill(decode(y.elem, static_cast<uint64_t>(call.instr.attr(CDL_ATTR_VALUE)->values[0])));
  call.write(y);
}

void elements(Call& call) {
  const Instr& instr = call.instr;
  const Function function{instr.kind, instr.fn, instr.inputs.back().elem, instr.outputs[0].elem,
                          call.flag(CDL_ATTR_SATURATE)};
  mapAlike(call, [&](const auto& in) { return apply(function, in.data()); });
}

/// Of x, only what an index points to is read.
void gather(Call& call) {
  const View &x = call.instr.inputs[0], &y = call.instr.outputs[0];
  const Array index = call.input(1);
  Array result(y.elem, y.dims);
  int64_t next = 0;
  for (int64_t o = 0; o < y.dims[0]; ++o)
    for (int64_t k = 0; k < y.dims[1]; ++k)
      for (int64_t i = 0; i < y.dims[2] && !call.failed(); ++i, ++next) {
        const Whole wanted = index.whole[k], last = x.dims[1] - 1;
        if (call.instr.fn == CDL_GATHER_ZERO && (wanted < 0 || wanted > last)) continue;
        result.set(next, call.readAt(x, {o, static_cast<int64_t>(std::clamp<Whole>(wanted, 0, last)), i}));
      }
  call.write(result);
}

/// y is touched only where an index points; what is not set is read.
void scatter(Call& call) {
  const View& y = call.instr.outputs[0];
  const Array index = call.input(0), updates = call.input(1);
  int64_t next = 0;
  for (int64_t o = 0; o < updates.dims[0]; ++o)
    for (int64_t k = 0; k < updates.dims[1]; ++k)
      for (int64_t i = 0; i < updates.dims[2] && !call.failed(); ++i, ++next) {
        if (index.whole[k] < 0 || index.whole[k] >= y.dims[1]) continue;
        const auto n = static_cast<int64_t>(index.whole[k]);
        const Scalar old = call.instr.fn == CDL_SCATTER_SET ? Scalar{} : call.readAt(y, {o, n, i});
        call.writeAt(y, {o, n, i}, scattered(call.instr.fn, y.elem, old, updates.at(next)));
      }
}

void reduce(Call& call) {
  const Array x = call.input(0);
  Array y = call.accumulator();
  fold(call.instr.fn, x, {x.dims[0], 1, x.dims[2]}, y);
  call.finish(y);
}

void matmul(Call& call) {
  Array a = call.withoutZero(0), b = call.withoutZero(1), y = call.accumulator();
  // Blocks round up: the smaller extent is the one that is meant.
  const int64_t batch = std::min({a.dims[0], b.dims[0], y.dims[0]}), m = std::min(a.dims[1], y.dims[1]);
  const int64_t k = std::min(a.dims[2], b.dims[1]), n = std::min(b.dims[2], y.dims[2]);
  a = resized(a, {batch, m, k}), b = resized(b, {batch, k, n}), y = resized(y, {batch, m, n});
  if (!call.failed()) addProducts(a, b, y);
  call.finish(y);
}

void rescale(Call& call) {
  const Instr& instr = call.instr;
  const IntegerRange range = integerRange(instr.outputs[0].elem);
  const auto limit = [&](uint16_t attr, Whole otherwise) {
    return instr.attr(attr) ? instr.intAttr(attr, 0) : otherwise;
  };
  const Whole low = limit(CDL_ATTR_CLAMP_MIN, range.lowest), high = limit(CDL_ATTR_CLAMP_MAX, range.highest);
  const int64_t ka = instr.intAttr(CDL_ATTR_A_LEFT_SHIFT, 0), kb = instr.intAttr(CDL_ATTR_B_LEFT_SHIFT, 0);
  const size_t terms = instr.inputs.size() == 6 ? 2 : 1;
  mapAlike(call, [&](const auto& in) -> Scalar {
    const auto shift = static_cast<int64_t>(in[2].whole);
    if (shift < 0) call.fail(badModel("shift {} is negative", shift));
    const Term sum[] = {{in[0].whole, in[1].whole, ka}, {in[4].whole, in[5].whole, kb}};
    return {0, reference::rescale({sum, terms}, std::max<int64_t>(shift, 0), in[3].whole, low, high)};
  });
}

void table(Call& call) {
  const Array x = call.input(0), entries = call.input(1);
  Array y(call.instr.outputs[0].elem, x.dims);
  if (!call.failed()) lookUp(x, entries, y);
  call.write(y);
}

} // namespace

void runPrimitive(Call& call) {
  switch (call.instr.kind) {
  case CDL_KIND_COPY: return mapAlike(call, [](const auto& in) { return in[0]; });
  case CDL_KIND_FILL: return fill(call);
  case CDL_KIND_GATHER: return gather(call);
  case CDL_KIND_SCATTER: return scatter(call);
  case CDL_KIND_REDUCE: return reduce(call);
  case CDL_KIND_MATMUL: return matmul(call);
  case CDL_KIND_RESCALE: return rescale(call);
  case CDL_KIND_TABLE: return table(call);
  default: return elements(call);
  }
}

} // namespace candela::reference::interp
