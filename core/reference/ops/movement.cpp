#include <algorithm>

#include "core/reference/kinds.h"

namespace candela::reference {
namespace {

/// y's element i is x's element at start + sum(index[d] * strides[d]). A dim of one element is not
/// walked: its stride may be any number.
void copyStrided(const Array& x, Array& y, int64_t start, Strides strides) {
  for (size_t d = 0; d < strides.size(); ++d)
    if (y.dims[d] == 1) strides[d] = 0;
  int64_t i = 0;
  forEach(y.dims, {strides}, [&](const int64_t* at) { y.set(i++, x.at(start + *at)); });
}

/// Where padding reads along one dim: an index into the dim, or -1 for the fill value.
int64_t sourceOf(int64_t at, int64_t extent, const std::string& mode) {
  if (at >= 0 && at < extent) return at;
  if (mode == "constant") return -1;
  if (mode == "edge") return at < 0 ? 0 : extent - 1;
  if (mode == "wrap") return ((at % extent) + extent) % extent;
  return at < 0 ? -at : 2 * (extent - 1) - at; // reflect: the border is not repeated
}

/// y[outer, k, inner] = x[outer, place(index[k]), inner]; a place of -1 gives 0.
template <typename Place>
void takeAlong(const Array& x, size_t axis, const Array& index, Array& y, Place place) {
  const Around around(x.dims, axis);
  onElements(
      [&](const auto& from, auto& to) {
        auto next = to.begin();
        for (int64_t o = 0; o < around.outer; ++o)
          for (const Whole wanted : index.whole) {
            const auto k = static_cast<int64_t>(place(wanted));
            if (k >= 0)
              std::copy_n(from.begin() + (o * around.count + k) * around.inner, around.inner, next);
            next += around.inner;
          }
      },
      x, y);
}

} // namespace

void referenceReshape(const graph::Node&, Operands in, Results out) {
  out[0].real = in[0]->real;
  out[0].whole = in[0]->whole;
}

void referenceTranspose(const graph::Node& node, Operands in, Results out) {
  const Strides dense = denseStrides(in[0]->dims);
  Strides strides;
  for (const int64_t axis : node.intsAttr("perm")) strides.push_back(dense[axis]);
  copyStrided(*in[0], out[0], 0, strides);
}

void referenceExpand(const graph::Node&, Operands in, Results out) {
  copyStrided(*in[0], out[0], 0, broadcastStrides(in[0]->dims, out[0].dims));
}

void referenceAffine(const graph::Node& node, Operands in, Results out) {
  copyStrided(*in[0], out[0], node.intAttr("offset"), node.intsAttr("strides"));
}

void referenceSlice(const graph::Node& node, Operands in, Results out) {
  const auto starts = node.intsAttr("starts"), steps = node.intsAttr("steps");
  Strides strides = denseStrides(in[0]->dims);
  int64_t start = 0;
  for (size_t d = 0; d < strides.size(); ++d) {
    start += starts[d] * strides[d];
    if (out[0].dims[d] > 1) strides[d] *= steps[d];
  }
  copyStrided(*in[0], out[0], start, strides);
}

void referenceConcat(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const Around whole(y.dims, axisOf(node.intAttr("axis"), y.dims));
  int64_t first = 0;
  for (const Array* x : in) {
    const int64_t count = whole.outer ? x->count() / whole.outer : 0;
    for (int64_t i = 0; i < x->count(); ++i)
      y.set(i / count * whole.count * whole.inner + first + i % count, x->at(i));
    first += count;
  }
}

void referencePad(const graph::Node& node, Operands in, Results out) {
  const Array &x = *in[0], *fill = in[1];
  Array& y = out[0];
  const Scalar outside = fill ? fill->at(0) : Scalar{};
  const auto lo = node.intsAttr("lo");
  const std::string mode = node.stringAttr("mode");
  const Strides dense = denseStrides(x.dims), steps = denseStrides(y.dims);
  for (int64_t i = 0; i < y.count(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < y.dims.size() && offset >= 0; ++d) {
      const int64_t source = sourceOf(i / steps[d] % y.dims[d] - lo[d], x.dims[d], mode);
      offset = source < 0 ? -1 : offset + source * dense[d];
    }
    y.set(i, offset >= 0 ? x.at(offset) : outside);
  }
}

void referencePlace(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const size_t rank = y.dims.size();
  y.fill(decode(y.elem, static_cast<uint64_t>(node.intAttr("value"))));
  const auto offsets = node.intsAttr("offsets");
  const auto steps = node.hasAttr("steps") ? node.intsAttr("steps") : Shape(rank, 1);
  const Strides dense = denseStrides(y.dims);
  for (size_t n = 0; n < node.operands().size(); ++n) {
    const Array& x = *in[n];
    int64_t start = 0, i = 0;
    Strides strides(rank);
    for (size_t d = 0; d < rank; ++d) {
      start += offsets[n * rank + d] * dense[d];
      strides[d] = x.dims[d] == 1 ? 0 : dense[d] * steps[d];
    }
    forEach(x.dims, {strides}, [&](const int64_t* at) { y.set(start + *at, x.at(i++)); });
  }
}

/// Negative indices count from the end; what is still outside is clamped.
void referenceGather(const graph::Node& node, Operands in, Results out) {
  const size_t axis = axisOf(node.intAttr("axis"), in[0]->dims);
  const int64_t extent = in[0]->dims[axis];
  takeAlong(*in[0], axis, *in[1], out[0],
            [&](Whole k) { return std::clamp<Whole>(k < 0 ? k + extent : k, 0, extent - 1); });
}

/// The indices are already counted from 0.
void referenceTake(const graph::Node& node, Operands in, Results out) {
  const bool clamp = node.stringAttr("mode") == "clamp";
  const int64_t extent = in[0]->dims[1];
  takeAlong(*in[0], 1, *in[1], out[0], [&](Whole k) -> Whole {
    if (clamp) return std::clamp<Whole>(k, 0, extent - 1);
    return k < extent ? k : -1;
  });
}

} // namespace candela::reference
