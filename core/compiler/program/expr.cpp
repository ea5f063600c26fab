#include "core/compiler/program/expr.h"

#include "core/support/text/literal.h"

namespace candela::program {
Result<Expr> resolveExpr(const text::ExprSteps& steps, const std::vector<View>& views, Elem acc,
                         size_t first) {
  std::vector<Elem> elems;
  for (size_t v = first; v < views.size(); ++v) elems.push_back(views[v].elem);
  CDL_ASSIGN(const text::ExprTypes types, text::typeExpr(steps, elems, acc));
  Expr expr;
  for (size_t s = 0; s < steps.size(); ++s) {
    Step step{steps[s].kind, steps[s].fn, types.steps[s], steps[s].saturate, {}, 0};
    if (step.kind == CDL_KIND_RESCALE)
      step.imm = static_cast<uint32_t>(steps[s].low) |
                 static_cast<uint64_t>(static_cast<uint32_t>(steps[s].high)) << 32;
    bool hasConstant = false;
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      const text::ExprArg& arg = steps[s].args[a];
      Operand operand{static_cast<Operand::Source>(arg.source), types.args[s][a], arg.index};
      if (operand.source == Operand::Source::view) operand.index += first;
      if (operand.source == Operand::Source::constant) {
        if (std::exchange(hasConstant, true)) return badModel("two literals in one step");
        CDL_ASSIGN(step.imm, text::parseElement(operand.elem, arg.literal));
      }
      step.in.push_back(operand);
    }
    expr.push_back(std::move(step));
  }
  return expr;
}

text::ExprSteps exprSteps(const Expr& expr) {
  text::ExprSteps steps;
  for (const Step& step : expr) {
    text::ExprStep out{step.kind, step.fn, Elem::none, step.saturate, {}};
    if (step.kind == CDL_KIND_CONVERT || step.kind == CDL_KIND_RESCALE) out.to = step.elem;
    if (step.kind == CDL_KIND_RESCALE) {
      out.low = static_cast<int32_t>(step.imm);
      out.high = static_cast<int32_t>(step.imm >> 32);
    }
    for (const Operand& operand : step.in) {
      const bool isLiteral = operand.source == Operand::Source::constant;
      out.args.push_back({static_cast<text::ExprArg::Source>(operand.source), operand.index,
                          isLiteral ? text::elementText(operand.elem, step.imm) : ""});
    }
    steps.push_back(std::move(out));
  }
  return steps;
}

} // namespace candela::program
