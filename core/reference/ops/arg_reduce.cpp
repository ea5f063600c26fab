#include <cmath>

#include "core/reference/kinds.h"

namespace candela::reference {

void argReduce(const Array& x, size_t axis, bool max, bool last, Array& y) {
  const auto isNan = [&](const Scalar& v) { return isFloat(x.elem) && std::isnan(v.real); };
  const Around around(x.dims, axis);
  for (int64_t p = 0; p < y.count(); ++p) {
    int64_t best = 0;
    for (int64_t r = 1; r < around.count; ++r) {
      const Scalar v = x.at(around.at(p, r)), b = x.at(around.at(p, best));
      const bool equal = isNan(v) ? isNan(b) : compare(CDL_COMPARE_EQ, x.elem, v, b);
      const bool beyond =
          max ? compare(CDL_COMPARE_LT, x.elem, b, v) : compare(CDL_COMPARE_LT, x.elem, v, b);
      if (equal ? last : isNan(v) || beyond) best = r;
    }
    y.whole[p] = best;
  }
}

void referenceArgReduce(const graph::Node& node, Operands in, Results out) {
  argReduce(*in[0], axisOf(node.intAttr("axis"), in[0]->dims), node.stringAttr("fn") == "max",
            node.intAttr("select_last") != 0, out[0]);
}

} // namespace candela::reference
