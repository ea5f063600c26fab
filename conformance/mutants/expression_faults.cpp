// Faults of steps that round: in ELEMENTWISE, before the sums of REDUCE, and in epilogues, where
// results are stored.
#include <algorithm>

#include "conformance/mutants/catalogue.h"
#include "conformance/mutants/numbers.h"
#include "core/compiler/program/image.h"
#include "core/reference/scalar.h"
#include "core/support/out_of_memory.h"
#include "core/support/tensor.h"

namespace candela::conformance::mutants {
namespace {

using program::Instr, program::Operand, program::Program, program::Step;
using reference::Scalar;

/// A step and its operands, and the bits that are right.
struct StepCell {
  const Step& step;
  const Scalar* in;
  Elem from; ///< of operand 0
  uint64_t bits;
};
/// What a faulty device makes of a step.
using WrongStep = uint64_t (*)(const StepCell&);

/// The limits of a RESCALE.
int32_t lowestOf(const Step& step) { return static_cast<int32_t>(step.imm); }
int32_t highestOf(const Step& step) { return static_cast<int32_t>(step.imm >> 32); }

/// The values of an expression at one place after the other, one step of which may be wrong.
class Evaluation {
public:
  Evaluation(const Mutation& mutation, const program::Expr& expr, WrongStep wrong)
      : mutation_(mutation), expr_(expr), wrong_(wrong), values_(expr.size()) {}

  /// The bits of the last step; `acc`: those of the accumulator.
  uint64_t at(const Index& index, uint64_t acc) {
    for (size_t s = 0; s < expr_.size(); ++s) values_[s] = valueOf(expr_[s], index, acc);
    return values_.back();
  }

private:
  uint64_t operandBits(const Operand& operand, const Step& step, const Index& index,
                       uint64_t acc) const {
    switch (operand.source) {
    case Operand::Source::acc: return acc;
    case Operand::Source::view: return mutation_.get(operand.index, index);
    case Operand::Source::constant: return step.imm;
    default: return values_[operand.index];
    }
  }
  uint64_t valueOf(const Step& step, const Index& index, uint64_t acc) const {
    Scalar in[4];
    for (size_t i = 0; i < step.in.size(); ++i)
      in[i] = reference::decode(step.in[i].elem, operandBits(step.in[i], step, index, acc));
    const Elem from = step.in[step.kind == CDL_KIND_RESCALE ? 0 : step.in.size() - 1].elem;
    const Scalar right =
        step.kind == CDL_KIND_RESCALE
            ? reference::rescaleStep(in, lowestOf(step), highestOf(step))
            : reference::apply({step.kind, step.fn, from, step.elem, step.saturate}, in);
    return wrong_({step, in, from, reference::encode(step.elem, right)}) & elemMask(step.elem);
  }

  const Mutation& mutation_;
  const program::Expr& expr_;
  WrongStep wrong_;
  std::vector<uint64_t> values_;
};

bool rounds(const Step& step) {
  return step.kind == CDL_KIND_RESCALE || step.kind == CDL_KIND_CONVERT ||
         (step.kind == CDL_KIND_UNARY && step.fn == CDL_UNARY_ROUND_EVEN);
}

/// Every element of the view's dims, in order, as a buffer of its own.
Tensor evaluated(const Mutation& mutation, const program::Expr& expr, WrongStep wrong,
                 const cdl_view_t& like) {
  Evaluation evaluation(mutation, expr, wrong);
  const Shape dims(like.dims, like.dims + like.rank);
  Tensor values = orThrow(Tensor::zeros(expr.back().elem, dims));
  int64_t next = 0;
  forEachIndex(like, [&](const Index& at) {
    storeElement(values.elem, values.bytes.mutableData(), next++, evaluation.at(at, 0));
  });
  return values;
}

/// A dense view of a further buffer.
program::View further(Program& program, Elem elem, const std::vector<int64_t>& dims) {
  program::Buffer buffer;
  buffer.name = "further";
  program::View view = program::denseView(program::kNone, elem, dims);
  buffer.bytes = elemBytes(elem, static_cast<uint64_t>(view.count()));
  view.buffer = program.addBuffer(std::move(buffer));
  return view;
}

/// The instruction with one step of its expression wrong wherever such a step stands.
cdl_code_t runWrong(Mutation& mutation, WrongStep wrong) {
  const cdl_code_t code = mutation.run();
  if (code != CDL_OK || !mutation.hasExpr()) return code;
  Program program = orThrow(program::fromImage(mutation.image(), nullptr));
  const Instr instr = program.instrs[mutation.index() - 1];
  if (instr.inout || std::ranges::none_of(instr.expr, rounds)) return code;
  Instr& plain = program.instrs[mutation.index() - 1];
  std::vector<Tensor> more;
  if (instr.prologue) {
    more.push_back(evaluated(mutation, instr.prologueSteps(), wrong, mutation.view(0)));
    plain.inputs = {further(program, more[0].elem, instr.inputs[0].dims)};
  }
  const uint32_t y = mutation.result();
  if (instr.kind != CDL_KIND_ELEMENTWISE) { // its sums alone
    const Elem elem = program::accumulatorElem(instr);
    if (elem == Elem::none) return code;
    if (!instr.prologue) plain.inputs.resize(instr.operandCount());
    plain.expr.clear(), plain.prologue = 0;
    more.push_back(orThrow(Tensor::zeros(elem, instr.outputs[0].dims)));
    plain.outputs = {further(program, elem, instr.outputs[0].dims)};
    std::vector<void*> addresses;
    for (Tensor& tensor : more) addresses.push_back(tensor.bytes.mutableData());
    if (const cdl_code_t sums = mutation.runIn(program::toImage(program, false), addresses);
        sums != CDL_OK)
      return sums;
  }
  const program::Expr steps =
      instr.kind == CDL_KIND_ELEMENTWISE ? instr.expr : instr.epilogueSteps();
  Evaluation evaluation(mutation, steps, wrong);
  std::vector<uint64_t> results;
  int64_t next = 0;
  forEachIndex(mutation.view(y), [&](const Index& at) {
    const uint64_t acc =
        more.empty() ? 0 : loadElement(more.back().elem, more.back().bytes.data(), next++);
    results.push_back(steps.empty() ? acc : evaluation.at(at, acc));
  });
  next = 0;
  forEachIndex(mutation.view(y),
               [&](const Index& at) { mutation.set(y, at, results[static_cast<size_t>(next++)]); });
  return code;
}

Catalogue::Run stepping(WrongStep wrong) {
  return [wrong](Mutation& mutation) { return runWrong(mutation, wrong); };
}

// ---- The steps

/// CONVERT of a float to the nearest integer, and UNARY round_even.
template <Ties ties> uint64_t tiedWhole(const StepCell& c) {
  const bool converts =
      c.step.kind == CDL_KIND_CONVERT && c.step.fn == CDL_CONVERT_RNE && isInteger(c.step.elem);
  const bool isRound = c.step.kind == CDL_KIND_UNARY && c.step.fn == CDL_UNARY_ROUND_EVEN;
  if ((!converts && !isRound) || !isFloat(c.from)) return c.bits;
  const double x = c.in[0].real;
  if (x - std::floor(x) != 0.5) return c.bits;
  const double rounded = halfRounded(x, ties);
  if (isRound) return fromReal(c.step.elem, rounded);
  const auto whole = static_cast<__int128>(rounded);
  return c.step.saturate ? clamped(c.step.elem, whole) : static_cast<uint64_t>(whole);
}
/// CONVERT of a number to the nearest float.
template <Ties ties> uint64_t tiedFloat(const StepCell& c) {
  if (c.step.kind != CDL_KIND_CONVERT || !isFloat(c.step.elem)) return c.bits;
  const double x = isFloat(c.from) ? c.in[0].real : static_cast<double>(c.in[0].whole);
  const bool isKnown = isFloat(c.from) ? !std::isnan(x) : static_cast<__int128>(x) == c.in[0].whole;
  return isKnown && fromReal(c.step.elem, x) == c.bits ? nearestReal(c.step.elem, x, ties) : c.bits;
}
template <Ties ties> uint64_t tiedRescale(const StepCell& c) {
  if (c.step.kind != CDL_KIND_RESCALE) return c.bits;
  const __int128 product = c.in[0].whole * c.in[1].whole, shift = c.in[2].whole,
                 zero = c.in[3].whole;
  if (shift <= 0 || shift > 62) return c.bits;
  const __int128 unit = __int128(1) << static_cast<int>(shift),
                 down = product >> static_cast<int>(shift);
  if (2 * (product - down * unit) != unit) return c.bits;
  const __int128 rounded = ties == Ties::up || product > 0 ? down + 1 : down;
  return static_cast<uint64_t>(
      std::clamp<__int128>(rounded + zero, lowestOf(c.step), highestOf(c.step)));
}

template <Ties ties> void addTies(Catalogue& catalogue, std::string_view faultClass) {
  catalogue.add(faultClass, "expression", stepping(tiedWhole<ties>), "whole");
  catalogue.add(faultClass, "expression", stepping(tiedFloat<ties>), "float");
  catalogue.add(faultClass, "expression", stepping(tiedRescale<ties>), "rescale");
}

} // namespace

void addExpressionFaults(Catalogue& catalogue) {
  addTies<Ties::up>(catalogue, "half_up");
  addTies<Ties::away>(catalogue, "half_away");
}

} // namespace candela::conformance::mutants
