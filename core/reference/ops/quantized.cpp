#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {
namespace {

/// body(element, index of its scale and zero point).
template <typename Body> void eachByAxis(const graph::Node& node, const Array& x, Body body) {
  int64_t inner = 1, channels = 1;
  if (node.hasAttr("axis")) {
    const Around around(x.dims, axisOf(node.intAttr("axis"), x.dims));
    inner = around.inner;
    channels = around.count;
  }
  for (int64_t i = 0; i < x.count(); ++i) body(i, i / inner % channels);
}

/// x less its zero point, if any, in a wide type; several zero points go along the first dim of x,
/// or the last.
Array centred(const Array& x, const Array* zero, bool alongFirst) {
  Array by(x.elem, {1});
  if (zero) by = *zero;
  if (alongFirst && by.count() > 1) by.dims.resize(x.dims.size(), 1);
  return withoutZero(x, by);
}

} // namespace

void referenceQuantize(const graph::Node& node, Operands in, Results out) {
  const Elem elem = in[0]->elem == Elem::f64_ ? Elem::f64_ : Elem::f32_;
  const IntegerRange range = integerRange(out[0].elem);
  const double lowest = static_cast<double>(range.lowest),
               highest = static_cast<double>(range.highest);
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    const double zero = static_cast<double>(in[2]->whole[c]);
    const double quotient = roundReal(elem, in[0]->real[i] / in[1]->real[c]);
    const double value = std::isnan(quotient) ? zero : std::nearbyint(quotient) + zero;
    out[0].whole[i] = static_cast<Whole>(std::fmin(std::fmax(value, lowest), highest));
  });
}

void referenceDequantize(const graph::Node& node, Operands in, Results out) {
  eachByAxis(node, *in[0], [&](int64_t i, int64_t c) {
    out[0].real[i] =
        static_cast<double>(in[0]->whole[i] - (in[2] ? in[2]->whole[c] : 0)) * in[1]->real[c];
  });
}

void referenceMatmulInteger(const graph::Node&, Operands in, Results out) {
  addProducts(centred(*in[0], in[2], false), centred(*in[1], in[3], false), out[0]);
}

/// What lies outside of x counts as its zero point, so as 0.
void referenceConvInteger(const graph::Node& node, Operands in, Results out) {
  const Array x = centred(*in[0], in[3], false), w = centred(*in[1], in[4], true);
  const Array* operands[] = {&x, &w, in[2]};
  referenceConv(node, operands, out);
}

} // namespace candela::reference
