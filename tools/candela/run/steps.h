#pragma once

#include "tools/candela/run/run.h"

/// Steps of `candela run --state --steps N`: a model that goes on from what it answered.
namespace candela::tool {

struct Steps {
  Session session; ///< of the steps
  double promptMs = 0;
  int64_t promptTokens = 0; ///< 0: no file gave a state its beginning
  std::vector<double> latencies = {};
  Results results = {}; ///< of the last step
  /// What states of few integers held after the prompt, if there was one, and each step, by output.
  std::map<std::string, std::vector<int64_t>> said = {};
};

/// Runs once with what --input gives to states, then `count` times with what each run left. Fails
/// as openSession() does.
Steps runSteps(const RunOptions& options, int count);

void printSteps(const Steps& steps, Console& console, Json& report);

} // namespace candela::tool
