#include <array>
#include <cctype>

#include "core/compiler/program/internal.h"
#include "core/support/scaled_product.h"
#include "core/support/text/expr.h"

namespace candela::program {

namespace {

bool isNumber(Elem elem) { return elem != Elem::bool_ && !isStorageOnly(elem); }

/// The sets of types that spec/primitives.toml names by a letter.
bool inSet(char letter, Elem elem) {
  switch (std::toupper(letter)) {
  case 'B': return elem == Elem::bool_;
  case 'F': return isFloat(elem) && !isStorageOnly(elem);
  case 'I': return elem == Elem::i32_ || elem == Elem::i64_;
  case 'N': return isNumber(elem);
  case 'P': return !isPacked(elem);
  case 'R': return isInteger(elem) && isNumber(elem) && elem != Elem::u64_;
  case 'V': return !isStorageOnly(elem);
  case 'W': return elem == Elem::i32_;
  default: return true;
  }
}

/// Operands and result against the words of the kind.
Status verifyElems(uint16_t kind, std::string_view operandName, const std::vector<Elem>& operands,
                   const std::vector<Elem>& results) {
  std::array<Elem, 26> known{}; // by capital letter
  const auto verifyElem = [&](const auto& nameOf, char letter, Elem elem) {
    if (!inSet(letter, elem)) return badModel("{} cannot have type {}", nameOf(), elemName(elem));
    if (!std::isupper(letter)) return Status::ok();
    Elem& first = known[static_cast<size_t>(letter - 'A')];
    if (first == Elem::none) first = elem;
    if (first != elem)
      return badModel("{} has type {}, expected {}", nameOf(), elemName(elem), elemName(first));
    return Status::ok();
  };
  std::string_view letters = cdl_kind_facts(kind)->elems; // one, a blank, the next one
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto nameOf = [&] { return fmt::format("{} {}", operandName, i); };
    CDL_TRY(verifyElem(nameOf, letters.front(), operands[i]));
    if (letters[2] != '>') letters.remove_prefix(2);
  }
  letters.remove_prefix(letters.find('>') + 2);
  for (size_t i = 0; i < results.size(); ++i) {
    const auto nameOf = [&] {
      return results.size() > 1 ? fmt::format("result {}", i) : std::string("the result");
    };
    CDL_TRY(verifyElem(nameOf, letters.front(), results[i]));
    if (letters.size() > 2) letters.remove_prefix(2);
  }
  return Status::ok();
}

Status verifyFn(uint16_t kind, uint16_t fn, Elem elem) {
  return !isStorageOnly(elem) && text::hasMeaning(kind, fn, elem)
             ? Status::ok()
             : badModel("{} does not take {}", fnName(kind, fn), elemName(elem));
}

/// Bits of magnitude of an operand. Sums of products stay below 2^39 by the integer semantics.
int magnitudeBits(Elem elem) {
  if (elem == Elem::i64_) return 39;
  return elemBits(elem) - (isSigned(elem) ? 1 : 0);
}

/// An operand of a RESCALE times a multiplier of 24 bits, `more` bits of a sum and a left shift:
/// within 63 bits.
Status verifyAlignment(const char* name, Elem elem, int more, int64_t leftShift) {
  const int64_t bits = magnitudeBits(elem) + 24 + more + leftShift;
  if (bits <= 63) return Status::ok();
  return badModel("{} of type {} with left shift {} needs {} bits, at most 63", name,
                  elemName(elem), leftShift, bits);
}

Status verifyStep(const Instr& instr, const Step& step) {
  std::vector<Elem> elems;
  for (const Operand& operand : step.in) {
    elems.push_back(operand.elem);
    if (operand.source == Operand::Source::acc && operand.elem != accumulatorElem(instr))
      return badModel("accumulator of types {} and {}", elemName(accumulatorElem(instr)),
                      elemName(operand.elem));
  }
  if (elems.size() == 1 && step.in[0].source == Operand::Source::constant)
    return badModel("{} of a constant alone", kindName(step.kind));
  CDL_TRY(verifyElems(step.kind, "operand", elems, {step.elem}));
  if (step.kind == CDL_KIND_RESCALE) // its limits are checked with the image
    return verifyAlignment("a", elems[0], 0, 0);
  if (isStorageOnly(step.elem))
    return badModel("{} does not give {}", kindName(step.kind), elemName(step.elem));
  return step.kind == CDL_KIND_CONVERT ? Status::ok() : verifyFn(step.kind, step.fn, elems[0]);
}

/// What an epilogue leaves open: the result's own type is the accumulator's, and accumulating needs
/// y to hold it.
Status verifyContraction(const Instr& instr) {
  const View &a = instr.inputs[0], &b = instr.inputs[1], &y = instr.outputs[0];
  const Elem own = accumulatorElem(instr);
  if (own != Elem::none && !isProduct(a.elem, b.elem, own))
    return badModel("no product of {} and {} gives {}", elemName(a.elem), elemName(b.elem),
                    elemName(own));
  const bool accumulates = instr.intAttr(CDL_ATTR_ACCUMULATE, 0) != 0;
  if (accumulates != instr.inout)
    return badModel("the result is {} but accumulate is {}", instr.inout ? "@inout" : "@out",
                    accumulates ? 1 : 0);
  if (accumulates && own != y.elem)
    return badModel("accumulates {} in a result of {}", elemName(own), elemName(y.elem));
  for (size_t i = 2; i < instr.operandCount(); ++i) {
    const Elem elem = instr.inputs[i].elem, expected = instr.inputs[i - 2].elem;
    if (!isInteger(a.elem))
      return badModel("an operand with a zero point cannot have type {}", elemName(a.elem));
    if (elem != expected)
      return badModel("zero point has type {} but its operand {}", elemName(elem),
                      elemName(expected));
  }
  return Status::ok();
}

/// What an epilogue leaves open as in verifyContraction().
Status verifyScaledMatmul(const Instr& instr) {
  const auto elemOf = [&](size_t i) {
    return i < instr.operandCount() ? instr.inputs[i].elem : Elem::none;
  };
  const Elem own = accumulatorElem(instr);
  ScaledProductTypes types;
  types.isDynamic = instr.fn == CDL_SCALED_MATMUL_DYNAMIC;
  types.a = elemOf(0);
  types.w = elemOf(1);
  types.wScale = elemOf(2);
  types.wZero = elemOf(3);
  types.aScale = elemOf(4);
  types.y = own == Elem::none ? Elem::f32_ : own;
  if (const std::string why = whyNoScaledProduct(types); !why.empty())
    return badModel("no product: {}", why);
  const int64_t block = instr.inputs[1].dims[2];
  if (isInteger(types.w) && (types.isDynamic || isInteger(types.a)) && block > kMostIntegersInBlock)
    return badModel("blocks of {} integers, at most {}", block, kMostIntegersInBlock);
  return Status::ok();
}

/// REDUCE and POOL2D compute in the type of x; sums of narrow floats are f32 for an epilogue.
Status verifyReduction(const Instr& instr) {
  const Elem x = instr.prologue ? instr.expr[instr.prologue - 1].elem : instr.inputs[0].elem;
  const Elem own = accumulatorElem(instr);
  const bool narrow = x == Elem::f16_ || x == Elem::bf16_,
             hasEpilogue = instr.expr.size() > instr.prologue;
  const bool widened = instr.kind == CDL_KIND_REDUCE && own == Elem::f32_ && narrow && hasEpilogue;
  if (instr.kind == CDL_KIND_POOL2D && instr.fn == CDL_POOL2D_AVERAGE && !isFloat(x))
    return badModel("average does not take {}", elemName(x));
  if (own == Elem::none || own == x || widened) return Status::ok();
  return badModel("{} has type {} but its reduction {}",
                  instr.prologue ? "the prologue" : "input 0", elemName(x), elemName(own));
}

/// The aligned products and their sum stay within 63 bits; a multiplier has 24.
Status verifyRescale(const Instr& instr) {
  const auto& in = instr.inputs;
  const int sum = in.size() == 6 ? 1 : 0;
  for (size_t i = 0; i < in.size(); i += 4) {
    const int64_t shift = instr.intAttr(i ? CDL_ATTR_B_LEFT_SHIFT : CDL_ATTR_A_LEFT_SHIFT, 0);
    CDL_TRY(verifyAlignment(i ? "b" : "a", in[i].elem, sum, shift));
  }
  const Elem y = instr.outputs[0].elem;
  const IntegerRange range = integerRange(y);
  const auto lowest = static_cast<int64_t>(range.lowest),
             highest = static_cast<int64_t>(range.highest);
  const int64_t low = instr.intAttr(CDL_ATTR_CLAMP_MIN, lowest);
  const int64_t high = instr.intAttr(CDL_ATTR_CLAMP_MAX, highest);
  if (low < lowest || high > highest || low > high)
    return badModel("clamps to {} .. {}, which {} does not hold", low, high, elemName(y));
  return Status::ok();
}

Status verifyTable(const Instr& instr) {
  const Elem x = instr.inputs[0].elem, y = instr.outputs[0].elem;
  const bool wide = x == Elem::i16_;
  if (!wide && x != Elem::i8_ && x != Elem::u8_)
    return badModel("input 0 cannot have type {}", elemName(x));
  return !wide || y == Elem::i16_ ? Status::ok()
                                  : badModel("a table of i16 cannot have type {}", elemName(y));
}

/// There is something along the middle of x, when something is asked of it.
Status verifyMiddle(const Instr& instr, std::string_view missing) {
  const View& x = instr.inputs[0];
  if (x.dims[1] != 0 || instr.outputs[0].count() == 0) return Status::ok();
  return badModel("{} x of shape {}", missing, shapeText(x.dims));
}

} // namespace

Elem accumulatorElem(const Instr& instr) {
  if (instr.expr.size() == instr.prologue && !instr.outputs.empty()) return instr.outputs[0].elem;
  for (const Step& step : instr.expr)
    for (const Operand& operand : step.in)
      if (operand.source == Operand::Source::acc) return operand.elem;
  return Elem::none;
}

Status verifyTypes(const Instr& instr) {
  const bool accumulates = instr.kind == CDL_KIND_MATMUL || instr.kind == CDL_KIND_CONV2D;
  if (instr.inout && !accumulates && instr.kind != CDL_KIND_SCATTER &&
      instr.kind != CDL_KIND_CUSTOM)
    return badModel("the kind never reads its result, expected @out");
  for (size_t i = 0; i < instr.expr.size(); ++i)
    CDL_TRY(verifyStep(instr, instr.expr[i]).context(fmt::format("step {}", i)));
  std::vector<Elem> elems, results;
  if (instr.prologue)
    elems = {instr.expr[instr.prologue - 1].elem};
  else
    for (size_t i = 0; i < instr.operandCount(); ++i) elems.push_back(instr.inputs[i].elem);
  for (const View& result : instr.outputs) results.push_back(result.elem);
  CDL_TRY(verifyElems(instr.kind, "input", elems, results));
  const Elem y = results[0];
  switch (instr.kind) {
  case CDL_KIND_UNARY:
  case CDL_KIND_BINARY: return verifyFn(instr.kind, instr.fn, y);
  case CDL_KIND_RESCALE: return verifyRescale(instr);
  case CDL_KIND_GATHER:
    return instr.fn == CDL_GATHER_CLAMP ? verifyMiddle(instr, "no place to clamp an index to in")
                                        : Status::ok();
  case CDL_KIND_SCATTER:
    if (!instr.inout) return badModel("the result is @out, expected @inout");
    return instr.fn == CDL_SCATTER_SET ? Status::ok() : verifyFn(instr.kind, instr.fn, y);
  case CDL_KIND_REDUCE:
  case CDL_KIND_POOL2D: return verifyReduction(instr);
  case CDL_KIND_ARG_REDUCE: return verifyMiddle(instr, "no extreme along");
  case CDL_KIND_MATMUL:
  case CDL_KIND_CONV2D: return verifyContraction(instr);
  case CDL_KIND_SCALED_MATMUL: return verifyScaledMatmul(instr);
  case CDL_KIND_TABLE: return verifyTable(instr);
  default: return Status::ok();
  }
}

} // namespace candela::program
