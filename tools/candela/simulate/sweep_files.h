#pragma once

#include "core/support/status.h"
#include "tools/candela/simulate/sweep.h"

/// The files of a sweep's jobs beside their results.
namespace candela::tool {

/// What a job said that refused its model or configuration.
std::string refusalOf(const Sweep& sweep, const SweepJob& job);

/// Failure: not_found; bad_model for what is no whole result, of which rows are made.
Result<Json> readResult(const std::string& path);

/// The last line of a file, which names the reason; empty where there is none.
std::string lastLine(const std::string& path);

} // namespace candela::tool
