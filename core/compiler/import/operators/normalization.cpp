#include <algorithm>
#include <numeric>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

/// Before opset 14 more than one result asks for training form; since then an attribute does.
/// Before opset 9 statistics may be of each element: those are the channels of a flattened x.
Status importBatchNormalization(NodeContext& context) {
  const Term x = termOf(context, 0);
  if (x.rank() < 2)
    return badModel("input {} has rank {}, expected at least 2", x.text(), x.rank());
  const double epsilon = attrOf<float>(context, "epsilon", 1e-5f),
               momentum = attrOf<float>(context, "momentum", 0.9f);
  bool training = context.opset >= 14 && need(context.flagAttr("training_mode", false));
  if (context.opset >= 14 && !training && (context.wants(1) || context.wants(2)))
    return badModel("running mean and variance need training_mode = 1");
  if (context.opset >= 14 && context.node.outputs.size() > 3)
    return badModel("has {} outputs, expected at most 3", context.node.outputs.size());
  for (size_t i = 1; i < context.node.outputs.size(); ++i) training = training || context.wants(i);
  std::vector<Value*> operands = context.inputs();
  const Shape whole = x.shape(), each(whole.begin() + 1, whole.end());
  const bool flattens = context.opset < 9 && !need(context.flagAttr("spatial", true));
  for (size_t i = 0; flattens && i < operands.size(); ++i) {
    const Term operand = termOf(context, i);
    if (i > 0 && operand.shape() != each)
      return badModel("input {} is {}, expected shape {}", i, operand.text(), shapeText(each));
    operands[i] = need(context.build.flatten(operand.value(), i > 0 ? 0 : 1));
    if (i > 0) operands[i] = Term(context.build, operands[i]).squeeze(0).value();
  }
  const auto results = need(context.build.addAll(
      OpKind::BatchNorm, operands,
      {{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", int64_t(training)}},
      training ? 3 : 1));
  for (size_t i = 0; i < results.size(); ++i) {
    Value* result = results[i];
    if (flattens) result = need(context.build.reshape(result, i > 0 ? each : whole));
    context.set(i, result);
  }
  if (!context.wants(3) && !context.wants(4)) return Status::ok();
  // The batch's own mean and variance.
  std::vector<int64_t> axes = allAxes(context);
  axes.erase(axes.begin() + 1, flattens ? axes.end() : axes.begin() + 2);
  const Term wide = widened(x), mean = reduce(OpKind::ReduceMean, wide, axes),
             centred = wide - mean;
  const auto saved = [&](const Term& term) {
    return term.cast(x.elem()).reshape(flattens ? each : Shape{x.dim(1)});
  };
  context.set(3, saved(mean).value());
  context.set(4, saved(reduce(OpKind::ReduceMean, centred * centred, axes)).value());
  return Status::ok();
}

/// Along one axis since opset 13; before that over everything from the axis on, which is one axis
/// of the 2-D form.
template <typename Formula> Status importAlongAxis(NodeContext& context, Formula formula) {
  const Term x = termOf(context, 0);
  const bool flattens = context.opset < 13;
  const int64_t axis =
      need(resolveAxis(attrOf<int64_t>(context, "axis", flattens ? 1 : -1), x.rank()));
  if (!flattens || axis == x.rank() - 1) return context.set(formula(x, axis));
  const Term matrix(context.build, context.build.flatten(x.value(), axis));
  return context.set(formula(matrix, 1).reshape(x.shape()));
}

Status importSoftmax(NodeContext& context) { return importAlongAxis(context, softmax); }

Status importLogSoftmax(NodeContext& context) { return importAlongAxis(context, logSoftmax); }

/// Over the dims from `axis` on. Scale and bias may cover more dims than these, and a scale gives
/// its type to the result. The mean and 1 / deviation that two more outputs ask for are computed
/// beside it, in the type that stash_type names.
template <OpKind kind> Status importOverTail(NodeContext& context) {
  const Term x = termOf(context, 0);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(context, "axis", -1), x.rank()));
  const double epsilon = attrOf<float>(context, "epsilon", 1e-5f);
  const int64_t stashType = attrOf<int64_t>(context, "stash_type", 1);
  const auto stash = stashType > 0 && stashType <= INT32_MAX
                         ? elemFromOnnx(static_cast<int>(stashType))
                         : std::nullopt;
  if (!stash || !isFloat(*stash) || isStorageOnly(*stash))
    return badModel("stash_type {} is no float type", stashType);
  const Shape shape = x.shape(), tail(shape.begin() + axis, shape.end());
  const Attrs attrs = {{"axis", axis}, {"epsilon", epsilon}};
  std::vector<Value*> operands = context.inputs();
  bool fits = true;
  for (const Value* operand : operands)
    fits = fits && (!operand || operand == x.value() ||
                    (operand->type.elem == x.elem() &&
                     graph::broadcastShapes(operand->type.shape(), tail) == tail));
  if (fits) {
    for (size_t i = 1; i < operands.size(); ++i) // what broadcasts is written out
      if (operands[i]) operands[i] = need(context.build.expand(operands[i], tail));
    need(context.set(context.build.addAll(kind, operands, attrs, 1)));
  } else {
    const Term scale = termOf(context, 1);
    const Elem inner =
        x.elem() == Elem::f64_ || scale.elem() == Elem::f64_ ? Elem::f64_ : Elem::f32_;
    Term y = make(kind, {x.cast(inner)}, attrs) * scale.cast(inner);
    if (context.input(2)) y = y + termOf(context, 2).cast(inner);
    if (y.shape() != shape)
      return badModel("scale {} or bias does not broadcast to input {}", scale.text(), x.text());
    context.set(0, y.cast(scale.elem()).value());
  }
  if (!context.wants(1) && !context.wants(2)) return Status::ok();
  std::vector<int64_t> axes(tail.size());
  std::iota(axes.begin(), axes.end(), axis);
  const Term wide = widened(x), mean = reduce(OpKind::ReduceMean, wide, axes),
             centred = wide - mean;
  const Term deviation = sqrt(reduce(OpKind::ReduceMean, centred * centred, axes) + epsilon);
  context.set(1, mean.cast(*stash).value());
  context.set(2, reciprocal(deviation).cast(*stash).value());
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
