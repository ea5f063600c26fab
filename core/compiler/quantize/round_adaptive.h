#pragma once

#include "core/compiler/quantize/run.h"

/// Weights rounded up or down so that the results of their layer change least.
namespace candela::quantize {

/// The error of a layer's results on the data: sums of squares over the sums that were looked at.
struct AdaptedLayer {
  std::string node;
  double nearest = 0;  ///< with each weight rounded to the nearest integer
  double adaptive = 0; ///< as they were rounded; never more
};
/// A product whose weights are rounded to the nearest.
struct NotAdapted {
  std::string node, why;
};
struct AdaptiveRounding {
  std::vector<AdaptedLayer> layers;
  std::vector<NotAdapted> leftOut;
  int64_t runs = 0; ///< of the samples
};

/// At most so many runs of the samples are taken, spread evenly.
inline constexpr int64_t kMostRoundingRuns = 256;
/// Longer sums are rounded to the nearest: time grows with the cube of a sum's length, memory with
/// its square, of which each group of channels has one.
inline constexpr int64_t kMostTerms = 3072;
inline constexpr int64_t kMostMoments = kMostTerms * kMostTerms; ///< of a layer: 75 MB
inline constexpr int64_t kMomentsAtOnce = 4 * kMostMoments;      ///< layers go in batches of 300 MB

/// What was rounded before for the same float network and data; another scale makes it void.
struct RoundedBefore {
  Tensor nearest, scales, adaptive;
  AdaptedLayer layer;
};
using RoundedLayers = std::map<int, RoundedBefore>; ///< by node of the float network

/// Rounds the weights of `quantized` anew; scales and all else stay. Deterministic.
/// Failures: those of import and of the samples; invalid_argument without a sample.
Result<AdaptiveRounding> roundAdaptively(const Network& network, Network& quantized,
                                         const Samples& samples, const RunConditions& options,
                                         RoundedLayers& known);

} // namespace candela::quantize
