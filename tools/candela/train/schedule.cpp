#include "tools/candela/train/schedule.h"

#include <cmath>
#include <numbers>

namespace candela::tool {

double learningRate(const Schedule& schedule, int64_t step) {
  if (schedule.kind == "cosine") {
    const double done = static_cast<double>(step) / static_cast<double>(schedule.totalSteps);
    return schedule.rate * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  if (schedule.kind == "step")
    return schedule.rate * std::pow(schedule.factor, static_cast<double>(step / schedule.every));
  return schedule.rate;
}

} // namespace candela::tool
