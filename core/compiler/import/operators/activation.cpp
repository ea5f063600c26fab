#include <cmath>
#include <numbers>

#include "core/compiler/import/operators/activation.h"

/// Activations that are formulas of other ops.
namespace candela::import {
namespace {

/// x above 0, else alpha * x.
Status importLeakyRelu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 0.01f);
  const Term x = termOf(context, 0);
  return context.set(leakyReluOf(x, alpha));
}

/// The slope broadcasts to x.
Status importPRelu(NodeContext& context) {
  const Term x = termOf(context, 0), slope = termOf(context, 1);
  const Term scaled = x * slope;
  if (scaled.shape() != x.shape())
    return badModel("slope of shape {} does not broadcast to x of shape {}",
                    shapeText(slope.shape()), shapeText(x.shape()));
  return context.set(select(less(x, 0), scaled, x));
}

Status importSoftsign(NodeContext& context) {
  const Term x = termOf(context, 0);
  return context.set(softsignOf(x));
}

/// x above alpha, else 0.
Status importThresholdedRelu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  const Term x = termOf(context, 0);
  return context.set(select(less(x.number(alpha), x), x, 0));
}

/// x * sigmoid(alpha * x)
Status importSwish(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  const Term x = termOf(context, 0);
  return context.set(x * sigmoid(alpha == 1 ? x : x * alpha));
}

/// Swish of the first, times the second; both of one shape.
Status importSwiGlu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  const Term gate = termOf(context, 0), x = termOf(context, 1);
  if (gate.shape() != x.shape())
    return badModel("operands have shapes {} and {}, expected one shape", shapeText(gate.shape()),
                    shapeText(x.shape()));
  return context.set(gate * sigmoid(alpha == 1 ? gate : gate * alpha) * x);
}

Status importElu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  return context.set(eluOf(termOf(context, 0), alpha));
}
Status importCelu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 1.0f);
  if (alpha == 0) return badModel("alpha is 0, and x is divided by it");
  return context.set(eluOf(termOf(context, 0), alpha, alpha, 1));
}
Status importSelu(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", context.opset < 6 ? 1.6732f : 1.67326319f);
  const double gamma = attrOf<float>(context, "gamma", context.opset < 6 ? 1.0507f : 1.05070102f);
  return context.set(eluOf(termOf(context, 0), alpha, 1, gamma));
}

Status importSoftplus(NodeContext& context) { return context.set(softplusOf(termOf(context, 0))); }
Status importMish(NodeContext& context) {
  const Term x = termOf(context, 0);
  return context.set(x * tanh(softplusOf(x)));
}

/// x within lambd of 0 becomes 0; beyond that the bias moves it there. Whole biases keep integers
/// exact.
Status importShrink(NodeContext& context) {
  const double lambd = attrOf<float>(context, "lambd", 0.5f),
               bias = attrOf<float>(context, "bias", 0.0f);
  const Term x = termOf(context, 0), real = isFloat(x.elem()) ? x : x.cast(Elem::f64_);
  const Term y = std::trunc(bias) == bias ? x : real;
  const Term up = (y + bias).cast(x.elem()), down = (y - bias).cast(x.elem());
  return context.set(select(less(real, -lambd), up, select(less(lambd, real), down, 0)));
}

Status importHardSigmoid(NodeContext& context) {
  const double alpha = attrOf<float>(context, "alpha", 0.2f),
               beta = attrOf<float>(context, "beta", 0.5f);
  const Term x = termOf(context, 0);
  return context.set(hardSigmoidOf(x, alpha, beta));
}
Status importHardSwish(NodeContext& context) {
  const Term x = termOf(context, 0);
  return context.set(x * hardSigmoidOf(x, 1.0 / 6, 0.5));
}

Status importGelu(NodeContext& context) {
  const std::string approximate = attrOf<std::string>(context, "approximate", "none");
  const Term x = termOf(context, 0);
  if (approximate == "none") return context.set(make(OpKind::Gelu, {x}));
  if (approximate != "tanh") return badModel("approximate '{}' is not none or tanh", approximate);
  const Term gate = tanh((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi));
  return context.set(x * 0.5 * (gate + 1));
}

constexpr Operator kActivationOperators[] = {
    {"Celu", 1, 1, 1, importCelu},
    {"Elu", 1, 1, 1, importElu},
    {"Gelu", 1, 1, 1, importGelu},
    {"HardSigmoid", 1, 1, 1, importHardSigmoid},
    {"HardSwish", 1, 1, 1, importHardSwish},
    {"LeakyRelu", 1, 1, 1, importLeakyRelu},
    {"Mish", 1, 1, 1, importMish},
    {"PRelu", 2, 2, 1, importPRelu},
    {"Selu", 1, 1, 1, importSelu},
    {"Shrink", 1, 1, 1, importShrink},
    {"Softplus", 1, 1, 1, importSoftplus},
    {"Softsign", 1, 1, 1, importSoftsign},
    {"SwiGLU", 2, 2, 1, importSwiGlu},
    {"Swish", 1, 1, 1, importSwish},
    {"ThresholdedRelu", 1, 1, 1, importThresholdedRelu},
};

} // namespace

std::span<const Operator> activationOperators() { return kActivationOperators; }

} // namespace candela::import
