#include "core/graph/window.h"

#include <limits>

#include "core/reference/index.h"
#include "core/reference/scalar.h"

namespace candela::reference {
namespace {

/// Visits the windows of every plane: begin(), then tap(element, spatial index) for each element
/// inside the input, then end(output element, elements of the padded input in the window).
template <typename Begin, typename Tap, typename End>
void windows(const graph::Node& node, const Array& x, const Array& y, Begin begin, Tap tap, End end) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  const size_t rank = window.kernel.size();
  const Shape extent(x.dims.begin() + 2, x.dims.end()), count(y.dims.begin() + 2, y.dims.end());
  const int64_t planes = x.dims[0] * x.dims[1], inPlane = product(extent, 0, rank), outPlane = product(count, 0, rank);
  const Strides none(rank, 0);
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t o = 0; o < outPlane; ++o) {
      Shape start(rank);
      int64_t rest = o;
      for (size_t d = rank; d-- > 0; rest /= count[d])
        start[d] = rest % count[d] * window.strides[d] - window.padsBegin[d];
      begin();
      int64_t padded = 0;
      Shape t(rank, 0);
      const int64_t taps = product(window.kernel, 0, rank);
      for (int64_t i = 0; i < taps; ++i) {
        bool inInput = true, inPadded = true;
        int64_t place = 0, left = i;
        for (size_t d = rank; d-- > 0; left /= window.kernel[d]) t[d] = left % window.kernel[d];
        for (size_t d = 0; d < rank; ++d) {
          const int64_t at = start[d] + t[d] * window.dilations[d];
          inInput = inInput && at >= 0 && at < extent[d];
          inPadded = inPadded && at < extent[d] + window.padsEnd[d]; // ceil mode may reach beyond the padding
          place = place * extent[d] + at;
        }
        padded += inPadded;
        if (inInput) tap(plane * inPlane + place, place);
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

template <typename T> struct Extreme {
  T value;
  int64_t place; ///< -1: the window lies in the padding
};

/// Whether `next` takes the maximum from `best`: the first of equals stays, and so does the first
/// NaN.
bool beats(double next, double best) { return next > best || (next != next && best == best); }
bool beats(Whole next, Whole best) { return next > best; }

template <typename T>
void maxPool(const graph::Node& node, const Array& x, std::span<Array> out, const std::vector<T>& from,
             std::vector<T>& to, T lowest) {
  const bool columns = node.intAttr("storage_order");
  const int64_t plane = product(x.dims, 2, x.dims.size());
  Extreme<T> best{};
  windows(
      node, x, out[0],
      [&] {
        best = {lowest, -1};
      },
      [&](int64_t element, int64_t) {
        if (best.place < 0 || beats(from[element], best.value)) best = {from[element], element};
      },
      [&](int64_t o, int64_t) {
        to[o] = best.value;
        if (out.size() < 2) return;
        const bool reorder = columns && best.place >= 0;
        out[1].whole[o] = reorder ? best.place / plane * plane + columnMajor(best.place % plane, x.dims) : best.place;
      });
}

} // namespace

Status referenceMaxPool(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const Array& x = *in[0];
  if (isFloat(x.elem)) {
    maxPool<double>(node, x, out, x.real, out[0].real, -std::numeric_limits<double>::infinity());
  } else {
    maxPool<Whole>(node, x, out, x.whole, out[0].whole, integerRange(x.elem).lowest);
  }
  return Status::ok();
}

/// A window that lies in the padding, which is not counted, gives 0.
Status referenceAveragePool(const graph::Node& node, std::span<const Array* const> in, std::span<Array> out) {
  const bool padding = node.intAttr("count_include_pad");
  double sum = 0;
  int64_t count = 0;
  windows(
      node, *in[0], out[0], [&] { sum = 0, count = 0; },
      [&](int64_t element, int64_t) { sum += in[0]->real[element], ++count; },
      [&](int64_t o, int64_t padded) {
        const int64_t divisor = padding ? padded : count;
        out[0].real[o] = divisor ? sum / static_cast<double>(divisor) : 0;
      });
  return Status::ok();
}

Status referenceGlobalAveragePool(const graph::Node&, std::span<const Array* const> in, std::span<Array> out) {
  const Array& x = *in[0];
  const int64_t plane = product(x.dims, 2, x.dims.size());
  for (int64_t o = 0; o < out[0].count(); ++o) {
    double sum = 0;
    for (int64_t i = 0; i < plane; ++i) sum += x.real[o * plane + i];
    out[0].real[o] = sum / static_cast<double>(plane);
  }
  return Status::ok();
}

} // namespace candela::reference
