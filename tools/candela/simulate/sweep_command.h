#pragma once

#include "tools/candela/support/command.h"

/// --sweep, of the commands that have it.
namespace candela::tool {

struct SweepArguments {
  std::string file; ///< empty: there is no sweep
  size_t jobs = 0;  ///< processes; 0: one per core
  bool list = false;

  explicit operator bool() const { return !file.empty(); }
  /// --sweep, --jobs and --list.
  void addTo(CLI::App* command);
  /// Throws Failure where options stand beside --sweep that the file says, or --jobs and --list
  /// without it.
  void check(const CLI::App* command) const;
};

/// Runs what has no result yet, and writes the table and the page: `csv`, `html`, or into the
/// sweep's folder where those are empty.
void sweepModels(const SweepArguments& arguments, const std::string& csv, const std::string& html,
                 Console& console);

/// Throws Failure where a file is "-": the table stands there, and --json - takes its place.
void refuseStandardOutput(std::initializer_list<std::pair<const char*, std::string>> files);

} // namespace candela::tool
