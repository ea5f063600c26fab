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

Status castTo(Step& step, Elem to) {
  const Elem from = step.input(0)->type.elem;
  for (Elem elem : {from, to})
    if (isStorageOnly(elem)) return failure(Code::unsupported, "cast from {} to {}", elemName(from), elemName(to));
  return step.set(step.build.cast(step.input(0), to));
}

Status importCast(Step& step) {
  CDL_ASSIGN(const auto to, step.maybe<int64_t>("to"));
  CDL_TRY(step.flagAttr("saturate", true).status()); // only says something about 8-bit floats
  if (!to) return badModel("attribute 'to' is missing");
  const auto elem = *to >= 0 && *to <= INT32_MAX ? elemFromOnnx(static_cast<int>(*to)) : std::nullopt;
  if (!elem) return failure(Code::unsupported, "cast to element type {}", *to);
  return castTo(step, *elem);
}

Status importCastLike(Step& step) {
  CDL_TRY(step.flagAttr("saturate", true).status());
  return castTo(step, step.input(1)->type.elem);
}

constexpr Operator kOperators[] = {
    {"Cast", 1, 1, 1, importCast},
    {"CastLike", 2, 2, 1, importCastLike},
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
