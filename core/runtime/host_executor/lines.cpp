// Along lines: SOFTMAX over the middle of x[O,R,I], NORM over the rows of x[O,R], and SORT: the
// first K of x[O,N,I] in order along N, and their places.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/runtime/host_executor/call.h"
#include "core/runtime/host_executor/share.h"

namespace candela::runtime::host_executor {
namespace {

// One line in a dense scratch of the compute type; sums in f64.
template <class C> void softmaxLine(Scratch<C>& line, bool logarithm) {
  C max = -std::numeric_limits<C>::infinity();
  for (C value : line) max = semantics::max(max, value);
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

constexpr int64_t kSoftmaxSteps = 16; // of an exponential
constexpr int64_t kSortSteps = 16;    // comparisons of a place

// NaN is above every number.
template <class C> bool below(C a, C b) { return a < b || (b != b && a == a); }

} // namespace

cdl::Status runSoftmax(const Call& call) {
  const Operand x = call.input(0), y = call.output();
  if (!isFloatElem(x.elem) || x.elem != y.elem) return call.failElems();
  const bool logarithm = call.instr->fn == CDL_SOFTMAX_LOG_SOFTMAX;
  withFloat(x.elem, [&]<class T>(Tag<T>) {
    const auto part = [=, line = Scratch<Compute<T>>(static_cast<size_t>(x.dims[1]))](
                          int64_t o, int64_t first, int64_t end) mutable {
      for (int64_t i = first; i < end; ++i) {
        const T* from = x.at<T>(x.start + o * x.strides[0] + i * x.strides[2]);
        T* to = y.at<T>(y.start + o * y.strides[0] + i * y.strides[2]);
        for (size_t r = 0; r < line.size(); ++r)
          line[r] = load(from[static_cast<int64_t>(r) * x.strides[1]]);
        softmaxLine(line, logarithm);
        for (size_t r = 0; r < line.size(); ++r)
          to[static_cast<int64_t>(r) * y.strides[1]] = store<T>(line[r]);
      }
    };
    shareGrid(hasOwnPlaces(y) ? call.workers : nullptr,
              {x.dims[0], x.dims[2], x.dims[1] * kSoftmaxSteps}, part);
  });
  return cdl::ok();
}

cdl::Status runNorm(const Call& call) {
  const Operand x = call.input(0), scale = call.input(1), bias = call.input(2), y = call.output();
  const auto fits = [&](const Operand& operand) {
    return !operand.present() || operand.elem == x.elem;
  };
  if (!isFloatElem(x.elem) || x.elem != y.elem || !fits(scale) || !fits(bias))
    return call.failElems();
  const cdl_attr_t* given = cdl_find_attr(call.image, call.instr, CDL_ATTR_EPSILON);
  const double epsilon = given ? cdl_f64_of_bits(static_cast<uint64_t>(given->values[0])) : 1e-5;
  withFloat(x.elem, [&]<class T>(Tag<T>) {
    const auto count = static_cast<double>(x.dims[1]);
    const auto at = [](const Operand& row, size_t r) {
      return static_cast<double>(
          load(*row.at<T>(row.start + static_cast<int64_t>(r) * row.strides[row.rank - 1])));
    };
    const auto normalize = [=](int64_t o, Scratch<double>& line) {
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
    };
    shareRange(hasOwnPlaces(y) ? call.workers : nullptr, x.dims[0], x.dims[1] * 4,
               [=, line = Scratch<double>(static_cast<size_t>(x.dims[1]))](int64_t first,
                                                                           int64_t end) mutable {
                 for (int64_t o = first; o < end; ++o) normalize(o, line);
               });
  });
  return cdl::ok();
}

cdl::Status runSort(const Call& call) {
  const Operand x = call.input(0), y = call.output(), index = call.output(1);
  if (!isArithmetic(x.elem) || x.elem != y.elem || index.elem != CDL_I32) return call.failElems();
  if (x.dims[1] > INT32_MAX)
    return call.fail(CDL_BAD_MODEL, "places in x of dims " + dimsText(x) + " do not fit i32");
  withAny(x.elem, [&]<class T>(Tag<T>) {
    const auto sortLines = [&](int64_t o, int64_t first, int64_t end) {
      Scratch<Compute<T>> line(static_cast<size_t>(x.dims[1]));
      Scratch<int32_t> order(line.size());
      // By value and then by place, so that there is one order, however the library sorts.
      const auto before = [&](int32_t p, int32_t q) {
        Compute<T> a = line[static_cast<size_t>(p)], b = line[static_cast<size_t>(q)];
        if (call.instr->fn == CDL_SORT_DESCENDING) std::swap(a, b);
        return below(a, b) || (!below(b, a) && p < q);
      };
      for (int64_t i = first; i < end; ++i) {
        const T* from = x.at<T>(x.start + o * x.strides[0] + i * x.strides[2]);
        for (size_t n = 0; n < line.size(); ++n)
          line[n] = load(from[static_cast<int64_t>(n) * x.strides[1]]);
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + y.dims[1], order.end(), before);
        for (int64_t k = 0; k < y.dims[1]; ++k) {
          const int32_t place = order[static_cast<size_t>(k)];
          *y.at<T>(y.start + o * y.strides[0] + k * y.strides[1] + i * y.strides[2]) =
              from[place * x.strides[1]];
          *index.at<int32_t>(index.start + o * index.strides[0] + k * index.strides[1] +
                             i * index.strides[2]) = place;
        }
      }
    };
    const bool apart = hasOwnPlaces(y) && hasOwnPlaces(index);
    shareGrid(apart ? call.workers : nullptr, {y.dims[0], y.dims[2], x.dims[1] * kSortSteps},
              sortLines);
  });
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
