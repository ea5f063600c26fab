#pragma once

#include <string_view>

/// The files that the build puts into the command.
namespace candela::tool {

extern const std::string_view kSimulationTemplate; ///< page.html
extern const std::string_view kSimulationStyle;    ///< page.css
extern const std::string_view kSimulationScript;   ///< page.js
extern const std::string_view kSweepTemplate;      ///< sweep.html
extern const std::string_view kSweepScript;        ///< sweep.js
extern const std::string_view kHostSteps;          ///< host_steps.txt
extern const std::string_view kMargins;            ///< margins.json

} // namespace candela::tool
