#include "arithmetic.hpp"

#include <algorithm>
#include <cfloat>

namespace cpu {

namespace {

int widthOf(uint8_t elem) { return static_cast<int>(cdl_elem_bits(elem)); }
bool isFloatElem(uint8_t elem) { return isFloat(tyOf(elem)); }

Value asBool(Builder& b, Value i1) { return b.cast(i1, Ty::I8, false); }
Value isTrue(Builder& b, Value i8) { return b.compare(Cmp::NE, i8, b.zero(i8.ty, i8.lanes)); }

Value unary(Builder& b, uint16_t fn, Value x) {
  switch (fn) {
  case CDL_UNARY_NEG: return b.neg(x);
  case CDL_UNARY_ABS: return b.abs(x);
  case CDL_UNARY_FLOOR: return b.round(x, Round::FLOOR);
  case CDL_UNARY_CEIL: return b.round(x, Round::CEIL);
  case CDL_UNARY_TRUNC: return b.round(x, Round::TRUNC);
  case CDL_UNARY_ROUND_EVEN: return b.round(x, Round::EVEN);
  case CDL_UNARY_SQRT: return b.sqrt(x);
  case CDL_UNARY_RCP: return b.div(b.real(x.ty, 1), x);
  case CDL_UNARY_RSQRT: return b.div(b.real(x.ty, 1), b.sqrt(x));
  case CDL_UNARY_EXP: return expF32(b, x);
  case CDL_UNARY_LOG: return logF32(b, x);
  case CDL_UNARY_TANH: return tanhF32(b, x);
  case CDL_UNARY_ERF: return erfF32(b, x);
  default: return sigmoidF32(b, x);
  }
}

/// Divides integers as the integer semantics say: x / 0 = 0, x rem 0 = x, lowest / -1 wraps.
Value divide(Builder& b, Value x, Value y, bool isSigned, bool remainder) {
  const Value zero = b.zero(x.ty, x.lanes), one = b.splat(b.integer(x.ty, 1), x.lanes);
  const Value byZero = b.compare(Cmp::EQ, y, zero);
  Value unsafe = byZero;
  Value byMinusOne;
  if (isSigned) {
    byMinusOne = b.compare(Cmp::EQ, y, b.integer(x.ty, -1));
    unsafe = b.bitOr(unsafe, byMinusOne);
  }
  const Value divisor = b.select(unsafe, one, y);
  Value value = remainder ? b.rem(x, divisor, isSigned) : b.div(x, divisor, isSigned);
  if (isSigned) value = b.select(byMinusOne, remainder ? zero : b.neg(x), value);
  return b.select(byZero, remainder ? x : zero, value);
}

Value shift(Builder& b, Value x, Value by, bool left, bool isSigned, int width) {
  // The count is compared without a sign: a negative one is at least the width too.
  const Value far = b.compare(Cmp::UGT, by, b.integer(x.ty, width - 1));
  const Value safe = b.select(far, b.integer(x.ty, isSigned && !left ? width - 1 : 0), by);
  const Value value = left ? b.shl(x, safe) : b.shr(x, safe, isSigned);
  return isSigned && !left ? value : b.select(far, b.zero(x.ty, x.lanes), value);
}

Value binary(Builder& b, uint16_t fn, uint8_t elem, Value x, Value y) {
  const bool isSigned = isSignedElem(elem), isBool = elem == CDL_BOOL;
  if (x.lanes < y.lanes) x = b.splat(x, y.lanes);
  if (y.lanes < x.lanes) y = b.splat(y, x.lanes);
  switch (fn) {
  case CDL_BINARY_ADD: return b.add(x, y);
  case CDL_BINARY_SUB: return b.sub(x, y);
  case CDL_BINARY_MUL: return b.mul(x, y);
  case CDL_BINARY_DIV: return isFloatElem(elem) ? b.div(x, y) : divide(b, x, y, isSigned, false);
  case CDL_BINARY_REM: return divide(b, x, y, isSigned, true);
  case CDL_BINARY_MIN: return b.min(x, y, isSigned);
  case CDL_BINARY_MAX: return b.max(x, y, isSigned);
  case CDL_BINARY_AND:
    return isBool ? asBool(b, b.bitAnd(isTrue(b, x), isTrue(b, y))) : b.bitAnd(x, y);
  case CDL_BINARY_OR:
    return isBool ? asBool(b, b.bitOr(isTrue(b, x), isTrue(b, y))) : b.bitOr(x, y);
  case CDL_BINARY_XOR:
    return isBool ? asBool(b, b.bitXor(isTrue(b, x), isTrue(b, y))) : b.bitXor(x, y);
  case CDL_BINARY_SHL: return shift(b, x, y, true, isSigned, widthOf(elem));
  default: return shift(b, x, y, false, isSigned, widthOf(elem));
  }
}

Value fromBF16(Builder& b, Value bits) {
  return b.bitcast(b.shl(b.cast(bits, Ty::I32, false), b.i32(16)), Ty::F32);
}

/// To nearest, ties to even: what is added carries into the bits that stay. NaN is quiet.
Value toBF16(Builder& b, Value x) {
  if (b.flushes && b.isa().hasBF16 && x.lanes == b.isa().lanes(4)) return b.toBF16(x);
  const Value bits = b.bitcast(x, Ty::I32);
  const Value high = b.shr(bits, b.i32(16), false);
  const Value isOdd = b.bitAnd(high, b.i32(1));
  const Value rounded = b.shr(b.add(b.add(bits, b.i32(0x7fff)), isOdd), b.i32(16), false);
  const Value isNaN = b.compare(Cmp::UNORDERED, x, x);
  const Value quiet = b.bitOr(b.bitAnd(high, b.i32(0x8000)), b.i32(0x7fc0));
  return b.cast(b.select(isNaN, quiet, rounded), Ty::I16, false);
}

Value clamped(Builder& b, Value x, double largest) {
  const Value most = b.real(x.ty, largest);
  return b.min(b.max(x, b.neg(most)), most);
}

Typed widened(Builder& b, const Typed& x) {
  if (x.elem == CDL_F16) return {b.fromF16(x.value), CDL_F32};
  if (x.elem == CDL_BF16) return {fromBF16(b, x.value), CDL_F32};
  return x;
}

/// f32 as the half.
Value narrowed(Builder& b, Value x, uint8_t half, bool saturate) {
  const bool isF16 = half == CDL_F16;
  const Value value = saturate ? clamped(b, x, isF16 ? 65504.0 : 0x1.fep127) : x;
  return isF16 ? b.toF16(value) : toBF16(b, value);
}

Value convert(Builder& b, uint16_t fn, const Typed& x, uint8_t elem, bool saturate) {
  if (x.elem == elem && isHalf(elem) && !saturate) return x.value;
  if (isHalf(x.elem)) return convert(b, fn, widened(b, x), elem, saturate);
  if (isHalf(elem))
    return narrowed(b, convert(b, fn, x, CDL_F32, false), elem, saturate && isFloatElem(x.elem));
  const Ty to = tyOf(elem);
  // Infinities become the largest number too.
  if (saturate && isFloatElem(elem) && isFloatElem(x.elem)) {
    return clamped(b, b.cast(x.value, to, true), elem == CDL_F32 ? FLT_MAX : DBL_MAX);
  }
  if (x.elem == elem) return x.value;
  if (elem == CDL_BOOL)
    return asBool(b, b.compare(Cmp::NE, x.value, b.zero(x.value.ty, x.value.lanes)));
  if (isFloatElem(elem)) return b.cast(x.value, to, isSignedElem(x.elem));
  if (isFloatElem(x.elem)) {
    Value rounded = x.value;
    if (fn == CDL_CONVERT_RNE) rounded = b.round(rounded, Round::EVEN);
    if (fn == CDL_CONVERT_FLOOR) rounded = b.round(rounded, Round::FLOOR);
    if (saturate) return b.toInteger(rounded, to, isSignedElem(elem));
    // The result wraps: it is the low bits of the value clamped to -2^63 .. 2^64 - 1.
    const Value isLarge = b.compare(Cmp::GE, rounded, b.real(rounded.ty, 0x1p63));
    const Value wide = b.select(isLarge, b.toInteger(rounded, Ty::I64, false),
                                b.toInteger(rounded, Ty::I64, true));
    return b.cast(wide, to, true);
  }
  const bool isSigned = isSignedElem(x.elem);
  if (!saturate || x.elem == CDL_BOOL) return b.cast(x.value, to, isSigned);
  // The value goes by way of i64, in which every source but u64 is what it is.
  const int width = widthOf(elem);
  const bool toSigned = isSignedElem(elem);
  Value wide = b.cast(x.value, Ty::I64, isSigned);
  if (width < 64) {
    const int64_t lo = toSigned ? -(int64_t(1) << (width - 1)) : 0;
    const int64_t hi = (int64_t(1) << (toSigned ? width - 1 : width)) - 1;
    wide = b.min(b.max(wide, b.i64(lo)), b.i64(hi));
  } else if (!toSigned) {
    wide = b.max(wide, b.i64(0));
  }
  return b.cast(wide, to, true);
}

} // namespace

/// Whether an element type comes to bf16 by way of f32 with one rounding that counts.
static bool isNarrow(uint8_t elem) { return cdl_elem_bits(elem) <= 16 || isFloatElem(elem); }

/// Halves are moved as their bits and computed in f32, which holds what their arithmetic rounds.
static bool canTakeHalves(uint16_t kind, uint16_t fn, const std::vector<uint8_t>& elems) {
  if (kind == CDL_KIND_COPY || kind == CDL_KIND_SELECT) return true;
  if (std::ranges::find(elems, uint8_t(CDL_F64)) != elems.end()) return false;
  if (kind == CDL_KIND_CONVERT && elems[1] == CDL_BF16 && !isNarrow(elems[0])) return false;
  std::vector<uint8_t> wide = elems;
  std::ranges::replace_if(wide, isHalf, uint8_t(CDL_F32));
  return canCompute(kind, fn, wide);
}

bool canCompute(uint16_t kind, uint16_t fn, const std::vector<uint8_t>& elems) {
  if (std::ranges::any_of(elems, isHalf)) return canTakeHalves(kind, fn, elems);
  for (uint8_t elem : elems) {
    Ty ty;
    if (!typeOf(elem, ty)) return false;
  }
  const uint8_t elem = elems[0];
  switch (kind) {
  case CDL_KIND_COPY:
  case CDL_KIND_SELECT: return true;
  case CDL_KIND_COMPARE: return true;
  case CDL_KIND_CONVERT: {
    const bool u64 = elems[0] == CDL_U64 || elems[1] == CDL_U64;
    return !u64 && (isFloatElem(elems[0]) || fn == CDL_CONVERT_TRUNC || !isFloatElem(elems[1]));
  }
  case CDL_KIND_UNARY:
    if (!isFloatElem(elem)) return false;
    switch (fn) {
    case CDL_UNARY_NEG:
    case CDL_UNARY_ABS:
    case CDL_UNARY_FLOOR:
    case CDL_UNARY_CEIL:
    case CDL_UNARY_TRUNC:
    case CDL_UNARY_ROUND_EVEN:
    case CDL_UNARY_SQRT:
    case CDL_UNARY_RCP:
    case CDL_UNARY_RSQRT: return true;
    case CDL_UNARY_EXP:
    case CDL_UNARY_LOG:
    case CDL_UNARY_TANH:
    case CDL_UNARY_ERF:
    case CDL_UNARY_SIGMOID: return elem == CDL_F32;
    default: return false;
    }
  case CDL_KIND_BINARY:
    switch (fn) {
    case CDL_BINARY_ADD:
    case CDL_BINARY_SUB:
    case CDL_BINARY_MUL:
    case CDL_BINARY_DIV:
    case CDL_BINARY_MIN:
    case CDL_BINARY_MAX: return elem != CDL_BOOL;
    case CDL_BINARY_AND:
    case CDL_BINARY_OR:
    case CDL_BINARY_XOR: return !isFloatElem(elem);
    case CDL_BINARY_SHL:
    case CDL_BINARY_SHR:
    case CDL_BINARY_REM: return !isFloatElem(elem) && elem != CDL_BOOL;
    default: return false;
    }
  default: return false;
  }
}

/// The same in f32, and rounded where the result is a half.
static Typed computeWidened(Builder& b, uint16_t kind, uint16_t fn, uint8_t elem,
                            const std::vector<Typed>& in) {
  std::vector<Typed> wide;
  for (const Typed& x : in) wide.push_back(widened(b, x));
  if (!isHalf(elem)) return compute(b, kind, fn, elem, false, wide);
  const Typed value = compute(b, kind, fn, CDL_F32, false, wide);
  return {narrowed(b, value.value, elem, false), elem};
}

Typed compute(Builder& b, uint16_t kind, uint16_t fn, uint8_t elem, bool saturate,
              const std::vector<Typed>& in) {
  const bool isComputed =
      kind != CDL_KIND_COPY && kind != CDL_KIND_SELECT && kind != CDL_KIND_CONVERT;
  if (isComputed && isHalf(in[0].elem)) return computeWidened(b, kind, fn, elem, in);
  switch (kind) {
  case CDL_KIND_COPY: return in[0];
  case CDL_KIND_UNARY: return {unary(b, fn, in[0].value), elem};
  case CDL_KIND_BINARY: return {binary(b, fn, in[0].elem, in[0].value, in[1].value), elem};
  case CDL_KIND_COMPARE: {
    const Cmp less = isSignedElem(in[0].elem) ? Cmp::LT : Cmp::ULT;
    const Cmp how = fn == CDL_COMPARE_EQ ? Cmp::EQ : less;
    return {asBool(b, b.compare(how, in[0].value, in[1].value)), elem};
  }
  case CDL_KIND_SELECT: return {b.select(isTrue(b, in[0].value), in[1].value, in[2].value), elem};
  default: return {convert(b, fn, in[0], elem, saturate), elem};
  }
}

bool canComputeExpr(const cdl_image_t* image, const cdl_expr_t& expr) {
  for (uint32_t s = 0; s < expr.steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(image, expr.first_step + s);
    std::vector<uint8_t> elems;
    for (int k = 0; k < step.operands; ++k) elems.push_back(step.in[k].elem);
    elems.push_back(step.elem);
    const bool isRescale = step.kind == CDL_KIND_RESCALE && step.in[0].elem != CDL_U64 &&
                           cdl_elem_bits(step.elem) <= 32;
    if (!isRescale && !canCompute(step.kind, step.fn, elems)) return false;
  }
  return true;
}

bool isLongExpr(const cdl_image_t* image, const cdl_expr_t& expr) {
  constexpr int kFew = 12, kPolynomial = 12;
  int instructions = 0;
  for (uint32_t s = 0; s < expr.steps; ++s) {
    const cdl_step_t& step = *cdl_get_step(image, expr.first_step + s);
    const bool isPolynomial =
        step.kind == CDL_KIND_UNARY &&
        (step.fn == CDL_UNARY_EXP || step.fn == CDL_UNARY_LOG || step.fn == CDL_UNARY_TANH ||
         step.fn == CDL_UNARY_ERF || step.fn == CDL_UNARY_SIGMOID);
    instructions += isPolynomial || step.kind == CDL_KIND_RESCALE ? kPolynomial : 1;
  }
  return instructions >= kFew;
}

Typed computeExpr(Builder& b, const cdl_image_t* image, const cdl_expr_t& expr,
                  const std::vector<Typed>& views, const Typed* acc) {
  return computeSteps(b, image, expr, 0, expr.steps, views, acc);
}

Typed computeSteps(Builder& b, const cdl_image_t* image, const cdl_expr_t& expr, uint32_t first,
                   uint32_t end, const std::vector<Typed>& views, const Typed* acc) {
  std::vector<Typed> values(first); // of which none is read
  for (uint32_t s = first; s < end; ++s) {
    const cdl_step_t& step = *cdl_get_step(image, expr.first_step + s);
    std::vector<Typed> in;
    for (int k = 0; k < step.operands; ++k) {
      const cdl_operand_t& from = step.in[k];
      switch (from.source) {
      case CDL_FROM_ACC: in.push_back(*acc); break;
      case CDL_FROM_VIEW: in.push_back(views[from.index]); break;
      case CDL_FROM_STEP: in.push_back(values[from.index]); break;
      default: in.push_back({b.bits(tyOf(from.elem), step.imm), from.elem});
      }
    }
    values.push_back(step.kind == CDL_KIND_RESCALE
                         ? computeRescale(b, stepForm(step), step.elem, in)
                         : compute(b, step.kind, step.fn, step.elem, step.flags & 1, in));
  }
  return values.back();
}

namespace {

Typed rescaleByIntegers(Builder& b, const RescaleForm& form, uint8_t elem,
                        const std::vector<Typed>& in) {
  const auto wide = [&](size_t i) {
    return b.cast(in[i].value, Ty::I64, isSignedElem(in[i].elem));
  };
  Value sum = b.shl(b.mul(wide(0), wide(1)), b.i64(form.aLeftShift));
  if (in.size() > 4) sum = b.add(sum, b.shl(b.mul(wide(4), wide(5)), b.i64(form.bLeftShift)));
  // The bits below the shift round to nearest, ties to even. The sum is below 2^63, so nothing
  // wraps.
  const Value zero = b.i64(0), one = b.i64(1), shift = b.max(wide(2), zero);
  const Value far = b.compare(Cmp::GT, shift, b.i64(63)), safe = b.min(shift, b.i64(63));
  const Value floor = b.shr(sum, safe, true);
  const Value rest = b.sub(sum, b.shl(floor, safe));
  // Without a shift half is 1, which no rest reaches.
  const Value half = b.shl(one, b.max(b.sub(safe, one), zero));
  const Value isOdd = b.compare(Cmp::NE, b.bitAnd(floor, one), zero);
  const Value up =
      b.bitOr(b.compare(Cmp::UGT, rest, half), b.bitAnd(b.compare(Cmp::EQ, rest, half), isOdd));
  Value value = b.select(far, zero, b.add(floor, b.cast(up, Ty::I64, false)));
  // The value is clamped before the zero point is added too, so that the addition cannot wrap; the
  // limits are of at most 32 bits.
  const Value limit = b.i64(int64_t(1) << 40);
  value = b.add(b.min(b.max(value, b.neg(limit)), limit), wide(3));
  value = b.min(b.max(value, b.i64(form.clampMin)), b.i64(form.clampMax));
  return {b.cast(value, tyOf(elem), true), elem};
}

} // namespace

RescaleForm stepForm(const cdl_step_t& step) {
  RescaleForm form;
  form.clampMin = static_cast<int32_t>(static_cast<uint32_t>(step.imm));
  form.clampMax = static_cast<int32_t>(static_cast<uint32_t>(step.imm >> 32));
  return form;
}

Typed computeRescale(Builder& b, const RescaleForm& form, uint8_t elem,
                     const std::vector<Typed>& in) {
  if (in.size() > 4 || !b.isa().scalesInF64) return rescaleByIntegers(b, form, elem, in);
  // In f64: a (below 2^53) and M * 2^(ka - s) are exact, and a fused multiply-add onto 1.5 * 2^52
  // rounds their product once, to the nearest integer, ties to even. Results beyond 2^51 round
  // elsewhere, and clamp to the same limit.
  const auto real = [&](size_t i) {
    return b.cast(in[i].value, Ty::F64, isSignedElem(in[i].elem));
  };
  const Value shift = b.cast(b.max(in[2].value, b.i32(0)), Ty::I64, true);
  const Value exponent = b.sub(b.i64(1023 + form.aLeftShift), b.min(shift, b.i64(1023)));
  const Value scale = b.mul(real(1), b.bitcast(b.shl(exponent, b.i64(52)), Ty::F64));
  return {roundedF64(b, form, elem, real(0), scale, real(3)), elem};
}

Value roundedF64(Builder& b, const RescaleForm& form, uint8_t elem, Value a, Value scale,
                 Value zero) {
  const Value magic = b.real(Ty::F64, 0x1.8p52);
  Value value = b.add(b.sub(b.fma(a, scale, magic), magic), zero);
  value = b.min(b.max(value, b.real(Ty::F64, static_cast<double>(form.clampMin))),
                b.real(Ty::F64, static_cast<double>(form.clampMax)));
  // The plain conversion of a value within the limits of i32 or u32 is exact.
  const Value whole = b.truncated(value, form.clampMax > INT32_MAX ? Ty::I64 : Ty::I32);
  return b.cast(whole, tyOf(elem), true);
}

Value roundedF32(Builder& b, const RescaleForm& form, Value a, Value scale, int64_t zero) {
  const auto limit = [&](int64_t bound) {
    return b.f32(static_cast<float>(0x1.8p23 + static_cast<double>(bound - zero)));
  };
  Value value = b.fma(b.cast(a, Ty::F32, true), scale, b.f32(0x1.8p23f));
  value = b.min(b.max(value, limit(form.clampMin)), limit(form.clampMax));
  // The low bits of 1.5 * 2^23 + n are n.
  return b.sub(b.bitcast(value, Ty::I32), b.i32(static_cast<int32_t>(0x4b400000 - zero)));
}

bool saturatesInF32(const RescaleForm& form, double scale, int64_t zero) {
  const int64_t low = form.clampMin - zero, high = form.clampMax - zero;
  const auto reach = static_cast<double>(std::max(std::abs(low), std::abs(high)) + 1);
  return low <= 0 && high >= 0 && low <= high && reach < 0x1p21 && scale < 0x1p20 &&
         scale * 0x1p24 >= reach;
}

bool JoinRescale::isNarrow() const {
  // The two-operand RESCALE sums two products of 9 and 15 bits, then keeps as many bits of fraction
  // as leave a rounding in i32.
  return a >= 0 && b >= 0 && a < (1 << 30) && b < (1 << 30) && shift > 15 && shift <= 15 + 24;
}

Value joined(Builder& b, const JoinRescale& joining, Value x, Value y) {
  const Value pair = b.bitOr(b.bitAnd(x, b.i32(0xffff)), b.shl(y, b.i32(16)));
  const auto products = [&](int64_t p, int64_t q) {
    return b.dot2(pair, b.i32(static_cast<int32_t>(p | q << 16)));
  };
  const Value high = products(joining.a >> 15, joining.b >> 15),
              low = products(joining.a & 0x7fff, joining.b & 0x7fff);
  // The sum is high * 2^15 + low: this is its floor, and whether anything lies below.
  const Value floor = b.add(high, b.shr(low, b.i32(15), true));
  const Value rest = b.min(b.bitAnd(low, b.i32(0x7fff)), b.i32(1), false);
  const auto by = static_cast<int32_t>(joining.shift - 15);
  const Value isOdd = b.bitAnd(b.shr(floor, b.i32(by), true), b.i32(1));
  const Value up = b.add(b.bitOr(isOdd, rest), b.i32((1 << (by - 1)) - 1));
  const Value value =
      b.add(b.shr(b.add(floor, up), b.i32(by), true), b.i32(static_cast<int32_t>(joining.zero)));
  return b.min(b.max(value, b.i32(static_cast<int32_t>(joining.form.clampMin))),
               b.i32(static_cast<int32_t>(joining.form.clampMax)));
}

} // namespace cpu
