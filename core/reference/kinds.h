#pragma once

#include <functional>

#include "core/compiler/graph/window.h"
#include "core/reference/reference.h"

/// What ops of the Graph and instructions of the Program (interpreter/) have in common, each said
/// once, on dense arrays.
namespace candela::reference {

// ---- Loops over positions, so that an op's body is its formula ----

using Strides = std::vector<int64_t>;

/// Calls body(at) for every position of `dims` in row-major order, with one element offset per
/// stride list: at[n] = sum(index[d] * strides[n][d]). Each list has dims.size() strides.
template <typename Body>
void forEach(const Shape& dims, const std::vector<Strides>& strides, Body body) {
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
      : outer(product(dims, 0, axis)), count(dims[axis]),
        inner(product(dims, axis + 1, dims.size())) {}
  /// Element k of a line along that dim; lines are counted over outer and inner.
  int64_t at(int64_t line, int64_t k) const {
    return (line / inner * count + k) * inner + line % inner;
  }
};

// ---- Kinds ----

/// y = function(operands), element by element; the operands broadcast to y.
void mapElements(const Function& function, Operands in, Array& y);

/// What REDUCE gives of nothing: sum 0, prod 1, max the lowest and min the highest value.
Scalar identity(uint16_t reduceFn, Elem elem);
/// y = x folded to the dims `kept`, 1 where it is reduced, by a function of REDUCE. The dims of y
/// may leave the single ones out.
void fold(uint16_t reduceFn, const Array& x, const Shape& kept, Array& y);

/// What SCATTER by a function makes of a place that holds `old`.
Scalar scattered(uint16_t scatterFn, Elem elem, const Scalar& old, const Scalar& update);

/// y = table[x]. 8 bits: the entry at x - lowest. i16: between the entries 128 apart around x, to
/// nearest, halves up.
void lookUp(const Array& x, const Array& table, Array& y);

/// y = clamp(rne((a * ma * 2^left + b * mb * 2^leftB) / 2^shift) + zero, low, high) of operands {a,
/// ma, shift, zero} and, if given, {b, mb}, which broadcast to y. A negative shift counts as 0.
void rescale(Operands in, int64_t left, int64_t leftB, Whole low, Whole high, Array& y);

/// x less its zero point, which broadcasts to it; a wide type holds it exactly.
Array withoutZero(const Array& x, const Array& zero);
/// y += a . b: vectors, matrices, and batches of matrices, which broadcast.
void addProducts(const Array& a, const Array& b, Array& y);

/// Products of SCALED_MATMUL, whose operands have scales by block. Null: without.
struct ScaledProduct {
  const Array &a, &w, &wScale;                     ///< [M,K], [N,G,S] and what broadcasts to [N,G]
  const Array *wZero = nullptr, *aScale = nullptr; ///< broadcast to [N,G] and [M,G]
  bool isDynamic = false;                          ///< a is first rounded to i8, block by block
};
/// y[m,n] += a . w, the sum rounded once.
void addScaledProducts(const ScaledProduct& product, Array& y);

/// y += x convolved with w, of 1 to 3 spatial dims. Transposed: x and y change places, which is
/// what the gradient of a convolution is.
struct Convolution {
  graph::Window window;
  int64_t group = 1;
  bool transposed = false;
};
void addConvolution(const Convolution& convolution, const Array& x, const Array& w, Array& y);

/// places: where each maximum stands in x, if wanted, -1 in the padding; `columns`: counted in
/// column-major order.
void maxPool(const graph::Window& window, const Array& x, Array& y, Array* places = nullptr,
             bool columns = false);
/// A window that lies in the padding, which is not counted, gives 0.
void averagePool(const graph::Window& window, bool countPadding, const Array& x, Array& y);

/// The first elements of x along an axis, as many as y has there, in order, with their places. Of
/// equals the lower place first; NaN is above every number.
void sort(const Array& x, size_t axis, bool descending, Array& y, Array& places);

/// The place of the extreme along an axis. A NaN is the extreme, as in REDUCE; of equals the first,
/// or the last.
void argReduce(const Array& x, size_t axis, bool max, bool last, Array& y);

/// exp(x - max) / sum(exp(x - max)), or its logarithm, in place.
void softmax(std::span<double> line, bool logarithm);
/// The same along an axis.
void softmax(const Array& x, size_t axis, bool logarithm, Array& y);

/// softmax(q . k' * scale + mask) . v of batches: q[B,S,D], k[B,T,D], v[B,T,E]. mask(row of q, t):
/// what is added.
void attention(const Array& q, const Array& k, const Array& v, double scale,
               const std::function<double(int64_t row, int64_t t)>& mask, Array& y);

/// Rows of `count`: (x - mean) / sqrt(variance + epsilon), or without the mean; times scale, plus
/// bias, where given.
void rowNorm(const Array& x, int64_t count, bool centres, double epsilon, const Array* scale,
             const Array* bias, Array& y);

} // namespace candela::reference
