// ai.onnx.preview.training: optimizers as formulas, and gradients of what the model computes.
#include <algorithm>
#include <cmath>

#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

/// The tensors that an optimizer moves, each with its gradient and what was accumulated.
struct Optimized {
  Term rate, steps; ///< scalars; steps: how many were done
  size_t count = 0; ///< of tensors
  size_t groups = 0;
  NodeContext* context = nullptr;

  /// 0: the tensor; 1: its gradient; from 2 on what was accumulated.
  Term at(size_t group, size_t tensor) const {
    return termOf(*context, 2 + group * count + tensor);
  }
};

Term scalarOf(const NodeContext& context, size_t input, Elem elem) {
  const Term given = termOf(context, input);
  if (given.count() != 1)
    need(badModel("input {} is {}, expected one number", input, given.text()));
  return given.reshape({}).cast(elem);
}

/// `groups`: tensors, gradients and accumulated ones stand one group after the other.
Optimized optimizedOf(NodeContext& context, size_t groups) {
  const size_t given = context.inputs().size() - 2;
  if (given == 0 || given % groups != 0)
    need(badModel("{} tensors behind R and T, expected {} for each that is moved", given, groups));
  const Elem elem = termOf(context, 2).elem();
  if (!isFloat(elem)) need(badModel("input 2 is {}, no float", termOf(context, 2).text()));
  Optimized all{scalarOf(context, 0, elem), scalarOf(context, 1, elem), given / groups, groups,
                &context};
  for (size_t tensor = 0; tensor < all.count; ++tensor)
    for (size_t group = 1; group < groups; ++group)
      if (all.at(group, tensor).text() != all.at(0, tensor).text())
        need(badModel("input {} is {}, of a tensor {}", 2 + group * all.count + tensor,
                      all.at(group, tensor).text(), all.at(0, tensor).text()));
  return all;
}

double numberAttr(NodeContext& context, const std::string& name, std::optional<float> fallback) {
  const std::optional<float> given = need(context.maybe<float>(name));
  if (!given && !fallback) need(badModel("attribute {} is missing", name));
  return static_cast<double>(given ? *given : *fallback);
}

Term regularized(const Optimized& all, size_t tensor, double coefficient) {
  const Term gradient = all.at(1, tensor);
  return coefficient == 0 ? gradient : all.at(0, tensor) * coefficient + gradient;
}

/// Whether a step was done before.
Term isUnderWay(const Optimized& all) { return less(0, all.steps); }

/// Outputs: the moved tensors, then what was accumulated, group by group.
void setResult(const Optimized& all, size_t group, size_t tensor, const Term& value) {
  const size_t at = group == 0 ? tensor : (group - 1) * all.count + tensor;
  all.context->set(at, value.value());
}

Status importAdagrad(NodeContext& context) {
  const Optimized all = optimizedOf(context, 3);
  const double decay = numberAttr(context, "decay_factor", 0),
               epsilon = numberAttr(context, "epsilon", 1e-6F),
               coefficient = numberAttr(context, "norm_coefficient", 0);
  const Term rate = all.rate / (all.steps * decay + 1);
  for (size_t i = 0; i < all.count; ++i) {
    const Term gradient = regularized(all, i, coefficient);
    const Term squares = all.at(2, i) + gradient * gradient;
    setResult(all, 0, i, all.at(0, i) - rate * gradient / (sqrt(squares) + epsilon));
    setResult(all, 2, i, squares);
  }
  return Status::ok();
}

/// 1 - factor^steps, with all its digits where the factor is near 1.
Term missing(const Optimized& all, double factor) { return -expm1(all.steps * std::log(factor)); }

Status importAdam(NodeContext& context) {
  const Optimized all = optimizedOf(context, 4);
  const double alpha = numberAttr(context, "alpha", 0.9F),
               beta = numberAttr(context, "beta", 0.999F),
               epsilon = numberAttr(context, "epsilon", 1e-6F),
               coefficient = numberAttr(context, "norm_coefficient", 0),
               after = numberAttr(context, "norm_coefficient_post", 0);
  const Term adjusted = all.rate * sqrt(missing(all, beta)) / missing(all, alpha);
  const Term rate = select(isUnderWay(all), adjusted, all.rate);
  for (size_t i = 0; i < all.count; ++i) {
    const Term gradient = regularized(all, i, coefficient);
    const Term mean = all.at(2, i) * alpha + gradient * (1 - alpha);
    const Term squares = all.at(3, i) * beta + gradient * gradient * (1 - beta);
    const Term moved = all.at(0, i) - rate * mean / (sqrt(squares) + epsilon);
    setResult(all, 0, i, after == 0 ? moved : moved * (1 - after));
    setResult(all, 2, i, mean);
    setResult(all, 3, i, squares);
  }
  return Status::ok();
}

Status importMomentum(NodeContext& context) {
  const Optimized all = optimizedOf(context, 3);
  const double alpha = numberAttr(context, "alpha", {}), beta = numberAttr(context, "beta", {}),
               coefficient = numberAttr(context, "norm_coefficient", {});
  const std::string mode = attrOf<std::string>(context, "mode", "");
  if (mode != "standard" && mode != "nesterov")
    return badModel("mode '{}' is not standard or nesterov", mode);
  const Term scale = select(isUnderWay(all), all.rate.number(beta), all.rate.number(1));
  for (size_t i = 0; i < all.count; ++i) {
    const Term gradient = regularized(all, i, coefficient);
    const Term velocity = all.at(2, i) * alpha + scale * gradient;
    const Term way = mode == "standard" ? velocity : gradient + velocity * alpha;
    setResult(all, 0, i, all.at(0, i) - all.rate * way);
    setResult(all, 2, i, velocity);
  }
  return Status::ok();
}

std::vector<std::string> namesAttr(NodeContext& context, const std::string& name) {
  return attrOf<std::vector<std::string>>(context, name, {});
}

/// Of the sum of y, whose value stands behind the node's own inputs (gradient_targets.h), with
/// respect to the first of these.
Status importGradient(NodeContext& context) {
  const std::vector<std::string> xs = namesAttr(context, "xs");
  const std::vector<std::string> zs = namesAttr(context, "zs");
  std::vector<std::string> named = xs;
  named.insert(named.end(), zs.begin(), zs.end());
  const std::string y = attrOf<std::string>(context, "y", "");
  if (xs.empty() || context.inputs().size() != named.size() + 1)
    return badModel("xs and zs name {} tensors, but there are {} inputs", named.size(),
                    context.inputs().size() - 1);
  for (size_t i = 0; i < named.size(); ++i)
    if (context.node.inputs[i] != named[i])
      return failure(Code::unsupported,
                     "the gradient at '{}' in place of '{}' is another function's",
                     context.node.inputs[i], named[i]);
  const Term target = termOf(context, named.size());
  const Term ones = full(context.build, 1, target.shape(), target.elem());
  std::vector<Value*> wrt;
  for (size_t i = 0; i < xs.size(); ++i) wrt.push_back(termOf(context, i).value());
  const differentiate::Cotangent of{target.value(), ones.value()};
  CDL_ASSIGN(const std::vector<differentiate::Gradient> gradients,
             differentiate::differentiate(context.build.graph(), std::span(&of, 1), wrt));
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].isReached && wrt[i]->isConstant())
      return failure(Code::unsupported,
                     "'{}' depends on the constant '{}' by what was computed "
                     "when the model was imported, if at all",
                     y, xs[i]);
    context.set(i, gradients[i].value);
  }
  return Status::ok();
}

constexpr Operator kTrainingOperators[] = {
    {"ai.onnx.preview.training.Adagrad", 3, -1, 1 << 20, importAdagrad},
    {"ai.onnx.preview.training.Adam", 3, -1, 1 << 20, importAdam},
    {"ai.onnx.preview.training.Gradient", 2, -1, 1 << 20, importGradient},
    {"ai.onnx.preview.training.Momentum", 3, -1, 1 << 20, importMomentum},
};

} // namespace

std::span<const Operator> trainingOperators() { return kTrainingOperators; }

} // namespace candela::import
