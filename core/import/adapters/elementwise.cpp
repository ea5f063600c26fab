#include "core/import/term.h"

namespace candela::import {
namespace {

/// Min, Max and Sum take any number of operands; the Graph's ops take two.
template <OpKind kind> Status importChain(Step& step) {
  Term result = termOf(step, 0);
  for (size_t i = 1; i < step.inputs().size(); ++i) {
    if (!step.input(i)) return badModel("input {} is missing", i);
    result = make(kind, {result, termOf(step, i)});
  }
  return step.set(result);
}

/// Limits were float attributes before opset 11. An absent one limits nothing.
Status importClip(Step& step) {
  const auto least = step.scalarAttrOrInput("min", 1, 11), most = step.scalarAttrOrInput("max", 2, 11);
  return step.set(step.build.add(OpKind::Clip, {step.input(0), least, most}));
}

Status importGreater(Step& step) { return step.set(less(termOf(step, 1), termOf(step, 0))); }
Status importLessOrEqual(Step& step) { return step.set(lessOrEqual(termOf(step, 0), termOf(step, 1))); }
Status importGreaterOrEqual(Step& step) { return step.set(lessOrEqual(termOf(step, 1), termOf(step, 0))); }

constexpr Operator kOperators[] = {
    {"Clip", 1, 3, 1, importClip},
    {"Greater", 2, 2, 1, importGreater},
    {"GreaterOrEqual", 2, 2, 1, importGreaterOrEqual},
    {"LessOrEqual", 2, 2, 1, importLessOrEqual},
    {"Max", 1, -1, 1, importChain<OpKind::Max>},
    {"Min", 1, -1, 1, importChain<OpKind::Min>},
    {"Sum", 1, -1, 1, importChain<OpKind::Add>},
};

} // namespace

std::span<const Operator> elementwiseOperators() { return kOperators; }

} // namespace candela::import
