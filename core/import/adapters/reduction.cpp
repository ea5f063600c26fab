#include "core/import/step.h"

namespace candela::import {
namespace {

/// axesSince: the opset that made `axes` an operand. Without axes: all, or none when
/// noop_with_empty_axes says so.
template <OpKind kind, int axesSince> Status importReduce(Step& step) {
  const int64_t rank = step.input(0)->type.rank();
  CDL_ASSIGN(const auto given, step.intsAttrOrInput("axes", 1, axesSince));
  CDL_ASSIGN(const bool keep, step.flagAttr("keepdims", true));
  bool noop = false;
  if (step.opset >= axesSince) {
    CDL_ASSIGN(noop, step.flagAttr("noop_with_empty_axes", false));
  } else if (step.input(1)) {
    return badModel("input 'axes' needs opset {}, the model has {}", axesSince, step.opset);
  }
  std::vector<int64_t> axes = allAxes(step);
  if (given && !given->empty()) {
    CDL_ASSIGN(axes, resolveAxes(*given, rank));
  } else if (noop) {
    return step.set(step.input(0));
  }
  return step.set(step.build.add(kind, {step.input(0)}, {{"axes", axes}, {"keepdims", int64_t(keep)}}));
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
