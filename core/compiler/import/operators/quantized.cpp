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
Result<Value*> perAxis(Step& step, Value* value, const Value* x, int64_t axis, Attrs& attrs) {
  if (value->type.count() == 1) return step.build.reshape(value, {});
  if (value->type.rank() > 1)
    return badModel("a scale of shape {}", shapeText(value->type.shape()));
  CDL_ASSIGN(attrs["axis"], resolveAxis(axis, x->type.rank()));
  return value;
}

Result<Value*> dequantize(Step& step, Value* x, Value* scale, Value* zero, int64_t axis) {
  Attrs attrs;
  CDL_ASSIGN(scale, perAxis(step, scale, x, axis, attrs));
  if (zero) {
    CDL_ASSIGN(zero, perAxis(step, zero, x, axis, attrs));
  }
  return step.build.add(OpKind::Dequantize, {x, scale, zero}, std::move(attrs));
}

/// Without a zero point: 0 of the type.
Result<Value*> quantize(Step& step, Value* x, Value* scale, Value* zero, int64_t axis,
                        Elem to = Elem::u8_) {
  Attrs attrs;
  if (!isFloat(x->type.elem)) {
    CDL_ASSIGN(x, step.build.cast(x, Elem::f32_));
  }
  CDL_ASSIGN(scale, perAxis(step, scale, x, axis, attrs));
  CDL_ASSIGN(scale, step.build.cast(scale, x->type.elem));
  if (!zero) {
    zero = step.build.constant(Payload::splat(to, scale->type.count(), 0), scale->type.shape());
  } else {
    CDL_ASSIGN(zero, perAxis(step, zero, x, axis, attrs));
  }
  return step.build.add(OpKind::Quantize, {x, scale, zero}, std::move(attrs));
}

/// y = (x - min) / (max - min) * 255 of a range that holds 0.
Status importDynamicQuantizeLinear(Step& step) {
  Value* x = step.input(0);
  const Attrs all = {{"axes", allAxes(step)}, {"keepdims", int64_t(0)}};
  Builder& build = step.build;
  const auto zero = build.scalar(0, x->type.elem), steps = build.scalar(255, x->type.elem);
  const auto highest = build.add(OpKind::Max, {build.add(OpKind::ReduceMax, {x}, all), zero});
  const auto lowest = build.add(OpKind::Min, {build.add(OpKind::ReduceMin, {x}, all), zero});
  CDL_ASSIGN(Value * scale,
             build.add(OpKind::Div, {build.add(OpKind::Sub, {highest, lowest}), steps}));
  CDL_ASSIGN(Value * point, build.add(OpKind::Neg, {lowest}));
  CDL_ASSIGN(point, quantize(step, point, scale, nullptr, 0));
  CDL_ASSIGN(Value * y, quantize(step, x, scale, point, 0));
  step.set(0, y);
  step.set(1, scale);
  step.set(2, point);
  return Status::ok();
}

Status importConvInteger(Step& step) {
  CDL_ASSIGN(Attrs attrs, convAttrs(step, step.input(1)->type));
  Value* zeros[2] = {step.input(2), step.input(3)};
  for (Value*& zero : zeros)
    if (zero) {
      CDL_ASSIGN(zero, step.build.reshape(zero, {zero->type.count()}));
    }
  return step.set(step.build.add(OpKind::ConvInteger,
                                 {step.input(0), step.input(1), nullptr, zeros[0], zeros[1]},
                                 std::move(attrs)));
}

/// Zero points for each row of a, or for more than the columns of b, are subtracted first.
Status importMatMulInteger(Step& step) {
  Value *a = step.input(0), *b = step.input(1), *aZero = step.input(2), *bZero = step.input(3);
  const bool rows = aZero && aZero->type.count() > 1, matrices = bZero && bZero->type.rank() > 1;
  if (!rows && !matrices) {
    for (Value** zero : {&aZero, &bZero})
      if (*zero) {
        CDL_ASSIGN(*zero, step.build.reshape(*zero, {(*zero)->type.count()}));
      }
    return step.set(step.build.add(OpKind::MatmulInteger, {a, b, aZero, bZero}));
  }
  if (rows && aZero->type.rank() == 1) {
    CDL_ASSIGN(aZero, step.build.reshape(aZero, {aZero->type.count(), 1}));
  }
  for (auto [value, zero] : {std::pair(&a, aZero), std::pair(&b, bZero)}) {
    CDL_ASSIGN(*value, step.build.cast(*value, Elem::i32_));
    if (zero) {
      CDL_ASSIGN(*value, step.build.add(OpKind::Sub, {*value, step.build.cast(zero, Elem::i32_)}));
    }
  }
  return step.set(step.build.add(OpKind::Matmul, {a, b}));
}

/// The same convolution between dequantized operands: its integer form is raised from that.
Status importQLinearConv(Step& step) {
  Value *x = step.input(0), *w = step.input(3), *bias = step.input(8);
  CDL_ASSIGN(Attrs attrs, convAttrs(step, w->type));
  const auto realX = dequantize(step, x, step.input(1), step.input(2), 1);
  const auto realW = dequantize(step, w, step.input(4), step.input(5), 0);
  if (bias) {
    CDL_ASSIGN(Value * scale, step.build.add(OpKind::Mul, {step.input(1), step.input(4)}));
    CDL_ASSIGN(bias, dequantize(step, bias, scale, nullptr, 0));
  }
  CDL_ASSIGN(Value * y, step.build.add(OpKind::Conv, {realX, realW, bias}, std::move(attrs)));
  return step.set(quantize(step, y, step.input(6), step.input(7), 1));
}

Status importQLinearMatMul(Step& step) {
  const auto real = [&](size_t first, int64_t axis) -> Term {
    Value *x = step.input(first), *scale = step.input(first + 1), *zero = step.input(first + 2);
    if (isPlain(x, scale)) return {step.build, dequantize(step, x, scale, zero, axis)};
    const Term offset = along({step.build, zero}, axis, x->type.rank());
    return dequantizeBy({step.build, x},
                        along({step.build, scale}, axis, x->type.rank()).cast(Elem::f32_), &offset);
  };
  const Term a = real(0, -2), b = real(3, -1);
  const Elem inner = a.elem() == b.elem() ? a.elem() : Elem::f32_;
  const Term y = matmul(a.cast(inner), b.cast(inner));
  Value *scale = step.input(6), *zero = step.input(7);
  if (isPlain(zero, scale)) return step.set(quantize(step, y.value(), scale, zero, -1));
  const Term wide = y.cast(Elem::f32_), offset = along({step.build, zero}, -1, y.rank());
  return step.set(quantizeBy(wide / along({step.build, scale}, -1, y.rank()).cast(Elem::f32_),
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
