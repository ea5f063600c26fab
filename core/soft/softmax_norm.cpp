// SOFTMAX over the middle of x[O,R,I] and NORM over the rows of x[O,R].
#include <cmath>
#include <limits>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

// One line in a dense scratch of the compute type; sums in f64.
template <class C> void softmaxLine(std::vector<C>& line, bool logarithm) {
  C max = -std::numeric_limits<C>::infinity();
  for (C value : line) max = law::max(max, value);
  double sum = 0;
  for (C& value : line) {
    const C shifted = value - max, e = std::exp(shifted);
    sum += e;
    value = logarithm ? shifted : e;
  }
  if (logarithm) {
    const C shift = static_cast<C>(std::log(sum));
    for (C& value : line) value -= shift;
  } else {
    for (C& value : line) value = static_cast<C>(value / sum);
  }
}

template <class T> void softmax(const Operand& x, const Operand& y, bool logarithm) {
  std::vector<Compute<T>> line(static_cast<size_t>(x.dims[1]));
  for (int64_t o = 0; o < x.dims[0]; ++o)
    for (int64_t i = 0; i < x.dims[2]; ++i) {
      const int64_t from = x.start + o * x.strides[0] + i * x.strides[2];
      const int64_t to = y.start + o * y.strides[0] + i * y.strides[2];
      for (size_t r = 0; r < line.size(); ++r) line[r] = load(*x.at<T>(from + static_cast<int64_t>(r) * x.strides[1]));
      softmaxLine(line, logarithm);
      for (size_t r = 0; r < line.size(); ++r)
        *y.at<T>(to + static_cast<int64_t>(r) * y.strides[1]) = store<T>(line[r]);
    }
}

template <class T>
void norm(const Operand& x, const Operand& scale, const Operand& bias, const Operand& y, bool rms, double epsilon) {
  const int64_t count = x.dims[1];
  std::vector<double> line(static_cast<size_t>(count));
  for (int64_t o = 0; o < x.dims[0]; ++o) {
    double mean = 0, squares = 0;
    for (int64_t r = 0; r < count; ++r) {
      line[static_cast<size_t>(r)] = static_cast<double>(load(*x.at<T>(x.start + o * x.strides[0] + r * x.strides[1])));
      mean += line[static_cast<size_t>(r)];
    }
    mean = rms ? 0 : mean / static_cast<double>(count);
    for (double value : line) squares += (value - mean) * (value - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(count) + epsilon);
    for (int64_t r = 0; r < count; ++r) {
      double value = (line[static_cast<size_t>(r)] - mean) * factor;
      if (scale.present()) value *= static_cast<double>(load(*scale.at<T>(scale.start + r * scale.strides[0])));
      if (bias.present()) value += static_cast<double>(load(*bias.at<T>(bias.start + r * bias.strides[0])));
      *y.at<T>(y.start + o * y.strides[0] + r * y.strides[1]) = store<T>(static_cast<Compute<T>>(value));
    }
  }
}

} // namespace

cdl::Status runSoftmax(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (!isFloatElem(x.elem) || x.elem != y.elem) return call.failElems();
  withFloat(x.elem,
            [&](auto tag) { softmax<typename decltype(tag)::Type>(x, y, call.instr->fn == CDL_SOFTMAX_LOG_SOFTMAX); });
  return cdl::ok();
}

cdl::Status runNorm(const Call& call) {
  const Operand x = call.input(0), scale = call.input(1), bias = call.input(2), y = call.output();
  const auto fits = [&](const Operand& operand) { return !operand.present() || operand.elem == x.elem; };
  if (!isFloatElem(x.elem) || x.elem != y.elem || !fits(scale) || !fits(bias)) return call.failElems();
  const cdl_attr_t* epsilon = cdl_find_attr(call.image, call.instr, CDL_ATTR_EPSILON);
  withFloat(x.elem, [&](auto tag) {
    norm<typename decltype(tag)::Type>(x, scale, bias, y, call.instr->fn == CDL_NORM_RMS,
                                       epsilon ? cdl_f64_of_bits(static_cast<uint64_t>(epsilon->values[0])) : 1e-5);
  });
  return cdl::ok();
}

} // namespace candela::soft
