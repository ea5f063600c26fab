// Each kind of instruction, as its definition says.
#include <algorithm>
#include <cmath>

#include "core/reference/interpreter/machine.h"

namespace candela::reference::interpreter {

using program::Instr, program::View;

namespace {

/// All operands, as the formulas take them.
struct Inputs {
  std::vector<Array> arrays;
  std::vector<const Array*> list;
  explicit Inputs(Call& call) {
    for (size_t i = 0; i < call.instr.inputs.size(); ++i) arrays.push_back(call.input(i));
    for (const Array& array : arrays) list.push_back(&array);
  }
};

void fill(Call& call) {
  const auto bits = static_cast<uint64_t>(call.instr.attr(CDL_ATTR_VALUE)->values[0]);
  call.compute([&](Array& y) { y.fill(decode(y.elem, bits)); });
}

void elements(Call& call) {
  const Instr& instr = call.instr;
  const Inputs in(call);
  call.compute([&](Array& y) {
    mapElements(
        {instr.kind, instr.fn, instr.inputs.back().elem, y.elem, call.flag(CDL_ATTR_SATURATE)},
        in.list, y);
  });
}

/// Of x, only what an index points to is read.
void gather(Call& call) {
  const View &x = call.instr.inputs[0], &y = call.instr.outputs[0];
  const Array index = call.input(1);
  Array result(y.elem, y.dims);
  int64_t next = 0;
  for (int64_t o = 0; o < y.dims[0]; ++o)
    for (int64_t k = 0; k < y.dims[1]; ++k)
      for (int64_t i = 0; i < y.dims[2] && !call.failed(); ++i, ++next) {
        const Whole wanted = index.whole[k], last = x.dims[1] - 1;
        if (call.instr.fn == CDL_GATHER_ZERO && (wanted < 0 || wanted > last)) continue;
        result.set(
            next, call.readAt(x, {o, static_cast<int64_t>(std::clamp<Whole>(wanted, 0, last)), i}));
      }
  call.write(result);
}

/// y is touched only where an index points; what is not set is read.
void scatter(Call& call) {
  const View& y = call.instr.outputs[0];
  const Array index = call.input(0), updates = call.input(1);
  int64_t next = 0;
  for (int64_t o = 0; o < updates.dims[0]; ++o)
    for (int64_t k = 0; k < updates.dims[1]; ++k)
      for (int64_t i = 0; i < updates.dims[2] && !call.failed(); ++i, ++next) {
        if (index.whole[k] < 0 || index.whole[k] >= y.dims[1]) continue;
        const auto n = static_cast<int64_t>(index.whole[k]);
        const Scalar old = call.instr.fn == CDL_SCATTER_SET ? Scalar{} : call.readAt(y, {o, n, i});
        call.writeAt(y, {o, n, i}, scattered(call.instr.fn, y.elem, old, updates.at(next)));
      }
}

void reduce(Call& call) {
  const Array x = call.instr.prologue ? call.prologue() : call.input(0);
  Array y = call.accumulator();
  fold(call.instr.fn, x, {x.dims[0], 1, x.dims[2]}, y);
  call.finish(y);
}

void matmul(Call& call) {
  Array a = call.withoutZero(0), b = call.withoutZero(1), y = call.accumulator();
  // Blocks round up: the smaller extent is the one that is meant.
  const int64_t batch = std::min({a.dims[0], b.dims[0], y.dims[0]}),
                m = std::min(a.dims[1], y.dims[1]);
  const int64_t k = std::min(a.dims[2], b.dims[1]), n = std::min(b.dims[2], y.dims[2]);
  a = resized(a, {batch, m, k});
  b = resized(b, {batch, k, n});
  y = resized(y, {batch, m, n});
  if (!call.failed()) addProducts(a, b, y);
  call.finish(y);
}

void rescale(Call& call) {
  const Instr& instr = call.instr;
  const IntegerRange range = integerRange(instr.outputs[0].elem);
  const auto limit = [&](uint16_t attr, Whole otherwise) {
    return instr.attr(attr) ? instr.intAttr(attr, 0) : otherwise;
  };
  const Whole low = limit(CDL_ATTR_CLAMP_MIN, range.lowest),
              high = limit(CDL_ATTR_CLAMP_MAX, range.highest);
  const Inputs in(call);
  for (const Whole shift : in.arrays[2].whole)
    if (shift < 0) call.fail(badModel("shift {} is negative", static_cast<int64_t>(shift)));
  const int64_t left = instr.intAttr(CDL_ATTR_A_LEFT_SHIFT, 0),
                leftB = instr.intAttr(CDL_ATTR_B_LEFT_SHIFT, 0);
  call.compute([&](Array& y) { reference::rescale(in.list, left, leftB, low, high, y); });
}

void table(Call& call) {
  const Array x = call.input(0), entries = call.input(1);
  call.compute([&](Array& y) { lookUp(x, entries, y); });
}

graph::Window windowOf(const Instr& instr, Shape kernel) {
  const auto valuesOr = [&](uint16_t id, Shape otherwise) {
    const program::Attr* attr = instr.attr(id);
    return attr ? attr->values : otherwise;
  };
  const Shape pads = valuesOr(CDL_ATTR_PADS, {0, 0, 0, 0});
  graph::Window window;
  window.kernel = std::move(kernel);
  window.strides = valuesOr(CDL_ATTR_STRIDES, {1, 1});
  window.dilations = valuesOr(CDL_ATTR_DILATIONS, {1, 1});
  window.padsBegin = {pads[0], pads[1]};
  window.padsEnd = {pads[2], pads[3]};
  return window;
}

/// w's zero points, one for each channel of y, along the channels that w has: [O, C/group],
/// transposed [C, O/group].
Array alongChannels(const Array& zero, const Shape& w, const Convolution& convolution) {
  Array out(zero.elem, {w[0], w[1], 1, 1});
  for (int64_t i = 0; i < out.count(); ++i) {
    const int64_t first = i / w[1], second = i % w[1], perGroup = w[0] / convolution.group;
    out.set(i, zero.at(convolution.transposed ? first / perGroup * w[1] + second : first));
  }
  return out;
}

void conv2d(Call& call) {
  Array x = call.withoutZero(0), w = call.logicalInput(1);
  const Convolution convolution{windowOf(call.instr, {w.dims[2], w.dims[3]}),
                                call.instr.intAttr(CDL_ATTR_GROUP, 1),
                                call.flag(CDL_ATTR_TRANSPOSED)};
  if (call.instr.operandCount() > 3) {
    const Array zero = call.input(3);
    w = withoutZero(w, zero.count() > 1 ? alongChannels(zero, w.dims, convolution) : zero);
  }
  Array y = call.accumulator();
  // Of channels that blocks round up on one side the other one knows how many there are.
  Shape xDims = x.dims, wDims = w.dims, yDims = y.dims;
  const size_t out = convolution.transposed ? 1 : 0;
  const auto agree = [&](int64_t& image, int64_t& weight, int64_t groups) {
    image = std::min(image, weight * groups);
    weight = image / groups;
  };
  xDims[0] = yDims[0] = std::min(xDims[0], yDims[0]);
  agree(xDims[1], wDims[1 - out], out ? 1 : convolution.group);
  agree(yDims[1], wDims[out], out ? convolution.group : 1);
  x = resized(x, xDims);
  w = resized(w, wDims);
  y = resized(y, yDims);
  if (!call.failed()) addConvolution(convolution, x, w, y);
  call.finish(y);
}

void pool2d(Call& call) {
  Array x = call.logicalInput(0);
  const graph::Window window = windowOf(call.instr, call.instr.attr(CDL_ATTR_KERNEL)->values);
  Shape dims = logicalDims(call.instr.outputs[0]);
  dims[0] = std::min(dims[0], x.dims[0]);
  dims[1] = std::min(dims[1], x.dims[1]);
  x = resized(x, {dims[0], dims[1], x.dims[2], x.dims[3]});
  Array y(x.elem, dims);
  if (call.instr.fn == CDL_POOL2D_AVERAGE)
    averagePool(window, call.flag(CDL_ATTR_COUNT_INCLUDE_PAD), x, y);
  else
    maxPool(window, x, y);
  call.finish(y);
}

void softmax(Call& call) {
  const Array x = call.input(0);
  call.compute(
      [&](Array& y) { reference::softmax(x, 1, call.instr.fn == CDL_SOFTMAX_LOG_SOFTMAX, y); });
}

void norm(Call& call) {
  const Array x = call.input(0), scale = call.input(1, {}), bias = call.input(2, {});
  const auto given = [](const Array& row) { return row.count() ? &row : nullptr; };
  call.compute([&](Array& y) {
    rowNorm(x, x.dims[1], call.instr.fn == CDL_NORM_LAYER, call.floatAttr(CDL_ATTR_EPSILON, 1e-5),
            given(scale), given(bias), y);
  });
}

/// Without the attribute, scale is 1 / sqrt(depth).
void attention(Call& call) {
  const Array q = call.input(0), k = call.input(1), v = call.input(2), mask = call.input(3, {});
  const double scale =
      call.floatAttr(CDL_ATTR_SCALE, 1 / std::sqrt(static_cast<double>(q.dims[2])));
  const auto added = [&](int64_t row, int64_t t) {
    return mask.count() ? mask.real[row * k.dims[1] + t] : 0;
  };
  call.compute([&](Array& y) { reference::attention(q, k, v, scale, added, y); });
}

void scaledMatmul(Call& call) {
  const Array a = call.input(0), w = call.input(1), wScale = call.input(2),
              wZero = call.input(3, {}), aScale = call.input(4, {});
  const auto given = [&](size_t i, const Array& array) {
    return i < call.instr.operandCount() ? &array : nullptr;
  };
  Array y = call.accumulator();
  if (!call.failed())
    addScaledProducts({.a = a,
                       .w = w,
                       .wScale = wScale,
                       .wZero = given(3, wZero),
                       .aScale = given(4, aScale),
                       .isDynamic = call.instr.fn == CDL_SCALED_MATMUL_DYNAMIC},
                      y);
  call.finish(y);
}

void argReduce(Call& call) {
  const Array x = call.input(0);
  const bool max = call.instr.fn == CDL_ARG_REDUCE_MAX;
  call.compute(
      [&](Array& y) { reference::argReduce(x, 1, max, call.flag(CDL_ATTR_SELECT_LAST), y); });
}

void sort(Call& call) {
  const Array x = call.input(0);
  Array places(Elem::i32_, call.instr.outputs[1].dims);
  call.compute(
      [&](Array& y) { reference::sort(x, 1, call.instr.fn == CDL_SORT_DESCENDING, y, places); });
  call.write(places, 1);
}

} // namespace

void run(Call& call) {
  switch (call.instr.kind) {
  case CDL_KIND_FILL: return fill(call);
  case CDL_KIND_GATHER: return gather(call);
  case CDL_KIND_SCATTER: return scatter(call);
  case CDL_KIND_REDUCE: return reduce(call);
  case CDL_KIND_MATMUL: return matmul(call);
  case CDL_KIND_RESCALE: return rescale(call);
  case CDL_KIND_TABLE: return table(call);
  case CDL_KIND_CONV2D: return conv2d(call);
  case CDL_KIND_POOL2D: return pool2d(call);
  case CDL_KIND_ELEMENTWISE: return call.finish({});
  case CDL_KIND_SOFTMAX: return softmax(call);
  case CDL_KIND_NORM: return norm(call);
  case CDL_KIND_ATTENTION: return attention(call);
  case CDL_KIND_ARG_REDUCE: return argReduce(call);
  case CDL_KIND_SCALED_MATMUL: return scaledMatmul(call);
  case CDL_KIND_SORT: return sort(call);
  case CDL_KIND_CUSTOM:
    return call.fail(
        failure(Code::unsupported, "the interpreter does not know the ops of plugins"));
  default: return elements(call);
  }
}

} // namespace candela::reference::interpreter
