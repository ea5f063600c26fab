#include "core/compiler/import/operators/storage.h"

namespace candela::import {
namespace {

/// Whether the ops of the Graph know such scales: for one axis at most, of integers.
bool isPlain(const Value* x, const Value* scale) {
  return isInteger(x->type.elem) && !isStorageOnly(x->type.elem) &&
         (scale->type.count() == 1 || scale->type.rank() == 1);
}

/// A scale or zero point: a scalar, or one value for each of x's dim `axis`, which then joins
/// `attrs`.
Result<Value*> perAxis(NodeContext& context, Value* value, const Value* x, int64_t axis,
                       Attrs& attrs) {
  if (value->type.count() == 1) return context.build.reshape(value, {});
  if (value->type.rank() > 1)
    return badModel("a scale of shape {}", shapeText(value->type.shape()));
  CDL_ASSIGN(attrs["axis"], resolveAxis(axis, x->type.rank()));
  return value;
}

Result<Value*> dequantize(NodeContext& context, Value* x, Value* scale, Value* zero, int64_t axis) {
  Attrs attrs;
  CDL_ASSIGN(scale, perAxis(context, scale, x, axis, attrs));
  if (zero) {
    CDL_ASSIGN(zero, perAxis(context, zero, x, axis, attrs));
  }
  return context.build.add(OpKind::Dequantize, {x, scale, zero}, std::move(attrs));
}

/// Without a zero point: 0 of the type.
Result<Value*> quantize(NodeContext& context, Value* x, Value* scale, Value* zero, int64_t axis,
                        Elem to = Elem::u8_) {
  Attrs attrs;
  if (!isFloat(x->type.elem)) {
    CDL_ASSIGN(x, context.build.cast(x, Elem::f32_));
  }
  CDL_ASSIGN(scale, perAxis(context, scale, x, axis, attrs));
  CDL_ASSIGN(scale, context.build.cast(scale, x->type.elem));
  if (!zero) {
    zero = context.build.constant(Payload::splat(to, scale->type.count(), 0), scale->type.shape());
  } else {
    CDL_ASSIGN(zero, perAxis(context, zero, x, axis, attrs));
  }
  return context.build.add(OpKind::Quantize, {x, scale, zero}, std::move(attrs));
}

/// y = (x - min) / (max - min) * 255 of a range that holds 0.
Status importDynamicQuantizeLinear(NodeContext& context) {
  Value* x = context.input(0);
  const Attrs all = {{"axes", allAxes(context)}, {"keepdims", int64_t(0)}};
  Builder& build = context.build;
  const auto zero = build.scalar(0, x->type.elem), steps = build.scalar(255, x->type.elem);
  const auto highest = build.add(OpKind::Max, {build.add(OpKind::ReduceMax, {x}, all), zero});
  const auto lowest = build.add(OpKind::Min, {build.add(OpKind::ReduceMin, {x}, all), zero});
  CDL_ASSIGN(Value * scale,
             build.add(OpKind::Div, {build.add(OpKind::Sub, {highest, lowest}), steps}));
  CDL_ASSIGN(Value * point, build.add(OpKind::Neg, {lowest}));
  CDL_ASSIGN(point, quantize(context, point, scale, nullptr, 0));
  CDL_ASSIGN(Value * y, quantize(context, x, scale, point, 0));
  context.set(0, y);
  context.set(1, scale);
  context.set(2, point);
  return Status::ok();
}

Status importConvInteger(NodeContext& context) {
  CDL_ASSIGN(Attrs attrs, convAttrs(context, context.input(1)->type));
  Value* zeros[2] = {context.input(2), context.input(3)};
  for (Value*& zero : zeros)
    if (zero) {
      CDL_ASSIGN(zero, context.build.reshape(zero, {zero->type.count()}));
    }
  return context.set(context.build.add(
      OpKind::ConvInteger, {context.input(0), context.input(1), nullptr, zeros[0], zeros[1]},
      std::move(attrs)));
}

/// Zero points for each row of a, or for more than the columns of b, are subtracted first.
Status importMatMulInteger(NodeContext& context) {
  Value *a = context.input(0), *b = context.input(1), *aZero = context.input(2),
        *bZero = context.input(3);
  const bool rows = aZero && aZero->type.count() > 1, matrices = bZero && bZero->type.rank() > 1;
  if (!rows && !matrices) {
    for (Value** zero : {&aZero, &bZero})
      if (*zero) {
        CDL_ASSIGN(*zero, context.build.reshape(*zero, {(*zero)->type.count()}));
      }
    return context.set(context.build.add(OpKind::MatmulInteger, {a, b, aZero, bZero}));
  }
  if (rows && aZero->type.rank() == 1) {
    CDL_ASSIGN(aZero, context.build.reshape(aZero, {aZero->type.count(), 1}));
  }
  for (auto [value, zero] : {std::pair(&a, aZero), std::pair(&b, bZero)}) {
    CDL_ASSIGN(*value, context.build.cast(*value, Elem::i32_));
    if (zero) {
      CDL_ASSIGN(*value,
                 context.build.add(OpKind::Sub, {*value, context.build.cast(zero, Elem::i32_)}));
    }
  }
  return context.set(context.build.add(OpKind::Matmul, {a, b}));
}

/// The same convolution between dequantized operands: its integer form is raised from that.
Status importQLinearConv(NodeContext& context) {
  Value *x = context.input(0), *w = context.input(3), *bias = context.input(8);
  CDL_ASSIGN(Attrs attrs, convAttrs(context, w->type));
  const auto realX = dequantize(context, x, context.input(1), context.input(2), 1);
  const auto realW = dequantize(context, w, context.input(4), context.input(5), 0);
  if (bias) {
    CDL_ASSIGN(Value * scale, context.build.add(OpKind::Mul, {context.input(1), context.input(4)}));
    CDL_ASSIGN(bias, dequantize(context, bias, scale, nullptr, 0));
  }
  CDL_ASSIGN(Value * y, context.build.add(OpKind::Conv, {realX, realW, bias}, std::move(attrs)));
  return context.set(quantize(context, y, context.input(6), context.input(7), 1));
}

Status importQLinearMatMul(NodeContext& context) {
  const auto real = [&](size_t first, int64_t axis) -> Term {
    Value *x = context.input(first), *scale = context.input(first + 1),
          *zero = context.input(first + 2);
    if (isPlain(x, scale)) return {context.build, dequantize(context, x, scale, zero, axis)};
    const Term offset = along({context.build, zero}, axis, x->type.rank());
    return dequantizeBy({context.build, x},
                        along({context.build, scale}, axis, x->type.rank()).cast(Elem::f32_),
                        &offset);
  };
  const Term a = real(0, -2), b = real(3, -1);
  const Elem inner = a.elem() == b.elem() ? a.elem() : Elem::f32_;
  const Term y = matmul(a.cast(inner), b.cast(inner));
  Value *scale = context.input(6), *zero = context.input(7);
  if (isPlain(zero, scale)) return context.set(quantize(context, y.value(), scale, zero, -1));
  const Term wide = y.cast(Elem::f32_), offset = along({context.build, zero}, -1, y.rank());
  return context.set(quantizeBy(wide / along({context.build, scale}, -1, y.rank()).cast(Elem::f32_),
                                &offset, zero->type.elem, true));
}

constexpr Operator kQuantizedOperators[] = {
    {"ConvInteger", 2, 4, 1, importConvInteger},
    {"DynamicQuantizeLinear", 1, 1, 3, importDynamicQuantizeLinear},
    {"MatMulInteger", 2, 4, 1, importMatMulInteger},
    {"QLinearConv", 8, 9, 1, importQLinearConv},
    {"QLinearMatMul", 8, 8, 1, importQLinearMatMul},
};

} // namespace

std::span<const Operator> quantizedOperators() { return kQuantizedOperators; }

} // namespace candela::import
