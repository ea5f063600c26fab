#include <algorithm>

#include "core/compiler/export/onnx/ops.h"
#include "core/support/kinds.h"
#include "core/support/text/expr.h"
#include "core/support/text/literal.h"

namespace candela::exporter::onnx {
namespace {

/// The op whose one instruction does what a step does.
std::optional<graph::OpKind> opOf(const text::ExprStep& step) {
  for (const graph::OpInfo& info : graph::allOps())
    if (info.instrKind == step.kind && info.instrFn == step.fn && !info.has(graph::kTraitMovement))
      return info.kind;
  return std::nullopt;
}

Term literalOf(GraphWriter& w, Elem elem, const std::string& literal) {
  Tensor tensor = need(Tensor::zeros(elem, {}));
  storeElement(elem, tensor.bytes.mutableData(), 0, need(text::parseElement(elem, literal)));
  return w.constant(tensor, "number");
}

Term rescaledStep(GraphWriter& w, const text::ExprStep& step, const Terms& args) {
  return rescaled(w, {.a = args[0],
                      .multiplier = args[1],
                      .shift = args[2],
                      .zero = args[3],
                      .b = {},
                      .bMultiplier = {},
                      .low = step.low,
                      .high = step.high,
                      .to = step.to});
}

Term stepOf(GraphWriter& w, const text::ExprStep& step, const Terms& args) {
  if (step.kind == CDL_KIND_CONVERT)
    return converted(w, args[0], step.to, fnName(step.kind, step.fn), step.saturate);
  if (step.kind == CDL_KIND_RESCALE) return rescaledStep(w, step, args);
  if (step.kind == CDL_KIND_UNARY && step.fn == CDL_UNARY_RSQRT)
    return w.op("Reciprocal", {w.op("Sqrt", args)});
  const auto kind = opOf(step);
  if (!kind) refuse("ONNX has no operator for {} in an expression", text::exprFnName(step));
  return elementwise(w, *kind, args);
}

} // namespace

void writeExpr(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  std::vector<Elem> elems;
  for (const Term& operand : in) elems.push_back(operand.elem);
  const text::ExprSteps steps = need(text::parseExpr(node.stringAttr("steps")));
  const Elem acc = elems.empty() ? Elem::none : elems[0];
  const text::ExprTypes types = need(text::typeExpr(steps, elems, acc));
  Terms values;
  for (size_t s = 0; s < steps.size(); ++s) {
    Terms args;
    for (size_t a = 0; a < steps[s].args.size(); ++a) {
      const text::ExprArg& arg = steps[s].args[a];
      switch (arg.source) {
      case text::ExprArg::Source::acc: args.push_back(in[0]); break;
      case text::ExprArg::Source::view: args.push_back(in[arg.index]); break;
      case text::ExprArg::Source::step: args.push_back(values[arg.index]); break;
      case text::ExprArg::Source::literal:
        args.push_back(literalOf(w, types.args[s][a], arg.literal));
        break;
      }
    }
    values.push_back(stepOf(w, steps[s], args));
  }
  w.bind(node.result(), w.expand(values.back(), node.result()->type.dims));
}

} // namespace candela::exporter::onnx
