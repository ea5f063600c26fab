#include "conformance/judge/statistics.h"

#include <cmath>

#include "core/support/compare.h"

namespace candela::conformance::judge {

Status checkRounding(const RoundingModel& model, const Tensor& got) {
  constexpr int64_t kFewest = 16;
  constexpr double kSigmas = 6, kMostVariance = 2;
  int64_t count = 0;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double error = (elementAsReal(got, i) - model.exact[i]) / model.deviation[i];
    if (!std::isfinite(error)) continue; // no deviation, or no numbers, which intervals judge
    ++count;
    sum += error;
    squares += error * error;
  }
  if (count < kFewest) return Status::ok();
  const double size = static_cast<double>(count), bias = sum / size, variance = squares / size;
  if (std::abs(bias) > kSigmas / std::sqrt(size))
    return failure(
        Code::mismatch,
        "{} results have a bias of {:.3f} deviations, rounding to nearest leaves at most {:.3f}",
        count, bias, kSigmas / std::sqrt(size));
  if (variance > kMostVariance)
    return failure(
        Code::mismatch,
        "{} results have a variance of {:.3g} times what their sums may have, at most {}", count,
        variance, kMostVariance);
  return Status::ok();
}

} // namespace candela::conformance::judge
