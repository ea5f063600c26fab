#ifndef CANDELA_CORE_REFERENCE_INDEX_H
#define CANDELA_CORE_REFERENCE_INDEX_H

#include <array>

#include "core/reference/reference.h"

/// Loops over positions, so that an op's body is its formula.
namespace candela::reference {

using Strides = std::vector<int64_t>;

/// Calls body(o0, o1, ...) for every position of `dims` in row-major order, with one element offset
/// per stride list: o = sum(index[d] * strides[d]). Each list has dims.size() strides.
template <size_t N, typename Body> void forEach(const Shape& dims, const std::array<Strides, N>& strides, Body body) {
  const size_t rank = dims.size();
  for (const int64_t dim : dims)
    if (dim == 0) return;
  std::array<int64_t, N> offsets{};
  Shape index(rank, 0);
  for (;;) {
    std::apply(body, offsets);
    size_t d = rank;
    for (;;) {
      if (d == 0) return;
      --d;
      for (size_t n = 0; n < N; ++n) offsets[n] += strides[n][d];
      if (++index[d] < dims[d]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= strides[n][d] * dims[d];
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

/// body(x's elements, y's elements) with the vectors that hold them: both arrays are floats, or
/// neither.
template <typename Body> void onElements(const Array& x, Array& y, Body body) {
  if (isFloat(y.elem)) {
    body(x.real, y.real);
  } else {
    body(x.whole, y.whole);
  }
}

/// The product of dims[first .. last).
inline int64_t product(const Shape& dims, size_t first, size_t last) {
  int64_t out = 1;
  for (size_t d = first; d < last; ++d) out *= dims[d];
  return out;
}

} // namespace candela::reference

#endif
