// Between the types that are computed with and those that only store: Cast, and linear
// quantization, which ends in it.
#include <algorithm>

#include "core/compiler/import/operators/storage.h"

namespace candela::import {
namespace {

/// The element type that an attribute names; `none` where it is absent or 0.
Elem elemAttr(NodeContext& context, const std::string& name) {
  const int64_t type = attrOf<int64_t>(context, name, 0);
  if (type == 0) return Elem::none;
  const auto elem =
      type > 0 && type <= INT32_MAX ? elemFromOnnx(static_cast<int>(type)) : std::nullopt;
  if (!elem)
    need(Status(failure(Code::unsupported, "attribute '{}': element type {}", name, type)));
  return *elem;
}

bool isZero(const Term& x) {
  if (!x.value()->isConstant()) return false;
  const Tensor tensor = need(x.value()->tensor());
  return std::all_of(tensor.bytes.data(), tensor.bytes.data() + tensor.sizeBytes(),
                     [](std::byte b) { return b == std::byte(0); });
}

/// Packed integers as the bytes that hold them.
Term unpacked(const Term& x) {
  return isPacked(x.elem()) && isInteger(x.elem())
             ? x.cast(isSigned(x.elem()) ? Elem::i8_ : Elem::u8_)
             : x;
}

} // namespace

Term convert(const Term& x, Elem to, bool saturate) {
  if (x.elem() == to) return x;
  return make(OpKind::Cast, {x}, {{"to", to}, {"saturate", int64_t(saturate)}});
}

Term along(const Term& p, int64_t axis, int64_t rank) {
  if (p.rank() != 1 || p.count() == 1) return p.count() == 1 ? p.reshape({}) : p;
  Shape shape(static_cast<size_t>(rank - need(resolveAxis(axis, rank))), 1);
  shape[0] = p.count();
  return p.reshape(shape);
}

Term inBlocks(const Term& p, int64_t axis, int64_t block, int64_t dim) {
  const int64_t width = std::min(block, dim);
  Shape shape = p.shape();
  shape.insert(shape.begin() + axis + 1, width);
  Shape flat = p.shape();
  flat[axis] *= width;
  return p.unsqueeze(axis + 1).expand(shape).reshape(flat).slice(axis, 0, dim);
}

Term unpackedBits(const Term& packed, int64_t bits) {
  if (bits == 8) return packed;
  const int64_t each = 8 / bits;
  const int64_t last = packed.rank();
  std::vector<Term> parts;
  for (int64_t i = 0; i < each; ++i) {
    const Term moved = i == 0 ? packed : shiftRight(packed, static_cast<double>(i * bits));
    const bool isLast = i + 1 == each;
    parts.push_back(
        (isLast ? moved : bitAnd(moved, static_cast<double>((1 << bits) - 1))).unsqueeze(last));
  }
  Shape shape = packed.shape();
  shape.back() *= each;
  return concat(parts, last).reshape(shape);
}

Term dequantizeBy(const Term& x, const Term& scale, const Term* zero) {
  Term real = isInteger(x.elem()) ? unpacked(x).cast(Elem::i32_) : x.cast(scale.elem());
  if (zero && !isZero(*zero)) real = real - unpacked(*zero).cast(real.elem());
  return real.cast(scale.elem()) * scale;
}

/// Clamped before the addition and by it, so that nothing leaves i32.
Term quantizeBy(const Term& quotient, const Term* zero, Elem to, bool saturate) {
  const bool shifted = zero && !isZero(*zero);
  if (isFloat(to))
    return convert(shifted ? quotient + zero->cast(quotient.elem()) : quotient, to, saturate);
  const IntegerRange range = integerRange(to);
  const double lowest = static_cast<double>(range.lowest),
               highest = static_cast<double>(range.highest);
  const Term whole =
      make(OpKind::Round, {quotient}, {{"to", Elem::i32_}, {"mode", std::string("rne")}});
  if (!shifted) return min(max(whole, lowest), highest).cast(to);
  const Term offset = unpacked(*zero).cast(Elem::i32_);
  return (min(max(whole, lowest - offset), highest - offset) + offset).cast(to);
}

namespace {

/// Powers of two. CONVERT rounds to the nearest; the other ways are one step from there where it
/// went too far.
Term toScale(const Term& from, bool saturate, const std::string& mode) {
  const bool isLong =
      from.elem() == Elem::f64_ || (isInteger(from.elem()) && elemBits(from.elem()) >= 32);
  const Term x = from.cast(isLong ? Elem::f64_ : Elem::f32_);
  Term y = convert(x, Elem::f8e8m0_, true).cast(x.elem());
  if (mode == "up")
    y = select(less(y, x), y * 2.0, y);
  else if (mode == "down")
    y = select(less(x, y), y * 0.5, y);
  else if (mode != "nearest")
    need(badModel("round_mode '{}' is not up, down or nearest", mode));
  if (saturate) return convert(y, Elem::f8e8m0_, true);
  const Term inside =
      logicalAnd(lessOrEqual(x.number(0x1p-127), x), lessOrEqual(x, x.number(0x1p127)));
  return convert(select(inside, y, std::numeric_limits<double>::quiet_NaN()), Elem::f8e8m0_, false);
}

/// `saturate` says something about 8-bit floats only, `round_mode` about f8e8m0 only.
Status castTo(NodeContext& context, Elem to) {
  const bool saturate = need(context.flagAttr("saturate", true));
  const std::string mode = attrOf<std::string>(context, "round_mode", "up");
  const Term x = termOf(context, 0);
  if (to == Elem::f8e8m0_ && x.elem() != to) return context.set(toScale(x, saturate, mode));
  return context.set(convert(x, to, saturate && isFloat(to) && isStorageOnly(to)));
}

Status importCast(NodeContext& context) {
  const Elem to = elemAttr(context, "to");
  if (to == Elem::none) return badModel("attribute 'to' is missing");
  return castTo(context, to);
}

Status importCastLike(NodeContext& context) { return castTo(context, context.input(1)->type.elem); }

bool isComputed(Elem elem) { return isFloat(elem) && !isStorageOnly(elem); }

/// How scales and zero points lie along x: one, one for each index of an axis, or one for each
/// block along it.
struct Grid {
  const Term& x;
  int64_t axis, block;

  Grid(NodeContext& context, const Term& x) : x(x), axis(attrOf<int64_t>(context, "axis", 1)) {
    block = attrOf<int64_t>(context, "block_size", 0);
    if (block < 0) need(badModel("block_size {} is below 0", block));
  }

  void check(const Term& scale, const Term* zero) {
    if (zero && zero->shape() != scale.shape() && !(zero->count() == 1 && scale.count() == 1))
      need(badModel("zero point of shape {}, but scale of shape {}", shapeText(zero->shape()),
                    shapeText(scale.shape())));
    if (scale.count() == 1) {
      block = 0;
      return;
    }
    axis = need(resolveAxis(axis, x.rank()));
    Shape expected = block ? x.shape() : Shape{x.dim(axis)};
    if (block) expected[axis] = expected[axis] / block + (expected[axis] % block != 0);
    if (scale.shape() != expected)
      need(badModel("scale of shape {}, but {} along axis {} in blocks of {} has {}",
                    shapeText(scale.shape()), x.text(), axis, block, shapeText(expected)));
  }

  /// A scale or zero point in a shape that broadcasts to x.
  Term spread(const Term& p) const {
    return block ? inBlocks(p, axis, block, x.dim(axis)) : along(p, axis, x.rank());
  }

  /// For the ops that know an axis, but no blocks.
  Term operand(const Term& p) const { return p.count() == 1 ? p.reshape({}) : p; }
  Attrs attrs(const Term& scale) const {
    return scale.count() == 1 ? Attrs() : Attrs{{"axis", axis}};
  }
};

Status importQuantizeLinear(NodeContext& context) {
  const Term x = termOf(context, 0), scale = termOf(context, 1);
  std::optional<Term> zero;
  if (context.input(2)) zero = termOf(context, 2);
  Grid grid(context, x);
  grid.check(scale, zero ? &*zero : nullptr);
  const bool saturate = need(context.flagAttr("saturate", true));
  const Elem named = elemAttr(context, "output_dtype"), precision = elemAttr(context, "precision");
  const Elem asked = named == Elem::none ? Elem::u8_ : named;
  const Elem to = zero ? zero->elem() : asked;
  if (named != Elem::none && named != to)
    return badModel("output_dtype is {}, but the zero point is {}", elemName(named), elemName(to));
  if (precision != Elem::none && !isComputed(precision))
    return badModel("precision is {}", elemName(precision));
  if (isInteger(to) ? elemBits(to) > 16 : !isFloat(to) || !isStorageOnly(to) || to == Elem::f8e8m0_)
    return badModel("quantization to {}", elemName(to));
  const Elem computed = isComputed(scale.elem()) ? scale.elem() : Elem::f32_;
  const Elem inner = precision != Elem::none ? precision : computed;
  const bool isWhole = isInteger(to), isWide = inner == Elem::f32_ || inner == Elem::f64_;
  if (isWhole && isWide && !grid.block) {
    // Of a packed type: in bytes, whose clamp is the wider one.
    const Elem wider = isSigned(to) ? Elem::i8_ : Elem::u8_;
    const Elem byte = isPacked(to) ? wider : to;
    const Term offset =
        zero ? unpacked(*zero)
             : Term(context.build,
                    context.build.constant(Payload::splat(byte, scale.count(), 0), scale.shape()));
    Term y = make(OpKind::Quantize,
                  {x.cast(inner), grid.operand(scale.cast(inner)), grid.operand(offset)},
                  grid.attrs(scale));
    if (byte == to) return context.set(y);
    const IntegerRange range = integerRange(to);
    y = min(max(y, static_cast<double>(range.lowest)), static_cast<double>(range.highest));
    return context.set(y.cast(to));
  }
  const Term quotient = x.cast(inner) / grid.spread(scale.cast(inner));
  std::optional<Term> offset;
  if (zero) offset = grid.spread(unpacked(*zero));
  return context.set(quantizeBy(quotient, offset ? &*offset : nullptr, to, saturate));
}

/// (x - zero) * scale, in the wider of the types of the scale and the result.
Status importDequantizeLinear(NodeContext& context) {
  const Term x = unpacked(termOf(context, 0)), scale = termOf(context, 1);
  std::optional<Term> zero;
  if (context.input(2)) zero = unpacked(termOf(context, 2));
  if (zero && zero->elem() != x.elem())
    return badModel("the zero point is {}, but x is {}", elemName(zero->elem()),
                    elemName(x.elem()));
  Grid grid(context, x);
  grid.check(scale, zero ? &*zero : nullptr);
  const Elem named = elemAttr(context, "output_dtype"),
             to = named == Elem::none ? scale.elem() : named;
  if (!isComputed(to))
    return badModel("the result would be {}: output_dtype is missing or wrong", elemName(to));
  const bool isWhole = isInteger(x.elem());
  if (isWhole ? elemBits(x.elem()) > 32 || x.elem() == Elem::u32_
              : !isFloat(x.elem()) || !isStorageOnly(x.elem()))
    return badModel("dequantization of {}", elemName(x.elem()));
  const bool same = isStorageOnly(scale.elem()) || scale.elem() == to;
  const Elem inner = same ? to : Elem::f32_;
  if (isWhole && !grid.block) {
    std::vector<Term> operands = {x, grid.operand(scale.cast(inner))};
    if (zero) operands.push_back(grid.operand(*zero));
    return context.set(make(OpKind::Dequantize, operands, grid.attrs(scale)).cast(to));
  }
  const Elem wide = to == Elem::f64_ ? to : Elem::f32_;
  std::optional<Term> offset;
  if (zero) offset = grid.spread(*zero);
  return context.set(
      dequantizeBy(x, grid.spread(scale.cast(wide)), offset ? &*offset : nullptr).cast(to));
}

constexpr Operator kStorageOperators[] = {
    {"Cast", 1, 1, 1, importCast},
    {"CastLike", 2, 2, 1, importCastLike},
    {"DequantizeLinear", 2, 3, 1, importDequantizeLinear},
    {"QuantizeLinear", 2, 3, 1, importQuantizeLinear},
};

} // namespace

std::span<const Operator> storageOperators() { return kStorageOperators; }

} // namespace candela::import
