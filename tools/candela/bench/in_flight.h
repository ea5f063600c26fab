#pragma once

#include "tools/candela/run/run.h"

namespace candela::tool {

/// What `candela bench --in-flight` is told.
struct InFlightOptions {
  RunOptions run;
  uint32_t inFlight = 0;            ///< requests at the same time; 0: the command measures runs
  std::vector<std::string> devices; ///< a copy of the model on each; empty: one, as compiled
  std::string traceFile;
  double seconds = 1;
  int repeat = 0; ///< 0: as long as `seconds` allow
};

/// Measures many requests on one or several copies of a model, and prints what came of it.
void benchInFlight(const InFlightOptions& options, Console& console);

} // namespace candela::tool
