#pragma once

#include "core/reference/reference.h"

/// Loops over positions, so that an op's body is its formula.
namespace candela::reference {

using Strides = std::vector<int64_t>;

/// Calls body(at) for every position of `dims` in row-major order, with one element offset per stride list: at[n] =
/// sum(index[d] * strides[n][d]). Each list has dims.size() strides.
template <typename Body> void forEach(const Shape& dims, const std::vector<Strides>& strides, Body body) {
  for (const int64_t dim : dims)
    if (dim == 0) return;
  std::vector<int64_t> at(strides.size(), 0);
  Shape index(dims.size(), 0);
  for (;;) {
    body(static_cast<const int64_t*>(at.data()));
    size_t d = dims.size();
    for (;;) {
      if (d == 0) return;
      --d;
      for (size_t n = 0; n < at.size(); ++n) at[n] += strides[n][d];
      if (++index[d] < dims[d]) break;
      for (size_t n = 0; n < at.size(); ++n) at[n] -= strides[n][d] * dims[d];
      index[d] = 0;
    }
  }
}

/// Strides over `to` that read an operand of shape `from` as if it were broadcast: 0 along its
/// missing and single dims.
inline Strides broadcastStrides(const Shape& from, const Shape& to) {
  const Strides dense = denseStrides(from);
  Strides strides(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) strides[lead + d] = from[d] == 1 ? 0 : dense[d];
  return strides;
}

/// body(elements...) with the vectors that hold them: all arrays are floats, or none.
template <typename Body, typename... Arrays> void onElements(Body body, Arrays&... arrays) {
  if ((isFloat(arrays.elem) && ...)) {
    body(arrays.real...);
  } else {
    body(arrays.whole...);
  }
}

/// The product of dims[first .. last).
inline int64_t product(const Shape& dims, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t d = first; d < last; ++d) out *= dims[d];
  return out;
}

/// An axis of an operand, counted from 0.
inline size_t axisOf(int64_t axis, const Shape& dims) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis);
}

/// A tensor around one of its dims: x[outer, count, inner].
struct Around {
  int64_t outer, count, inner;
  Around(const Shape& dims, size_t axis)
      : outer(product(dims, 0, axis)), count(dims[axis]), inner(product(dims, axis + 1, dims.size())) {}
};

} // namespace candela::reference
