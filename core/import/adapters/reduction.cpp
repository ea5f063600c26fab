#include "core/import/term.h"

namespace candela::import {
namespace {

/// axesSince: the opset that made `axes` an operand. Without axes: all, or none when
/// noop_with_empty_axes says so.
template <OpKind kind, int axesSince> Status importReduce(Step& step) {
  const Term x = termOf(step, 0);
  const auto given = need(step.intsAttrOrInput("axes", 1, axesSince));
  const bool keep = need(step.flagAttr("keepdims", true));
  const bool noop = step.opset >= axesSince && need(step.flagAttr("noop_with_empty_axes", false));
  if (step.opset < axesSince && step.input(1))
    return badModel("input 'axes' needs opset {}, the model has {}", axesSince, step.opset);
  if (given && !given->empty()) return step.set(reduce(kind, x, need(resolveAxes(*given, x.rank())), keep));
  return step.set(noop ? x : reduce(kind, x, allAxes(step), keep));
}

constexpr Operator kOperators[] = {
    {"ReduceMax", 1, 2, 1, importReduce<OpKind::ReduceMax, 18>},
    {"ReduceMean", 1, 2, 1, importReduce<OpKind::ReduceMean, 18>},
    {"ReduceMin", 1, 2, 1, importReduce<OpKind::ReduceMin, 18>},
    {"ReduceProd", 1, 2, 1, importReduce<OpKind::ReduceProd, 18>},
    {"ReduceSum", 1, 2, 1, importReduce<OpKind::ReduceSum, 13>},
};

} // namespace

std::span<const Operator> reductionOperators() { return kOperators; }

} // namespace candela::import
