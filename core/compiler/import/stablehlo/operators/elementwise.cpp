// Arithmetic element by element that ONNX has operators for.
#include <algorithm>

#include "core/compiler/import/stablehlo/broadcast.h"
#include "core/support/float_bits.h"

namespace candela::import::stablehlo {
namespace {

void needAlike(Step& step) {
  for (size_t i = 0; i < step.inputCount(); ++i)
    if (step.type(i).elem != step.output().elem)
      reject("operand {} is {}, but its result is {}", i, step.type(i).text(),
             step.output().text());
}

template <const char* Op> void writeUnary(Step& step) {
  needAlike(step);
  const Operands x = elementwiseOperands(step);
  step.setKept(step.add(Op, x.names), x.kept);
}
template <const char* Op> void writeFloatUnary(Step& step) {
  const Operands x = floatOperand(step);
  step.setKept(step.add(Op, x.names), x.kept);
}

/// `logical` is the operator of bools.
void writePair(Step& step, const char* op, const char* logical) {
  needAlike(step);
  const Operands x = elementwiseOperands(step);
  const bool isBool = step.output().elem == Elem::bool_;
  if (isBool && !logical) refuse("operands are bools");
  step.setKept(step.add(isBool ? logical : op, x.names), x.kept);
}

// Sums and products wrap, as those of the device do.
int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

void writeAdd(Step& step) {
  const auto sum = [](const Ints& x) {
    return wrapped(static_cast<uint64_t>(x[0]) + static_cast<uint64_t>(x[1]));
  };
  if (step.output().elem != Elem::bool_ && foldIntegers(step, sum)) return;
  writePair(step, "Add", "Or");
}
void writeSubtract(Step& step) {
  const auto difference = [](const Ints& x) {
    return wrapped(static_cast<uint64_t>(x[0]) - static_cast<uint64_t>(x[1]));
  };
  if (foldIntegers(step, difference)) return;
  writePair(step, "Sub", nullptr);
}
void writeMultiply(Step& step) {
  const auto product = [](const Ints& x) {
    return wrapped(static_cast<uint64_t>(x[0]) * static_cast<uint64_t>(x[1]));
  };
  if (step.output().elem != Elem::bool_ && foldIntegers(step, product)) return;
  writePair(step, "Mul", "And");
}
void writeDivide(Step& step) { writePair(step, "Div", nullptr); }
void writePower(Step& step) { writePair(step, "Pow", nullptr); }
void writeMinimum(Step& step) { writePair(step, "Min", "And"); }

bool hasBits(const Value& value, uint64_t bits) {
  return value.isSplat() && loadElement(value.type.elem, value.constant->bytes.data(), 0) == bits;
}

/// Against 0 it has a name of its own, against -inf it does nothing.
void writeMaximum(Step& step) {
  const Elem elem = step.output().elem;
  if (isFloat(elem))
    for (const size_t lowest : {0, 1})
      if (hasBits(step.input(lowest), lowestBits(elem))) {
        needAlike(step);
        elementwiseOperands(step);
        return step.setValue(step.input(1 - lowest));
      }
  if (isFloat(elem))
    for (const size_t zero : {0, 1})
      if (hasBits(step.input(zero), 0)) {
        needAlike(step);
        const Operands x = elementwiseOperands(step);
        const Value& other = step.input(1 - zero);
        return step.setKept(step.add("Relu", {x.names[1 - zero]}), other.kept);
      }
  writePair(step, "Max", "Or");
}

/// What is left of a division that rounds toward zero.
void writeRemainder(Step& step) {
  needAlike(step);
  const Operands x = elementwiseOperands(step);
  if (step.output().elem == Elem::bool_) refuse("operands are bools");
  step.setKept(step.add("Mod", x.names, {{"fmod", int64_t(1)}}), x.kept);
}

void writeClamp(Step& step) {
  const auto clamped = [](const Ints& x) { return std::min(std::max(x[0], x[1]), x[2]); };
  if (step.output().elem != Elem::u64_ && foldIntegers(step, clamped)) return;
  needAlike(step);
  const Operands x = elementwiseOperands(step, true);
  const bool areScalars = step.input(0).kept.empty() && step.input(2).kept.empty();
  if (areScalars)
    return step.setKept(step.add("Clip", {x.names[1], x.names[0], x.names[2]}), x.kept);
  const Name above = step.add("Max", {x.names[1], x.names[0]});
  step.setKept(step.add("Min", {above, x.names[2]}), x.kept);
}

void writeNegate(Step& step) {
  needAlike(step);
  const Operands x = elementwiseOperands(step);
  const Elem elem = step.output().elem;
  if (isUnsigned(elem))
    return step.setKept(step.add("Sub", {bitsConstant(step, 0, elem), x.names[0]}), x.kept);
  step.setKept(step.add("Neg", x.names), x.kept);
}

constexpr char kAbs[] = "Abs";
constexpr char kAcos[] = "Acos";
constexpr char kAcosh[] = "Acosh";
constexpr char kAsin[] = "Asin";
constexpr char kAsinh[] = "Asinh";
constexpr char kAtan[] = "Atan";
constexpr char kAtanh[] = "Atanh";
constexpr char kCeil[] = "Ceil";
constexpr char kCos[] = "Cos";
constexpr char kCosh[] = "Cosh";
constexpr char kErf[] = "Erf";
constexpr char kExp[] = "Exp";
constexpr char kFloor[] = "Floor";
constexpr char kLog[] = "Log";
constexpr char kRound[] = "Round";
constexpr char kSigmoid[] = "Sigmoid";
constexpr char kSign[] = "Sign";
constexpr char kSin[] = "Sin";
constexpr char kSinh[] = "Sinh";
constexpr char kSqrt[] = "Sqrt";
constexpr char kTan[] = "Tan";
constexpr char kTanh[] = "Tanh";

constexpr Operator kElementwise[] = {
    {"chlo.acos", 1, 1, 0, writeFloatUnary<kAcos>},
    {"chlo.acosh", 1, 1, 0, writeFloatUnary<kAcosh>},
    {"chlo.asin", 1, 1, 0, writeFloatUnary<kAsin>},
    {"chlo.asinh", 1, 1, 0, writeFloatUnary<kAsinh>},
    {"chlo.atan", 1, 1, 0, writeFloatUnary<kAtan>},
    {"chlo.atanh", 1, 1, 0, writeFloatUnary<kAtanh>},
    {"chlo.cosh", 1, 1, 0, writeFloatUnary<kCosh>},
    {"chlo.erf", 1, 1, 0, writeFloatUnary<kErf>},
    {"chlo.sinh", 1, 1, 0, writeFloatUnary<kSinh>},
    {"chlo.tan", 1, 1, 0, writeFloatUnary<kTan>},
    {"stablehlo.abs", 1, 1, 0, writeUnary<kAbs>},
    {"stablehlo.add", 2, 2, 0, writeAdd},
    {"stablehlo.ceil", 1, 1, 0, writeFloatUnary<kCeil>},
    {"stablehlo.clamp", 3, 3, 0, writeClamp},
    {"stablehlo.cosine", 1, 1, 0, writeFloatUnary<kCos>},
    {"stablehlo.divide", 2, 2, 0, writeDivide},
    {"stablehlo.exponential", 1, 1, 0, writeFloatUnary<kExp>},
    {"stablehlo.floor", 1, 1, 0, writeFloatUnary<kFloor>},
    {"stablehlo.log", 1, 1, 0, writeFloatUnary<kLog>},
    {"stablehlo.logistic", 1, 1, 0, writeFloatUnary<kSigmoid>},
    {"stablehlo.maximum", 2, 2, 0, writeMaximum},
    {"stablehlo.minimum", 2, 2, 0, writeMinimum},
    {"stablehlo.multiply", 2, 2, 0, writeMultiply},
    {"stablehlo.negate", 1, 1, 0, writeNegate},
    {"stablehlo.power", 2, 2, 0, writePower},
    {"stablehlo.remainder", 2, 2, 0, writeRemainder},
    {"stablehlo.round_nearest_even", 1, 1, 0, writeFloatUnary<kRound>},
    {"stablehlo.sign", 1, 1, 0, writeUnary<kSign>},
    {"stablehlo.sine", 1, 1, 0, writeFloatUnary<kSin>},
    {"stablehlo.sqrt", 1, 1, 0, writeFloatUnary<kSqrt>},
    {"stablehlo.subtract", 2, 2, 0, writeSubtract},
    {"stablehlo.tan", 1, 1, 0, writeFloatUnary<kTan>},
    {"stablehlo.tanh", 1, 1, 0, writeFloatUnary<kTanh>},
};

} // namespace

std::span<const Operator> elementwiseOperators() { return kElementwise; }

} // namespace candela::import::stablehlo
