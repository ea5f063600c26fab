#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {

void mapElements(const Function& function, Operands in, Array& y) {
  std::vector<Strides> strides;
  for (const Array* x : in) strides.push_back(broadcastStrides(x->dims, y.dims));
  std::vector<Scalar> operands(in.size());
  int64_t i = 0;
  forEach(y.dims, strides, [&](const int64_t* at) {
    for (size_t n = 0; n < in.size(); ++n) operands[n] = in[n]->at(at[n]);
    y.set(i++, apply(function, operands.data()));
  });
}

void referenceGelu(const graph::Node&, Operands in, Results out) {
  for (size_t i = 0; i < out[0].real.size(); ++i)
    out[0].real[i] = in[0]->real[i] / 2 * std::erfc(-in[0]->real[i] / std::sqrt(2.0));
}

void referenceRelu(const graph::Node&, Operands in, Results out) {
  for (int64_t i = 0; i < out[0].count(); ++i)
    out[0].set(i, binary(CDL_BINARY_MAX, out[0].elem, in[0]->at(i), Scalar{}));
}

void referenceClip(const graph::Node&, Operands in, Results out) {
  const Array &x = *in[0], *lo = in[1], *hi = in[2];
  for (int64_t i = 0; i < x.count(); ++i) {
    Scalar value = x.at(i);
    if (lo) value = binary(CDL_BINARY_MAX, x.elem, value, lo->at(0));
    if (hi) value = binary(CDL_BINARY_MIN, x.elem, value, hi->at(0));
    out[0].set(i, value);
  }
}

} // namespace candela::reference
