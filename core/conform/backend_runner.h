#pragma once

#include "core/conform/case.h"

namespace candela::conform {

/// Runs cases on a backend: "reference", "soft", or a plugin by name or path. The plugin is opened by the first case
/// that runs, so that nothing of it is loaded in a process that only supervises. toPrimitives: every op is lowered to
/// the 13 primitives first; "reference" ignores it.
RunCase backendRunner(const std::string& backend, bool toPrimitives);

/// Whether the backend exists and its first device opens, found out in a process of its own.
Status probeBackend(const std::string& backend);

} // namespace candela::conform
