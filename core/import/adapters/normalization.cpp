#include <algorithm>
#include <numeric>

#include "core/import/term.h"

namespace candela::import {
namespace {

/// Before opset 14 more than one result asks for training form; since then an attribute does.
Status importBatchNormalization(Step& step) {
  if (step.opset < 9 && !need(step.flagAttr("spatial", true)))
    return failure(Code::unsupported, "spatial = 0 (statistics per element) is not supported");
  const double epsilon = attrOf<float>(step, "epsilon", 1e-5f), momentum = attrOf<float>(step, "momentum", 0.9f);
  bool training = step.opset >= 14 && need(step.flagAttr("training_mode", false));
  if (step.opset >= 14 && !training && (step.wants(1) || step.wants(2)))
    return badModel("running mean and variance need training_mode = 1");
  for (size_t i = 1; i < step.node.outputs.size(); ++i) training = training || step.wants(i);
  for (size_t i = 3; i < step.node.outputs.size(); ++i)
    if (step.wants(i)) return failure(Code::unsupported, "output {} (saved statistics) is not supported", i);
  const int results = !training ? 1 : step.wants(2) ? 3 : step.wants(1) ? 2 : 1;
  return step.set(
      step.build.addAll(OpKind::BatchNorm, step.inputs(),
                        {{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", int64_t(training)}}, results));
}

/// Along one axis since opset 13; before that over everything from the axis on, which is one axis
/// of the 2-D form.
template <typename Formula> Status importAlongAxis(Step& step, Formula formula) {
  const Term x = termOf(step, 0);
  const bool flattens = step.opset < 13;
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(step, "axis", flattens ? 1 : -1), x.rank()));
  if (!flattens || axis == x.rank() - 1) return step.set(formula(x, axis));
  const Term matrix(step.build, step.build.flatten(x.value(), axis));
  return step.set(formula(matrix, 1).reshape(x.shape()));
}

Status importSoftmax(Step& step) { return importAlongAxis(step, softmax); }

Status importLogSoftmax(Step& step) { return importAlongAxis(step, logSoftmax); }

/// Over the dims from `axis` on, in the wider type where the scale has another one than x. The mean and 1 / deviation
/// that two more outputs ask for are computed beside it, and are of the type `stash_type`.
template <OpKind kind> Status importOverTail(Step& step) {
  const Term x = termOf(step, 0);
  const int64_t axis = need(resolveAxis(attrOf<int64_t>(step, "axis", -1), x.rank()));
  const double epsilon = attrOf<float>(step, "epsilon", 1e-5f);
  const int64_t stashType = attrOf<int64_t>(step, "stash_type", 1); // sums have at least 24 bits everywhere
  const auto stash = stashType > 0 && stashType <= INT32_MAX ? elemFromOnnx(static_cast<int>(stashType)) : std::nullopt;
  if (!stash || !isFloat(*stash) || isStorageOnly(*stash)) return badModel("stash_type {} is no float type", stashType);
  const Shape shape = x.shape(), tail(shape.begin() + axis, shape.end());
  const Elem result = step.input(1)->type.elem;
  const Elem inner = result == x.elem()                               ? result
                     : result == Elem::f64_ || x.elem() == Elem::f64_ ? Elem::f64_
                                                                      : Elem::f32_;
  std::vector<Value*> operands = step.inputs();
  operands[0] = x.cast(inner).value();
  for (size_t i = 1; i < operands.size(); ++i) // what broadcasts is written out
    if (operands[i]) operands[i] = need(step.build.expand(need(step.build.cast(operands[i], inner)), tail));
  const Term y(step.build, need(step.build.addAll(kind, operands, {{"axis", axis}, {"epsilon", epsilon}}, 1)).front());
  step.set(0, y.cast(result).value());
  if (!step.wants(1) && !step.wants(2)) return Status::ok();
  std::vector<int64_t> axes(tail.size());
  std::iota(axes.begin(), axes.end(), axis);
  const Term wide = x.elem() == Elem::f64_ ? x : x.cast(Elem::f32_);
  const Term mean = reduce(OpKind::ReduceMean, wide, axes), centred = wide - mean;
  step.set(1, mean.cast(*stash).value());
  step.set(2, reciprocal(sqrt(reduce(OpKind::ReduceMean, centred * centred, axes) + epsilon)).cast(*stash).value());
  return Status::ok();
}

/// Whether a scalar operand is absent or known to be zero (or false).
bool isZero(const Value* value) {
  if (!value) return true;
  if (!value->isConstant() || value->type.count() != 1) return false;
  const auto tensor = value->tensor();
  return tensor && std::all_of(tensor->bytes.data(), tensor->bytes.data() + tensor->sizeBytes(),
                               [](std::byte byte) { return byte == std::byte(0); });
}

/// Inference form: y is x and the mask is all ones.
Status importDropout(Step& step) {
  if (step.opset >= 12) {
    need(step.maybe<int64_t>("seed"));
    // An absent ratio is 0.5.
    if (!isZero(step.input(2)) && !(step.input(1) && isZero(step.input(1))))
      return failure(Code::unsupported, "training mode with a ratio that is not known to be 0 needs random numbers");
  } else {
    need(step.maybe<float>("ratio"));
    if (step.input(1)) return badModel("has {} inputs, expected 1 before opset 12", step.inputs().size());
  }
  const Term x = termOf(step, 0);
  // The mask had x's type before opset 10.
  if (step.wants(1)) step.set(1, full(step.build, 1, x.shape(), step.opset < 10 ? x.elem() : Elem::bool_).value());
  return step.set(x);
}

constexpr Operator kOperators[] = {
    {"BatchNormalization", 5, 5, 5, importBatchNormalization},          {"Dropout", 1, 3, 2, importDropout},
    {"LayerNormalization", 2, 3, 3, importOverTail<OpKind::LayerNorm>}, {"LogSoftmax", 1, 1, 1, importLogSoftmax},
    {"RMSNormalization", 2, 2, 1, importOverTail<OpKind::RmsNorm>},     {"Softmax", 1, 1, 1, importSoftmax},
};

} // namespace

std::span<const Operator> normalizationOperators() { return kOperators; }

} // namespace candela::import
