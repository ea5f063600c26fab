// Arithmetic element by element.
#include "core/compiler/import/tflite/step.h"

namespace candela::import::tflite {
namespace {

/// What the elements are when they are computed with.
Elem computedElem(const TensorInfo& info) { return info.isQuantized() ? Elem::f32_ : info.elem; }

template <const char* Op> void writeUnary(Step& step) { step.set(0, step.add(Op, {step.real(0)})); }
template <const char* Op> void writeBinary(Step& step) {
  step.set(0, step.add(Op, {step.real(0), step.real(1)}));
}
constexpr char kAbs[] = "Abs";
constexpr char kBitwiseXor[] = "BitwiseXor";
constexpr char kCeil[] = "Ceil";
constexpr char kCos[] = "Cos";
constexpr char kExp[] = "Exp";
constexpr char kFloor[] = "Floor";
constexpr char kLog[] = "Log";
constexpr char kMax[] = "Max";
constexpr char kMin[] = "Min";
constexpr char kNeg[] = "Neg";
constexpr char kRound[] = "Round";
constexpr char kSign[] = "Sign";
constexpr char kSin[] = "Sin";
constexpr char kSqrt[] = "Sqrt";

void writeRsqrt(Step& step) {
  step.set(0, step.add("Reciprocal", {step.add("Sqrt", {step.real(0)})}));
}

void writeSquare(Step& step) {
  const Name x = step.real(0);
  step.set(0, step.add("Mul", {x, x}));
}

void writeSquaredDifference(Step& step) {
  const Name difference = step.add("Sub", {step.real(0), step.real(1)});
  step.set(0, step.add("Mul", {difference, difference}));
}

/// Operators with an activation behind them.
template <typename Options> void writeActivated(Step& step, const char* op) {
  const auto activation = step.options<Options>().fused_activation_function();
  step.set(0, step.activate(step.add(op, {step.real(0), step.real(1)}), activation));
}
void writeAdd(Step& step) { writeActivated<schema::AddOptions>(step, "Add"); }
void writeSub(Step& step) { writeActivated<schema::SubOptions>(step, "Sub"); }
void writeMul(Step& step) { writeActivated<schema::MulOptions>(step, "Mul"); }
void writeDiv(Step& step) { writeActivated<schema::DivOptions>(step, "Div"); }

void writeAddN(Step& step) {
  std::vector<Name> terms;
  for (size_t i = 0; i < step.inputCount(); ++i) terms.push_back(step.real(i));
  step.set(0, step.add("Sum", std::move(terms)));
}

/// Of integers to a power that is one, of floats to any.
void writePow(Step& step) { step.set(0, step.add("Pow", {step.real(0), step.real(1)})); }

/// a - floor(a / b) * b, which has b's sign, exactly.
Name floorMod(Step& step, const Name& a, const Name& b, Elem elem) {
  if (isInteger(elem)) return step.add("Mod", {a, b}, {{"fmod", int64_t(0)}});
  const Name rest = step.add("Mod", {a, b}, {{"fmod", int64_t(1)}});
  const Name zero = step.number(0, elem);
  const Name isOther = step.add("Less", {step.add("Mul", {rest, b}), zero});
  return step.add("Where", {isOther, step.add("Add", {rest, b}), rest});
}

void writeFloorMod(Step& step) {
  step.set(0, floorMod(step, step.real(0), step.real(1), computedElem(step.input(0))));
}

void writeFloorDiv(Step& step) {
  const Name a = step.real(0);
  const Name b = step.real(1);
  if (isFloat(computedElem(step.input(0))))
    return step.set(0, step.add("Floor", {step.add("Div", {a, b})}));
  const Name rest = floorMod(step, a, b, step.input(0).elem);
  step.set(0, step.add("Div", {step.add("Sub", {a, rest}), b}));
}

void writeRightShift(Step& step) {
  step.setStored(0, step.add("BitShift", {step.stored(0), step.stored(1)},
                             {{"direction", std::string("RIGHT")}}));
}

constexpr double kPi = 3.14159265358979323846;

/// atan(y / x), turned by half a circle where x is negative; of zeros what their signs say is not
/// seen.
void writeAtan2(Step& step) {
  const Name y = step.real(0);
  const Name x = step.real(1);
  const Elem elem = computedElem(step.input(0));
  const Name zero = step.number(0, elem);
  const Name pi = step.number(kPi, elem);
  const Name half = step.number(kPi / 2, elem);
  const Name isBelow = step.add("Less", {y, zero});
  const auto signedBy = [&](const Name& angle) {
    return step.add("Where", {isBelow, step.add("Neg", {angle}), angle});
  };
  const Name onAxis =
      step.add("Where", {step.add("Equal", {y, zero}), step.add("Mul", {y, zero}), signedBy(half)});
  const Name plain = step.add("Atan", {step.add("Div", {y, x})});
  const Name turned = step.add("Add", {plain, signedBy(pi)});
  const Name beside = step.add("Where", {step.add("Less", {x, zero}), turned, plain});
  step.set(0, step.add("Where", {step.add("Equal", {x, zero}), onAxis, beside}));
}

constexpr std::string_view kAtanLimits = "the sign of a zero does not count";

constexpr Operator kElementwise[] = {
    {schema::BuiltinOperator_ABS, 1, 1, 1, writeUnary<kAbs>},
    {schema::BuiltinOperator_ADD, 2, 2, 1, writeAdd},
    {schema::BuiltinOperator_ADD_N, 1, -1, 1, writeAddN},
    {schema::BuiltinOperator_ATAN2, 2, 2, 1, writeAtan2, kAtanLimits},
    {schema::BuiltinOperator_BITWISE_XOR, 2, 2, 1, writeBinary<kBitwiseXor>},
    {schema::BuiltinOperator_CEIL, 1, 1, 1, writeUnary<kCeil>},
    {schema::BuiltinOperator_COS, 1, 1, 1, writeUnary<kCos>},
    {schema::BuiltinOperator_DIV, 2, 2, 1, writeDiv},
    {schema::BuiltinOperator_EXP, 1, 1, 1, writeUnary<kExp>},
    {schema::BuiltinOperator_FLOOR, 1, 1, 1, writeUnary<kFloor>},
    {schema::BuiltinOperator_FLOOR_DIV, 2, 2, 1, writeFloorDiv},
    {schema::BuiltinOperator_FLOOR_MOD, 2, 2, 1, writeFloorMod},
    {schema::BuiltinOperator_LOG, 1, 1, 1, writeUnary<kLog>},
    {schema::BuiltinOperator_MAXIMUM, 2, 2, 1, writeBinary<kMax>},
    {schema::BuiltinOperator_MINIMUM, 2, 2, 1, writeBinary<kMin>},
    {schema::BuiltinOperator_MUL, 2, 2, 1, writeMul},
    {schema::BuiltinOperator_NEG, 1, 1, 1, writeUnary<kNeg>},
    {schema::BuiltinOperator_POW, 2, 2, 1, writePow},
    {schema::BuiltinOperator_RIGHT_SHIFT, 2, 2, 1, writeRightShift},
    {schema::BuiltinOperator_ROUND, 1, 1, 1, writeUnary<kRound>},
    {schema::BuiltinOperator_RSQRT, 1, 1, 1, writeRsqrt},
    {schema::BuiltinOperator_SIGN, 1, 1, 1, writeUnary<kSign>},
    {schema::BuiltinOperator_SIN, 1, 1, 1, writeUnary<kSin>},
    {schema::BuiltinOperator_SQRT, 1, 1, 1, writeUnary<kSqrt>},
    {schema::BuiltinOperator_SQUARE, 1, 1, 1, writeSquare},
    {schema::BuiltinOperator_SQUARED_DIFFERENCE, 2, 2, 1, writeSquaredDifference},
    {schema::BuiltinOperator_SUB, 2, 2, 1, writeSub},
};

} // namespace

std::span<const Operator> elementwiseOperators() { return kElementwise; }

} // namespace candela::import::tflite
