#include <algorithm>

#include "core/compiler/export/tosa/ops.h"

namespace candela::exporter::tosa {

using graph::OpKind;

Value scaledSum(FunctionWriter& w, const Value& x, const std::vector<int64_t>& axes,
                double factor) {
  Value y = x;
  for (const int64_t axis : axes) y = w.reduce("reduce_sum", y, axis);
  return w.mul(w.number(factor, x.elem), y);
}

namespace {

std::string reducerOf(OpKind kind) {
  switch (kind) {
  case OpKind::ReduceMax: return "reduce_max";
  case OpKind::ReduceMin: return "reduce_min";
  case OpKind::ReduceProd: return "reduce_prod";
  default: return "reduce_sum";
  }
}

} // namespace

void writeReduction(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0));
  const bool isExtreme = node.kind == OpKind::ReduceMax || node.kind == OpKind::ReduceMin;
  const bool isNarrow = isInteger(x.elem) && elemBits(x.elem) < 32 && !isExtreme;
  Value y = isNarrow ? w.cast(x, Elem::i32_) : w.widened(x);
  int64_t count = 1;
  for (const int64_t axis : node.intsAttr("axes")) {
    const int64_t at = graph::wrapAxis(axis, static_cast<int>(x.rank()));
    count *= x.dim(at);
    y = w.reduce(reducerOf(node.kind), y, at);
  }
  if (count == 0) refuse("TOSA reduces no empty tensors");
  if (node.kind == OpKind::ReduceMean) {
    if (!isFloat(x.elem)) refuse("a mean of integers");
    y = w.mul(w.number(1.0 / static_cast<double>(count), y.elem), y);
  }
  w.bind(node.result(), w.reshape(w.cast(y, x.elem), node.result()->type.dims));
}

void writeArgReduce(FunctionWriter& w, const graph::Node& node) {
  Value x = w.of(node.operand(0));
  const int64_t axis = graph::wrapAxis(node.intAttr("axis"), static_cast<int>(x.rank()));
  if (node.stringAttr("fn") == "min")
    x = w.make(isFloat(x.elem) ? "negate" : "bitwise_not", {x}, x.elem, x.dims);
  const std::string along = fmt::format("axis = {} : i32", axis);
  const bool isLast = node.intAttr("select_last") != 0;
  if (isLast) x = w.make("reverse", {x}, x.elem, x.dims, along);
  Shape dims = x.dims;
  dims.erase(dims.begin() + axis);
  Value place = w.make("argmax", {x}, Elem::i32_, dims, along);
  if (isLast) {
    const Value last = w.number(static_cast<double>(x.dim(axis) - 1), Elem::i32_);
    place = w.op("sub", {last, place});
  }
  w.bind(node.result(), w.reshape(place, node.result()->type.dims));
}

Value softmax(FunctionWriter& w, const Value& x, int64_t axis) {
  const Value moved = w.op("sub", {x, w.reduce("reduce_max", x, axis)});
  const Value powers = w.make("exp", {moved}, x.elem, x.dims);
  return w.over(powers, w.reduce("reduce_sum", powers, axis));
}

void writeSoftmax(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0));
  const int64_t axis = graph::wrapAxis(node.intAttr("axis"), node.result()->type.rank());
  w.bind(node.result(), w.cast(softmax(w, w.widened(x), axis), x.elem));
}

namespace {

struct Rows {
  std::vector<int64_t> axes;
  double share = 1; ///< of one element in a row
};

Rows rowsOf(const graph::Node& node) {
  const graph::TensorType& type = node.result()->type;
  Rows rows;
  for (int64_t d = graph::wrapAxis(node.intAttr("axis"), type.rank()); d < type.rank(); ++d) {
    rows.axes.push_back(d);
    rows.share /= static_cast<double>(type.dim(static_cast<int>(d)));
  }
  return rows;
}

/// x / sqrt(mean of squares + epsilon), of f32.
Value normalized(FunctionWriter& w, const graph::Node& node, const Value& x, const Rows& rows) {
  const Value square = scaledSum(w, w.mul(x, x), rows.axes, rows.share);
  const Value moved = w.op("add", {w.number(node.floatAttr("epsilon"), x.elem), square});
  return w.mul(x, w.make("rsqrt", {moved}, x.elem, moved.dims));
}

void bindScaled(FunctionWriter& w, const graph::Node& node, Value y) {
  if (node.operand(1)) y = w.mul(w.cast(w.of(node.operand(1)), y.elem), y);
  if (node.operand(2)) y = w.op("add", {w.cast(w.of(node.operand(2)), y.elem), y});
  w.bind(node.result(), w.cast(y, node.result()->type.elem));
}

} // namespace

void writeLayerNorm(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.cast(w.of(node.operand(0)), Elem::f32_);
  const Rows rows = rowsOf(node);
  const Value centred = w.op("sub", {x, scaledSum(w, x, rows.axes, rows.share)});
  bindScaled(w, node, normalized(w, node, centred, rows));
}

void writeRmsNorm(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.cast(w.of(node.operand(0)), Elem::f32_);
  bindScaled(w, node, normalized(w, node, x, rowsOf(node)));
}

void writeBatchNorm(FunctionWriter& w, const graph::Node& node) {
  if (node.intAttr("training_mode") != 0) refuse("its training form");
  Values in = w.operandsOf(node);
  const Elem given = in[0].elem;
  for (Value& operand : in) operand = w.widened(operand);
  const Elem elem = in[0].elem;
  Shape dims(in[0].dims.size(), 1);
  dims[1] = in[0].dim(1);
  const auto beside = [&](size_t i) { return w.reshape(w.cast(in[i], elem), dims); };
  const Value moved = w.op("add", {w.number(node.floatAttr("epsilon"), elem), beside(4)});
  const Value factor = w.mul(beside(1), w.make("rsqrt", {moved}, elem, dims));
  const Value scaled = w.mul(factor, w.op("sub", {beside(3), in[0]}));
  w.bind(node.result(), w.cast(w.op("sub", {beside(2), scaled}), given));
}

void writeDequantize(FunctionWriter& w, const graph::Node& node) {
  const Values in = w.operandsOf(node);
  const Elem elem = in[1].elem;
  const int64_t axis = node.hasAttr("axis") ? node.intAttr("axis") : 1;
  const auto beside = [&](const Value& each) {
    if (each.rank() == 0) return each;
    Shape dims(in[0].dims.size(), 1);
    dims[static_cast<size_t>(graph::wrapAxis(axis, static_cast<int>(in[0].rank())))] = each.dim(0);
    return w.reshape(each, dims);
  };
  Value whole = w.cast(in[0], Elem::i32_);
  if (in.size() > 2 && !in[2].isAbsent())
    whole = w.op("sub", {whole, beside(w.cast(in[2], Elem::i32_))});
  w.bind(node.result(), w.mul(beside(in[1]), w.cast(whole, elem)));
}

} // namespace candela::exporter::tosa
