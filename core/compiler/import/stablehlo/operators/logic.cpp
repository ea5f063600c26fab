// Comparisons, choices, bits.
#include <algorithm>

#include "core/compiler/import/stablehlo/broadcast.h"

namespace candela::import::stablehlo {
namespace {

struct Comparison {
  std::string_view direction;
  const char* op; ///< null: EQ, not
  bool (*holds)(int64_t a, int64_t b);
};
constexpr Comparison kComparisons[] = {
    {"EQ", "Equal", [](int64_t a, int64_t b) { return a == b; }},
    {"NE", nullptr, [](int64_t a, int64_t b) { return a != b; }},
    {"LT", "Less", [](int64_t a, int64_t b) { return a < b; }},
    {"LE", "LessOrEqual", [](int64_t a, int64_t b) { return a <= b; }},
    {"GT", "Greater", [](int64_t a, int64_t b) { return a > b; }},
    {"GE", "GreaterOrEqual", [](int64_t a, int64_t b) { return a >= b; }},
};

/// The same bits as another type of as many.
Name bitCast(Step& step, const Name& x, Elem to) {
  return step.add("BitCast", {x}, {{"to", static_cast<int64_t>(elemToOnnx(to))}});
}

Elem signedOf(Elem elem) {
  switch (elemBits(elem)) {
  case 8: return Elem::i8_;
  case 16: return Elem::i16_;
  case 32: return Elem::i32_;
  default: return Elem::i64_;
  }
}

/// Integers that are in the order that floats have with their signs: -NaN, -inf, ..., -0, 0, ...,
/// NaN. The magnitudes of negative ones are turned around.
Name totalOrder(Step& step, const Name& x, Elem elem) {
  const Elem bits = signedOf(elem);
  const Name plain = bitCast(step, x, bits);
  const Name isNegative = step.add("Less", {plain, bitsConstant(step, 0, bits)});
  const Name turned =
      step.add("BitwiseXor", {plain, bitsConstant(step, elemMask(bits) >> 1, bits)});
  return step.add("Where", {isNegative, turned, plain});
}

void writeCompare(Step& step) {
  const std::string direction = step.word("comparison_direction", 0);
  const auto* found = std::ranges::find(kComparisons, direction, &Comparison::direction);
  if (found == std::end(kComparisons)) reject("comparison '{}' is none", direction);
  const Elem elem = step.type(0).elem;
  if (step.type(1).elem != elem)
    reject("operands are {} and {}", step.type(0).text(), step.type(1).text());
  step.expectElem(Elem::bool_);
  const auto holds = [&](const Ints& x) { return int64_t(found->holds(x[0], x[1])); };
  if (elem != Elem::u64_ && foldIntegers(step, holds)) return;
  Operands x = elementwiseOperands(step);
  if (isFloat(elem) && step.word("compare_type", 1) == "TOTALORDER")
    for (Name& name : x.names) name = totalOrder(step, name, elem);
  if (elem == Elem::bool_ && !found->op) return step.setKept(step.add("Xor", x.names), x.kept);
  const bool areOrdered = found->op && direction != "EQ";
  if (elem == Elem::bool_ && areOrdered)
    for (Name& name : x.names) name = step.cast(name, Elem::i32_);
  if (found->op) return step.setKept(step.add(found->op, x.names), x.kept);
  step.setKept(step.add("Not", {step.add("Equal", x.names)}), x.kept);
}

void writeSelect(Step& step) {
  if (step.type(0).elem != Elem::bool_)
    reject("operand 0 is {}, expected bools", step.type(0).text());
  const auto chosen = [](const Ints& x) { return x[0] != 0 ? x[1] : x[2]; };
  for (const size_t i : {1, 2})
    if (step.type(i) != step.output())
      reject("operand {} is {}, but its result is {}", i, step.type(i).text(),
             step.output().text());
  if (foldIntegers(step, chosen)) return;
  const Operands x = elementwiseOperands(step, true);
  step.setKept(step.add("Where", x.names), x.kept);
}

void writeBits(Step& step, const char* op, const char* logical) {
  const Elem elem = step.output().elem;
  if (isFloat(elem)) reject("its result is {}, expected integers", step.output().text());
  for (size_t i = 0; i < step.inputCount(); ++i)
    if (step.type(i).elem != elem)
      reject("operand {} is {}, but its result is {}", i, step.type(i).text(),
             step.output().text());
  const Operands x = elementwiseOperands(step);
  step.setKept(step.add(elem == Elem::bool_ ? logical : op, x.names), x.kept);
}
void writeAnd(Step& step) {
  if (foldIntegers(step, [](const Ints& x) { return x[0] & x[1]; })) return;
  writeBits(step, "BitwiseAnd", "And");
}
void writeOr(Step& step) {
  if (foldIntegers(step, [](const Ints& x) { return x[0] | x[1]; })) return;
  writeBits(step, "BitwiseOr", "Or");
}
void writeXor(Step& step) { writeBits(step, "BitwiseXor", "Xor"); }
void writeNot(Step& step) { writeBits(step, "BitwiseNot", "Not"); }

Elem unsignedOf(Elem elem) {
  switch (elemBits(elem)) {
  case 8: return Elem::u8_;
  case 16: return Elem::u16_;
  case 32: return Elem::u32_;
  default: return Elem::u64_;
  }
}

Name shifted(Step& step, const Name& x, const Name& by, const char* direction) {
  return step.add("BitShift", {x, by}, {{"direction", std::string(direction)}});
}

Operands shiftOperands(Step& step) {
  const Elem elem = step.output().elem;
  if (!isInteger(elem) || elemBits(elem) < 8)
    refuse("its result is {}, expected integers of 8 bits or more", step.output().text());
  for (const size_t i : {0, 1})
    if (step.type(i).elem != elem)
      reject("operand {} is {}, but its result is {}", i, step.type(i).text(),
             step.output().text());
  return elementwiseOperands(step);
}

/// In bits without a sign; by as many as there are, or more, nothing is left.
void writeLogicalShift(Step& step, const char* direction) {
  Operands x = shiftOperands(step);
  const Elem elem = step.output().elem;
  const Elem plain = unsignedOf(elem);
  if (elem != plain)
    for (Name& name : x.names) name = bitCast(step, name, plain);
  const auto width = static_cast<uint64_t>(elemBits(elem));
  const Name isInside = step.add("Less", {x.names[1], bitsConstant(step, width, plain)});
  const Name zero = bitsConstant(step, 0, plain);
  const Name by = step.add("Where", {isInside, x.names[1], zero});
  const Name y = step.add("Where", {isInside, shifted(step, x.names[0], by, direction), zero});
  step.setKept(elem == plain ? y : bitCast(step, y, elem), x.kept);
}
void writeShiftLeft(Step& step) { writeLogicalShift(step, "LEFT"); }
void writeShiftRight(Step& step) { writeLogicalShift(step, "RIGHT"); }

/// With the sign from above: of a negative number what its complement has, complemented.
void writeArithmeticShift(Step& step) {
  const Elem elem = step.output().elem;
  if (isUnsigned(elem)) return writeShiftRight(step);
  const Operands x = shiftOperands(step);
  const Elem plain = unsignedOf(elem);
  const auto most = static_cast<uint64_t>(elemBits(elem)) - 1;
  const Name isNegative = step.add("Less", {x.names[0], bitsConstant(step, 0, elem)});
  const Name magnitude =
      step.add("Where", {isNegative, step.add("BitwiseNot", {x.names[0]}), x.names[0]});
  const Name by =
      step.add("Min", {bitCast(step, x.names[1], plain), bitsConstant(step, most, plain)});
  const Name moved = shifted(step, bitCast(step, magnitude, plain), by, "RIGHT");
  const Name back = bitCast(step, moved, elem);
  step.setKept(step.add("Where", {isNegative, step.add("BitwiseNot", {back}), back}), x.kept);
}

/// Neighbours are added up: pairs of bits, of pairs, of fours, then bytes.
Name ones(Step& step, const Name& x, Elem plain) {
  const auto number = [&](uint64_t bits) { return bitsConstant(step, bits, plain); };
  const auto right = [&](const Name& y, uint64_t by) {
    return shifted(step, y, number(by), "RIGHT");
  };
  const auto masked = [&](const Name& y, uint64_t mask) {
    return step.add("BitwiseAnd", {y, number(mask)});
  };
  constexpr uint64_t kPairs = 0x5555555555555555, kFours = 0x3333333333333333,
                     kBytes = 0x0f0f0f0f0f0f0f0f;
  Name sum = step.add("Sub", {x, masked(right(x, 1), kPairs)});
  sum = step.add("Add", {masked(sum, kFours), masked(right(sum, 2), kFours)});
  sum = masked(step.add("Add", {sum, right(sum, 4)}), kBytes);
  for (uint64_t width = 8; width < static_cast<uint64_t>(elemBits(plain)); width *= 2)
    sum = step.add("Add", {sum, right(sum, width)});
  return masked(sum, 0x7f);
}

struct PlainBits {
  Name bits;
  Elem elem;
  Shape kept;
};

PlainBits plainBits(Step& step) {
  const Elem elem = step.output().elem;
  if (!isInteger(elem) || elemBits(elem) < 8)
    refuse("its result is {}, expected integers of 8 bits or more", step.output().text());
  const Operands x = elementwiseOperands(step);
  const Elem plain = unsignedOf(elem);
  return {elem == plain ? x.names[0] : bitCast(step, x.names[0], plain), plain, x.kept};
}

void setBits(Step& step, const Name& y, const PlainBits& of) {
  const Elem elem = step.output().elem;
  step.setKept(elem == of.elem ? y : bitCast(step, y, elem), of.kept);
}

void writePopulation(Step& step) {
  const PlainBits x = plainBits(step);
  setBits(step, ones(step, x.bits, x.elem), x);
}

/// Those above the highest one: all below it are set, and what is left is counted.
void writeLeadingZeros(Step& step) {
  const PlainBits x = plainBits(step);
  Name filled = x.bits;
  for (uint64_t by = 1; by < static_cast<uint64_t>(elemBits(x.elem)); by *= 2)
    filled = step.add("BitwiseOr",
                      {filled, shifted(step, filled, bitsConstant(step, by, x.elem), "RIGHT")});
  setBits(step, ones(step, step.add("BitwiseNot", {filled}), x.elem), x);
}

void writeBitcastConvert(Step& step) {
  const Elem from = step.type(0).elem, to = step.output().elem;
  if (elemBits(from) != elemBits(to) || isPacked(from) || from == Elem::bool_ || to == Elem::bool_)
    refuse("from {} to {}, which has another size", step.type(0).text(), step.output().text());
  const Operands x = elementwiseOperands(step);
  step.setKept(bitCast(step, x.names[0], to), x.kept);
}

constexpr Operator kLogic[] = {
    {"stablehlo.and", 2, 2, 0, writeAnd},
    {"stablehlo.bitcast_convert", 1, 1, 0, writeBitcastConvert, "between types of one size"},
    {"stablehlo.compare", 2, 2, 0, writeCompare},
    {"stablehlo.count_leading_zeros", 1, 1, 0, writeLeadingZeros},
    {"stablehlo.not", 1, 1, 0, writeNot},
    {"stablehlo.or", 2, 2, 0, writeOr},
    {"stablehlo.popcnt", 1, 1, 0, writePopulation},
    {"stablehlo.select", 3, 3, 0, writeSelect},
    {"stablehlo.shift_left", 2, 2, 0, writeShiftLeft},
    {"stablehlo.shift_right_arithmetic", 2, 2, 0, writeArithmeticShift},
    {"stablehlo.shift_right_logical", 2, 2, 0, writeShiftRight},
    {"stablehlo.xor", 2, 2, 0, writeXor},
};

} // namespace

std::span<const Operator> logicOperators() { return kLogic; }

} // namespace candela::import::stablehlo
