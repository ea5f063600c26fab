#pragma once

#include "core/compiler/quantize/plan.h"
#include "core/compiler/quantize/run.h"

/// Biases that take back what rounding shifts the channels of a layer by.
namespace candela::quantize {

/// A product with constant weights whose bias stays as it is.
struct NotCorrected {
  std::string node, why;
};
struct BiasCorrection {
  std::vector<std::string> nodes; ///< whose biases were corrected
  std::vector<NotCorrected> leftOut;
  int64_t runs = 0; ///< of the samples
};

/// At most so many runs of the samples, spread evenly, are taken to see a mean.
inline constexpr int64_t kMostBiasRuns = 256;

/// Gives each Conv and Gemm that becomes integers and has no bias one of zeros.
void addBiases(Network& network, const Plan& plan);

/// Runs the layers of `quantized`, each on the values of the float network before it, beside those
/// of the float network, and takes the mean difference of each output channel off its bias. What
/// the layers before lose is no part of it: they take back their own.
/// `dequantized`: by value of `network`, what it is called in `quantized` after rounding.
/// Failures: those of import and of the samples; invalid_argument without a sample.
Result<BiasCorrection> correctBiases(const Network& network, Network& quantized,
                                     const std::map<std::string, std::string>& dequantized,
                                     const Samples& samples, const RunConditions& options);

} // namespace candela::quantize
