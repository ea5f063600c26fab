#pragma once

#include <vector>

#include "core/compiler/differentiate/term.h"

/// Steps of optimizers as formulas of the Graph: what a parameter becomes, by its gradient.
namespace candela::train {

using differentiate::Term;

enum class Optimizer : uint8_t { sgd, momentum, adam, adamw };

std::string_view optimizerName(Optimizer optimizer);
std::optional<Optimizer> parseOptimizer(std::string_view name);

struct OptimizerSettings {
  Optimizer kind = Optimizer::adam;
  double momentum = 0.9; ///< of `momentum`
  double beta1 = 0.9;    ///< of the Adams: how much of the mean stays
  double beta2 = 0.999;  ///< of the Adams: how much of the mean square stays
  double epsilon = 1e-8;
  double weightDecay = 0; ///< adamw: of the parameter itself, apart from its gradient
};

/// Tensors like the parameter that an optimizer keeps from step to step; zero at first.
size_t stateCount(Optimizer optimizer);

/// Scalars of f32 that differ from step to step.
struct StepNumbers {
  Term learningRate;
  /// 1 / (1 - beta1^t) and 1 / (1 - beta2^t) of step t, from 1: what is missing in averages that
  /// began at zero.
  Term correction1, correction2;
};

/// A parameter and the optimizer's states of it, before a step or behind it.
struct Updated {
  Term parameter;
  std::vector<Term> states;
};
Updated update(const OptimizerSettings& settings, const Updated& before, const Term& gradient,
               const StepNumbers& numbers);

/// The gradients, made shorter where all of them together are longer than `most`.
std::vector<Term> clippedByNorm(const std::vector<Term>& gradients, double most);

} // namespace candela::train
