#include <limits>

#include "core/compiler/import/term.h"

/// Comparisons, logic, bits, remainders, signs, powers and limits.
namespace candela::import {
namespace {

Term boolOf(const NodeContext& context, size_t input) {
  const Term x = termOf(context, input);
  if (x.elem() != Elem::bool_) need(badModel("operand is {}, expected bool", x.text()));
  return x;
}
Status importNot(NodeContext& context) { return context.set(logicalNot(boolOf(context, 0))); }
Status importAnd(NodeContext& context) {
  return context.set(bitAnd(boolOf(context, 0), boolOf(context, 1)));
}
Status importOr(NodeContext& context) {
  return context.set(bitOr(boolOf(context, 0), boolOf(context, 1)));
}
Status importXor(NodeContext& context) {
  return context.set(bitXor(boolOf(context, 0), boolOf(context, 1)));
}

Status importBitwiseNot(NodeContext& context) {
  return context.set(bitXor(termOf(context, 0), -1));
}

Status importBitShift(NodeContext& context) {
  const std::string direction = attrOf<std::string>(context, "direction", "");
  if (direction == "LEFT") return context.set(shiftLeft(termOf(context, 0), termOf(context, 1)));
  if (direction == "RIGHT") return context.set(shiftRight(termOf(context, 0), termOf(context, 1)));
  return badModel("direction '{}' is not LEFT or RIGHT", direction);
}

/// Types that are only stored are looked at in f32.
Term realOf(const NodeContext& context) {
  const Term x = termOf(context, 0);
  if (!isFloat(x.elem())) need(badModel("operand is {}, expected floats", x.text()));
  return isStorageOnly(x.elem()) ? x.cast(Elem::f32_) : x;
}

Status importIsNaN(NodeContext& context) {
  const Term x = realOf(context);
  return context.set(logicalNot(equal(x, x)));
}

Status importIsInf(NodeContext& context) {
  const bool negative = need(context.flagAttr("detect_negative", true));
  const bool positive = need(context.flagAttr("detect_positive", true));
  const Term x = realOf(context);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!negative && !positive) return context.set(full(context.build, 0, x.shape(), Elem::bool_));
  if (negative && positive) return context.set(equal(abs(x), kInfinity));
  return context.set(equal(x, positive ? kInfinity : -kInfinity));
}

Status importSign(NodeContext& context) {
  const Term x = termOf(context, 0);
  if (isUnsigned(x.elem())) return context.set(min(x, 1));
  if (isInteger(x.elem())) return context.set(min(max(x, -1), 1));
  return context.set(select(less(x, 0), -1, select(less(x.number(0), x), 1, x)));
}

/// fmod: the remainder has the sign of a, else that of b, as in Python.
Status importMod(NodeContext& context) {
  const bool fmod = need(context.flagAttr("fmod", false));
  const Term a = termOf(context, 0), b = termOf(context, 1), rest = rem(a, b);
  if (fmod || isUnsigned(a.elem())) return context.set(rest);
  const Term isBelow = less(b, 0), differs = bitXor(less(rest, 0), isBelow);
  const Term zero = isFloat(a.elem()) ? select(isBelow, b.number(-0.0), b.number(0)) : rest;
  return context.set(select(equal(rest, 0), zero, select(differs, rest + b, rest)));
}

/// In the base's type. Powers of integers wrap; 64 bits hold what wraps in fewer. Of mixed types in
/// one that has both.
Status importPow(NodeContext& context) {
  const Term base = termOf(context, 0), exponent = termOf(context, 1);
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
  if (!isInteger(elem) || isInteger(by)) return context.set(power.cast(elem));
  // A product of whole numbers is whole: a target's pow may fall just short of it, which the cast
  // would cut off.
  return context.set(select(equal(max(floor(by64), 0), by64), roundEven(power), power).cast(elem));
}

/// Min, Max, Sum and Mean take any number of operands; the Graph's ops take two.
Term chain(const NodeContext& context, OpKind kind) {
  Term result = termOf(context, 0);
  for (size_t i = 1; i < context.inputs().size(); ++i) {
    if (!context.input(i)) need(badModel("input {} is missing", i));
    result = make(kind, {result, termOf(context, i)});
  }
  return result;
}
template <OpKind kind> Status importChain(NodeContext& context) {
  return context.set(chain(context, kind));
}
Status importMean(NodeContext& context) {
  const Term sum = chain(context, OpKind::Add);
  return context.set(
      context.inputs().size() == 1 ? sum : sum / static_cast<double>(context.inputs().size()));
}

/// Limits were float attributes before opset 11. An absent one limits nothing.
Status importClip(NodeContext& context) {
  const auto least = context.scalarAttrOrInput("min", 1, 11),
             most = context.scalarAttrOrInput("max", 2, 11);
  return context.set(context.build.add(OpKind::Clip, {context.input(0), least, most}));
}

Status importGreater(NodeContext& context) {
  return context.set(less(termOf(context, 1), termOf(context, 0)));
}
Status importLessOrEqual(NodeContext& context) {
  return context.set(lessOrEqual(termOf(context, 0), termOf(context, 1)));
}
Status importGreaterOrEqual(NodeContext& context) {
  return context.set(lessOrEqual(termOf(context, 1), termOf(context, 0)));
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
