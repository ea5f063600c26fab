#include <limits>

#include "core/import/term.h"

/// Logic, bits, remainders, signs and powers.
namespace candela::import {
namespace {

Term boolOf(const Step& step, size_t input) {
  const Term x = termOf(step, input);
  if (x.elem() != Elem::bool_) throw Failure{badModel("operand is {}, expected bool", x.value()->type.text())};
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

Status importIsNaN(Step& step) {
  const Term x = termOf(step, 0), real = isStorageOnly(x.elem()) ? x.cast(Elem::f32_) : x;
  return step.set(logicalNot(equal(real, real)));
}

Status importIsInf(Step& step) {
  const bool negative = need(step.flagAttr("detect_negative", true));
  const bool positive = need(step.flagAttr("detect_positive", true));
  const Term x = termOf(step, 0), real = isStorageOnly(x.elem()) ? x.cast(Elem::f32_) : x;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!negative && !positive) return step.set(full(step.build, 0, x.shape(), Elem::bool_));
  return step.set(equal(negative && positive ? abs(real) : real, positive ? kInfinity : -kInfinity));
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

/// In the base's type. Powers of integers wrap; 64 bits hold what wraps in fewer. Of mixed types in one that has both.
Status importPow(Step& step) {
  const Term base = termOf(step, 0), exponent = termOf(step, 1);
  const Elem elem = base.elem(), by = exponent.elem();
  Elem inner = elem;
  if (isInteger(elem) && isInteger(by))
    inner = elem == by ? elem : isUnsigned(by) ? Elem::u64_ : Elem::i64_;
  else if (isInteger(elem) || elem == Elem::f64_ || by == Elem::f64_)
    inner = Elem::f64_;
  else if (elem != by)
    inner = Elem::f32_;
  return step.set(pow(base.cast(inner), exponent.cast(inner)).cast(elem));
}

Status importMean(Step& step) {
  Term sum = termOf(step, 0);
  for (size_t i = 1; i < step.inputs().size(); ++i) {
    if (!step.input(i)) return badModel("input {} is missing", i);
    sum = sum + termOf(step, i);
  }
  return step.set(step.inputs().size() == 1 ? sum : sum / static_cast<double>(step.inputs().size()));
}

constexpr Operator kOperators[] = {
    {"And", 2, 2, 1, importAnd},     {"BitShift", 2, 2, 1, importBitShift}, {"BitwiseNot", 1, 1, 1, importBitwiseNot},
    {"IsInf", 1, 1, 1, importIsInf}, {"IsNaN", 1, 1, 1, importIsNaN},       {"Mean", 1, -1, 1, importMean},
    {"Mod", 2, 2, 1, importMod},     {"Not", 1, 1, 1, importNot},           {"Or", 2, 2, 1, importOr},
    {"Pow", 2, 2, 1, importPow},     {"Sign", 1, 1, 1, importSign},         {"Xor", 2, 2, 1, importXor},
};

} // namespace

std::span<const Operator> functionOperators() { return kOperators; }

} // namespace candela::import
