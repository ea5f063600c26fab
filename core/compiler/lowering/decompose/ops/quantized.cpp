#include <algorithm>
#include <cmath>

#include "core/compiler/graph/rescale_factor.h"
#include "core/compiler/lowering/decompose/shared.h"

namespace candela::lowering::decompose {

using graph::RescaleFactor, graph::rescaleFactor;

namespace {

// A scale or zero point, of which the node may have one for each index of its axis.
Value parameter(Lowering& l, const Node& node, size_t i) {
  const int rank = node.operand(0)->type.rank();
  if (!node.hasAttr("axis")) return node.operand(i);
  return alongAxis(l, node.operand(i), graph::wrapAxis(node.intAttr("axis"), rank), rank);
}

constexpr int64_t kMostTapsInI32 = 128; // of 17 bits by 9

Value whole(Lowering& l, int64_t value) { return l.scalar(Elem::i32_, static_cast<double>(value)); }

// What MATMUL and CONV2D want for their second operand: i8. A byte without a sign and its zero
// point move by 128.
void makeSigned(Lowering& l, Value& b, Value& zero) {
  if (b->type.elem == Elem::i8_) return;
  const auto moved = [&](Value v) {
    return l.cast(l.sub(l.cast(v, Elem::i32_), whole(l, 128)), Elem::i8_);
  };
  zero = zero ? moved(zero) : l.splat(Elem::i8_, {1}, -128);
  b = moved(b);
}

// A zero point that is no constant around x, so that the convolution need not pad.
Value convBordered(Lowering& l, const Node& node, const std::vector<int64_t>& pads) {
  Value x = node.operand(0);
  const Shape dims = x->type.shape();
  std::vector<int64_t> lo(dims.size(), 0), hi(dims.size(), 0);
  std::ranges::copy_n(pads.begin(), static_cast<int64_t>(pads.size() / 2), lo.begin() + 2);
  std::ranges::copy_n(pads.begin() + static_cast<int64_t>(pads.size() / 2),
                      static_cast<int64_t>(pads.size() / 2), hi.begin() + 2);
  Value inside = l.pad(l.splat(Elem::bool_, dims, 1), lo, hi, 0);
  std::vector<Value> operands = node.operands();
  operands[0] = l.select(inside, l.pad(x, lo, hi, 0), operands[3]);
  graph::Attrs attrs = node.attrs;
  attrs["pads"] = std::vector<int64_t>(pads.size(), 0);
  return l.node(OpKind::ConvInteger, std::move(operands), std::move(attrs));
}

} // namespace

// Clamped before the zero point is added, which then cannot leave i32.
Result<Values> lowerQuantize(Lowering& l, const Node& node) {
  const Elem inner = l.wide(node.operand(0)->type.elem), to = node.operand(2)->type.elem;
  const IntegerRange range = integerRange(to);
  Value zero = l.cast(parameter(l, node, 2), Elem::i32_);
  const auto limit = [&](__int128 bound) {
    return l.sub(whole(l, static_cast<int64_t>(bound)), zero);
  };
  Value x = l.div(l.cast(node.operand(0), inner), l.cast(parameter(l, node, 1), inner));
  x = l.node(OpKind::Round, {x}, {{"to", Elem::i32_}, {"mode", std::string("rne")}});
  return Values{
      l.cast(l.add(l.min(l.max(x, limit(range.lowest)), limit(range.highest)), zero), to)};
}

Result<Values> lowerDequantize(Lowering& l, const Node& node) {
  const Elem to = node.operand(1)->type.elem, inner = l.wide(to);
  const Elem integer = node.operand(0)->type.elem == Elem::i64_ ? Elem::i64_ : Elem::i32_;
  Value x = l.cast(node.operand(0), integer);
  if (node.operand(2)) x = l.sub(x, l.cast(parameter(l, node, 2), integer));
  return Values{l.cast(l.mul(l.cast(x, inner), l.cast(parameter(l, node, 1), inner)), to)};
}

// x = 256 * high + low, and its zero point likewise.
Values lowerByBytes(Lowering& l, const Node& node) {
  const bool conv = node.kind == OpKind::ConvInteger;
  const size_t zeroAt = conv ? 3 : 2;
  Value x = node.operand(0), zero = node.operand(zeroAt), bias = conv ? node.operand(2) : nullptr;
  int64_t zeroPoint = 0;
  if (zero) {
    const auto tensor =
        zero->isConstant() ? zero->tensor() : Result<Tensor>(badModel("no constant"));
    if (!tensor) return {};
    zeroPoint = tensor->toInts()[0];
  }
  Value low = l.cast(x, Elem::u8_);
  Value rest = l.sub(l.cast(x, Elem::i32_), l.cast(low, Elem::i32_));
  Value high = l.cast(l.div(rest, whole(l, 256)), Elem::i8_);
  const auto sums = [&](Value part, int64_t partZero) {
    std::vector<Value> operands = node.operands();
    operands[0] = part;
    if (bias) operands[2] = nullptr;
    if (zero)
      operands[zeroAt] =
          partZero ? l.splat(part->type.elem, {1}, static_cast<double>(partZero)) : nullptr;
    return l.cast(l.node(node.kind, std::move(operands), node.attrs), Elem::i64_);
  };
  Value y = l.mul(sums(high, zeroPoint >> 8), l.scalar(Elem::i64_, 256));
  y = l.add(y, sums(low, zeroPoint & 255));
  if (bias) y = l.add(y, alongAxis(l, l.cast(bias, Elem::i64_), 1, x->type.rank()));
  return {y};
}

Result<Values> lowerMatmulInteger(Lowering& l, const Node& node) {
  Value b = node.operand(1), bZero = node.operand(3);
  makeSigned(l, b, bZero);
  Value y = matmulAnyRank(l, node.operand(0), b, node.result()->type.elem, node.operand(2), bZero);
  return Values{l.reshape(y, node.result()->type.shape())};
}

// Places are the rows of the left side, which may be of either sign; the weights, of i8, stand on
// the right.
Result<Values> lowerConvInteger(Lowering& l, const Node& node) {
  Value x = node.operand(0), w = node.operand(1), xZero = node.operand(3), wZero = node.operand(4);
  const Shape wDims = w->type.shape(), yDims = node.result()->type.shape();
  if (node.operand(2) || w->type.elem == Elem::u8_) {
    makeSigned(l, w, wZero);
    Value y = l.node(OpKind::ConvInteger, {x, w, nullptr, xZero, wZero}, node.attrs);
    if (!node.operand(2)) return Values{y};
    return Values{l.add(y, alongAxis(l, l.cast(node.operand(2), y->type.elem), 1, x->type.rank()))};
  }
  uint64_t border = 0;
  if (xZero && !xZero->isConstant()) {
    const int64_t sides = 2 * (static_cast<int64_t>(wDims.size()) - 2);
    if (const auto pads = node.intsAttr("pads", static_cast<size_t>(sides), 0);
        std::ranges::any_of(pads, [](int64_t p) { return p != 0; }))
      return Values{convBordered(l, node, pads)};
  } else if (xZero) {
    CDL_ASSIGN(const Tensor zero, xZero->tensor());
    border = wholeBits(x->type.elem, zero.toInts()[0]);
  }
  const graph::Window window = graph::windowOf(node, Shape(wDims.begin() + 2, wDims.end()));
  const int64_t batch = x->type.dim(0), group = node.intAttr("group"), outputs = wDims[0] / group;
  const int64_t taps = *elementCount(window.kernel), depth = wDims[1] * taps;
  Value columns = unfold(l, x, window, Shape(yDims.begin() + 2, yDims.end()), border);
  const int64_t places = columns->type.dim(2);
  const Elem sums = node.result()->type.elem;
  if (group > 1 && (depth == taps || (wZero && wZero->type.count() > 1))) {
    // One multiply per tap: little to contract, or a zero point that differs between the groups.
    const Elem inner = depth <= kMostTapsInI32 ? Elem::i32_ : sums;
    const auto centred = [&](Value v, Value zero, Shape shape, Shape zeroShape) {
      v = l.reshape(l.cast(v, inner), std::move(shape));
      return zero ? l.sub(v, l.reshape(l.cast(zero, inner), std::move(zeroShape))) : v;
    };
    Value left = centred(columns, xZero, {batch, group, 1, depth, places}, {});
    Value right = centred(w, wZero, {group, outputs, depth, 1},
                          wZero && wZero->type.count() > 1 ? Shape{group, outputs, 1, 1} : Shape{});
    Value products = l.reshape(l.mul(left, right), {batch * wDims[0], depth, places});
    return Values{l.cast(l.reshape(l.reduce3(products, "sum"), yDims), sums)};
  }
  Value rows =
      l.reshape(l.transpose(l.reshape(columns, {batch, group, depth, places}), {0, 1, 3, 2}),
                {batch, group, places, depth});
  Value weights = l.transpose(l.reshape(w, {group, outputs, depth}), {0, 2, 1});
  Value y = matmulAnyRank(l, rows, weights, sums, xZero, wZero);
  return Values{l.reshape(l.transpose(y, {0, 1, 3, 2}), yDims)};
}

namespace {

Value i32Of(Lowering& l, Value x) { return l.cast(x, Elem::i32_); }

/// RESCALE of one operand; a factor of 2^24 and more shifts it to the left.
Value rescaled(Lowering& l, Value x, RescaleFactor factor, int64_t zero, Elem to) {
  graph::Attrs attrs{{"to", to}};
  if (factor.shift < 0) attrs["left_shift"] = int64_t(-factor.shift);
  return l.node(
      OpKind::Rescale,
      {x, whole(l, factor.significand), whole(l, std::max(factor.shift, 0)), whole(l, zero)},
      std::move(attrs));
}

Value entriesOf(Lowering& l, Value x, Value table) { return l.node(OpKind::Table, {x, table}); }

/// base + the weighted heights of all segments, whose parameters are constants.
Result<Value> bySegments(Lowering& l, Value x, int64_t base, Value segments, Value tables) {
  CDL_ASSIGN(const Tensor parameters, segments->tensor());
  const std::vector<int64_t> numbers = parameters.toInts();
  Value sum = whole(l, base);
  for (int64_t s = 0; s < parameters.dims[0]; ++s) {
    const int64_t* row = &numbers[static_cast<size_t>(4 * s)];
    Value beyond = l.sub(x, whole(l, row[0]));
    Value place = rescaled(l, beyond, {row[1], static_cast<int>(row[2])}, -32768, Elem::i16_);
    Value height = i32Of(l, entriesOf(l, place, l.affine(tables, 513 * s, {513}, {1})));
    if (row[3] != 1) height = l.mul(height, whole(l, row[3]));
    sum = l.add(height, sum);
  }
  return sum;
}

/// The RESCALE that ends a row function.
Value ended(Lowering& l, const Node& node, Value x) {
  return rescaled(l, x, {node.intAttr("multiplier"), static_cast<int>(node.intAttr("shift"))},
                  node.intAttr("zero"), node.elemAttr("to"));
}

/// To i16, of a distance in units of 1/128 times its row's reciprocal.
Value normalOf(Lowering& l, const Node& node, Value distance, Value reciprocal) {
  const RescaleFactor toNormal{1 << 23, 23 + static_cast<int>(node.intAttr("normal_shift"))};
  return rescaled(l, l.mul(i32Of(l, distance), reciprocal), toNormal, 0, Elem::i16_);
}

} // namespace

/// x - largest is in -255..0: 128 times that, and 32640, are the places of the table's last 256
/// entries.
Result<Values> lowerSoftmaxInteger(Lowering& l, const Node& node) {
  Value x = node.operand(0);
  const int axis = graph::wrapAxis(node.intAttr("axis"), x->type.rank());
  Value distance = l.sub(i32Of(l, x), i32Of(l, l.reduceAxis(x, axis, "max")));
  Value place = rescaled(l, distance, rescaleFactor(128), 32640, Elem::i16_);
  Value exponential = i32Of(l, entriesOf(l, place, node.operand(1)));
  Value sum = l.reduceAxis(exponential, axis, "sum");
  CDL_ASSIGN(Value reciprocal,
             bySegments(l, sum, node.intAttr("base"), node.operand(2), node.operand(3)));
  return Values{ended(l, node, l.mul(exponential, reciprocal))};
}

/// Distances are taken from the mean as an integer; what that adds to their squares is subtracted
/// from the sum.
Result<Values> lowerLayerNormInteger(Lowering& l, const Node& node) {
  const Shape shape = node.operand(0)->type.shape();
  const auto axis = graph::wrapAxis(node.intAttr("axis"), node.operand(0)->type.rank());
  const int64_t n = *elementCount(std::span(shape).subspan(static_cast<size_t>(axis)));
  const auto count = static_cast<double>(n);
  const int64_t fraction = int64_t(1) << node.intAttr("fraction");
  Value x = l.reshape(node.operand(0), {*elementCount(shape) / n, n});
  Value sum = l.reduceAxis(i32Of(l, x), 1, "sum");
  Value mean = i32Of(l, rescaled(l, sum, rescaleFactor(1 / count), 0, x->type.elem));
  Value distance = l.sub(i32Of(l, x), mean);
  Value rest = l.sub(sum, l.mul(mean, whole(l, n)));
  Value squares = l.reduceAxis(l.mul(distance, distance), 1, "sum");
  Value excess =
      i32Of(l, rescaled(l, l.mul(rest, rest), rescaleFactor(static_cast<double>(fraction) / count),
                        0, Elem::i16_));
  Value spread = l.sub(l.mul(squares, whole(l, fraction)), excess);
  spread = l.add(spread, whole(l, node.intAttr("epsilon")));
  CDL_ASSIGN(Value reciprocal,
             bySegments(l, spread, node.intAttr("base"), node.operand(3), node.operand(4)));
  Value centred = rescaled(l, l.sub(l.mul(distance, whole(l, n)), rest), rescaleFactor(128 / count),
                           0, Elem::i16_);
  Value normal = normalOf(l, node, centred, reciprocal);
  Value y = l.mul(i32Of(l, normal), l.reshape(node.operand(1), {n}));
  y = l.add(y, l.reshape(node.operand(2), {n}));
  return Values{l.reshape(ended(l, node, y), shape)};
}

Result<Values> lowerRmsNormInteger(Lowering& l, const Node& node) {
  const Shape shape = node.operand(0)->type.shape();
  const auto axis = graph::wrapAxis(node.intAttr("axis"), node.operand(0)->type.rank());
  const int64_t n = *elementCount(std::span(shape).subspan(static_cast<size_t>(axis)));
  Value x = i32Of(l, l.reshape(node.operand(0), {*elementCount(shape) / n, n}));
  const int64_t zero = node.intAttr("x_zero");
  Value distance = zero == 0 ? x : l.sub(x, whole(l, zero));
  Value squares = l.reduceAxis(l.mul(distance, distance), 1, "sum");
  const int64_t added = node.intAttr("epsilon");
  Value spread = l.mul(squares, whole(l, int64_t(1) << node.intAttr("fraction")));
  spread = l.add(spread, whole(l, added));
  CDL_ASSIGN(Value reciprocal,
             bySegments(l, spread, node.intAttr("base"), node.operand(2), node.operand(3)));
  Value normal = normalOf(l, node, l.mul(distance, whole(l, 128)), reciprocal);
  Value y = l.mul(i32Of(l, normal), l.reshape(node.operand(1), {n}));
  return Values{l.reshape(ended(l, node, y), shape)};
}

} // namespace candela::lowering::decompose
