#include "core/compiler/train/optimizers.h"

#include <algorithm>
#include <array>

namespace candela::train {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"sgd", "momentum", "adam", "adamw"};

Updated byMomentum(const OptimizerSettings& settings, const Updated& before, const Term& gradient,
                   const StepNumbers& numbers) {
  const Term velocity = before.states[0] * settings.momentum + gradient;
  return {before.parameter - numbers.learningRate * velocity, {velocity}};
}

Updated byAdam(const OptimizerSettings& settings, const Updated& before, const Term& gradient,
               const StepNumbers& numbers) {
  const Term mean = before.states[0] * settings.beta1 + gradient * (1 - settings.beta1);
  const Term square =
      before.states[1] * settings.beta2 + gradient * gradient * (1 - settings.beta2);
  Term move = mean * numbers.correction1 / (sqrt(square * numbers.correction2) + settings.epsilon);
  if (settings.kind == Optimizer::adamw && settings.weightDecay != 0)
    move = move + before.parameter * settings.weightDecay;
  return {before.parameter - numbers.learningRate * move, {mean, square}};
}

} // namespace

std::string_view optimizerName(Optimizer optimizer) {
  return kNames[static_cast<size_t>(optimizer)];
}

std::optional<Optimizer> parseOptimizer(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Optimizer>(found - kNames.begin());
}

size_t stateCount(Optimizer optimizer) {
  constexpr size_t kCounts[] = {0, 1, 2, 2};
  return kCounts[static_cast<size_t>(optimizer)];
}

Updated update(const OptimizerSettings& settings, const Updated& before, const Term& gradient,
               const StepNumbers& numbers) {
  const bool decaysByGradient = settings.weightDecay != 0 && settings.kind != Optimizer::adamw;
  const Term decayed =
      decaysByGradient ? gradient + before.parameter * settings.weightDecay : gradient;
  switch (settings.kind) {
  case Optimizer::sgd: break;
  case Optimizer::momentum: return byMomentum(settings, before, decayed, numbers);
  case Optimizer::adam:
  case Optimizer::adamw: return byAdam(settings, before, decayed, numbers);
  }
  return {before.parameter - numbers.learningRate * decayed, {}};
}

std::vector<Term> clippedByNorm(const std::vector<Term>& gradients, double most) {
  std::vector<Term> clipped;
  std::optional<Term> squares;
  for (const Term& gradient : gradients) {
    const Term own = differentiate::sumOfAll(gradient * gradient);
    squares = squares ? *squares + own : own;
  }
  if (!squares) return clipped;
  const Term factor = most / maximum(sqrt(*squares), most);
  for (const Term& gradient : gradients) clipped.push_back(gradient * factor);
  return clipped;
}

} // namespace candela::train
