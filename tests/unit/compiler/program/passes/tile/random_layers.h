#pragma once

#include <random>

#include "core/compiler/program/program.h"

/// Seeded Programs of layers: integer and float convolutions, products, pools, rescales, residuals,
/// rows, movement. Floats are small whole numbers, so that every order of additions gives the same
/// bits.
namespace candela::testing {

class LayerMaker {
public:
  explicit LayerMaker(uint64_t seed) : rng_(seed) {}

  program::Program make() {
    inputDims_ = {between(1, 2), between(1, 12), between(3, 14), between(3, 14)};
    values_.push_back(
        {add("x", program::Role::input, Elem::i8_, inputDims_), Elem::i8_, inputDims_});
    values_.push_back(
        {add("f", program::Role::input, Elem::f32_, inputDims_), Elem::f32_, inputDims_});
    for (int64_t steps = between(2, 8); steps-- > 0;) step();
    for (int i = 0; i < 2; ++i) {
      const Value from = values_[values_.size() - 1 - static_cast<size_t>(below(2))];
      emit(CDL_KIND_COPY, 0, {whole(from)},
           whole(make(from.elem, from.dims, program::Role::output)));
    }
    return std::move(program_);
  }

  /// For the inputs of make(), in order.
  std::vector<Tensor> inputs() {
    std::vector<int8_t> x(static_cast<size_t>(*elementCount(inputDims_)));
    std::vector<float> f(x.size());
    for (int8_t& each : x) each = static_cast<int8_t>(between(-128, 127));
    for (float& each : f) each = static_cast<float>(between(-4, 4));
    return {Tensor::of<int8_t>(Elem::i8_, {static_cast<int64_t>(x.size())}, x),
            Tensor::of<float>(Elem::f32_, {static_cast<int64_t>(f.size())}, f)};
  }

  int64_t below(int64_t count) {
    return static_cast<int64_t>(rng_() % static_cast<uint64_t>(count));
  }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool oneIn(int64_t n) { return below(n) == 0; }

private:
  using View = program::View;
  using Attr = program::Attr;
  struct Value {
    uint32_t buffer;
    Elem elem;
    Shape dims;
  };

  uint32_t add(const std::string& name, program::Role role, Elem elem, const Shape& dims) {
    program::Buffer buffer;
    buffer.name = name;
    buffer.role = role;
    buffer.bytes = elemBytes(elem, static_cast<uint64_t>(*elementCount(dims)));
    if (role != program::Role::temp) buffer.offset = 0;
    return program_.addBuffer(buffer);
  }
  Value make(Elem elem, const Shape& dims, program::Role role = program::Role::temp) {
    return {add(role == program::Role::temp ? "t" : "y", role, elem, dims), elem, dims};
  }
  View whole(const Value& value) {
    return program::denseView(value.buffer, value.elem, value.dims);
  }
  View shaped(const Value& value, Shape dims) {
    return program::denseView(value.buffer, value.elem, std::move(dims));
  }
  View constant(Elem elem, const Shape& dims, int64_t low, int64_t high) {
    const auto count = static_cast<size_t>(*elementCount(dims));
    Tensor tensor;
    if (elem == Elem::f32_) {
      std::vector<float> values(count);
      for (float& each : values) each = static_cast<float>(between(low, high));
      tensor = Tensor::of<float>(elem, dims, values);
    } else if (elem == Elem::i8_) {
      std::vector<int8_t> values(count);
      for (int8_t& each : values) each = static_cast<int8_t>(between(low, high));
      tensor = Tensor::of<int8_t>(elem, dims, values);
    } else {
      std::vector<int32_t> values(count);
      for (int32_t& each : values) each = static_cast<int32_t>(between(low, high));
      tensor = Tensor::of<int32_t>(Elem::i32_, dims, values);
    }
    return program::denseView(program_.addConstant("c", Payload::data(tensor)), elem, dims);
  }
  /// One element for each of `dims` along `axis`, the same everywhere else; axis -1: one element.
  View along(View row, const Shape& dims, int axis) {
    row.dims = dims;
    row.strides.assign(dims.size(), 0);
    if (axis >= 0) row.strides[static_cast<size_t>(axis)] = 1;
    return row;
  }
  program::Instr& emit(uint16_t kind, uint16_t fn, std::vector<View> inputs, View output,
                       std::vector<Attr> attrs = {}) {
    program::Instr instr;
    instr.kind = kind;
    instr.fn = fn;
    instr.inputs = std::move(inputs);
    instr.outputs = {std::move(output)};
    instr.attrs = std::move(attrs);
    instr.provenance = {{fmt::format("node{}", program_.instrs.size()), "layer"}};
    program_.instrs.push_back(std::move(instr));
    return program_.instrs.back();
  }
  void keep(Value value) { values_.push_back(std::move(value)); }

  Value any(Elem elem) {
    for (size_t tries = 0; tries < 8; ++tries) {
      const Value& value =
          values_[oneIn(2) ? values_.size() - 1
                           : static_cast<size_t>(below(static_cast<int64_t>(values_.size())))];
      if (value.elem == elem) return value;
    }
    return values_[elem == Elem::i8_ ? 0 : 1];
  }

  void step() {
    switch (below(12)) {
    case 0:
    case 1:
    case 2: return convolution(any(oneIn(3) ? Elem::f32_ : Elem::i8_));
    case 3: { // what reads a convolution's result by pixel or by window, and nothing else between
      convolution(any(oneIn(2) ? Elem::f32_ : Elem::i8_));
      const Value last = values_.back();
      return oneIn(2) ? pool(last) : convolution(last, true);
    }
    case 4: return pool(any(oneIn(2) ? Elem::f32_ : Elem::i8_));
    case 5:
    case 6: return product(any(oneIn(2) ? Elem::f32_ : Elem::i8_));
    case 7: return residual(any(Elem::i8_));
    case 8: return rows(any(Elem::f32_));
    case 9: return movement(any(oneIn(2) ? Elem::f32_ : Elem::i8_));
    case 10: return elementwise(any(Elem::f32_));
    default: return look(any(Elem::i8_));
    }
  }

  /// i32 sums to i8, by the channel `axis`; -1: all alike. `flat`: over the elements as one row,
  /// where there is no axis.
  Value rescaled(const Value& sums, int axis) {
    const Value y = make(Elem::i8_, sums.dims);
    const int64_t count = axis < 0 ? 1 : sums.dims[static_cast<size_t>(axis)];
    Shape dims = sums.dims;
    if (axis < 0) dims = {*elementCount(dims)};
    if (axis == 1 && dims.size() == 4) dims = {dims[0], dims[1], dims[2] * dims[3]};
    emit(CDL_KIND_RESCALE, 0,
         {shaped(sums, dims),
          along(constant(Elem::i32_, {count}, 1 << 23, (1 << 24) - 1), dims, axis),
          along(constant(Elem::i32_, {count}, 28, 33), dims, axis),
          along(constant(Elem::i32_, {1}, -3, 3), dims, -1)},
         shaped(y, dims));
    return y;
  }

  void convolution(const Value& x, bool pointwise = false) {
    const Shape d = x.dims;
    const bool depthwise = !pointwise && oneIn(4), transposed = !pointwise && oneIn(8);
    const int64_t kernel = pointwise ? 1 : std::min<int64_t>(between(1, 3), std::min(d[2], d[3]));
    const int64_t stride = pointwise ? 1 : between(1, 2),
                  dilation = kernel == 2 ? between(1, 2) : 1;
    const int64_t group = depthwise ? d[1] : (!pointwise && d[1] % 2 == 0 && oneIn(3) ? 2 : 1);
    const int64_t outputs = group * between(1, depthwise ? 2 : 10);
    const int64_t span = (kernel - 1) * dilation + 1, top = below(kernel), bottom = below(kernel);
    Shape wide = {d[0], outputs, 0, 0}, w = {outputs, d[1] / group, kernel, kernel};
    for (size_t i = 2; i < 4; ++i)
      wide[i] = transposed ? (d[i] - 1) * stride + span - top - bottom
                           : (d[i] + top + bottom - span) / stride + 1;
    if (wide[2] < 1 || wide[3] < 1 || span > d[2] + top + bottom || span > d[3] + top + bottom)
      return;
    if (transposed) w = {d[1], outputs / group, kernel, kernel};
    const bool isFloat = x.elem == Elem::f32_;
    const Value sums = make(isFloat ? Elem::f32_ : Elem::i32_, wide);
    std::vector<View> in{whole(x), constant(x.elem, w, isFloat ? -3 : -128, isFloat ? 3 : 127)};
    if (!isFloat && oneIn(2)) {
      in.push_back(constant(Elem::i8_, {1}, -9, 9));
      if (oneIn(2)) in.push_back(constant(Elem::i8_, {oneIn(2) ? outputs : 1}, -5, 5));
    }
    const size_t operands = in.size();
    const bool biased = oneIn(2);
    if (biased) in.push_back(along(constant(sums.elem, {outputs}, -50, 50), wide, 1));
    program::Instr& conv =
        emit(CDL_KIND_CONV2D, 0, std::move(in), whole(sums),
             {Attr::ofInts(CDL_ATTR_STRIDES, {stride, stride}),
              Attr::ofInts(CDL_ATTR_PADS, {top, top, bottom, bottom}),
              Attr::ofInts(CDL_ATTR_DILATIONS, {dilation, dilation}),
              Attr::ofInt(CDL_ATTR_GROUP, group), Attr::ofInt(CDL_ATTR_TRANSPOSED, transposed)});
    if (biased) conv.expr = plus(sums.elem, static_cast<uint16_t>(operands));
    if (isFloat)
      bounded(sums);
    else
      keep(rescaled(sums, oneIn(3) ? -1 : 1));
  }

  /// acc + the view.
  static program::Expr plus(Elem elem, uint16_t view) {
    program::Step step;
    step.kind = CDL_KIND_BINARY;
    step.fn = CDL_BINARY_ADD;
    step.elem = elem;
    step.in = {{program::Operand::Source::acc, elem, 0},
               {program::Operand::Source::view, elem, view}};
    return {step};
  }

  /// Floats stay small, so that what follows is exact.
  void bounded(const Value& value) {
    const Value y = make(Elem::f32_, value.dims), z = make(Elem::f32_, value.dims);
    const Shape flat{*elementCount(value.dims)};
    emit(CDL_KIND_BINARY, CDL_BINARY_MIN,
         {shaped(value, flat), along(constant(Elem::f32_, {1}, 4, 6), flat, -1)}, shaped(y, flat));
    emit(CDL_KIND_BINARY, CDL_BINARY_MAX,
         {shaped(y, flat), along(constant(Elem::f32_, {1}, -6, -4), flat, -1)}, shaped(z, flat));
    keep(z);
  }

  void pool(const Value& x) {
    const Shape d = x.dims;
    const int64_t kernel = std::min<int64_t>(between(1, 3), std::min(d[2], d[3])),
                  stride = between(1, 3);
    const int64_t pad = kernel > 1 ? below(2) : 0;
    const Value y = make(x.elem, {d[0], d[1], (d[2] + 2 * pad - kernel) / stride + 1,
                                  (d[3] + 2 * pad - kernel) / stride + 1});
    const bool average = x.elem == Elem::f32_ && kernel == 2 && pad == 0;
    emit(CDL_KIND_POOL2D, average ? CDL_POOL2D_AVERAGE : CDL_POOL2D_MAX, {whole(x)}, whole(y),
         {Attr::ofInts(CDL_ATTR_KERNEL, {kernel, kernel}),
          Attr::ofInts(CDL_ATTR_STRIDES, {stride, stride}),
          Attr::ofInts(CDL_ATTR_PADS, {pad, pad, pad, pad}),
          Attr::ofInts(CDL_ATTR_DILATIONS, {1, 1})});
    if (!average) keep(y);
  }

  void product(const Value& x) {
    const int64_t k = x.dims[2] * x.dims[3], n = between(1, 24);
    const bool isFloat = x.elem == Elem::f32_;
    const Value sums = make(isFloat ? Elem::f32_ : Elem::i32_, {x.dims[0], x.dims[1], n});
    View b = constant(x.elem, {1, k, n}, isFloat ? -3 : -128, isFloat ? 3 : 127);
    b.dims[0] = x.dims[0], b.strides[0] = x.dims[0] > 1 ? 0 : b.strides[0];
    std::vector<View> in{shaped(x, {x.dims[0], x.dims[1], k}), b};
    if (!isFloat && oneIn(2)) {
      in.push_back(constant(Elem::i8_, {1}, -9, 9));
      in.push_back(constant(Elem::i8_, {oneIn(2) ? n : 1}, -5, 5));
    }
    emit(CDL_KIND_MATMUL, 0, std::move(in), whole(sums));
    Value result = isFloat ? sums : rescaled(sums, 2);
    if (isFloat) {
      bounded(sums);
      result = values_.back();
      values_.pop_back();
    }
    result.dims = {result.dims[0], result.dims[1], 1, n};
    keep(result);
  }

  void residual(const Value& a) {
    for (const Value& b : values_) {
      if (b.elem != a.elem || b.dims != a.dims) continue;
      const Value y = make(Elem::i8_, a.dims);
      const Shape flat{*elementCount(a.dims)};
      const View scale = along(constant(Elem::i32_, {1}, 1 << 23, (1 << 24) - 1), flat, -1);
      emit(CDL_KIND_RESCALE, 0,
           {shaped(a, flat), scale, along(constant(Elem::i32_, {1}, 24, 26), flat, -1),
            along(constant(Elem::i32_, {1}, 0, 4), flat, -1), shaped(b, flat), scale},
           shaped(y, flat));
      return keep(y);
    }
  }

  void rows(const Value& x) {
    const int64_t outer = x.dims[0] * x.dims[1], row = x.dims[2] * x.dims[3];
    if (oneIn(2)) {
      const Value y = make(Elem::f32_, {x.dims[0], x.dims[1], 1, 1});
      emit(CDL_KIND_REDUCE, oneIn(2) ? CDL_REDUCE_MAX : CDL_REDUCE_MIN,
           {shaped(x, {outer, row, 1})}, shaped(y, {outer, 1}));
      return keep(y);
    }
    const Value y = make(Elem::f32_, x.dims), z = make(Elem::f32_, x.dims);
    if (oneIn(2))
      emit(CDL_KIND_SOFTMAX, CDL_SOFTMAX_SOFTMAX, {shaped(x, {x.dims[0], x.dims[1], row})},
           shaped(y, {x.dims[0], x.dims[1], row}));
    else
      emit(CDL_KIND_NORM, CDL_NORM_LAYER, {shaped(x, {outer, row})}, shaped(y, {outer, row}));
    emit(CDL_KIND_UNARY, CDL_UNARY_FLOOR, {whole(y)}, whole(z));
    keep(z);
  }

  void movement(const Value& x) {
    const Shape d = x.dims;
    if (oneIn(3)) { // some rows by index
      const int64_t count = between(1, 6);
      const Value y = make(x.elem, {d[0], count, d[2], d[3]});
      emit(CDL_KIND_GATHER, CDL_GATHER_CLAMP,
           {shaped(x, {d[0], d[1], d[2] * d[3]}), constant(Elem::i32_, {count}, 0, d[1] - 1)},
           shaped(y, {d[0], count, d[2] * d[3]}));
      return keep(y);
    }
    if (oneIn(2)) { // two dims change places
      const Value y = make(x.elem, {d[0], d[1], d[3], d[2]});
      View from = whole(x);
      std::swap(from.dims[2], from.dims[3]);
      std::swap(from.strides[2], from.strides[3]);
      emit(CDL_KIND_COPY, 0, {from}, whole(y));
      return keep(y);
    }
    // One behind the other along the channels.
    const Value y = make(x.elem, {d[0], 2 * d[1], d[2], d[3]});
    for (int64_t half = 0; half < 2; ++half) {
      View to = whole(y);
      to.dims[1] = d[1];
      to.offset = half * d[1] * d[2] * d[3];
      emit(CDL_KIND_COPY, 0, {whole(x)}, to);
    }
    keep(y);
  }

  void elementwise(const Value& x) {
    const Value y = make(Elem::f32_, x.dims), less = make(Elem::bool_, x.dims),
                z = make(Elem::f32_, x.dims);
    emit(CDL_KIND_UNARY, CDL_UNARY_NEG, {whole(x)}, whole(y));
    emit(CDL_KIND_COMPARE, CDL_COMPARE_LT,
         {whole(x), along(constant(Elem::f32_, {x.dims[1]}, -2, 2), x.dims, 1)}, whole(less));
    emit(CDL_KIND_SELECT, 0, {whole(less), whole(x), whole(y)}, whole(z));
    keep(z);
  }

  void look(const Value& x) {
    const Value y = make(Elem::i8_, x.dims);
    const Shape flat{*elementCount(x.dims)};
    emit(CDL_KIND_TABLE, 0, {shaped(x, flat), constant(Elem::i8_, {256}, -128, 127)},
         shaped(y, flat));
    keep(y);
  }

  std::mt19937_64 rng_;
  program::Program program_;
  std::vector<Value> values_;
  Shape inputDims_;
};

} // namespace candela::testing
