#include <algorithm>
#include <functional>
#include <limits>

#include "core/compiler/lowering/decompose/shared.h"
#include "core/support/float_bits.h"

namespace candela::lowering::decompose {

Value unfold(Lowering& l, Value x, const graph::Window& window, const Shape& out, uint64_t bits) {
  const Shape dims = x->type.shape();
  const size_t spatial = out.size();
  std::vector<int64_t> lo(dims.size(), 0), hi(dims.size(), 0);
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = (out[d] - 1) * window.strides[d] + window.span(static_cast<int>(d));
    lo[d + 2] = std::max<int64_t>(0, window.padsBegin[d]);
    hi[d + 2] = std::max<int64_t>(0, reach - window.padsBegin[d] - dims[d + 2]);
  }
  Value padded = l.pad(x, lo, hi, bits);
  const std::vector<int64_t> dense = denseStrides(padded->type.shape());
  Shape walk{dims[0] * dims[1]};
  std::vector<int64_t> strides{dense[1]};
  int64_t offset = 0; // a negative pad begins inside
  for (size_t d = 0; d < spatial; ++d) {
    walk.push_back(window.kernel[d]);
    strides.push_back(dense[d + 2] * window.dilations[d]);
    offset += dense[d + 2] * std::max<int64_t>(0, -window.padsBegin[d]);
  }
  for (size_t d = 0; d < spatial; ++d) {
    walk.push_back(out[d]);
    strides.push_back(dense[d + 2] * window.strides[d]);
  }
  const auto taps = elementCount(window.kernel), places = elementCount(out);
  return l.reshape(l.affine(padded, offset, walk, strides), {dims[0] * dims[1], *taps, *places});
}

namespace {

// For every place (row-major): how many taps lie inside of x.
std::vector<int64_t> tapsInside(const graph::Window& window, const Shape& extents,
                                const Shape& out) {
  if (const int64_t places = *elementCount(out); places > kMostTabled)
    throw Lowering::Failure{
        failure(Code::unsupported, "{} windows are too many to count their elements", places)};
  std::vector<int64_t> counts{1};
  for (size_t d = 0; d < out.size(); ++d) {
    std::vector<int64_t> finer;
    for (const int64_t count : counts) {
      for (int64_t place = 0; place < out[d]; ++place) {
        const int64_t first = place * window.strides[d] - window.padsBegin[d],
                      step = window.dilations[d];
        const int64_t from = first >= 0 ? 0 : (-first + step - 1) / step;
        const int64_t to = first >= extents[d]
                               ? 0
                               : std::min(window.kernel[d], (extents[d] - 1 - first) / step + 1);
        finer.push_back(count * std::max<int64_t>(to - from, 0));
      }
    }
    counts = std::move(finer);
  }
  return counts;
}

// For every tap and place (row-major): the position in the flattened spatial dims of x, -1 outside
// of it.
std::vector<int64_t> positions(const graph::Window& window, const Shape& extents,
                               const Shape& out) {
  const int64_t taps = *elementCount(window.kernel), places = *elementCount(out);
  if (taps > kMostTabled / std::max<int64_t>(places, 1))
    throw Lowering::Failure{failure(
        Code::unsupported, "the places of {} windows of {} elements are too many", places, taps)};
  std::vector<int64_t> all(static_cast<size_t>(taps * places));
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t place = 0; place < places; ++place) {
      int64_t restTap = tap, restPlace = place, position = 0, stride = 1;
      for (size_t d = out.size(); d-- > 0;) {
        const int64_t at = restPlace % out[d] * window.strides[d] - window.padsBegin[d] +
                           restTap % window.kernel[d] * window.dilations[d];
        restTap /= window.kernel[d];
        restPlace /= out[d];
        if (position >= 0) position = at < 0 || at >= extents[d] ? -1 : position + at * stride;
        stride *= extents[d];
      }
      all[static_cast<size_t>(tap * places + place)] = position;
    }
  }
  return all;
}

// Row-major positions in dims to column-major ones: what storage_order 1 asks for.
Value columnMajor(Lowering& l, Value position, const Shape& extents) {
  const auto number = [&](int64_t value) {
    return l.scalar(Elem::i32_, static_cast<double>(value));
  };
  Value rest = position, sum = nullptr;
  int64_t stride = *elementCount(extents);
  for (size_t d = extents.size(); d-- > 0;) {
    stride /= extents[d];
    Value quotient = l.div(rest, number(extents[d]));
    Value digit = l.mul(l.sub(rest, l.mul(quotient, number(extents[d]))), number(stride));
    sum = sum ? l.add(sum, digit) : digit;
    rest = quotient;
  }
  return sum;
}

// The first place in each window that holds its maximum, counted in the whole of x.
Result<Value> maxIndices(Lowering& l, const Node& node, const graph::Window& window, Value columns,
                         Value maxima) {
  const Shape dims = node.operand(0)->type.shape(), yDims = node.result()->type.shape();
  const Shape extents(dims.begin() + 2, dims.end()), out(yDims.begin() + 2, yDims.end());
  const int64_t plane = *elementCount(extents), taps = columns->type.dim(1),
                places = columns->type.dim(2);
  constexpr int64_t kOutside = std::numeric_limits<int32_t>::max();
  if (node.operand(0)->type.count() >= kOutside)
    return failure(Code::unsupported, "max_pool '{}': indices into {} elements do not fit i32",
                   node.userName(), node.operand(0)->type.count());
  std::vector<int32_t> inPlane;
  for (int64_t at : positions(window, extents, out))
    inPlane.push_back(static_cast<int32_t>(at < 0 ? kOutside : at));
  if (plane == 0) return l.splat(Elem::i64_, yDims, -1);
  // A NaN is the maximum of its window and equals nothing.
  Value hit = l.equal(columns, l.reshape(maxima, {columns->type.dim(0), 1, places}));
  if (isFloat(columns->type.elem))
    hit = l.select(l.equal(columns, columns), hit, l.scalar(Elem::bool_, 1));
  Value candidates =
      l.select(hit, indexConstant(l, inPlane, {1, taps, places}), l.scalar(Elem::i32_, kOutside));
  Value position = l.reduce3(candidates, "min");
  if (node.intAttr("storage_order") == 1 && extents.size() > 1)
    position = columnMajor(l, position, extents);
  std::vector<int32_t> planes(static_cast<size_t>(columns->type.dim(0)));
  for (size_t i = 0; i < planes.size(); ++i)
    planes[i] = static_cast<int32_t>(static_cast<int64_t>(i) * plane);
  Value whole = l.add(position, indexConstant(l, planes, {columns->type.dim(0), 1}));
  // A window in the padding has no maximum.
  const std::vector<int64_t> inside = tapsInside(window, extents, out);
  if (std::ranges::find(inside, 0) != inside.end()) {
    CDL_ASSIGN(Tensor mask, Tensor::zeros(Elem::bool_, {1, places}));
    for (size_t i = 0; i < inside.size(); ++i)
      storeElement(Elem::bool_, mask.bytes.mutableData(), static_cast<int64_t>(i), inside[i] > 0);
    whole = l.select(l.constant(std::move(mask)), whole, l.scalar(Elem::i32_, -1));
  }
  position = whole;
  return l.reshape(l.cast(position, Elem::i64_), yDims);
}

} // namespace

Value indexConstant(Lowering& l, const std::vector<int32_t>& values, Shape dims) {
  return l.constant(Tensor::of(Elem::i32_, std::move(dims), values));
}

Result<Values> lowerMaxPool(Lowering& l, const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  const Shape yDims = node.result()->type.shape();
  Value x = node.operand(0);
  Value columns =
      unfold(l, x, window, Shape(yDims.begin() + 2, yDims.end()), lowestBits(x->type.elem));
  Value maxima = l.reduce3(columns, "max");
  Values values{l.reshape(maxima, yDims)};
  if (node.results().size() > 1) {
    values.push_back(nullptr);
    if (l.graph().isUsed(node.result(1))) {
      CDL_ASSIGN(values[1], maxIndices(l, node, window, columns, maxima));
    }
  }
  return values;
}

// Computed in x's type, or f32 for halves where the target can: sums of a few may leave f16.
Result<Values> lowerAveragePool(Lowering& l, const Node& node) {
  const graph::Window window = graph::windowOf(node, node.intsAttr("kernel_shape"));
  const Shape dims = node.operand(0)->type.shape(), yDims = node.result()->type.shape();
  const Shape extents(dims.begin() + 2, dims.end()), out(yDims.begin() + 2, yDims.end());
  const Elem elem = l.wide(node.operand(0)->type.elem);
  Value sums = l.reduce3(unfold(l, l.cast(node.operand(0), elem), window, out, 0), "sum");
  // What a mean divides by: the taps inside of x, or inside of x with its padding (never what ceil
  // mode adds).
  graph::Window counted = window;
  Shape within = extents;
  if (node.intAttr("count_include_pad")) {
    for (size_t d = 0; d < within.size(); ++d) {
      within[d] += window.padsBegin[d] + window.padsEnd[d];
      counted.padsBegin[d] = 0;
    }
  }
  std::vector<int64_t> counts = tapsInside(counted, within, out);
  for (int64_t& count : counts) count = std::max<int64_t>(count, 1); // nothing but padding: 0
  Value divisor;
  if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end()) {
    divisor = l.scalar(elem, static_cast<double>(counts[0]));
  } else {
    CDL_ASSIGN(Tensor tensor, Tensor::zeros(elem, {static_cast<int64_t>(counts.size())}));
    for (size_t i = 0; i < counts.size(); ++i)
      storeElement(elem, tensor.bytes.mutableData(), static_cast<int64_t>(i),
                   fromReal(elem, static_cast<double>(counts[i])));
    divisor = l.constant(std::move(tensor));
  }
  return Values{l.reshape(l.cast(l.div(sums, divisor), node.operand(0)->type.elem), yDims)};
}

Result<Values> lowerGlobalAveragePool(Lowering& l, const Node& node) {
  std::vector<bool> reduced(static_cast<size_t>(node.operand(0)->type.rank()), true);
  reduced[0] = reduced[1] = false;
  return Values{meanDims(l, node.operand(0), reduced)};
}

} // namespace candela::lowering::decompose
