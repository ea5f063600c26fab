#include <cmath>

#include "core/reference/index.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

/// body(element, index of its scale and zero point).
template <typename Body> void eachByAxis(const graph::Node& node, const Array& x, Body body) {
  int64_t inner = 1, channels = 1;
  if (node.hasAttr("axis")) {
    const int64_t given = node.intAttr("axis"), rank = static_cast<int64_t>(x.dims.size());
    const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
    channels = x.dims[axis], inner = product(x.dims, axis + 1, x.dims.size());
  }
  for (int64_t i = 0; i < x.count(); ++i) body(i, i / inner % channels);
}

/// x - zero as reals; several zero points go along dims of `inner` elements.
Array centred(const Array& x, const Array* zero, int64_t inner) {
  Array out(Elem::f64_, x.dims);
  for (int64_t i = 0; i < x.count(); ++i) {
    const Whole at = zero ? zero->whole[zero->count() == 1 ? 0 : i / inner % zero->count()] : 0;
    out.real[i] = static_cast<double>(x.whole[i] - at);
  }
  return out;
}

/// The sums are whole and below 2^53.
Status toWhole(const Array& sums, Array& y) {
  for (int64_t i = 0; i < y.count(); ++i) y.whole[i] = static_cast<Whole>(sums.real[i]);
  return Status::ok();
}

} // namespace

Status referenceQuantize(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Elem elem = in[0]->elem == Elem::f64_ ? Elem::f64_ : Elem::f32_;
  const IntegerRange range = integerRange(out[0].elem);
  const double lowest = static_cast<double>(range.lowest), highest = static_cast<double>(range.highest);
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    const double zero = static_cast<double>(in[2]->whole[c]),
                 quotient = roundReal(elem, in[0]->real[i] / in[1]->real[c]);
    const double value = std::isnan(quotient) ? zero : std::nearbyint(quotient) + zero;
    out[0].whole[i] = static_cast<Whole>(std::fmin(std::fmax(value, lowest), highest));
  });
  return Status::ok();
}

Status referenceDequantize(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    out[0].real[i] = static_cast<double>(in[0]->whole[i] - (in[2] ? in[2]->whole[c] : 0)) * in[1]->real[c];
  });
  return Status::ok();
}

Status referenceMatmulInteger(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array a = centred(*in[0], in[2], 1), b = centred(*in[1], in[3], 1);
  Array y(Elem::f64_, out[0].dims);
  CDL_TRY(referenceMatmul(node, std::array{&a, &b}, std::span(&y, 1)));
  return toWhole(y, out[0]);
}

/// What lies outside of x counts as its zero point, so as 0.
Status referenceConvInteger(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array x = centred(*in[0], in[3], 1);
  const Array w = centred(*in[1], in[4], product(in[1]->dims, 1, in[1]->dims.size()));
  Array y(Elem::f64_, out[0].dims), b(Elem::f64_, {});
  if (in[2]) b = centred(*in[2], nullptr, 1);
  CDL_TRY(referenceConv(node, std::array<const Array*, 3>{&x, &w, in[2] ? &b : nullptr}, std::span(&y, 1)));
  return toWhole(y, out[0]);
}

} // namespace candela::reference
