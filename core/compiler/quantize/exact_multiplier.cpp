#include "core/compiler/quantize/exact_multiplier.h"

#include <algorithm>
#include <cmath>

namespace candela::quantize {
namespace {

constexpr double kUnit = 0x1p-16;     ///< of multipliers
constexpr double kMostUnits = 0x1p24; ///< that f32 tells apart
constexpr int kNeighbours = 6;        ///< rounding moves a multiplier by less

bool gives(float multiplier, float weights, const StepsAround& around) {
  const float stepwise = around.input * weights / around.result;
  const double whole = static_cast<double>(around.input) * static_cast<double>(weights) /
                       static_cast<double>(around.result);
  return stepwise == multiplier && static_cast<float>(whole) == multiplier;
}

/// f32 numbers near the quotient, the nearest first.
std::optional<float> stepOf(float multiplier, const StepsAround& around) {
  const auto nearest =
      static_cast<float>(static_cast<double>(multiplier) * static_cast<double>(around.result) /
                         static_cast<double>(around.input));
  float above = nearest;
  float below = nearest;
  for (int i = 0; i <= kNeighbours; ++i) {
    if (gives(multiplier, above, around)) return above;
    if (gives(multiplier, below, around)) return below;
    above = std::nextafter(above, INFINITY);
    below = std::nextafter(below, 0.0F);
  }
  return std::nullopt;
}

} // namespace

std::optional<float> stepOfExactMultiplier(double least, double most, const StepsAround& around) {
  const double stepOfUnit =
      kUnit * static_cast<double>(around.result) / static_cast<double>(around.input);
  const double lastUnits = std::min(std::floor(most / stepOfUnit), kMostUnits);
  for (double units = std::max(std::ceil(least / stepOfUnit), 1.0); units <= lastUnits; ++units)
    if (const auto step = stepOf(static_cast<float>(units * kUnit), around))
      if (std::isnormal(*step)) return step;
  return std::nullopt;
}

} // namespace candela::quantize
