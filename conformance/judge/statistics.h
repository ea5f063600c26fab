#pragma once

#include <vector>

#include "core/support/tensor.h"

/// What many results show and no single one does: each error may lie in its bound while all lean
/// one way, or are larger than rounding to nearest ever leaves them.
namespace candela::conformance::judge {

/// Of one result, element by element.
struct RoundingModel {
  std::vector<double> exact; ///< before any rounding
  /// The standard deviation of the error that steps which round to nearest leave, at most. 0: the
  /// element says nothing.
  std::vector<double> deviation;
};

/// Bias: the mean of errors, in deviations, is that of as many independent ones. Variance: their
/// squares are on the average not more than twice what is allowed. Fewer than 16 elements that say
/// something prove nothing and pass.
/// Failure: mismatch, with the number that is too large.
Status checkRounding(const RoundingModel& model, const Tensor& got);

} // namespace candela::conformance::judge
