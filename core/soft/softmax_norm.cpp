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

} // namespace

cdl::Status runSoftmax(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (!isFloatElem(x.elem) || x.elem != y.elem) return call.failElems();
  withFloat(x.elem, [&]<class T>(Tag<T>) {
    std::vector<Compute<T>> line(static_cast<size_t>(x.dims[1]));
    for (int64_t o = 0; o < x.dims[0]; ++o)
      for (int64_t i = 0; i < x.dims[2]; ++i) {
        const T* from = x.at<T>(x.start + o * x.strides[0] + i * x.strides[2]);
        T* to = y.at<T>(y.start + o * y.strides[0] + i * y.strides[2]);
        for (size_t r = 0; r < line.size(); ++r) line[r] = load(from[static_cast<int64_t>(r) * x.strides[1]]);
        softmaxLine(line, call.instr->fn == CDL_SOFTMAX_LOG_SOFTMAX);
        for (size_t r = 0; r < line.size(); ++r) to[static_cast<int64_t>(r) * y.strides[1]] = store<T>(line[r]);
      }
  });
  return cdl::ok();
}

cdl::Status runNorm(const Call& call) {
  const Operand x = call.input(0), scale = call.input(1), bias = call.input(2), y = call.output();
  const auto fits = [&](const Operand& operand) { return !operand.present() || operand.elem == x.elem; };
  if (!isFloatElem(x.elem) || x.elem != y.elem || !fits(scale) || !fits(bias)) return call.failElems();
  const cdl_attr_t* given = cdl_find_attr(call.image, call.instr, CDL_ATTR_EPSILON);
  const double epsilon = given ? cdl_f64_of_bits(static_cast<uint64_t>(given->values[0])) : 1e-5;
  withFloat(x.elem, [&]<class T>(Tag<T>) {
    const auto count = static_cast<double>(x.dims[1]);
    const auto at = [](const Operand& row, size_t r) {
      return static_cast<double>(load(*row.at<T>(row.start + static_cast<int64_t>(r) * row.strides[row.rank - 1])));
    };
    std::vector<double> line(static_cast<size_t>(x.dims[1]));
    for (int64_t o = 0; o < x.dims[0]; ++o) {
      double mean = 0, squares = 0;
      Operand row = x;
      row.start += o * x.strides[0];
      for (size_t r = 0; r < line.size(); ++r) mean += line[r] = at(row, r);
      mean = call.instr->fn == CDL_NORM_RMS ? 0 : mean / count;
      for (const double value : line) squares += (value - mean) * (value - mean);
      const double factor = 1 / std::sqrt(squares / count + epsilon);
      for (size_t r = 0; r < line.size(); ++r) {
        double value = (line[r] - mean) * factor;
        if (scale.present()) value *= at(scale, r);
        if (bias.present()) value += at(bias, r);
        *y.at<T>(y.start + o * y.strides[0] + static_cast<int64_t>(r) * y.strides[1]) =
            store<T>(static_cast<Compute<T>>(value));
      }
    }
  });
  return cdl::ok();
}

} // namespace candela::soft
