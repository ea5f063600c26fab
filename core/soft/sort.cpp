// SORT: the first K of x[O,N,I] in order along N, and their places.
#include <algorithm>
#include <numeric>

#include "core/soft/call.h"

namespace candela::soft {
namespace {

// NaN is above every number.
template <class C> bool below(C a, C b) { return a < b || (b != b && a == a); }

} // namespace

cdl::Status runSort(const Call& call) {
  const Operand x = call.input(0), y = call.output(), index = call.output(1);
  if (!isArithmetic(x.elem) || x.elem != y.elem || index.elem != CDL_I32) return call.failElems();
  if (x.dims[1] > INT32_MAX) return call.fail(CDL_BAD_MODEL, "places in x of dims " + dimsText(x) + " do not fit i32");
  withAny(x.elem, [&]<class T>(Tag<T>) {
    std::vector<Compute<T>> line(static_cast<size_t>(x.dims[1]));
    std::vector<int32_t> order(line.size());
    // By value and then by place, so that there is one order, however the library sorts.
    const auto before = [&](int32_t p, int32_t q) {
      Compute<T> a = line[static_cast<size_t>(p)], b = line[static_cast<size_t>(q)];
      if (call.instr->fn == CDL_SORT_DESCENDING) std::swap(a, b);
      return below(a, b) || (!below(b, a) && p < q);
    };
    for (int64_t o = 0; o < y.dims[0]; ++o)
      for (int64_t i = 0; i < y.dims[2]; ++i) {
        const T* from = x.at<T>(x.start + o * x.strides[0] + i * x.strides[2]);
        for (size_t n = 0; n < line.size(); ++n) line[n] = load(from[static_cast<int64_t>(n) * x.strides[1]]);
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + y.dims[1], order.end(), before);
        for (int64_t k = 0; k < y.dims[1]; ++k) {
          const int32_t place = order[static_cast<size_t>(k)];
          *y.at<T>(y.start + o * y.strides[0] + k * y.strides[1] + i * y.strides[2]) = from[place * x.strides[1]];
          *index.at<int32_t>(index.start + o * index.strides[0] + k * index.strides[1] + i * index.strides[2]) = place;
        }
      }
  });
  return cdl::ok();
}

} // namespace candela::soft
