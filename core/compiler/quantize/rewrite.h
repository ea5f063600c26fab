#pragma once

#include "core/compiler/quantize/calibrate.h"
#include "core/compiler/quantize/plan.h"
#include "core/compiler/quantize/profile.h"

namespace candela::quantize {

struct WeightOptions {
  Elem elem = Elem::i8_;  ///< i8 or i4
  bool perChannel = true; ///< else one step for all of a tensor
  int64_t block = 0;      ///< so many weights along a sum share a step; 0: all of a channel
  bool powerOfTwo = false;
};

/// Steps by value. Failure: invalid_argument where the profile lacks a value or saw NaN or
/// infinities in one.
Result<std::map<std::string, Quantization>> chooseSteps(const Plan& plan, const Profile& profile,
                                                        const CalibrationOptions& options,
                                                        const std::set<std::string>& int16);

/// What a person should know of the result.
struct Rewritten {
  std::vector<std::string> notes;
  std::map<std::string, std::string> dequantized; ///< by value: the name of it after rounding
  uint64_t weightBytesBefore = 0, weightBytes = 0;
};

/// Writes QuantizeLinear and DequantizeLinear around what the plan makes integers. Without a plan's
/// values only weights are stored as integers. Failure: unsupported, where the model's opset cannot
/// be raised to one that has what is written.
Result<Rewritten> rewrite(Network& network, const Plan& plan,
                          const std::map<std::string, Quantization>& steps,
                          const WeightOptions& weights);

} // namespace candela::quantize
