// The optional instructions, each as its definition says.
#include <algorithm>
#include <cmath>

#include "core/reference/interp/machine.h"

namespace candela::interp {

using program::Instr;
using program::View;

namespace {

/// Kernel, strides, pads and dilations of the two spatial dims.
struct Window {
  std::vector<int64_t> kernel, strides, pads, dilations;
  Window(const Instr& instr, std::vector<int64_t> extent)
      : kernel(std::move(extent)), strides(values(instr, CDL_ATTR_STRIDES, {1, 1})),
        pads(values(instr, CDL_ATTR_PADS, {0, 0, 0, 0})), dilations(values(instr, CDL_ATTR_DILATIONS, {1, 1})) {}

  static std::vector<int64_t> values(const Instr& instr, uint16_t id, std::vector<int64_t> otherwise) {
    const program::Attr* attr = instr.attr(id);
    return attr ? attr->values : otherwise;
  }
  /// Where tap k of output position o lies in spatial dim d of the input; may be in the padding.
  int64_t tap(size_t d, int64_t o, int64_t k) const { return o * strides[d] - pads[d] + k * dilations[d]; }
  /// visit(kh, kw, h, w) for every tap of an output position that lies inside of h x w.
  template <typename Visit> void visitTaps(int64_t oh, int64_t ow, int64_t h, int64_t w, const Visit& visit) const {
    for (int64_t kh = 0; kh < kernel[0]; ++kh)
      for (int64_t kw = 0; kw < kernel[1]; ++kw)
        if (const int64_t y = tap(0, oh, kh), x = tap(1, ow, kw); y >= 0 && y < h && x >= 0 && x < w)
          visit(kh, kw, y, x);
  }
};

struct Convolution {
  const Values x, w, xZero, wZero;
  Values y;
  Elem own;

  /// One product into y[n, o, oh, ow]: integers with their zero points taken off.
  void multiplyAdd(int64_t n, int64_t c, int64_t h, int64_t wide, const Scalar& weight, int64_t o, int64_t oh,
                   int64_t ow) {
    Scalar left = x.at(n, c, h, wide), right = weight, &sum = y.at(n, o, oh, ow);
    left.whole -= xZero.at(0).whole;
    right.whole -= wZero.at(wZero.items.size() > 1 ? o : 0).whole;
    sum = binary(CDL_BINARY_ADD, own, sum, binary(CDL_BINARY_MUL, own, left, right));
    if (!isFloat(own)) sum = rounded(own, sum);
  }
};

void conv2d(Call& call) {
  const Instr& instr = call.instr;
  const View& y = instr.outputs[0];
  const size_t operands = instr.operandCount();
  const Elem own = instr.expr.empty() ? y.elem : accumulatorElem(instr, y.elem);
  Convolution c{call.logicalInput(0),
                call.logicalInput(1),
                operands > 2 ? call.input(2) : Values(instr.inputs[0].elem, {1}),
                operands > 3 ? call.input(3) : Values(instr.inputs[1].elem, {1}),
                unblocked(instr.inout ? call.read(y) : Values(own, y.dims), y),
                own};
  if (call.failed()) return;
  const Window window(instr, {c.w.dim(2), c.w.dim(3)});
  const int64_t group = instr.intAttr(CDL_ATTR_GROUP, 1);
  const bool transposed = instr.intAttr(CDL_ATTR_TRANSPOSED, 0) != 0;
  // Channels per group; what a block has over is nobody's.
  const int64_t in = std::min(c.x.dim(1) / group, c.w.dim(transposed ? 0 : 1) / (transposed ? group : 1));
  const int64_t outs = std::min(c.y.dim(1), transposed ? c.w.dim(1) * group : c.w.dim(0)), out = outs / group;
  // Transposed: the same taps with x and y changing places, which is what the gradient of a
  // convolution is.
  const std::vector<int64_t> small = transposed ? c.x.dims : c.y.dims, large = transposed ? c.y.dims : c.x.dims;
  for (int64_t n = 0; n < std::min(c.x.dim(0), c.y.dim(0)); ++n)
    for (int64_t o = 0; o < outs; ++o)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t h = 0; h < small[2]; ++h)
          for (int64_t w = 0; w < small[3]; ++w)
            window.visitTaps(h, w, large[2], large[3], [&](int64_t kh, int64_t kw, int64_t lh, int64_t lw) {
              const int64_t channel = o / out * in + i;
              if (transposed)
                c.multiplyAdd(n, channel, h, w, c.w.at(channel, o % out, kh, kw), o, lh, lw);
              else
                c.multiplyAdd(n, channel, lh, lw, c.w.at(o, i, kh, kw), o, h, w);
            });
  call.finish(c.y);
}

void pool2d(Call& call) {
  const Instr& instr = call.instr;
  const Values x = call.logicalInput(0);
  const Window window(instr, instr.attr(CDL_ATTR_KERNEL)->values);
  const bool average = instr.fn == CDL_POOL2D_AVERAGE, withPad = instr.intAttr(CDL_ATTR_COUNT_INCLUDE_PAD, 0) != 0;
  const View& view = instr.outputs[0];
  Values result = unblocked(Values(x.elem, view.dims), view);
  if (call.failed()) return;
  for (int64_t n = 0; n < std::min(x.dim(0), result.dim(0)); ++n)
    for (int64_t c = 0; c < std::min(x.dim(1), result.dim(1)); ++c)
      for (int64_t h = 0; h < result.dim(2); ++h)
        for (int64_t w = 0; w < result.dim(3); ++w) {
          Scalar acc = average ? Scalar{} : lowest(x.elem);
          int64_t count = 0;
          window.visitTaps(h, w, x.dim(2), x.dim(3), [&](int64_t, int64_t, int64_t xh, int64_t xw) {
            acc = binary(average ? CDL_BINARY_ADD : CDL_BINARY_MAX, x.elem, acc, x.at(n, c, xh, xw));
            ++count;
          });
          if (withPad) count = window.kernel[0] * window.kernel[1];
          if (average) acc.real /= static_cast<double>(count);
          result.at(n, c, h, w) = acc;
        }
  call.finish(result);
}

void elementwise(Call& call) {
  std::vector<Values> in;
  for (size_t i = 0; i < call.instr.inputs.size(); ++i) in.push_back(call.input(i));
  const View& y = call.instr.outputs[0];
  Values result(y.elem, y.dims);
  for (size_t i = 0; i < result.items.size() && !call.failed(); ++i)
    result.items[i] = evaluate(call.instr.expr, {}, [&](size_t view) { return in[view].items[i]; });
  call.write(result);
}

/// exp(x - max) / sum, or its logarithm, in place.
void softmaxOf(std::vector<double>& line, bool logarithm) {
  double max = -INFINITY, sum = 0;
  for (double v : line) max = std::isnan(v) || std::isnan(max) ? NAN : std::max(max, v);
  for (double v : line) sum += std::exp(v - max);
  for (double& v : line) v = logarithm ? v - max - std::log(sum) : std::exp(v - max) / sum;
}

void softmax(Call& call) {
  const Values x = call.input(0);
  Values y(x.elem, x.dims);
  std::vector<double> line(static_cast<size_t>(x.dim(1)));
  for (int64_t o = 0; o < x.dim(0); ++o)
    for (int64_t i = 0; i < x.dim(2); ++i) {
      for (int64_t r = 0; r < x.dim(1); ++r) line[static_cast<size_t>(r)] = x.at(o, r, i).real;
      softmaxOf(line, call.instr.fn == CDL_SOFTMAX_LOG_SOFTMAX);
      for (int64_t r = 0; r < x.dim(1); ++r) y.at(o, r, i).real = line[static_cast<size_t>(r)];
    }
  call.write(y);
}

void norm(Call& call) {
  const Values x = call.input(0);
  const size_t operands = call.instr.inputs.size();
  const Values scale = operands > 1 ? call.input(1) : Values(), bias = operands > 2 ? call.input(2) : Values();
  const program::Attr* attr = call.instr.attr(CDL_ATTR_EPSILON);
  const double epsilon = attr ? attr->asFloat() : 1e-5, count = static_cast<double>(x.dim(1));
  Values y(x.elem, x.dims);
  for (int64_t o = 0; o < x.dim(0) && !call.failed(); ++o) {
    double mean = 0, squares = 0;
    for (int64_t r = 0; r < x.dim(1) && call.instr.fn == CDL_NORM_LAYER; ++r) mean += x.at(o, r).real / count;
    for (int64_t r = 0; r < x.dim(1); ++r) squares += (x.at(o, r).real - mean) * (x.at(o, r).real - mean);
    for (int64_t r = 0; r < x.dim(1); ++r) {
      const double value = (x.at(o, r).real - mean) / std::sqrt(squares / count + epsilon);
      y.at(o, r).real = value * (operands > 1 ? scale.at(r).real : 1) + (operands > 2 ? bias.at(r).real : 0);
    }
  }
  call.write(y);
}

/// softmax(q . k' * scale + mask) . v; without the attribute, scale is 1 / sqrt(depth).
void attention(Call& call) {
  const Values q = call.input(0), k = call.input(1), v = call.input(2);
  const bool masked = call.instr.inputs.size() > 3;
  const Values mask = masked ? call.input(3) : Values();
  const program::Attr* attr = call.instr.attr(CDL_ATTR_SCALE);
  const double scale = attr ? attr->asFloat() : 1 / std::sqrt(static_cast<double>(q.dim(2)));
  Values y(q.elem, call.instr.outputs[0].dims);
  std::vector<double> line(static_cast<size_t>(k.dim(1)));
  for (int64_t b = 0; b < q.dim(0) && !call.failed(); ++b)
    for (int64_t s = 0; s < q.dim(1); ++s) {
      for (int64_t t = 0; t < k.dim(1); ++t) {
        double dot = 0;
        for (int64_t d = 0; d < q.dim(2); ++d) dot += q.at(b, s, d).real * k.at(b, t, d).real;
        line[static_cast<size_t>(t)] = dot * scale + (masked ? mask.at(b, s, t).real : 0);
      }
      softmaxOf(line, false);
      for (int64_t e = 0; e < v.dim(2); ++e)
        for (int64_t t = 0; t < v.dim(1); ++t) y.at(b, s, e).real += line[static_cast<size_t>(t)] * v.at(b, t, e).real;
    }
  call.write(y);
}

/// A NaN is the extreme, as in REDUCE; of equals the first, or the last.
void argReduce(Call& call) {
  const Values x = call.input(0);
  const bool last = call.instr.intAttr(CDL_ATTR_SELECT_LAST, 0) != 0, max = call.instr.fn == CDL_ARG_REDUCE_MAX;
  const auto isNan = [&](const Scalar& v) { return isFloat(x.elem) && std::isnan(v.real); };
  Values y(call.instr.outputs[0].elem, {x.dim(0), x.dim(2)});
  for (int64_t o = 0; o < x.dim(0) && !call.failed(); ++o)
    for (int64_t i = 0; i < x.dim(2); ++i) {
      int64_t best = 0;
      for (int64_t r = 1; r < x.dim(1); ++r) {
        const Scalar &v = x.at(o, r, i), &b = x.at(o, best, i);
        const bool equal = isNan(v) ? isNan(b) : compare(CDL_COMPARE_EQ, x.elem, v, b);
        const bool beyond = max ? compare(CDL_COMPARE_LT, x.elem, b, v) : compare(CDL_COMPARE_LT, x.elem, v, b);
        if (equal ? last : isNan(v) || beyond) best = r;
      }
      y.at(o, i).whole = best;
    }
  call.write(y);
}

} // namespace

void runComposite(Call& call) {
  switch (call.instr.kind) {
  case CDL_KIND_CONV2D: return conv2d(call);
  case CDL_KIND_POOL2D: return pool2d(call);
  case CDL_KIND_ELEMENTWISE: return elementwise(call);
  case CDL_KIND_SOFTMAX: return softmax(call);
  case CDL_KIND_NORM: return norm(call);
  case CDL_KIND_ATTENTION: return attention(call);
  case CDL_KIND_ARG_REDUCE: return argReduce(call);
  default: call.fail(failure(Code::unsupported, "the interpreter does not know the ops of plugins"));
  }
}

} // namespace candela::interp
