#include <limits>

#include "core/compiler/import/term.h"

/// Comparisons, logic, bits, remainders, signs, powers and limits.
namespace candela::import {
namespace {

Term boolOf(const Step& step, size_t input) {
  const Term x = termOf(step, input);
  if (x.elem() != Elem::bool_) need(badModel("operand is {}, expected bool", x.text()));
  return x;
}
Status importNot(Step& step) { return step.set(logicalNot(boolOf(step, 0))); }
Status importAnd(Step& step) { return step.set(bitAnd(boolOf(step, 0), boolOf(step, 1))); }
Status importOr(Step& step) { return step.set(bitOr(boolOf(step, 0), boolOf(step, 1))); }
Status importXor(Step& step) { return step.set(bitXor(boolOf(step, 0), boolOf(step, 1))); }

Status importBitwiseNot(Step& step) { return step.set(bitXor(termOf(step, 0), -1)); }

Status importBitShift(Step& step) {
  const std::string direction = attrOf<std::string>(step, "direction", "");
  if (direction == "LEFT") return step.set(shiftLeft(termOf(step, 0), termOf(step, 1)));
  if (direction == "RIGHT") return step.set(shiftRight(termOf(step, 0), termOf(step, 1)));
  return badModel("direction '{}' is not LEFT or RIGHT", direction);
}

/// Types that are only stored are looked at in f32.
Term realOf(const Step& step) {
  const Term x = termOf(step, 0);
  if (!isFloat(x.elem())) need(badModel("operand is {}, expected floats", x.text()));
  return isStorageOnly(x.elem()) ? x.cast(Elem::f32_) : x;
}

Status importIsNaN(Step& step) {
  const Term x = realOf(step);
  return step.set(logicalNot(equal(x, x)));
}

Status importIsInf(Step& step) {
  const bool negative = need(step.flagAttr("detect_negative", true));
  const bool positive = need(step.flagAttr("detect_positive", true));
  const Term x = realOf(step);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!negative && !positive) return step.set(full(step.build, 0, x.shape(), Elem::bool_));
  if (negative && positive) return step.set(equal(abs(x), kInfinity));
  return step.set(equal(x, positive ? kInfinity : -kInfinity));
}

Status importSign(Step& step) {
  const Term x = termOf(step, 0);
  if (isUnsigned(x.elem())) return step.set(min(x, 1));
  if (isInteger(x.elem())) return step.set(min(max(x, -1), 1));
  return step.set(select(less(x, 0), -1, select(less(x.number(0), x), 1, x)));
}

/// fmod: the remainder has the sign of a, else that of b, as in Python.
Status importMod(Step& step) {
  const bool fmod = need(step.flagAttr("fmod", false));
  const Term a = termOf(step, 0), b = termOf(step, 1), rest = rem(a, b);
  if (fmod || isUnsigned(a.elem())) return step.set(rest);
  const Term isBelow = less(b, 0), differs = bitXor(less(rest, 0), isBelow);
  const Term zero = isFloat(a.elem()) ? select(isBelow, b.number(-0.0), b.number(0)) : rest;
  return step.set(select(equal(rest, 0), zero, select(differs, rest + b, rest)));
}

/// In the base's type. Powers of integers wrap; 64 bits hold what wraps in fewer. Of mixed types in
/// one that has both.
Status importPow(Step& step) {
  const Term base = termOf(step, 0), exponent = termOf(step, 1);
  const Elem elem = base.elem(), by = exponent.elem();
  for (const Term& x : {base, exponent})
    if (x.elem() == Elem::bool_ || isStorageOnly(x.elem()))
      return badModel("operand is {}, expected numbers", x.text());
  Elem inner = elem;
  if (isInteger(elem) && isInteger(by)) {
    if (elem != by) inner = isUnsigned(by) ? Elem::u64_ : Elem::i64_;
  } else if (isInteger(elem) || elem == Elem::f64_ || by == Elem::f64_) {
    inner = Elem::f64_;
  } else if (elem != by) {
    inner = Elem::f32_;
  }
  const Term by64 = exponent.cast(inner), power = pow(base.cast(inner), by64);
  if (!isInteger(elem) || isInteger(by)) return step.set(power.cast(elem));
  // A product of whole numbers is whole: a target's pow may fall just short of it, which the cast
  // would cut off.
  return step.set(select(equal(max(floor(by64), 0), by64), roundEven(power), power).cast(elem));
}

/// Min, Max, Sum and Mean take any number of operands; the Graph's ops take two.
Term chain(const Step& step, OpKind kind) {
  Term result = termOf(step, 0);
  for (size_t i = 1; i < step.inputs().size(); ++i) {
    if (!step.input(i)) need(badModel("input {} is missing", i));
    result = make(kind, {result, termOf(step, i)});
  }
  return result;
}
template <OpKind kind> Status importChain(Step& step) { return step.set(chain(step, kind)); }
Status importMean(Step& step) {
  const Term sum = chain(step, OpKind::Add);
  return step.set(step.inputs().size() == 1 ? sum
                                            : sum / static_cast<double>(step.inputs().size()));
}

/// Limits were float attributes before opset 11. An absent one limits nothing.
Status importClip(Step& step) {
  const auto least = step.scalarAttrOrInput("min", 1, 11),
             most = step.scalarAttrOrInput("max", 2, 11);
  return step.set(step.build.add(OpKind::Clip, {step.input(0), least, most}));
}

Status importGreater(Step& step) { return step.set(less(termOf(step, 1), termOf(step, 0))); }
Status importLessOrEqual(Step& step) {
  return step.set(lessOrEqual(termOf(step, 0), termOf(step, 1)));
}
Status importGreaterOrEqual(Step& step) {
  return step.set(lessOrEqual(termOf(step, 1), termOf(step, 0)));
}

constexpr Operator kFunctionOperators[] = {
    {"And", 2, 2, 1, importAnd},
    {"BitShift", 2, 2, 1, importBitShift},
    {"BitwiseNot", 1, 1, 1, importBitwiseNot},
    {"Clip", 1, 3, 1, importClip},
    {"Greater", 2, 2, 1, importGreater},
    {"GreaterOrEqual", 2, 2, 1, importGreaterOrEqual},
    {"IsInf", 1, 1, 1, importIsInf},
    {"IsNaN", 1, 1, 1, importIsNaN},
    {"LessOrEqual", 2, 2, 1, importLessOrEqual},
    {"Max", 1, -1, 1, importChain<OpKind::Max>},
    {"Mean", 1, -1, 1, importMean},
    {"Min", 1, -1, 1, importChain<OpKind::Min>},
    {"Mod", 2, 2, 1, importMod},
    {"Not", 1, 1, 1, importNot},
    {"Or", 2, 2, 1, importOr},
    {"Pow", 2, 2, 1, importPow},
    {"Sign", 1, 1, 1, importSign},
    {"Sum", 1, -1, 1, importChain<OpKind::Add>},
    {"Xor", 2, 2, 1, importXor},
};

} // namespace

std::span<const Operator> functionOperators() { return kFunctionOperators; }

} // namespace candela::import
