#include <algorithm>

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

Attributes axisOf(const graph::Node& node) {
  Attributes attributes;
  if (node.hasAttr("axis")) attributes["axis"] = node.intAttr("axis");
  return attributes;
}

/// One value per index of an axis, beside x.
Term besideAxis(GraphWriter& w, const graph::Node& node, const Term& x, const Term& each) {
  if (each.rank() == 0) return each;
  const int64_t axis = node.hasAttr("axis") ? node.intAttr("axis") : 1;
  const auto rank = static_cast<int>(x.rank());
  return w.along(each, graph::wrapAxis(axis, rank), rank);
}

bool isByte(Elem elem) { return elem == Elem::i8_ || elem == Elem::u8_; }

Term absentOr(const Terms& terms, size_t i) { return i < terms.size() ? terms[i] : Term{}; }

} // namespace

void writeQuantize(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Term& x = in[0];
  const Elem to = node.result()->type.elem;
  if (x.elem != Elem::f64_)
    return w.bind(node.result(), w.make("QuantizeLinear", in, to, x.dims, axisOf(node)));
  const Term scale = besideAxis(w, node, x, in[1]);
  const Term zero = w.cast(besideAxis(w, node, x, in[2]), Elem::f64_);
  const Term steps = w.op("Round", {w.op("Div", {x, scale})});
  const Term isNan = w.make("IsNaN", {steps}, Elem::bool_, steps.dims);
  const Term moved = w.op("Add", {w.where(isNan, w.number(0, x.elem), steps), zero});
  w.bind(node.result(), converted(w, moved, to, "trunc", true));
}

void writeDequantize(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Term &x = in[0], &scale = in[1], zero = absentOr(in, 2);
  const bool isShort = elemBits(x.elem) <= 16 || (x.elem == Elem::i32_ && zero.isAbsent());
  if (isShort && scale.elem != Elem::f64_)
    return w.bind(node.result(), w.make("DequantizeLinear", in, scale.elem, x.dims, axisOf(node)));
  Term whole = w.cast(x, Elem::i64_);
  if (!zero.isAbsent())
    whole = w.op("Sub", {whole, w.cast(besideAxis(w, node, x, zero), Elem::i64_)});
  const Term real = w.cast(whole, scale.elem);
  w.bind(node.result(), w.op("Mul", {real, besideAxis(w, node, x, scale)}));
}

void writeMatmulInteger(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const graph::TensorType& type = node.result()->type;
  if (isByte(in[0].elem))
    return w.bind(node.result(), w.make("MatMulInteger", in, type.elem, type.dims));
  const auto shifted = [&](size_t i) {
    const Term wide = w.cast(in[i], type.elem), zero = absentOr(in, i + 2);
    return zero.isAbsent() ? wide : w.op("Sub", {wide, w.cast(zero, type.elem)});
  };
  const Terms factors = {shifted(0), shifted(1)};
  w.bind(node.result(), w.make("MatMul", factors, type.elem, type.dims));
}

void writeConvInteger(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const graph::TensorType& type = node.result()->type;
  if (!isByte(in[0].elem)) refuse("ONNX has no convolution of {}", elemName(in[0].elem));
  const Term bias = absentOr(in, 2), xZero = absentOr(in, 3), wZero = absentOr(in, 4);
  const Term sums =
      w.make("ConvInteger", {in[0], in[1], xZero, wZero}, type.elem, type.dims, attributesOf(node));
  if (bias.isAbsent()) return w.bind(node.result(), sums);
  w.bind(node.result(), w.op("Add", {sums, w.along(bias, 1, type.rank())}));
}

namespace {

/// How many bits a product of these takes beside its sign, at most.
int64_t productBits(GraphWriter& w, const Term& x, const Term& multiplier, int64_t leftShift) {
  int64_t factor = 31;
  if (const std::vector<int64_t>* known = w.knownInts(multiplier)) {
    factor = 0;
    for (const int64_t each : *known)
      while (factor < 31 && (std::abs(each) >> factor) != 0) ++factor;
  }
  const int64_t own = isSigned(x.elem) ? elemBits(x.elem) - 1 : elemBits(x.elem);
  return own + factor + leftShift;
}

Term scaledBy(GraphWriter& w, const Term& x, const Term& multiplier, int64_t leftShift) {
  const Term factor = w.cast(multiplier, Elem::i64_);
  const Term y = w.op("Mul", {w.cast(x, Elem::i64_), factor});
  if (leftShift == 0) return y;
  return w.op("Mul", {y, w.whole(static_cast<__int128>(1) << leftShift, Elem::i64_)});
}

/// rne(x / 2^shift) of i64, for shifts of 0 to 62.
Term roundedShift(GraphWriter& w, const Term& x, const Term& shift) {
  const Term zero = w.whole(0, Elem::i64_), one = w.whole(1, Elem::i64_);
  const Term places =
      w.op("Min", {w.op("Max", {w.cast(shift, Elem::i64_), zero}), w.whole(62, Elem::i64_)});
  const Term power = w.cast(w.op("BitShift", {w.whole(1, Elem::u64_), w.cast(places, Elem::u64_)},
                                 {{"direction", std::string("LEFT")}}),
                            Elem::i64_);
  const Attributes floored = {{"fmod", int64_t(0)}};
  const Term rest = w.op("Mod", {x, power}, floored);
  const Term below = w.op("Div", {w.op("Sub", {x, rest}), power});
  // Twice the rest stays below 2^63.
  const Term twice = w.op("Sub", {rest, w.op("Sub", {power, rest})});
  const Term isOdd = w.test("Equal", w.op("Mod", {below, w.whole(2, Elem::i64_)}, floored), one);
  const Term isHalf = w.test("Equal", twice, zero);
  const Term isUp = w.op("Or", {w.test("Greater", twice, zero), w.op("And", {isHalf, isOdd})});
  return w.op("Add", {below, w.cast(isUp, Elem::i64_)});
}

} // namespace

Term rescaled(GraphWriter& w, const Rescaled& r) {
  const std::vector<int64_t>* shifts = w.knownInts(r.shift);
  if (!shifts || std::ranges::any_of(*shifts, [](int64_t s) { return s > 62; }))
    refuse("a rescaling whose shift is no constant of at most 62 bits");
  int64_t bits = productBits(w, r.a, r.multiplier, r.leftShift);
  Term sum = scaledBy(w, r.a, r.multiplier, r.leftShift);
  if (!r.b.isAbsent()) {
    bits = std::max(bits, productBits(w, r.b, r.bMultiplier, r.bLeftShift)) + 1;
    sum = w.op("Add", {sum, scaledBy(w, r.b, r.bMultiplier, r.bLeftShift)});
  }
  if (bits > 62) refuse("a rescaling of {} bits, more than i64 holds", bits);
  const Term rounded = roundedShift(w, sum, r.shift);
  const Term moved = w.op("Add", {rounded, w.cast(r.zero, Elem::i64_)});
  return w.cast(w.limit(moved, r.low, r.high), r.to);
}

void writeRescale(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Elem to = node.elemAttr("to");
  const IntegerRange range = integerRange(to);
  Rescaled rescale{.a = in[0],
                   .multiplier = in[1],
                   .shift = in[2],
                   .zero = in[3],
                   .b = absentOr(in, 4),
                   .bMultiplier = absentOr(in, 5),
                   .leftShift = node.intAttr("left_shift"),
                   .bLeftShift = node.intAttr("b_left_shift"),
                   .low = range.lowest,
                   .high = range.highest,
                   .to = to};
  if (node.hasAttr("clamp_min"))
    rescale.low = std::max<__int128>(rescale.low, node.intAttr("clamp_min"));
  if (node.hasAttr("clamp_max"))
    rescale.high = std::min<__int128>(rescale.high, node.intAttr("clamp_max"));
  if (to == Elem::u64_) refuse("a rescaling to u64");
  w.bind(node.result(), rescaled(w, rescale));
}

void writeTable(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0)), table = w.of(node.operand(1));
  const auto look = [&](const Term& place) {
    return w.make("Gather", {table, place}, table.elem, x.dims, {{"axis", int64_t(0)}});
  };
  const auto lowest = integerRange(x.elem).lowest;
  const Term place = w.op("Sub", {w.cast(x, Elem::i64_), w.whole(lowest, Elem::i64_)});
  if (x.elem != Elem::i16_) return w.bind(node.result(), look(place));
  const Term step = w.whole(128, Elem::i64_);
  const Term from = w.op("Div", {place, step});
  const Term rest = w.op("Sub", {place, w.op("Mul", {from, step})});
  const Term base = w.cast(look(from), Elem::i64_);
  const Term next = w.cast(look(w.op("Add", {from, w.whole(1, Elem::i64_)})), Elem::i64_);
  const Term rise = w.op("Mul", {w.op("Sub", {next, base}), rest});
  const Term rounded = w.op("Add", {rise, w.whole(64, Elem::i64_)});
  const Term below = w.op("Sub", {rounded, w.op("Mod", {rounded, step}, {{"fmod", int64_t(0)}})});
  w.bind(node.result(), w.cast(w.op("Add", {base, w.op("Div", {below, step})}), x.elem));
}

void writeSoftmaxInteger(GraphWriter&, const graph::Node&) {
  refuse("its table of exponentials and its reciprocal by segments have no operator");
}

void writeNormInteger(GraphWriter&, const graph::Node&) {
  refuse("its reciprocal of a root by segments has no operator");
}

} // namespace candela::exporter::onnx
