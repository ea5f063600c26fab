#include "conformance/judge/random_numbers.h"

#include <cmath>

#include "core/support/compare.h"

namespace candela::conformance::judge {
namespace {

/// As rare as one in three million where both are of one distribution.
constexpr double kSigmas = 5;

struct Moments {
  double mean = 0, variance = 0;
};
Moments momentsOf(const Tensor& tensor) {
  Moments of;
  const auto count = static_cast<double>(tensor.count());
  for (int64_t i = 0; i < tensor.count(); ++i) of.mean += elementAsReal(tensor, i) / count;
  for (int64_t i = 0; i < tensor.count(); ++i)
    of.variance += std::pow(elementAsReal(tensor, i) - of.mean, 2) / count;
  return of;
}

bool varies(const Tensor& tensor) {
  for (int64_t i = 1; i < tensor.count(); ++i)
    if (elementAsReal(tensor, i) != elementAsReal(tensor, 0)) return true;
  return false;
}

Status checkVaries(const Tensor& got, const Tensor& expected) {
  if (!varies(expected) || varies(got)) return Status::ok();
  return failure(Code::mismatch, "all {} random numbers are {}", got.count(), elementText(got, 0));
}

} // namespace

Status checkKept(const Tensor& got, const Tensor& expected) {
  const CompareBound bound;
  const auto count = static_cast<double>(expected.count());
  double zerosGot = 0, zerosExpected = 0;
  bool isBinary = true;
  for (int64_t i = 0; i < expected.count(); ++i) {
    const double want = elementAsReal(expected, i), have = elementAsReal(got, i);
    zerosGot += have == 0;
    zerosExpected += want == 0;
    isBinary = isBinary && (want == 0 || want == 1);
    if (have != 0 && want != 0 &&
        !(std::abs(have - want) <= bound.absolute + bound.relative * std::abs(want)))
      return failure(Code::mismatch, "element {} was kept as {}, not as {}", i, have, want);
  }
  for (int64_t i = 0; isBinary && i < expected.count(); ++i)
    if (const double have = elementAsReal(got, i); have != 0 && have != 1)
      return failure(Code::mismatch, "element {} is {}, neither 0 nor 1", i, have);
  CDL_TRY(checkVaries(got, expected));
  if (count == 0) return Status::ok();
  const double share = (zerosGot + zerosExpected) / (2 * count),
               sigma = std::sqrt(2 * count * share * (1 - share));
  const bool isCertain = zerosExpected == 0 || zerosExpected == count;
  if (isCertain ? zerosGot == zerosExpected : std::abs(zerosGot - zerosExpected) <= kSigmas * sigma)
    return Status::ok();
  return failure(Code::mismatch, "{} of {} elements are 0, of the expected ones {}", zerosGot,
                 count, zerosExpected);
}

Status checkDrawn(const Tensor& got, const Tensor& expected) {
  constexpr int64_t kFewest = 16;
  constexpr double kMostVariance = 4;
  for (int64_t i = 0; i < got.count(); ++i)
    if (!std::isfinite(elementAsReal(got, i)))
      return failure(Code::mismatch, "element {} is {}, no number", i, elementText(got, i));
  CDL_TRY(checkVaries(got, expected));
  if (got.count() < kFewest) return Status::ok();
  const Moments have = momentsOf(got), want = momentsOf(expected);
  const double sigma =
      std::sqrt((have.variance + want.variance) / static_cast<double>(got.count()));
  if (std::abs(have.mean - want.mean) > kSigmas * sigma)
    return failure(Code::mismatch,
                   "{} random numbers have a mean of {:.4g}, the expected ones {:.4g}", got.count(),
                   have.mean, want.mean);
  if (have.variance > kMostVariance * want.variance ||
      want.variance > kMostVariance * have.variance)
    return failure(Code::mismatch,
                   "{} random numbers have a variance of {:.4g}, the expected ones {:.4g}",
                   got.count(), have.variance, want.variance);
  return Status::ok();
}

} // namespace candela::conformance::judge
