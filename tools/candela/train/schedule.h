#pragma once

#include <cstdint>
#include <string>

namespace candela::tool {

/// How large steps are, over the course of training.
struct Schedule {
  std::string kind = "constant"; ///< constant, cosine or step
  double rate = 1e-3;            ///< at first
  int64_t totalSteps = 1;        ///< of cosine, which ends at 0
  int64_t every = 1;             ///< of step: after so many steps
  double factor = 0.1;           ///< of step: the rate is multiplied by it
};

/// `step`: from 0.
double learningRate(const Schedule& schedule, int64_t step);

} // namespace candela::tool
