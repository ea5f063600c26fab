#include <algorithm>
#include <limits>

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

using graph::OpKind;

/// The type that narrow integers are computed in: what ONNX knows them by the same operator in, and
/// what wraps to the same bits.
Elem arithmeticOf(Elem elem) { return isInteger(elem) && elemBits(elem) < 32 ? Elem::i32_ : elem; }

Elem unsignedOf(Elem elem) {
  switch (elemBits(elem)) {
  case 8: return Elem::u8_;
  case 16: return Elem::u16_;
  case 32: return Elem::u32_;
  default: return Elem::u64_;
  }
}

std::string_view operatorOf(OpKind kind) { return graph::opInfo(kind).onnx; }

/// Of u64, which no wider type holds: by at least 1, and what that gives for 0 put right.
Term dividedUnsigned(GraphWriter& w, const std::string& opType, const Terms& operands,
                     const Attributes& attributes) {
  const Term &a = operands[0], &b = operands[1];
  const Term zero = w.whole(0, a.elem);
  const Term whole = w.op(opType, {a, w.op("Max", {b, w.whole(1, a.elem)})}, attributes);
  const Term isZero = w.test("Equal", b, zero);
  if (opType == "Mod") return w.op("Add", {whole, w.op("Mul", {a, w.cast(isZero, a.elem)})});
  const Term isOther = w.make("Not", {isZero}, Elem::bool_, isZero.dims);
  return w.op("Mul", {whole, w.cast(isOther, a.elem)});
}

/// Integers: x / 0 = 0 and x rem 0 = x, where ONNX says nothing of it; and the lowest of a type by
/// -1, where its quotient wraps.
Term divided(GraphWriter& w, OpKind kind, const Terms& operands) {
  const Elem elem = operands[0].elem;
  const Attributes remainder = {{"fmod", int64_t(1)}};
  const bool isDiv = kind == OpKind::Div;
  const char* opType = isDiv ? "Div" : "Mod";
  const Attributes attributes = isDiv ? Attributes{} : remainder;
  const std::vector<int64_t>* known = w.knownInts(operands[1]);
  const bool isSafe =
      known && std::ranges::none_of(*known, [](int64_t by) { return by == 0 || by == -1; });
  if (isFloat(elem) || isSafe) return w.op(opType, operands, attributes);
  const Elem wide = elemBits(elem) < 32 ? Elem::i32_ : Elem::i64_;
  if (elem == Elem::u64_) return dividedUnsigned(w, opType, operands, attributes);
  const Term a = w.cast(operands[0], wide), b = w.cast(operands[1], wide);
  const Term zero = w.whole(0, wide), one = w.whole(1, wide), minus = w.whole(-1, wide);
  const Term isZero = w.test("Equal", b, zero), isMinus = w.test("Equal", b, minus);
  const Term safe = w.where(w.op("Or", {isZero, isMinus}), one, b);
  const Term whole = w.op(opType, {a, safe}, attributes);
  if (!isDiv) return w.cast(w.where(isZero, a, whole), elem);
  const Term signedWhole = w.where(isMinus, w.op("Sub", {zero, a}), whole);
  return w.cast(w.where(isZero, zero, signedWhole), elem);
}

/// A shift by at least the width gives 0, or the sign.
Term shifted(GraphWriter& w, OpKind kind, const Term& a, const Term& b) {
  const Elem bits = unsignedOf(a.elem), wide = bits == Elem::u16_ ? Elem::u32_ : bits;
  const int64_t width = elemBits(a.elem);
  const Term by = w.cast(w.cast(b, bits), Elem::u64_);
  const Term isBeyond = w.test("GreaterOrEqual", by, w.whole(width, Elem::u64_));
  const Term places = w.cast(w.op("Min", {by, w.whole(width - 1, Elem::u64_)}), wide);
  const bool isLeft = kind == OpKind::ShiftLeft;
  const Attributes direction = {{"direction", std::string(isLeft ? "LEFT" : "RIGHT")}};
  const auto shift = [&](const Term& x) {
    const Term moved = w.op("BitShift", {w.cast(w.cast(x, bits), wide), places}, direction);
    return w.cast(w.cast(moved, bits), Elem::i64_);
  };
  const Term zero = w.whole(0, Elem::i64_);
  if (isLeft || !isSigned(a.elem)) return w.cast(w.where(isBeyond, zero, shift(a)), a.elem);
  // Of a negative number the complement is shifted, which is none.
  const Term isNegative = w.test("Less", w.cast(a, Elem::i64_), zero);
  const Term flipped = w.op("BitwiseNot", {a});
  const Term negative = w.op("BitwiseNot", {shift(flipped)});
  const Term kept = w.where(isNegative, negative, shift(a));
  const Term sign = w.where(isNegative, w.whole(-1, Elem::i64_), zero);
  return w.cast(w.where(isBeyond, sign, kept), a.elem);
}

Term bitwise(GraphWriter& w, OpKind kind, const Terms& operands) {
  if (operands[0].elem != Elem::bool_) return w.op(std::string(operatorOf(kind)), operands);
  switch (kind) {
  case OpKind::BitAnd: return w.op("And", operands);
  case OpKind::BitOr: return w.op("Or", operands);
  default: return w.op("Xor", operands);
  }
}

/// Of types that the operator of ONNX has not, by way of i32, which wraps to the same bits.
Term widened(GraphWriter& w, const std::string& opType, const Terms& operands) {
  const Elem elem = operands[0].elem, wide = arithmeticOf(elem);
  Terms wider;
  for (const Term& operand : operands) wider.push_back(w.cast(operand, wide));
  return w.cast(w.op(opType, wider), elem);
}

Term truncated(GraphWriter& w, const Term& x) {
  const Term size = w.op("Floor", {w.op("Abs", {x})});
  return w.op("Mul", {w.op("Sign", {x}), size});
}

/// log(1 + x) where 1 + x is rounded to u: log(u) * x / (u - 1), which loses nothing.
Term log1p(GraphWriter& w, const Term& x) {
  const Term one = w.number(1, x.elem), zero = w.number(0, x.elem);
  const Term u = w.op("Add", {x, one});
  const Term step = w.op("Sub", {u, one});
  const Term isSmall = w.test("Equal", step, zero);
  const Term isEnd = w.make("IsInf", {u}, Elem::bool_, u.dims);
  const Term safe = w.where(isSmall, one, step);
  const Term corrected = w.op("Mul", {w.op("Log", {u}), w.op("Div", {x, safe})});
  return w.where(isSmall, x, w.where(isEnd, w.op("Log", {u}), corrected));
}

/// exp(x) - 1 as tanh(x / 2) * (exp(x) + 1), which loses nothing near 0; -1 and inf at the ends.
Term expm1(GraphWriter& w, const Term& x) {
  const Term half = w.number(0.5, x.elem), one = w.number(1, x.elem);
  const Term slope = w.op("Tanh", {w.op("Mul", {x, half})});
  return w.op("Mul", {slope, w.op("Add", {w.op("Exp", {x}), one})});
}

/// What is no more than one operator of the record's name, or of the one given here.
Term simple(GraphWriter& w, OpKind kind, const Terms& operands) {
  switch (kind) {
  case OpKind::Min: return w.op("Min", operands);
  case OpKind::Max: return w.op("Max", operands);
  case OpKind::Pow: return widened(w, "Pow", operands);
  case OpKind::Gelu: return w.op("Gelu", operands);
  case OpKind::Equal: return w.test("Equal", operands[0], operands[1]);
  case OpKind::Less: return w.test("Less", operands[0], operands[1]);
  case OpKind::Select: return w.where(operands[0], operands[1], operands[2]);
  case OpKind::Trunc: return truncated(w, operands[0]);
  case OpKind::Log1p: return log1p(w, operands[0]);
  case OpKind::Expm1: return expm1(w, operands[0]);
  default: break;
  }
  if (operatorOf(kind).empty()) refuse("ONNX has no operator for it");
  return w.op(std::string(operatorOf(kind)), operands);
}

/// The limits of an integer type that a float type holds: the lowest one, and one beyond the
/// highest.
struct FloatLimits {
  double low, beyond;
};

FloatLimits floatLimits(Elem to) {
  const IntegerRange range = integerRange(to);
  return {static_cast<double>(range.lowest), static_cast<double>(range.highest) + 1};
}

/// A float as an integer, which what is out of range becomes the nearest limit of; NaN is 0.
Term saturatedFloat(GraphWriter& w, const Term& x, Elem to) {
  const Term wide = x.elem == Elem::f64_ ? x : w.cast(x, Elem::f32_);
  const IntegerRange range = integerRange(to);
  if (to == Elem::u64_) refuse("a conversion of floats to u64 that saturates");
  const auto [low, beyond] = floatLimits(to);
  const Term isNan = w.make("IsNaN", {wide}, Elem::bool_, wide.dims);
  const Term isLow = w.test("LessOrEqual", wide, w.number(low, wide.elem));
  const Term isHigh = w.test("GreaterOrEqual", wide, w.number(beyond, wide.elem));
  const Term isOut = w.op("Or", {isNan, w.op("Or", {isLow, isHigh})});
  const Term inside = w.cast(w.where(isOut, w.number(0, wide.elem), wide), Elem::i64_);
  const Term lowest = w.whole(range.lowest, Elem::i64_),
             highest = w.whole(range.highest, Elem::i64_);
  return w.cast(w.where(isLow, lowest, w.where(isHigh, highest, inside)), to);
}

/// An integer that wraps in the way that CONVERT says it: by 64 bits.
Term wrappedFloat(GraphWriter& w, const Term& x, Elem to) {
  if (elemBits(to) >= 32) return w.cast(x, to);
  return w.cast(w.cast(x, Elem::i64_), to);
}

} // namespace

Term elementwise(GraphWriter& w, OpKind kind, const Terms& operands) {
  const Elem elem = operands[0].elem;
  const bool isNarrow = isInteger(elem) && elemBits(elem) < 32;
  switch (kind) {
  case OpKind::Div:
  case OpKind::Rem: return divided(w, kind, operands);
  case OpKind::ShiftLeft:
  case OpKind::ShiftRight: return shifted(w, kind, operands[0], operands[1]);
  case OpKind::BitAnd:
  case OpKind::BitOr:
  case OpKind::BitXor: return bitwise(w, kind, operands);
  case OpKind::Relu:
  case OpKind::Neg:
  case OpKind::Abs:
    if (isNarrow) return widened(w, std::string(operatorOf(kind)), operands);
    return simple(w, kind, operands);
  default: return simple(w, kind, operands);
  }
}

Term converted(GraphWriter& w, const Term& x, Elem to, std::string_view mode, bool saturate) {
  const bool toInteger = isInteger(to) && isFloat(x.elem);
  if (toInteger) {
    Term rounded = x;
    if (mode == "rne") rounded = w.op("Round", {x});
    if (mode == "floor") rounded = w.op("Floor", {x});
    return saturate ? saturatedFloat(w, rounded, to) : wrappedFloat(w, rounded, to);
  }
  if (isInteger(to) && saturate && isInteger(x.elem)) {
    const IntegerRange from = integerRange(x.elem), into = integerRange(to);
    const bool isInside = from.lowest >= into.lowest && from.highest <= into.highest;
    if (isInside) return w.cast(x, to);
    const __int128 low = std::max(from.lowest, into.lowest);
    const __int128 high = std::min(from.highest, into.highest);
    return w.cast(w.limit(x, low, high), to);
  }
  if (x.elem == to) return x;
  Attributes attributes = {{"to", static_cast<int64_t>(elemToOnnx(to))}};
  // What storage floats do beyond their range; the operator's own default is to saturate.
  if (isFloat(to) && elemBits(to) <= 8) attributes["saturate"] = int64_t(saturate ? 1 : 0);
  return w.make("Cast", {x}, to, x.dims, std::move(attributes));
}

std::string_view elementwiseForm(OpKind kind) {
  switch (kind) {
  case OpKind::Min: return "Min";
  case OpKind::Max: return "Max";
  case OpKind::Pow: return "Pow";
  case OpKind::Gelu: return "Gelu";
  case OpKind::Div: return "Div; of integers by what may be 0 or -1 a formula";
  case OpKind::Rem: return "Mod; of integers by what may be 0 or -1 a formula";
  case OpKind::ShiftLeft:
  case OpKind::ShiftRight: return "formula: BitShift";
  case OpKind::Trunc:
  case OpKind::Log1p:
  case OpKind::Expm1: return "formula";
  case OpKind::BitAnd: return "BitwiseAnd, And";
  case OpKind::BitOr: return "BitwiseOr, Or";
  case OpKind::BitXor: return "BitwiseXor, Xor";
  default: return operatorOf(kind);
  }
}

void writeCast(GraphWriter& w, const graph::Node& node) {
  const bool saturate = node.intAttr("saturate") != 0;
  const Elem to = node.elemAttr("to");
  w.bind(node.result(), converted(w, w.of(node.operand(0)), to, "trunc", saturate));
}

void writeRound(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  w.bind(node.result(), converted(w, x, node.elemAttr("to"), node.stringAttr("mode"),
                                  node.intAttr("saturate") != 0));
}

void writeClip(GraphWriter& w, const graph::Node& node) {
  const Terms operands = w.operandsOf(node);
  const Term& x = operands[0];
  w.bind(node.result(), w.make("Clip", operands, x.elem, x.dims));
}

void writeBitcast(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const Elem to = node.elemAttr("to");
  if (isInteger(x.elem) && isInteger(to)) return w.bind(node.result(), w.cast(x, to));
  w.bind(node.result(),
         w.make("BitCast", {x}, to, x.dims, {{"to", static_cast<int64_t>(elemToOnnx(to))}}));
}

} // namespace candela::exporter::onnx
