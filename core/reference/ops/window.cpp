#include <algorithm>

#include "core/reference/kinds.h"

namespace candela::reference {
namespace {

/// Visits the windows of every plane: begin(), then tap(element) for each element inside the input,
/// then end(output element, elements of the padded input in the window).
template <typename Begin, typename Tap, typename End>
void windows(const graph::Window& window, const Array& x, const Array& y, Begin begin, Tap tap,
             End end) {
  const size_t rank = window.kernel.size();
  const Shape extent(x.dims.begin() + 2, x.dims.end()), count(y.dims.begin() + 2, y.dims.end());
  const int64_t planes = x.dims[0] * x.dims[1], inPlane = product(extent, 0, rank),
                outPlane = product(count, 0, rank);
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t o = 0; o < outPlane; ++o) {
      Shape start(rank);
      int64_t rest = o;
      for (size_t d = rank; d-- > 0; rest /= count[d])
        start[d] = rest % count[d] * window.strides[d] - window.padsBegin[d];
      begin();
      int64_t padded = 0;
      const int64_t taps = product(window.kernel, 0, rank);
      for (int64_t i = 0; i < taps; ++i) {
        bool inInput = true, inPadded = true;
        int64_t place = 0, left = i, step = 1;
        for (size_t d = rank; d-- > 0; left /= window.kernel[d], step *= extent[d]) {
          const int64_t at = start[d] + left % window.kernel[d] * window.dilations[d];
          inInput = inInput && at >= 0 && at < extent[d];
          // ceil mode may reach beyond the padding
          inPadded = inPadded && at < extent[d] + window.padsEnd[d];
          place += at * step;
        }
        padded += inPadded;
        if (inInput) tap(plane * inPlane + place);
      }
      end(plane * outPlane + o, padded);
    }
}

/// The spatial index in column-major order.
int64_t columnMajor(int64_t place, const Shape& dims) {
  int64_t out = 0, rest = place;
  Shape index(dims.size());
  for (size_t d = dims.size(); d-- > 2; rest /= dims[d]) index[d] = rest % dims[d];
  for (size_t d = dims.size(); d-- > 2;) out = out * dims[d] + index[d];
  return out;
}

/// Whether `next` takes the maximum from `best`: the first of equals stays, and so does the first
/// NaN.
bool beats(double next, double best) { return next > best || (next != next && best == best); }
bool beats(Whole next, Whole best) { return next > best; }

graph::Window poolOf(const graph::Node& node) {
  return graph::windowOf(node, node.intsAttr("kernel_shape"));
}

} // namespace

void maxPool(const graph::Window& window, const Array& x, Array& y, Array* places, bool columns) {
  const int64_t plane = product(x.dims, 2, x.dims.size());
  y.fill(identity(CDL_REDUCE_MAX, x.elem)); // what windows in the padding keep
  onElements(
      [&](const auto& from, auto& to) {
        int64_t best = -1;
        windows(
            window, x, y, [&] { best = -1; },
            [&](int64_t element) {
              if (best < 0 || beats(from[element], from[best])) best = element;
            },
            [&](int64_t o, int64_t) {
              if (best >= 0) to[o] = from[best];
              const bool reorder = columns && best >= 0;
              if (places)
                places->whole[o] =
                    reorder ? best / plane * plane + columnMajor(best % plane, x.dims) : best;
            });
      },
      x, y);
}

void averagePool(const graph::Window& window, bool countPadding, const Array& x, Array& y) {
  double sum = 0;
  int64_t count = 0;
  windows(
      window, x, y,
      [&] {
        sum = 0;
        count = 0;
      },
      [&](int64_t element) {
        sum += x.real[element];
        ++count;
      },
      [&](int64_t o, int64_t padded) {
        const int64_t divisor = countPadding ? padded : count;
        y.real[o] = divisor ? sum / static_cast<double>(divisor) : 0;
      });
}

void referenceMaxPool(const graph::Node& node, Operands in, Results out) {
  maxPool(poolOf(node), *in[0], out[0], out.size() > 1 ? &out[1] : nullptr,
          node.intAttr("storage_order"));
}

void referenceAveragePool(const graph::Node& node, Operands in, Results out) {
  averagePool(poolOf(node), node.intAttr("count_include_pad"), *in[0], out[0]);
}

void referenceGlobalAveragePool(const graph::Node&, Operands in, Results out) {
  const Array& x = *in[0];
  Shape kept(x.dims.size(), 1);
  std::copy_n(x.dims.begin(), 2, kept.begin());
  fold(CDL_REDUCE_SUM, x, kept, out[0]);
  for (double& sum : out[0].real) sum /= static_cast<double>(product(x.dims, 2, x.dims.size()));
}

} // namespace candela::reference
