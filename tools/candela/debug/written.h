#pragma once

#include "tools/candela/debug/shrink.h"

namespace candela::tool {

/// A trial in files.
struct Written {
  std::string file;          ///< the Program
  std::string command;       ///< that repeats the fault
  std::string underDebugger; ///< the same in one process, where that helps
  /// of the files as they were read back, by the reference where they are small
  Finding again;
};
/// Writes the Program with its constants and inputs.
Written writeTrial(const std::string& folder, const Suspect& suspect, const Question& question);

} // namespace candela::tool
