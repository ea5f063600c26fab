#pragma once

#include "tools/candela/support/console.h"

namespace candela::tool {

struct ProblemOptions {
  std::string output;    ///< the solution as CSV; empty: none
  uint64_t capacity = 0; ///< bytes; 0: unlimited
};

/// Plans one memory problem of minimalloc's form, judges the plan by the validator, prints it and
/// fills the report. Whether it fits. Throws Failure naming the file and the line.
bool planProblem(const std::string& path, const ProblemOptions& options, Console& console,
                 Json& report);

} // namespace candela::tool
