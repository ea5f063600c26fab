#include "core/graph/window.h"
#include "core/reference/index.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

/// y[m,n] += sum over k of a[m,k] * b[k,n]; b dense, a's steps given.
template <typename T>
void multiply(const T* a, int64_t aRow, int64_t aColumn, const T* b, T* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const T factor = a[i * aRow + p * aColumn];
      const T* row = b + p * n;
      T* out = y + i * n;
      for (int64_t j = 0; j < n; ++j) addProduct(out[j], factor, row[j]);
    }
}

template <typename T> std::vector<T> transposed(const std::vector<T>& x, int64_t rows, int64_t columns) {
  std::vector<T> out(x.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) out[c * rows + r] = x[r * columns + c];
  return out;
}

template <typename T> const std::vector<T>& elements(const Array& array) {
  if constexpr (std::is_same_v<T, double>)
    return array.real;
  else
    return array.whole;
}

template <typename T> void matmul(const Array& a, const Array& b, Array& y, std::vector<T>& out) {
  const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
  const int64_t m = row ? 1 : a.dims[a.dims.size() - 2], k = a.dims.back(), n = column ? 1 : b.dims.back();
  const Shape batchA(a.dims.begin(), a.dims.end() - (row ? 1 : 2));
  const Shape batchB(b.dims.begin(), b.dims.end() - (column ? 1 : 2));
  const Shape batch(y.dims.begin(), y.dims.end() - (row ? 0 : 1) - (column ? 0 : 1));
  int64_t i = 0;
  forEach(batch, std::array{broadcastStrides(batchA, batch), broadcastStrides(batchB, batch)},
          [&](int64_t p, int64_t q) {
            multiply(elements<T>(a).data() + p * m * k, k, 1, elements<T>(b).data() + q * k * n,
                     out.data() + i++ * m * n, m, k, n);
          });
}

/// One pair of (output row, input row) of a convolution: the columns that lie inside the input.
struct Range {
  int64_t first, last; ///< output positions, last excluded
};
Range inside(int64_t extent, int64_t count, int64_t stride, int64_t start) {
  // start + i * stride in 0 .. extent - 1
  const int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
  const int64_t last = extent - 1 - start < 0 ? 0 : (extent - 1 - start) / stride + 1;
  return {std::min(first, count), std::max(std::min(last, count), std::min(first, count))};
}

/// A 1-D or 2-D convolution as a 3-D one: leading spatial dims of 1.
Shape threeDims(const Shape& dims, int64_t filler) {
  Shape out(3 - dims.size(), filler);
  out.insert(out.end(), dims.begin(), dims.end());
  return out;
}

} // namespace

Status referenceMatmul(const graph::Node&, std::span<const Array* const> in, std::span<Array> out) {
  if (isFloat(out[0].elem)) {
    matmul<double>(*in[0], *in[1], out[0], out[0].real);
  } else {
    matmul<Whole>(*in[0], *in[1], out[0], out[0].whole);
  }
  return Status::ok();
}

/// alpha * A . B + beta * C; of integers, the factors are applied as reals and the sum is taken
/// toward zero.
Status referenceGemm(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  Array& y = out[0];
  const bool transA = node.intAttr("transA"), transB = node.intAttr("transB");
  const double alpha = node.floatAttr("alpha"), beta = node.floatAttr("beta");
  const int64_t m = y.dims[0], n = y.dims[1], k = in[0]->dims[transA ? 0 : 1];
  const auto product = [&](const auto& a, const auto& b, auto& result) {
    const auto dense = transB ? transposed(b, n, k) : b;
    multiply(a.data(), transA ? 1 : k, transA ? m : 1, dense.data(), result.data(), m, k, n);
  };
  const Strides strides = in[2] ? broadcastStrides(in[2]->dims, y.dims) : Strides{0, 0};
  int64_t i = 0;
  if (isFloat(y.elem)) {
    product(in[0]->real, in[1]->real, y.real);
    forEach(y.dims, std::array{strides}, [&](int64_t c) {
      y.real[i] = alpha * y.real[i] + (in[2] ? beta * in[2]->real[c] : 0.0);
      ++i;
    });
    return Status::ok();
  }
  product(in[0]->whole, in[1]->whole, y.whole);
  const auto scaled = [](double factor, Whole value) {
    return factor == 1 ? value : realToWhole(Elem::i64_, factor * static_cast<double>(value), CDL_CONVERT_TRUNC, false);
  };
  forEach(y.dims, std::array{strides}, [&](int64_t c) {
    y.whole[i] = scaled(alpha, y.whole[i]) + (in[2] ? scaled(beta, in[2]->whole[c]) : 0);
    ++i;
  });
  return Status::ok();
}

/// y[n,o,p] = b[o] + sum over c in o's group and taps t of x[n, c, p * stride - pad + t * dilation]
/// * w[o, c, t].
Status referenceConv(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array &x = *in[0], &w = *in[1];
  Array& y = out[0];
  const graph::Window window = graph::windowOf(node, Shape(w.dims.begin() + 2, w.dims.end()));
  const Shape kernel = threeDims(window.kernel, 1), stride = threeDims(window.strides, 1);
  const Shape dilation = threeDims(window.dilations, 1), pad = threeDims(window.padsBegin, 0);
  const Shape extent = threeDims(Shape(x.dims.begin() + 2, x.dims.end()), 1);
  const Shape count = threeDims(Shape(y.dims.begin() + 2, y.dims.end()), 1);
  const int64_t channels = w.dims[1], outputs = w.dims[0], group = node.intAttr("group"), taps = product(kernel, 0, 3);
  const int64_t inPlane = product(extent, 0, 3), outPlane = product(count, 0, 3);
  for (int64_t image = 0; image < y.dims[0]; ++image)
    for (int64_t o = 0; o < outputs; ++o) {
      double* plane = y.real.data() + (image * outputs + o) * outPlane;
      std::fill(plane, plane + outPlane, in[2] ? in[2]->real[o] : 0.0);
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t channel = o / (outputs / group) * channels + c;
        const double* source = x.real.data() + (image * x.dims[1] + channel) * inPlane;
        for (int64_t t = 0; t < taps; ++t) {
          const double weight = w.real[(o * channels + c) * taps + t];
          const int64_t tap[3] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
          int64_t start[3];
          Range range[3];
          for (int d = 0; d < 3; ++d) {
            start[d] = tap[d] * dilation[d] - pad[d];
            range[d] = inside(extent[d], count[d], stride[d], start[d]);
          }
          for (int64_t pz = range[0].first; pz < range[0].last; ++pz)
            for (int64_t py = range[1].first; py < range[1].last; ++py) {
              const int64_t line = (start[0] + pz * stride[0]) * extent[1] + start[1] + py * stride[1];
              const double* from = source + line * extent[2] + start[2];
              double* to = plane + (pz * count[1] + py) * count[2];
              for (int64_t px = range[2].first; px < range[2].last; ++px) to[px] += weight * from[px * stride[2]];
            }
        }
      }
    }
  return Status::ok();
}

} // namespace candela::reference
