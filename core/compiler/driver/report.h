#pragma once

#include "core/runtime/session/session.h"

namespace candela::driver {

/// candela.placement/1: what was compiled and where it goes; fields as candela_report_json says.
std::string placementJson(const runtime::bundle::Bundle& bundle);

/// Chrome trace of what `before` and then `run` tell; instructions carry what candela_trace_json
/// says. trace_json.cpp
std::string traceJson(std::vector<runtime::session::TraceEvent> before,
                      const std::vector<runtime::session::TraceEvent>& run);

/// candela.backends/1: every backend that can be found, and those at `paths`.
std::string backendsJson(const std::vector<std::string>& paths);

} // namespace candela::driver
