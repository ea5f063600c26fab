#include "core/reference/kinds.h"

namespace candela::reference {

/// y[n,o,p] = b[o] + sum of x[n,c,i] * w[c,o,t] over the i and t with i * stride + t * dilation -
/// pad = p.
void referenceConvTranspose(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const Around channels(y.dims, 1);
  for (int64_t i = 0; in[2] && i < y.count(); ++i)
    y.set(i, in[2]->at(i / channels.inner % channels.count));
  const Shape& weight = in[1]->dims;
  addConvolution(
      {graph::windowOf(node, Shape(weight.begin() + 2, weight.end())), node.intAttr("group"), true},
      *in[0], *in[1], y);
}

} // namespace candela::reference
