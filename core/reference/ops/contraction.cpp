#include <algorithm>
#include <cmath>
#include <limits>

#include "core/reference/kinds.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

/// y[m,n] += sum over k of a[m,k] * b[k,n], all dense.
template <typename T> void multiply(const T* a, const T* b, T* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      const T factor = a[i * k + p];
      const T* row = b + p * n;
      T* out = y + i * n;
      for (int64_t j = 0; j < n; ++j) addProduct(out[j], factor, row[j]);
    }
}

Array transposed(const Array& x) {
  const int64_t rows = x.dims[0], columns = x.dims[1];
  Array out(x.elem, {columns, rows});
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, x.at(i % rows * columns + i / rows));
  return out;
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
Shape threeDims(const Shape& dims, int64_t filler, size_t first = 0) {
  Shape out(3 - (dims.size() - first), filler);
  out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(first), dims.end());
  return out;
}

} // namespace

Array withoutZero(const Array& x, const Array& zero) {
  const Elem wide = isFloat(x.elem) ? Elem::f64_ : Elem::i64_;
  Array out(wide, x.dims);
  const Array* const operands[] = {&x, &zero};
  mapElements({CDL_KIND_BINARY, CDL_BINARY_SUB, wide, wide}, operands, out);
  return out;
}

void addProducts(const Array& a, const Array& b, Array& y) {
  const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
  const int64_t m = row ? 1 : a.dims[a.dims.size() - 2], k = a.dims.back(),
                n = column ? 1 : b.dims.back();
  const Shape batchA(a.dims.begin(), a.dims.end() - (row ? 1 : 2));
  const Shape batchB(b.dims.begin(), b.dims.end() - (column ? 1 : 2));
  std::ptrdiff_t matrixDims = 2;
  if (row) --matrixDims;
  if (column) --matrixDims;
  const Shape batch(y.dims.begin(), y.dims.end() - matrixDims);
  onElements(
      [&](const auto& left, const auto& right, auto& out) {
        int64_t i = 0;
        forEach(batch, {broadcastStrides(batchA, batch), broadcastStrides(batchB, batch)},
                [&](const int64_t* at) {
                  multiply(left.data() + at[0] * m * k, right.data() + at[1] * k * n,
                           out.data() + i++ * m * n, m, k, n);
                });
      },
      a, b, y);
}

void addConvolution(const Convolution& convolution, const Array& x, const Array& w, Array& y) {
  const graph::Window& window = convolution.window;
  const bool transposed = convolution.transposed;
  const Array& small = transposed ? x : y;
  const Array& large = transposed ? y : x;
  const Shape kernel = threeDims(window.kernel, 1), stride = threeDims(window.strides, 1);
  const Shape dilation = threeDims(window.dilations, 1), pad = threeDims(window.padsBegin, 0);
  const Shape extent = threeDims(large.dims, 1, 2), count = threeDims(small.dims, 1, 2);
  // channels per group
  const int64_t in = x.dims[1] / convolution.group, out = y.dims[1] / convolution.group;
  const int64_t taps = product(kernel, 0, 3);
  const auto addTap = [&](const auto& weight, int64_t t, const auto* from, auto* to) {
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
        const int64_t inLarge = line * extent[2] + start[2],
                      inSmall = (pz * count[1] + py) * count[2];
        for (int64_t px = range[2].first; px < range[2].last; ++px) {
          const int64_t atLarge = inLarge + px * stride[2], atSmall = inSmall + px;
          if (transposed)
            addProduct(to[atLarge], weight, from[atSmall]);
          else
            addProduct(to[atSmall], weight, from[atLarge]);
        }
      }
  };
  onElements(
      [&](const auto& input, const auto& weights, auto& output) {
        const int64_t inPlane = product(x.dims, 2, x.dims.size()),
                      outPlane = product(y.dims, 2, y.dims.size());
        for (int64_t image = 0; image < y.dims[0]; ++image)
          for (int64_t o = 0; o < y.dims[1]; ++o)
            for (int64_t c = 0; c < in; ++c) {
              const int64_t channel = o / out * in + c;
              const int64_t kernelAt = transposed ? channel * out + o % out : o * in + c;
              for (int64_t t = 0; t < taps; ++t)
                addTap(weights[kernelAt * taps + t], t,
                       input.data() + (image * x.dims[1] + channel) * inPlane,
                       output.data() + (image * y.dims[1] + o) * outPlane);
            }
      },
      x, w, y);
}

void referenceMatmul(const graph::Node&, Operands in, Results out) {
  addProducts(*in[0], *in[1], out[0]);
}

/// alpha * A . B + beta * C, which is not looked at where beta is 0. Of integers the product wraps;
/// each factor that is no integer is applied as a real, and what comes of it is taken toward zero.
void referenceGemm(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  addProducts(node.intAttr("transA") ? transposed(*in[0]) : *in[0],
              node.intAttr("transB") ? transposed(*in[1]) : *in[1], y);
  const auto scaled = [&](double factor, const Scalar& x) -> Scalar {
    if (isFloat(y.elem)) return {factor * x.real, 0};
    const Whole value = wrap(y.elem, x.whole);
    if (factor == std::trunc(factor) && std::abs(factor) < 0x1p31)
      return {0, value * static_cast<Whole>(factor)};
    return {0,
            realToWhole(Elem::i64_, factor * static_cast<double>(value), CDL_CONVERT_TRUNC, false)};
  };
  const double alpha = node.floatAttr("alpha"), beta = node.floatAttr("beta");
  int64_t i = 0;
  forEach(y.dims, {in[2] ? broadcastStrides(in[2]->dims, y.dims) : Strides(2, 0)},
          [&](const int64_t* at) {
            const Scalar product = scaled(alpha, y.at(i)),
                         bias = in[2] && beta != 0 ? scaled(beta, in[2]->at(*at)) : Scalar{};
            y.set(i++, binary(CDL_BINARY_ADD, y.elem, product, bias));
          });
}

/// y[n,o,p] = b[o] + sum over c in o's group and taps t of x[n, c, p * stride - pad + t * dilation]
/// * w[o, c, t].
void referenceConv(const graph::Node& node, Operands in, Results out) {
  Array& y = out[0];
  const Around channels(y.dims, 1);
  for (int64_t i = 0; in[2] && i < y.count(); ++i)
    y.set(i, in[2]->at(i / channels.inner % channels.count));
  const Shape& weight = in[1]->dims;
  addConvolution(
      {graph::windowOf(node, Shape(weight.begin() + 2, weight.end())), node.intAttr("group")},
      *in[0], *in[1], y);
}

namespace {

/// A block of a row of a, in i8 and as what one of it stands for.
struct RoundedBlock {
  std::vector<double> values;
  double step = 0;
};

/// Each operation rounded to f32: by the largest magnitude, of which 127 steps are made.
RoundedBlock roundBlock(std::vector<double> values) {
  double largest = 0;
  for (const double value : values)
    largest = std::isnan(value) || largest < std::abs(value) ? std::abs(value) : largest;
  RoundedBlock block{std::move(values)};
  if (std::ranges::any_of(block.values, [](double value) { return !std::isfinite(value); })) {
    block.values.assign(block.values.size(), 0);
    block.step = std::numeric_limits<double>::quiet_NaN();
    return block;
  }
  if (largest < 0x1p-100) largest = 0;
  block.step = roundReal(Elem::f32_, largest / 127);
  const double perStep = largest == 0 ? 0 : roundReal(Elem::f32_, 127 / largest);
  for (double& value : block.values) value = std::nearbyint(roundReal(Elem::f32_, value * perStep));
  return block;
}

/// An operand that broadcasts to [rows, blocks], by its index there.
class PerBlock {
public:
  PerBlock(const Array* given, int64_t rows, int64_t blocks, double missing)
      : given_(given), missing_(missing) {
    if (given) strides_ = broadcastStrides(given->dims, {rows, blocks});
  }
  double at(int64_t row, int64_t block) const {
    if (!given_) return missing_;
    const int64_t i = row * strides_[0] + block * strides_[1];
    return isFloat(given_->elem) ? given_->real[i] : static_cast<double>(given_->whole[i]);
  }

private:
  const Array* given_;
  double missing_;
  Strides strides_;
};

double numberAt(const Array& x, int64_t i) {
  return isFloat(x.elem) ? x.real[i] : static_cast<double>(x.whole[i]);
}

} // namespace

void addScaledProducts(const ScaledProduct& p, Array& y) {
  const int64_t rows = p.a.dims[0];
  const int64_t depth = p.a.dims[1];
  const int64_t columns = p.w.dims[0];
  const int64_t blocks = p.w.dims[1];
  const int64_t block = p.w.dims[2];
  const PerBlock wScale(&p.wScale, columns, blocks, 1), wZero(p.wZero, columns, blocks, 0),
      aScale(p.aScale, rows, blocks, 1);
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t g = 0; g < blocks; ++g) {
      const int64_t first = g * block;
      const int64_t count = std::min(block, depth - first);
      std::vector<double> values;
      for (int64_t s = 0; s < count; ++s) values.push_back(numberAt(p.a, m * depth + first + s));
      double step = aScale.at(m, g);
      if (p.isDynamic) {
        RoundedBlock rounded = roundBlock(std::move(values));
        values = std::move(rounded.values);
        step = rounded.step;
      }
      for (int64_t n = 0; n < columns; ++n) {
        double sum = 0;
        for (int64_t s = 0; s < count; ++s)
          sum += values[static_cast<size_t>(s)] *
                 (numberAt(p.w, (n * blocks + g) * block + s) - wZero.at(n, g));
        y.real[m * columns + n] += sum * step * wScale.at(n, g);
      }
    }
}

void referenceScaledMatmul(const graph::Node& node, Operands in, Results out) {
  addScaledProducts({.a = *in[0],
                     .w = *in[1],
                     .wScale = *in[2],
                     .wZero = in[3],
                     .aScale = in[4],
                     .isDynamic = node.stringAttr("fn") == "dynamic"},
                    out[0]);
}

void attention(const Array& q, const Array& k, const Array& v, double scale,
               const std::function<double(int64_t row, int64_t t)>& mask, Array& y) {
  const int64_t queries = q.dims[1], depth = q.dims[2], keys = k.dims[1], width = v.dims[2];
  std::vector<double> line(static_cast<size_t>(keys));
  for (int64_t row = 0; row < q.dims[0] * queries; ++row) {
    const int64_t first = row / queries * keys; // of this batch's rows of k and v
    for (int64_t t = 0; t < keys; ++t) {
      double dot = 0;
      for (int64_t d = 0; d < depth; ++d)
        dot += q.real[row * depth + d] * k.real[(first + t) * depth + d];
      line[static_cast<size_t>(t)] = dot * scale + mask(row, t);
    }
    softmax(line, false);
    for (int64_t t = 0; t < keys; ++t)
      for (int64_t e = 0; e < width; ++e)
        y.real[row * width + e] += line[static_cast<size_t>(t)] * v.real[(first + t) * width + e];
  }
}

void referenceAttention(const graph::Node& node, Operands in, Results out) {
  const auto batched = [](const Array& x) {
    Array y = x;
    const size_t batch = x.dims.size() - 2;
    y.dims = {product(x.dims, 0, batch), x.dims[batch], x.dims[batch + 1]};
    return y;
  };
  const Array q = batched(*in[0]), k = batched(*in[1]), v = batched(*in[2]);
  const Shape& dims = in[0]->dims;
  Shape scores = dims;
  scores.back() = k.dims[1];
  std::vector<double> mask(static_cast<size_t>(in[3] ? product(scores, 0, scores.size()) : 0));
  size_t i = 0;
  if (in[3])
    forEach(scores, {broadcastStrides(in[3]->dims, scores)},
            [&](const int64_t* at) { mask[i++] = in[3]->real[*at]; });
  attention(
      q, k, v, node.floatAttr("scale"),
      [&](int64_t row, int64_t t) { return mask.empty() ? 0 : mask[row * k.dims[1] + t]; }, out[0]);
}

} // namespace candela::reference
