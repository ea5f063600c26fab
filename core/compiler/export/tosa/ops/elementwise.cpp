#include <algorithm>
#include <numbers>

#include "core/compiler/export/tosa/ops.h"

namespace candela::exporter::tosa {
namespace {

using graph::OpKind;

Value unary(FunctionWriter& w, const std::string& op, const Value& x) {
  return w.make(op, {x}, x.elem, x.dims);
}

Value select(FunctionWriter& w, const Value& condition, const Value& a, const Value& b) {
  return w.op("select", {condition, a, b});
}

Value squareRoot(FunctionWriter& w, const Value& x) {
  return unary(w, "reciprocal", unary(w, "rsqrt", x));
}

Value truncated(FunctionWriter& w, const Value& x) {
  const Value isNegative = w.test("greater", w.number(0, x.elem), x);
  return select(w, isNegative, unary(w, "ceil", x), unary(w, "floor", x));
}

/// To nearest, ties to even: beyond 2^23 an f32 has no fraction, and what is added there rounds.
Value roundedEven(FunctionWriter& w, const Value& x) {
  if (x.elem != Elem::f32_) refuse("a rounding of {}", elemName(x.elem));
  const Value whole = w.number(8388608, x.elem), size = unary(w, "abs", x);
  const Value rounded = w.op("sub", {w.op("add", {size, whole}), whole});
  const Value isWhole = w.test("greater_equal", size, whole);
  const Value kept = select(w, isWhole, size, rounded);
  const Value isNegative = w.test("greater", w.number(0, x.elem), x);
  return select(w, isNegative, unary(w, "negate", kept), kept);
}

/// log(u) * x / (u - 1) with u = 1 + x, which loses nothing to the rounding of u.
Value log1p(FunctionWriter& w, const Value& x) {
  const Value one = w.number(1, x.elem), zero = w.number(0, x.elem);
  const Value u = w.op("add", {one, x}), logarithm = unary(w, "log", u);
  const Value step = w.op("sub", {u, one});
  const Value isSmall = w.test("equal", step, zero);
  const Value safe = select(w, isSmall, one, step);
  const Value isLarge = w.test("greater", u, w.number(1e4, x.elem));
  const Value corrected = w.mul(logarithm, w.over(x, safe));
  return select(w, isSmall, x, select(w, isLarge, logarithm, corrected));
}

Value half(FunctionWriter& w, const Value& x) { return w.mul(w.number(0.5, x.elem), x); }

/// (exp(x) + exp(-x)) / 2
Value hyperbolicCosine(FunctionWriter& w, const Value& x) {
  const Value negative = unary(w, "exp", unary(w, "negate", x));
  return half(w, w.op("add", {unary(w, "exp", x), negative}));
}

/// Beyond it sqrt(x^2 + 1) is x in f32, and not much farther x^2 is no number of it.
constexpr double kFar = 1e9;
Value logarithmOfTwice(FunctionWriter& w, const Value& x) {
  return w.op("add", {unary(w, "log", x), w.number(std::numbers::ln2, x.elem)});
}

/// Of |x|, with the sign of x: log1p(x + x^2 / (1 + sqrt(x^2 + 1))).
Value areaSine(FunctionWriter& w, const Value& x) {
  const Value one = w.number(1, x.elem);
  const Value whole = unary(w, "abs", x);
  const Value isFar = w.test("greater", whole, w.number(kFar, x.elem));
  const Value size = select(w, isFar, one, whole);
  const Value square = w.mul(size, size);
  const Value root = squareRoot(w, w.op("add", {one, square}));
  const Value inner = w.op("add", {size, w.over(square, w.op("add", {one, root}))});
  const Value positive = select(w, isFar, logarithmOfTwice(w, whole), log1p(w, inner));
  const Value isNegative = w.test("greater", w.number(0, x.elem), x);
  return select(w, isNegative, unary(w, "negate", positive), positive);
}

/// log1p(t + sqrt(2t + t^2)) with t = x - 1.
Value areaCosine(FunctionWriter& w, const Value& x) {
  const Value one = w.number(1, x.elem);
  const Value isFar = w.test("greater", x, w.number(kFar, x.elem));
  const Value t = w.op("sub", {select(w, isFar, one, x), one});
  const Value inner = w.op("add", {w.op("add", {t, t}), w.mul(t, t)});
  const Value near = log1p(w, w.op("add", {t, squareRoot(w, inner)}));
  return select(w, isFar, logarithmOfTwice(w, x), near);
}

/// log1p(2x / (1 - x)) / 2
Value areaTangent(FunctionWriter& w, const Value& x) {
  const Value ratio = w.over(w.op("add", {x, x}), w.op("sub", {w.number(1, x.elem), x}));
  return half(w, log1p(w, ratio));
}

Value expm1(FunctionWriter& w, const Value& x) {
  const Value slope = unary(w, "tanh", half(w, x));
  return w.mul(slope, w.op("add", {w.number(1, x.elem), unary(w, "exp", x)}));
}

Value gelu(FunctionWriter& w, const Value& x) {
  const Value inner = unary(w, "erf", w.mul(w.number(std::numbers::sqrt2 / 2, x.elem), x));
  return w.mul(half(w, x), w.op("add", {w.number(1, x.elem), inner}));
}

/// Of integers: by what is never 0 or -1, and what those give put right.
Value divided(FunctionWriter& w, OpKind kind, const Values& operands) {
  const Elem elem = operands[0].elem;
  if (elemBits(elem) > 32) refuse("TOSA has no division of {}", elemName(elem));
  const Value a = w.cast(operands[0], Elem::i32_), b = w.cast(operands[1], Elem::i32_);
  const Value zero = w.number(0, Elem::i32_), one = w.number(1, Elem::i32_);
  const Value isZero = w.test("equal", b, zero);
  const Value isMinus = w.test("equal", b, w.number(-1, Elem::i32_));
  const Value safe = select(w, w.op("logical_or", {isZero, isMinus}), one, b);
  const Value whole = w.op("int_div", {a, safe});
  if (kind == OpKind::Rem) {
    const Value rest = w.op("sub", {a, w.mul(whole, safe)});
    return w.cast(select(w, isZero, a, rest), elem);
  }
  const Value signedWhole = select(w, isMinus, w.op("sub", {zero, a}), whole);
  return w.cast(select(w, isZero, zero, signedWhole), elem);
}

Value logical(FunctionWriter& w, const std::string& op, const Values& operands) {
  const bool isBool = operands[0].elem == Elem::bool_;
  return w.op((isBool ? "logical_" : "bitwise_") + op, operands);
}

Value equal(FunctionWriter& w, const Value& a, const Value& b) {
  if (a.elem != Elem::bool_) return w.test("equal", a, b);
  return unary(w, "logical_not", w.op("logical_xor", {a, b}));
}

/// Of integers and floats alike.
std::optional<Value> arithmetic(FunctionWriter& w, OpKind kind, const Values& in) {
  const bool isReal = isFloat(in[0].elem);
  switch (kind) {
  case OpKind::Add: return w.op("add", in);
  case OpKind::Sub: return w.op("sub", in);
  case OpKind::Mul:
    if (isReal || in[0].elem == Elem::i32_ || in[0].elem == Elem::i64_) return w.mul(in[0], in[1]);
    return w.cast(w.mul(w.cast(in[0], Elem::i32_), w.cast(in[1], Elem::i32_)), in[0].elem);
  case OpKind::Div: return isReal ? w.over(in[0], in[1]) : divided(w, kind, in);
  case OpKind::Rem:
    if (isReal) refuse("a remainder of floats, which TOSA would round");
    return divided(w, kind, in);
  case OpKind::Min: return w.op("minimum", in);
  case OpKind::Max: return w.op("maximum", in);
  case OpKind::Equal: return equal(w, in[0], in[1]);
  case OpKind::Less: return w.test("greater", in[1], in[0]);
  case OpKind::Select: return select(w, in[0], in[1], in[2]);
  case OpKind::BitAnd: return logical(w, "and", in);
  case OpKind::BitOr: return logical(w, "or", in);
  case OpKind::BitXor: return logical(w, "xor", in);
  case OpKind::Neg: return unary(w, "negate", in[0]);
  case OpKind::Abs: return unary(w, "abs", in[0]);
  case OpKind::Relu: return w.op("maximum", {w.number(0, in[0].elem), in[0]});
  case OpKind::Pow:
    if (!isReal) refuse("TOSA has no powers of integers");
    return w.op("pow", in);
  default: return std::nullopt;
  }
}

/// Of floats, by the operator of the same meaning.
std::optional<std::string_view> functionOf(OpKind kind) {
  switch (kind) {
  case OpKind::Floor: return "floor";
  case OpKind::Ceil: return "ceil";
  case OpKind::Reciprocal: return "reciprocal";
  case OpKind::Exp: return "exp";
  case OpKind::Log: return "log";
  case OpKind::Tanh: return "tanh";
  case OpKind::Sigmoid: return "sigmoid";
  case OpKind::Erf: return "erf";
  case OpKind::Sin: return "sin";
  case OpKind::Cos: return "cos";
  default: return std::nullopt;
  }
}

Value formula(FunctionWriter& w, OpKind kind, const Value& x) {
  switch (kind) {
  case OpKind::Sqrt: return squareRoot(w, x);
  case OpKind::Gelu: return gelu(w, x);
  case OpKind::Trunc: return truncated(w, x);
  case OpKind::RoundEven: return roundedEven(w, x);
  case OpKind::Log1p: return log1p(w, x);
  case OpKind::Expm1: return expm1(w, x);
  case OpKind::Tan: return w.over(unary(w, "sin", x), unary(w, "cos", x));
  case OpKind::Sinh: return w.mul(unary(w, "tanh", x), hyperbolicCosine(w, x));
  case OpKind::Cosh: return hyperbolicCosine(w, x);
  case OpKind::Asinh: return areaSine(w, x);
  case OpKind::Acosh: return areaCosine(w, x);
  case OpKind::Atanh: return areaTangent(w, x);
  default: refuse("TOSA has no operator for it");
  }
}

} // namespace

Value elementwise(FunctionWriter& w, OpKind kind, const Values& operands) {
  if (auto value = arithmetic(w, kind, operands)) return *value;
  const Value& x = operands[0];
  if (const auto function = functionOf(kind)) return unary(w, std::string(*function), x);
  return w.cast(formula(w, kind, w.widened(x)), x.elem);
}

std::string_view elementwiseForm(OpKind kind) {
  if (const auto function = functionOf(kind)) return *function;
  switch (kind) {
  case OpKind::Add: return "add";
  case OpKind::Sub: return "sub";
  case OpKind::Mul: return "mul";
  case OpKind::Div: return "reciprocal, mul; of up to 32 bits int_div";
  case OpKind::Rem: return "formula of integers of up to 32 bits";
  case OpKind::Min: return "minimum";
  case OpKind::Max:
  case OpKind::Relu: return "maximum";
  case OpKind::Equal: return "equal";
  case OpKind::Less: return "greater";
  case OpKind::Select: return "select";
  case OpKind::BitAnd: return "bitwise_and, logical_and";
  case OpKind::BitOr: return "bitwise_or, logical_or";
  case OpKind::BitXor: return "bitwise_xor, logical_xor";
  case OpKind::Neg: return "negate";
  case OpKind::Abs: return "abs";
  case OpKind::Pow: return "pow of floats";
  case OpKind::RoundEven: return "formula of f32";
  case OpKind::Sqrt:
  case OpKind::Gelu:
  case OpKind::Trunc:
  case OpKind::Log1p:
  case OpKind::Expm1:
  case OpKind::Tan:
  case OpKind::Sinh:
  case OpKind::Cosh:
  case OpKind::Asinh:
  case OpKind::Acosh:
  case OpKind::Atanh: return "formula";
  default: return "refused";
  }
}

void writeClip(FunctionWriter& w, const graph::Node& node) {
  Value x = w.of(node.operand(0));
  if (node.operand(1)) x = w.op("maximum", {w.of(node.operand(1)), x});
  if (node.operand(2)) x = w.op("minimum", {w.of(node.operand(2)), x});
  w.bind(node.result(), x);
}

void writeCast(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0));
  const Elem to = node.elemAttr("to");
  typeOf(to, {});
  const bool isReal = isFloat(x.elem);
  if (to == Elem::bool_ && x.elem != Elem::bool_) {
    const Value isZero = w.test("equal", x, w.number(0, x.elem));
    return w.bind(node.result(), unary(w, "logical_not", isZero));
  }
  // The operator rounds, and keeps what is out of range at the nearest limit.
  if (isReal && isInteger(to)) return w.bind(node.result(), w.cast(truncated(w, x), to));
  if (isInteger(to) && node.intAttr("saturate") != 0 && elemBits(to) < elemBits(x.elem)) {
    const IntegerRange range = integerRange(to);
    const Value low = w.op("maximum", {w.number(static_cast<double>(range.lowest), x.elem), x});
    const Value high = w.number(static_cast<double>(range.highest), x.elem);
    return w.bind(node.result(), w.cast(w.op("minimum", {high, low}), to));
  }
  w.bind(node.result(), w.cast(x, to));
}

} // namespace candela::exporter::tosa
