#include <cmath>
#include <numbers>

#include "core/import/term.h"

/// Activations that are formulas of other ops.
namespace candela::import {
namespace {

/// x above 0, else alpha * x.
Status importLeakyRelu(Step& step) {
  const double alpha = attrOf<float>(step, "alpha", 0.01f);
  const Term x = termOf(step, 0);
  return step.set(select(less(x, 0), x * alpha, x));
}

/// The slope broadcasts to x.
Status importPRelu(Step& step) {
  const Term x = termOf(step, 0), slope = termOf(step, 1);
  const Term scaled = x * slope;
  if (scaled.shape() != x.shape())
    return badModel("slope of shape {} does not broadcast to x of shape {}", shapeText(slope.shape()),
                    shapeText(x.shape()));
  return step.set(select(less(x, 0), scaled, x));
}

Status importSoftsign(Step& step) {
  const Term x = termOf(step, 0);
  return step.set(x / (abs(x) + 1));
}

/// x above alpha, else 0.
Status importThresholdedRelu(Step& step) {
  const double alpha = attrOf<float>(step, "alpha", 1.0f);
  const Term x = termOf(step, 0);
  return step.set(select(less(x.number(alpha), x), x, 0));
}

/// x * sigmoid(alpha * x)
Status importSwish(Step& step) {
  const double alpha = attrOf<float>(step, "alpha", 1.0f);
  const Term x = termOf(step, 0);
  return step.set(x * sigmoid(alpha == 1 ? x : x * alpha));
}

Status importHardSigmoid(Step& step) {
  const double alpha = attrOf<float>(step, "alpha", 0.2f), beta = attrOf<float>(step, "beta", 0.5f);
  const Term x = termOf(step, 0);
  return step.set(make(OpKind::Clip, {x * alpha + beta, x.number(0), x.number(1)}));
}
Status importHardSwish(Step& step) {
  const Term x = termOf(step, 0);
  return step.set(x * make(OpKind::Clip, {x * (1.0 / 6) + 0.5, x.number(0), x.number(1)}));
}

Status importGelu(Step& step) {
  const std::string approximate = attrOf<std::string>(step, "approximate", "none");
  const Term x = termOf(step, 0);
  if (approximate == "none") return step.set(make(OpKind::Gelu, {x}));
  if (approximate != "tanh") return badModel("approximate '{}' is not none or tanh", approximate);
  const Term gate = tanh((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi));
  return step.set(x * 0.5 * (gate + 1));
}

constexpr Operator kOperators[] = {
    {"Gelu", 1, 1, 1, importGelu},           {"HardSigmoid", 1, 1, 1, importHardSigmoid},
    {"HardSwish", 1, 1, 1, importHardSwish}, {"LeakyRelu", 1, 1, 1, importLeakyRelu},
    {"PRelu", 2, 2, 1, importPRelu},         {"Softsign", 1, 1, 1, importSoftsign},
    {"Swish", 1, 1, 1, importSwish},         {"ThresholdedRelu", 1, 1, 1, importThresholdedRelu},
};

} // namespace

std::span<const Operator> activationOperators() { return kOperators; }

} // namespace candela::import
