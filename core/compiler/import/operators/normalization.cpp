#include <algorithm>
#include <numeric>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

/// Before opset 14 more than one result asks for training form; since then an attribute does.
/// Before opset 9 statistics may be of each element: those are the channels of a flattened x.
Status importBatchNormalization(Step& step) {
  const Term x = termOf(step, 0);
  if (x.rank() < 2)
    return badModel("input {} has rank {}, expected at least 2", x.text(), x.rank());
  const double epsilon = attrOf<float>(step, "epsilon", 1e-5f),
               momentum = attrOf<float>(step, "momentum", 0.9f);
  bool training = step.opset >= 14 && need(step.flagAttr("training_mode", false));
  if (step.opset >= 14 && !training && (step.wants(1) || step.wants(2)))
    return badModel("running mean and variance need training_mode = 1");
  if (step.opset >= 14 && step.node.outputs.size() > 3)
    return badModel("has {} outputs, expected at most 3", step.node.outputs.size());
  for (size_t i = 1; i < step.node.outputs.size(); ++i) training = training || step.wants(i);
  std::vector<Value*> operands = step.inputs();
  const Shape whole = x.shape(), each(whole.begin() + 1, whole.end());
  const bool flattens = step.opset < 9 && !need(step.flagAttr("spatial", true));
  for (size_t i = 0; flattens && i < operands.size(); ++i) {
    const Term operand = termOf(step, i);
    if (i > 0 && operand.shape() != each)
      return badModel("input {} is {}, expected shape {}", i, operand.text(), shapeText(each));
    operands[i] = need(step.build.flatten(operand.value(), i > 0 ? 0 : 1));
    if (i > 0) operands[i] = Term(step.build, operands[i]).squeeze(0).value();
  }
  const auto results = need(step.build.addAll(
      OpKind::BatchNorm, operands,
      {{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", int64_t(training)}},
      training ? 3 : 1));
  for (size_t i = 0; i < results.size(); ++i) {
    Value* result = results[i];
    if (flattens) result = need(step.build.reshape(result, i > 0 ? each : whole));
    step.set(i, result);
  }
  if (!step.wants(3) && !step.wants(4)) return Status::ok();
  // The batch's own mean and variance.
  std::vector<int64_t> axes = allAxes(step);
  axes.erase(axes.begin() + 1, flattens ? axes.end() : axes.begin() + 2);
  const Term wide = widened(x), mean = reduce(OpKind::ReduceMean, wide, axes),
             centred = wide - mean;
  const auto saved = [&](const Term& term) {
    return term.cast(x.elem()).reshape(flattens ? each : Shape{x.dim(1)});
  };
  step.set(3, saved(mean).value());
  step.set(4, saved(reduce(OpKind::ReduceMean, centred * centred, axes)).value());
  return Status::ok();
}

/// Along one axis since opset 13; before that over everything from the axis on, which is one axis
/// of the 2-D form.
template <typename Formula> Status importAlongAxis(Step& step, Formula formula) {
  const Term x = termOf(step, 0);
  const bool flattens = step.opset < 13;
  const int64_t axis =
      need(resolveAxis(attrOf<int64_t>(step, "axis", flattens ? 1 : -1), x.rank()));
  if (!flattens || axis == x.rank() - 1) return step.set(formula(x, axis));
  const Term matrix(step.build, step.build.flatten(x.value(), axis));
  return step.set(formula(matrix, 1).reshape(x.shape()));
}

Status importSoftmax(Step& step) { return importAlongAxis(step, softmax); }

Status importLogSoftmax(Step& step) { return importAlongAxis(step, logSoftmax); }

/// Over the dims from `axis` on. Scale and bias may cover more dims than these, and a scale gives
/// its type to the result. The mean and 1 / deviation that two more outputs ask for are computed
/// beside it, in the type that stash_type names.
template <OpKind kind> Status importOverTail(Step& step) {
  const Term x = termOf(step, 0);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(step, "axis", -1), x.rank()));
  const double epsilon = attrOf<float>(step, "epsilon", 1e-5f);
  const int64_t stashType = attrOf<int64_t>(step, "stash_type", 1);
  const auto stash = stashType > 0 && stashType <= INT32_MAX
                         ? elemFromOnnx(static_cast<int>(stashType))
                         : std::nullopt;
  if (!stash || !isFloat(*stash) || isStorageOnly(*stash))
    return badModel("stash_type {} is no float type", stashType);
  const Shape shape = x.shape(), tail(shape.begin() + axis, shape.end());
  const Attrs attrs = {{"axis", axis}, {"epsilon", epsilon}};
  std::vector<Value*> operands = step.inputs();
  bool fits = true;
  for (const Value* operand : operands)
    fits = fits && (!operand || operand == x.value() ||
                    (operand->type.elem == x.elem() &&
                     graph::broadcastShapes(operand->type.shape(), tail) == tail));
  if (fits) {
    for (size_t i = 1; i < operands.size(); ++i) // what broadcasts is written out
      if (operands[i]) operands[i] = need(step.build.expand(operands[i], tail));
    need(step.set(step.build.addAll(kind, operands, attrs, 1)));
  } else {
    const Term scale = termOf(step, 1);
    const Elem inner =
        x.elem() == Elem::f64_ || scale.elem() == Elem::f64_ ? Elem::f64_ : Elem::f32_;
    Term y = make(kind, {x.cast(inner)}, attrs) * scale.cast(inner);
    if (step.input(2)) y = y + termOf(step, 2).cast(inner);
    if (y.shape() != shape)
      return badModel("scale {} or bias does not broadcast to input {}", scale.text(), x.text());
    step.set(0, y.cast(scale.elem()).value());
  }
  if (!step.wants(1) && !step.wants(2)) return Status::ok();
  std::vector<int64_t> axes(tail.size());
  std::iota(axes.begin(), axes.end(), axis);
  const Term wide = widened(x), mean = reduce(OpKind::ReduceMean, wide, axes),
             centred = wide - mean;
  const Term deviation = sqrt(reduce(OpKind::ReduceMean, centred * centred, axes) + epsilon);
  step.set(1, mean.cast(*stash).value());
  step.set(2, reciprocal(deviation).cast(*stash).value());
  return Status::ok();
}

constexpr Operator kNormalizationOperators[] = {
    {"BatchNormalization", 5, 5, 5, importBatchNormalization},
    {"LayerNormalization", 2, 3, 3, importOverTail<OpKind::LayerNorm>},
    {"LogSoftmax", 1, 1, 1, importLogSoftmax},
    {"RMSNormalization", 2, 2, 1, importOverTail<OpKind::RmsNorm>},
    {"Softmax", 1, 1, 1, importSoftmax},
};

} // namespace

std::span<const Operator> normalizationOperators() { return kNormalizationOperators; }

} // namespace candela::import
