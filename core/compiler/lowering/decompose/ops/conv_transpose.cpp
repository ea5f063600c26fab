#include <algorithm>

#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

// A convolution of x, its elements strides apart and with a border of zeros, with the kernel turned
// around.
Result<Values> lowerConvTranspose(Lowering& l, const Node& node) {
  Value x = node.operand(0), w = node.operand(1);
  const Shape wDims = w->type.shape(), yDims = node.result()->type.shape(),
              kernel(wDims.begin() + 2, wDims.end());
  const graph::Window window = graph::windowOf(node, kernel);
  const int64_t group = node.intAttr("group"), inputs = wDims[0] / group, outputs = wDims[1];
  const int64_t taps = *elementCount(kernel);

  Shape from = x->type.shape(), dims = from;
  std::vector<int64_t> offsets(dims.size(), 0), steps(dims.size(), 1);
  const std::vector<int64_t> dense = denseStrides(from);
  int64_t first = 0; // of x's elements that reach y
  for (int d = 0; d < window.rank(); ++d) {
    const int64_t stride = window.strides[d];
    int64_t& offset = offsets[d + 2] = window.span(d) - 1 - window.padsBegin[d];
    dims[d + 2] = yDims[d + 2] + window.span(d) - 1;
    const int64_t skipped = offset < 0 ? (-offset + stride - 1) / stride : 0;
    offset += skipped * stride;
    const int64_t room = offset < dims[d + 2] ? (dims[d + 2] - 1 - offset) / stride + 1 : 0;
    from[d + 2] = std::clamp<int64_t>(from[d + 2] - skipped, 0, room);
    first += skipped * dense[d + 2];
    steps[d + 2] = stride;
  }
  x = *elementCount(from) == 0
          ? l.splat(x->type.elem, dims, 0)
          : l.place({l.affine(x, first, from, dense)}, dims, offsets, steps, 0, true);

  Shape turned{group, outputs, inputs};
  std::vector<int64_t> strides{inputs * outputs * taps, taps, outputs * taps};
  int64_t step = taps;
  for (const int64_t extent : kernel) {
    turned.push_back(extent);
    strides.push_back(-(step /= extent));
  }
  Shape weight = kernel;
  weight.insert(weight.begin(), {group * outputs, inputs});
  w = l.reshape(l.affine(w, taps - 1, turned, strides), weight);
  return Values{l.node(OpKind::Conv, {x, w, node.operand(2)},
                       {{"dilations", window.dilations}, {"group", group}})};
}

} // namespace candela::lowering::decompose
