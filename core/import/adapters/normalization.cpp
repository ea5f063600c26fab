#include <algorithm>
#include <numeric>

#include "core/import/step.h"

namespace candela::import {
namespace {

/// Before opset 14 more than one result asks for training form; since then an attribute does.
Status importBatchNormalization(Step& step) {
  if (step.opset < 9) {
    CDL_ASSIGN(const bool spatial, step.flagAttr("spatial", true));
    if (!spatial) return failure(Code::unsupported, "spatial = 0 (statistics per element) is not supported");
  }
  CDL_ASSIGN(const double epsilon, step.attr<float>("epsilon", 1e-5f));
  CDL_ASSIGN(const double momentum, step.attr<float>("momentum", 0.9f));
  bool training = false;
  if (step.opset >= 14) {
    CDL_ASSIGN(training, step.flagAttr("training_mode", false));
    if (!training && (step.wants(1) || step.wants(2)))
      return badModel("running mean and variance need training_mode = 1");
  } else {
    for (size_t i = 1; i < step.node.outputs.size(); ++i) training = training || step.wants(i);
  }
  for (size_t i = 3; i < step.node.outputs.size(); ++i)
    if (step.wants(i)) return failure(Code::unsupported, "output {} (saved statistics) is not supported", i);
  const int results = !training ? 1 : step.wants(2) ? 3 : step.wants(1) ? 2 : 1;
  return step.set(
      step.build.addAll(OpKind::BatchNorm, step.inputs(),
                        {{"epsilon", epsilon}, {"momentum", momentum}, {"training_mode", int64_t(training)}}, results));
}

/// Along one axis since opset 13; before that over everything from the axis on, which is one axis
/// of the 2-D form.
template <typename Make> Status importAlongAxis(Step& step, Make make) {
  Value* x = step.input(0);
  const int64_t rank = x->type.rank();
  const bool flattens = step.opset < 13;
  CDL_ASSIGN(int64_t axis, step.attr<int64_t>("axis", flattens ? 1 : -1));
  CDL_ASSIGN(axis, resolveAxis(axis, rank));
  if (!flattens || axis == rank - 1) return step.set(make(x, axis));
  CDL_ASSIGN(Value * matrix, step.build.flatten(x, axis));
  CDL_ASSIGN(Value * y, make(matrix, 1));
  return step.set(step.build.reshape(y, x->type.shape()));
}

Status importSoftmax(Step& step) {
  return importAlongAxis(step, [&](Value* x, int64_t axis) {
    return step.build.add(OpKind::Softmax, {x}, {{"axis", axis}});
  });
}

/// x - max - log(sum(exp(x - max))): the logarithm of a softmax would lose small probabilities.
Status importLogSoftmax(Step& step) {
  return importAlongAxis(step, [&](Value* x, int64_t axis) {
    const Attrs along = {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t(1)}};
    Builder& build = step.build;
    const auto shifted = build.add(OpKind::Sub, {x, build.add(OpKind::ReduceMax, {x}, along)});
    const auto sum = build.add(OpKind::ReduceSum, {build.add(OpKind::Exp, {shifted})}, along);
    return build.add(OpKind::Sub, {shifted, build.add(OpKind::Log, {sum})});
  });
}

/// The mean and 1 / deviation that two more outputs ask for are computed beside it.
Status importLayerNormalization(Step& step) {
  Value* x = step.input(0);
  CDL_ASSIGN(const int64_t axis, step.attr<int64_t>("axis", -1));
  CDL_ASSIGN(const int64_t first, resolveAxis(axis, x->type.rank()));
  CDL_ASSIGN(const double epsilon, step.attr<float>("epsilon", 1e-5f));
  CDL_TRY(step.maybe<int64_t>("stash_type").status()); // sums have at least 24 bits everywhere
  const Shape shape = x->type.shape();
  const auto expanded = [&](Value* row) -> Result<Value*> { // what broadcasts is written out
    if (!row) return nullptr;
    return step.build.expand(row, Shape(shape.begin() + first, shape.end()));
  };
  CDL_TRY(step.set(step.build.add(OpKind::LayerNorm, {x, expanded(step.input(1)), expanded(step.input(2))},
                                  {{"axis", first}, {"epsilon", epsilon}})));
  if (!step.wants(1) && !step.wants(2)) return Status::ok();
  std::vector<int64_t> axes(shape.size() - static_cast<size_t>(first));
  std::iota(axes.begin(), axes.end(), first);
  const Attrs along = {{"axes", axes}, {"keepdims", int64_t(1)}};
  Builder& build = step.build;
  CDL_ASSIGN(Value * mean, build.add(OpKind::ReduceMean, {x}, along));
  const auto centred = build.add(OpKind::Sub, {x, mean});
  const auto variance = build.add(OpKind::ReduceMean, {build.add(OpKind::Mul, {centred, centred})}, along);
  const auto sum = build.add(OpKind::Add, {variance, build.scalar(epsilon, x->type.elem)});
  CDL_ASSIGN(Value * factor, build.add(OpKind::Reciprocal, {build.add(OpKind::Sqrt, {sum})}));
  step.set(1, mean);
  step.set(2, factor);
  return Status::ok();
}

Status importRmsNormalization(Step& step) {
  const Shape shape = step.input(0)->type.shape();
  CDL_ASSIGN(const int64_t axis, step.attr<int64_t>("axis", -1));
  CDL_ASSIGN(const int64_t first, resolveAxis(axis, step.input(0)->type.rank()));
  CDL_ASSIGN(const double epsilon, step.attr<float>("epsilon", 1e-5f));
  CDL_TRY(step.maybe<int64_t>("stash_type").status());
  const auto scale = step.build.expand(step.input(1), Shape(shape.begin() + first, shape.end()));
  return step.set(step.build.add(OpKind::RmsNorm, {step.input(0), scale}, {{"axis", first}, {"epsilon", epsilon}}));
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
    CDL_TRY(step.maybe<int64_t>("seed").status());
    // An absent ratio is 0.5.
    if (!isZero(step.input(2)) && !(step.input(1) && isZero(step.input(1))))
      return failure(Code::unsupported, "training mode with a ratio that is not known to be 0 needs random numbers");
  } else {
    CDL_TRY(step.maybe<float>("ratio").status());
    if (step.input(1)) return badModel("has {} inputs, expected 1 before opset 12", step.inputs().size());
  }
  step.set(0, step.input(0));
  if (!step.wants(1)) return Status::ok();
  // The mask had x's type before opset 10.
  const graph::TensorType& type = step.input(0)->type;
  const Elem elem = step.opset < 10 ? type.elem : Elem::bool_;
  CDL_ASSIGN(Value * one, step.build.scalar(1, elem));
  CDL_ASSIGN(Value * mask, step.build.expand(one, type.shape()));
  step.set(1, mask);
  return Status::ok();
}

constexpr Operator kOperators[] = {
    {"BatchNormalization", 5, 5, 5, importBatchNormalization}, {"Dropout", 1, 3, 2, importDropout},
    {"LayerNormalization", 2, 3, 3, importLayerNormalization}, {"LogSoftmax", 1, 1, 1, importLogSoftmax},
    {"RMSNormalization", 2, 2, 1, importRmsNormalization},     {"Softmax", 1, 1, 1, importSoftmax},
};

} // namespace

std::span<const Operator> normalizationOperators() { return kOperators; }

} // namespace candela::import
