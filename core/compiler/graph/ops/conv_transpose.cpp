#include <cstdlib>

#include "core/compiler/graph/ops/common.h"
#include "core/compiler/graph/window.h"

namespace candela::graph {

Result<Types> inferConvTranspose(const Node& node) {
  const TensorType &x = typeOf(node, 0), &w = typeOf(node, 1);
  if (x.rank() != w.rank() || x.rank() < 3 || x.rank() > 5)
    return node.fail("conv_transpose_c2", x.rank(), w.rank());
  const int64_t group = node.intAttr("group"), outputs = w.dim(1);
  int64_t channels = 0;
  if (x.dim(1) != w.dim(0) || x.dim(1) % group != 0 ||
      __builtin_mul_overflow(outputs, group, &channels))
    return node.fail("conv_transpose_c1", x.dim(1), w.dim(0), group);
  if (node.operand(2) && typeOf(node, 2).shape() != Shape{channels})
    return node.fail("conv_transpose_c4", shapeText(typeOf(node, 2).shape()), channels);
  const Shape weight = w.shape(), kernel(weight.begin() + 2, weight.end());
  for (const std::string_view name : {"strides", "pads", "dilations"}) {
    const size_t expected = kernel.size() * (name == "pads" ? 2 : 1);
    if (node.hasAttr(name) && node.intsAttr(name).size() != expected)
      return node.fail("conv_transpose_c5", name, node.intsAttr(name).size(), expected);
  }
  const Window window = windowOf(node, kernel);
  Shape dims{x.dim(0), channels};
  for (int i = 0; i < window.rank(); ++i) {
    // The limit keeps every product and sum below in 64 bits.
    constexpr int64_t kLimit = int64_t(1) << 30;
    const int64_t extent = x.dim(i + 2);
    for (const int64_t value : {extent, kernel[i], window.strides[i], window.dilations[i],
                                window.padsBegin[i], window.padsEnd[i]})
      if (value > kLimit || value < -kLimit)
        return badModel("{} '{}': {} is beyond {}", opName(node.kind), node.userName(), value,
                        kLimit);
    const int64_t reach = (extent - 1) * window.strides[i] + window.span(i);
    const int64_t left = reach - window.padsBegin[i] - window.padsEnd[i];
    if (kernel[i] == 0 || left < 0) return node.fail("conv_transpose_c3", kernel[i], extent, i);
    dims.push_back(left);
  }
  return oneResult(x.elem, dims);
}

} // namespace candela::graph
