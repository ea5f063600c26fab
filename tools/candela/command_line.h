#pragma once

#include <string_view>

namespace candela::tool {

/// "error: <message>" on stderr. Returns the exit code.
int reportError(int exitCode, std::string_view message) noexcept;

/// Runs a whole command line, and says what went wrong. Returns the exit code. A process may run
/// several, one behind the other.
int runCommandLine(int argc, char** argv) noexcept;

} // namespace candela::tool
