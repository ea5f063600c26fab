#include <algorithm>

#include "core/program/verify_internal.h"

namespace candela::program {

bool unaryTakes(uint16_t fn, Elem elem) {
  if (isFloat(elem)) return !isStorageOnly(elem);
  if (!isInteger(elem) || isStorageOnly(elem)) return false;
  return fn == CDL_UNARY_ABS || (fn == CDL_UNARY_NEG && isSigned(elem));
}

bool binaryTakes(uint16_t fn, Elem elem) {
  if (isStorageOnly(elem)) return false;
  switch (fn) {
  case CDL_BINARY_AND:
  case CDL_BINARY_OR:
  case CDL_BINARY_XOR: return !isFloat(elem);
  case CDL_BINARY_SHL:
  case CDL_BINARY_SHR: return isInteger(elem);
  default: return elem != Elem::bool_;
  }
}

namespace {

size_t arity(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_UNARY:
  case CDL_KIND_CONVERT: return 1;
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE: return 2;
  case CDL_KIND_SELECT: return 3;
  default: return 0;
  }
}

Status verifyTypes(const Step& step) {
  const auto in = [&](size_t i) { return step.in[i].elem; };
  const auto differ = [&](Elem a, Elem b) { return badModel("types {} and {} differ", elemName(a), elemName(b)); };
  switch (step.kind) {
  case CDL_KIND_UNARY:
    if (!unaryTakes(step.fn, in(0)))
      return badModel("{} does not take {}", fnName(step.kind, step.fn), elemName(in(0)));
    return in(0) == step.elem ? Status::ok() : differ(in(0), step.elem);
  case CDL_KIND_BINARY:
    if (!binaryTakes(step.fn, in(0)))
      return badModel("{} does not take {}", fnName(step.kind, step.fn), elemName(in(0)));
    if (in(0) != in(1)) return differ(in(0), in(1));
    return in(0) == step.elem ? Status::ok() : differ(in(0), step.elem);
  case CDL_KIND_COMPARE:
    if (isStorageOnly(in(0))) return badModel("compare does not take {}", elemName(in(0)));
    if (in(0) != in(1)) return differ(in(0), in(1));
    return step.elem == Elem::bool_ ? Status::ok() : differ(step.elem, Elem::bool_);
  case CDL_KIND_SELECT:
    if (in(0) != Elem::bool_) return badModel("condition of type {}", elemName(in(0)));
    if (isStorageOnly(in(1))) return badModel("select does not take {}", elemName(in(1)));
    if (in(1) != in(2)) return differ(in(1), in(2));
    return in(1) == step.elem ? Status::ok() : differ(in(1), step.elem);
  default: return isStorageOnly(step.elem) ? badModel("convert does not give {}", elemName(step.elem)) : Status::ok();
  }
}

Status verifyExprView(const Instr& instr, const Operand& operand) {
  if (operand.index >= instr.inputs.size()) return badModel("view {} of {}", operand.index, instr.inputs.size());
  const View &view = instr.inputs[operand.index], &y = instr.outputs[0];
  if (view.elem != operand.elem)
    return badModel("view {} has type {}, not {}", operand.index, elemName(view.elem), elemName(operand.elem));
  if (view.layout == y.layout && view.dims != y.dims)
    return badModel("view {} has shape {} but the result {}", operand.index, shapeText(view.dims), shapeText(y.dims));
  return Status::ok();
}

Status verifyStep(const Instr& instr, size_t index) {
  const Step& step = instr.expr[index];
  const size_t expected = arity(step.kind);
  if (expected == 0) return failure(Code::incompatible, "kind {} cannot stand in an expression", step.kind);
  if (hasFns(step.kind) ? fnName(step.kind, step.fn).empty() : step.fn != 0)
    return failure(Code::incompatible, "function {} is unknown", step.fn);
  if (!isValidElem(static_cast<unsigned>(step.elem))) return badModel("no element type");
  if (step.saturate && step.kind != CDL_KIND_CONVERT) return badModel("only convert saturates");
  if (step.in.size() != expected) return badModel("{} operands, expected {}", step.in.size(), expected);
  int constants = 0;
  for (const Operand& operand : step.in) {
    if (!isValidElem(static_cast<unsigned>(operand.elem))) return badModel("operand without an element type");
    switch (operand.source) {
    case Operand::Source::acc:
      if (instr.kind == CDL_KIND_ELEMENTWISE) return badModel("elementwise has no accumulator");
      if (operand.elem != accumulatorElem(instr))
        return badModel("accumulator of types {} and {}", elemName(accumulatorElem(instr)), elemName(operand.elem));
      break;
    case Operand::Source::view: CDL_TRY(verifyExprView(instr, operand)); break;
    case Operand::Source::constant:
      if (++constants > 1) return badModel("two constants");
      if (!fitsElem(step.imm, operand.elem))
        return badModel("constant {:#x} has more bits than {}", step.imm, elemName(operand.elem));
      break;
    case Operand::Source::step:
      if (operand.index >= index) return badModel("reads step {}, which is not earlier", operand.index);
      if (instr.expr[operand.index].elem != operand.elem)
        return badModel("step {} has type {}, not {}", operand.index, elemName(instr.expr[operand.index].elem),
                        elemName(operand.elem));
      break;
    default: return badModel("an operand without a source");
    }
    const bool indexed = operand.source == Operand::Source::view || operand.source == Operand::Source::step;
    if (!indexed && operand.index) return badModel("index {} on an operand that has none", operand.index);
  }
  if (constants == 1 && step.in.size() == 1) return badModel("{} of a constant alone", kindName(step.kind));
  if (constants == 0 && step.imm) return badModel("an immediate without a constant operand");
  return verifyTypes(step);
}

} // namespace

Elem accumulatorElem(const Instr& instr) {
  if (instr.expr.empty() && !instr.outputs.empty()) return instr.outputs[0].elem;
  for (const Step& step : instr.expr)
    for (const Operand& operand : step.in)
      if (operand.source == Operand::Source::acc) return operand.elem;
  return Elem::none;
}

Status verifyExpr(const Instr& instr) {
  const bool own = instr.kind == CDL_KIND_ELEMENTWISE;
  if (instr.expr.empty()) return own ? badModel("no expression") : Status::ok();
  if (!own && !kindInfo(instr.kind)->epilogue) return badModel("the kind takes no expression");
  if (instr.expr.size() > CDL_MAX_STEPS) return badModel("{} steps exceed {}", instr.expr.size(), CDL_MAX_STEPS);
  for (size_t i = 0; i < instr.expr.size(); ++i) CDL_TRY(verifyStep(instr, i).context(fmt::format("step {}", i)));
  const Elem value = instr.expr.back().elem, y = instr.outputs[0].elem;
  if (value != y) return badModel("expression of type {} but the result has {}", elemName(value), elemName(y));
  return Status::ok();
}

} // namespace candela::program
