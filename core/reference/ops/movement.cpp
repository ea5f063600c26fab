#include "core/reference/index.h"

namespace candela::reference {
namespace {

/// y's element i is x's element at start + sum(index[d] * strides[d]).
void copyStrided(const Array& x, Array& y, int64_t start, const Strides& strides) {
  onElements(x, y, [&](const auto& from, auto& to) {
    int64_t i = 0;
    forEach(y.dims, std::array{strides}, [&](int64_t offset) { to[i++] = from[start + offset]; });
  });
}

/// Where padding reads along one dim: an index into the dim, or -1 for the fill value.
int64_t sourceOf(int64_t at, int64_t extent, const std::string& mode) {
  if (at >= 0 && at < extent) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : extent - 1;
  if (mode == "wrap") return ((at % extent) + extent) % extent;
  return at < 0 ? -at : 2 * (extent - 1) - at; // reflect: the border is not repeated
}

} // namespace

Status referenceReshape(const graph::Node&, std::span<const Array* const> in, std::span<Array> out) {
  out[0].real = in[0]->real;
  out[0].whole = in[0]->whole;
  return Status::ok();
}

Status referenceTranspose(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Strides dense = denseStrides(in[0]->dims);
  Strides strides;
  for (const int64_t axis : node.intsAttr("perm")) strides.push_back(dense[axis]);
  copyStrided(*in[0], out[0], 0, strides);
  return Status::ok();
}

Status referenceExpand(const graph::Node&, std::span<const Array* const> in, std::span<Array> out) {
  copyStrided(*in[0], out[0], 0, broadcastStrides(in[0]->dims, out[0].dims));
  return Status::ok();
}

Status referenceConcat(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  Array& y = out[0];
  const int64_t given = node.intAttr("axis");
  const size_t axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(y.dims.size()) : given);
  const int64_t outer = product(y.dims, 0, axis), inner = product(y.dims, axis + 1, y.dims.size());
  int64_t first = 0;
  for (const Array* x : in) {
    const int64_t count = x->dims[axis] * inner;
    onElements(*x, y, [&](const auto& from, auto& to) {
      for (int64_t o = 0; o < outer; ++o)
        std::copy_n(from.begin() + o * count, count, to.begin() + o * y.dims[axis] * inner + first);
    });
    first += count;
  }
  return Status::ok();
}

Status referenceSlice(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  if (out[0].count() == 0) return Status::ok();
  const auto starts = node.intsAttr("starts"), steps = node.intsAttr("steps");
  Strides strides = denseStrides(in[0]->dims);
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    start += starts[d] * strides[d];
    // A dim of one element is not walked: its step may be any number.
    strides[d] = out[0].dims[d] == 1 ? 0 : strides[d] * steps[d];
  }
  copyStrided(*in[0], out[0], start, strides);
  return Status::ok();
}

Status referencePad(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array &x = *in[0], *fill = in[1];
  Array& y = out[0];
  const auto lo = node.intsAttr("lo");
  const std::string mode = node.stringAttr("mode");
  const Strides dense = denseStrides(x.dims), steps = denseStrides(y.dims);
  for (int64_t i = 0; i < y.count(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < y.dims.size() && offset >= 0; ++d) {
      const int64_t source = sourceOf(i / steps[d] % y.dims[d] - lo[d], x.dims[d], mode);
      offset = source < 0 ? -1 : offset + source * dense[d];
    }
    if (isFloat(x.elem))
      y.real[i] = offset >= 0 ? x.real[offset] : fill ? fill->real[0] : 0.0;
    else
      y.whole[i] = offset >= 0 ? x.whole[offset] : fill ? fill->whole[0] : 0;
  }
  return Status::ok();
}

/// Negative indices count from the end; what is still outside is clamped.
Status referenceGather(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array &x = *in[0], &index = *in[1];
  Array& y = out[0];
  const int64_t given = node.intAttr("axis");
  const size_t axis = static_cast<size_t>(given < 0 ? given + static_cast<int64_t>(x.dims.size()) : given);
  const int64_t outer = product(x.dims, 0, axis), extent = x.dims[axis],
                inner = product(x.dims, axis + 1, x.dims.size());
  onElements(x, y, [&](const auto& from, auto& to) {
    int64_t i = 0;
    for (int64_t o = 0; o < outer; ++o)
      for (const __int128 wanted : index.whole) {
        const __int128 counted = wanted < 0 ? wanted + extent : wanted;
        const int64_t k = static_cast<int64_t>(std::clamp<__int128>(counted, 0, extent - 1));
        std::copy_n(from.begin() + (o * extent + k) * inner, inner, to.begin() + i++ * inner);
      }
  });
  return Status::ok();
}

} // namespace candela::reference
