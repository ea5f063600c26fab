#include <cmath>
#include <numbers>

#include "core/import/step.h"

namespace candela::import {
namespace {

/// Min, Max and Sum take any number of operands; the Graph's ops take two.
template <OpKind kind> Status importChain(Step& step) {
  Value* result = step.input(0);
  for (size_t i = 1; i < step.inputs().size(); ++i) {
    if (!step.input(i)) return badModel("input {} is missing", i);
    CDL_ASSIGN(result, step.build.add(kind, {result, step.input(i)}));
  }
  step.set(0, result);
  return Status::ok();
}

/// Limits were float attributes before opset 11. An absent one limits nothing.
Status importClip(Step& step) {
  Value* limits[2] = {nullptr, nullptr};
  const char* const names[2] = {"min", "max"};
  for (int i = 0; i < 2; ++i) {
    if (step.opset >= 11) {
      limits[i] = step.input(i + 1);
      // Writers that give a vector of one mean a scalar.
      if (limits[i] && limits[i]->type.shape() == Shape{1}) {
        CDL_ASSIGN(limits[i], step.build.reshape(limits[i], {}));
      }
      continue;
    }
    CDL_ASSIGN(const auto limit, step.maybe<float>(names[i]));
    if (limit) { CDL_ASSIGN(limits[i], step.build.scalar(*limit, step.input(0)->type.elem)); }
  }
  return step.set(step.build.add(OpKind::Clip, {step.input(0), limits[0], limits[1]}));
}

Status importGreater(Step& step) { return step.set(step.build.add(OpKind::Less, {step.input(1), step.input(0)})); }

/// a <= b is a < b or a = b, so that a NaN gives false.
Status orderOrEqual(Step& step, Value* a, Value* b) {
  CDL_ASSIGN(Value * less, step.build.add(OpKind::Less, {a, b}));
  CDL_ASSIGN(Value * equal, step.build.add(OpKind::Equal, {a, b}));
  return step.set(step.build.add(OpKind::Select, {less, less, equal}));
}
Status importLessOrEqual(Step& step) { return orderOrEqual(step, step.input(0), step.input(1)); }
Status importGreaterOrEqual(Step& step) { return orderOrEqual(step, step.input(1), step.input(0)); }

Status needBool(const Step& step) {
  for (const Value* input : step.inputs())
    if (input->type.elem != Elem::bool_) return badModel("operand is {}, expected bool", input->type.text());
  return Status::ok();
}
Value* boolConstant(Step& step, bool value) {
  return step.build.constant(Tensor::of<uint8_t>(Elem::bool_, {}, {uint8_t(value)}));
}

Status importNot(Step& step) {
  CDL_TRY(needBool(step));
  return step.set(step.build.add(OpKind::Equal, {step.input(0), boolConstant(step, false)}));
}
Status importAnd(Step& step) {
  CDL_TRY(needBool(step));
  return step.set(step.build.add(OpKind::Select, {step.input(0), step.input(1), boolConstant(step, false)}));
}
Status importOr(Step& step) {
  CDL_TRY(needBool(step));
  return step.set(step.build.add(OpKind::Select, {step.input(0), boolConstant(step, true), step.input(1)}));
}
Status importXor(Step& step) {
  CDL_TRY(needBool(step));
  CDL_ASSIGN(Value * equal, step.build.add(OpKind::Equal, {step.input(0), step.input(1)}));
  return step.set(step.build.add(OpKind::Equal, {equal, boolConstant(step, false)}));
}

Status castTo(Step& step, Elem to) {
  const Elem from = step.input(0)->type.elem;
  for (Elem elem : {from, to})
    if (isStorageOnly(elem)) return failure(Code::unsupported, "cast from {} to {}", elemName(from), elemName(to));
  if (from == to) return step.set(step.input(0));
  return step.set(step.build.add(OpKind::Cast, {step.input(0)}, {{"to", to}}));
}

Status importCast(Step& step) {
  CDL_ASSIGN(const auto to, step.maybe<int64_t>("to"));
  CDL_TRY(step.flagAttr("saturate", true).status()); // only says something about 8-bit floats
  if (!to) return badModel("attribute 'to' is missing");
  const auto elem = *to >= 0 && *to <= INT32_MAX ? elemFromOnnx(static_cast<int>(*to)) : std::nullopt;
  if (!elem) return failure(Code::unsupported, "cast to element type {}", *to);
  return castTo(step, *elem);
}

Status importCastLike(Step& step) {
  CDL_TRY(step.flagAttr("saturate", true).status());
  return castTo(step, step.input(1)->type.elem);
}

/// The result has the base's type. Powers of integers are computed as f64, exact below 2^53.
Status importPow(Step& step) {
  Value *a = step.input(0), *b = step.input(1);
  const Elem elem = a->type.elem, inner = isFloat(elem) ? elem : Elem::f64_;
  for (Value** operand : {&a, &b})
    if ((*operand)->type.elem != inner) {
      CDL_ASSIGN(*operand, step.build.add(OpKind::Cast, {*operand}, {{"to", inner}}));
    }
  CDL_ASSIGN(Value * y, step.build.add(OpKind::Pow, {a, b}));
  if (inner == elem) return step.set(y);
  return step.set(step.build.add(OpKind::Cast, {y}, {{"to", elem}}));
}

Status importGelu(Step& step) {
  CDL_ASSIGN(const std::string approximate, step.attr<std::string>("approximate", "none"));
  Value* x = step.input(0);
  if (approximate == "none") return step.set(step.build.add(OpKind::Gelu, {x}));
  if (approximate != "tanh") return badModel("approximate '{}' is not none or tanh", approximate);
  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
  const auto scaled = [&](Value* value, double by) -> Result<Value*> {
    CDL_ASSIGN(Value * factor, step.build.scalar(by, x->type.elem));
    return step.build.add(OpKind::Mul, {value, factor});
  };
  CDL_ASSIGN(Value * square, step.build.add(OpKind::Mul, {x, x}));
  CDL_ASSIGN(Value * cube, step.build.add(OpKind::Mul, {square, x}));
  CDL_ASSIGN(cube, scaled(cube, 0.044715));
  CDL_ASSIGN(Value * sum, step.build.add(OpKind::Add, {x, cube}));
  CDL_ASSIGN(sum, scaled(sum, std::sqrt(2 / std::numbers::pi)));
  CDL_ASSIGN(Value * gate, step.build.add(OpKind::Tanh, {sum}));
  CDL_ASSIGN(Value * one, step.build.scalar(1, x->type.elem));
  CDL_ASSIGN(gate, step.build.add(OpKind::Add, {gate, one}));
  CDL_ASSIGN(Value * half, scaled(x, 0.5));
  return step.set(step.build.add(OpKind::Mul, {half, gate}));
}

/// clamp(alpha * x + beta, 0, 1)
Result<Value*> hardSigmoid(Step& step, double alpha, double beta) {
  const Elem elem = step.input(0)->type.elem;
  Value* constants[4];
  const double numbers[4] = {alpha, beta, 0, 1};
  for (int i = 0; i < 4; ++i) { CDL_ASSIGN(constants[i], step.build.scalar(numbers[i], elem)); }
  CDL_ASSIGN(Value * y, step.build.add(OpKind::Mul, {step.input(0), constants[0]}));
  CDL_ASSIGN(y, step.build.add(OpKind::Add, {y, constants[1]}));
  return step.build.add(OpKind::Clip, {y, constants[2], constants[3]});
}
Status importHardSigmoid(Step& step) {
  CDL_ASSIGN(const double alpha, step.attr<float>("alpha", 0.2f));
  CDL_ASSIGN(const double beta, step.attr<float>("beta", 0.5f));
  return step.set(hardSigmoid(step, alpha, beta));
}
Status importHardSwish(Step& step) {
  CDL_ASSIGN(Value * gate, hardSigmoid(step, 1.0 / 6, 0.5));
  return step.set(step.build.add(OpKind::Mul, {step.input(0), gate}));
}

constexpr Operator kOperators[] = {
    {"And", 2, 2, 1, importAnd},
    {"Cast", 1, 1, 1, importCast},
    {"CastLike", 2, 2, 1, importCastLike},
    {"Clip", 1, 3, 1, importClip},
    {"Gelu", 1, 1, 1, importGelu},
    {"Greater", 2, 2, 1, importGreater},
    {"GreaterOrEqual", 2, 2, 1, importGreaterOrEqual},
    {"HardSigmoid", 1, 1, 1, importHardSigmoid},
    {"HardSwish", 1, 1, 1, importHardSwish},
    {"LessOrEqual", 2, 2, 1, importLessOrEqual},
    {"Max", 1, -1, 1, importChain<OpKind::Max>},
    {"Min", 1, -1, 1, importChain<OpKind::Min>},
    {"Not", 1, 1, 1, importNot},
    {"Or", 2, 2, 1, importOr},
    {"Pow", 2, 2, 1, importPow},
    {"Sum", 1, -1, 1, importChain<OpKind::Add>},
    {"Xor", 2, 2, 1, importXor},
};

} // namespace

std::span<const Operator> elementwiseOperators() { return kOperators; }

} // namespace candela::import
