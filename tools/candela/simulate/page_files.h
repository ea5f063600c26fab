#pragma once

namespace candela::tool {

/// page.css, page.js and sweep.js, which the build puts into the command.
extern const char* const kSimulationStyle;
extern const char* const kSimulationScript;
extern const char* const kSweepScript;

} // namespace candela::tool
