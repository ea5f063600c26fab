#pragma once

#include "core/compiler/solvers/memory/memory.h"
#include "core/support/diagnostic.h"

namespace candela::program::report {

/// A memory problem with the names of its buffers.
struct NamedProblem {
  solvers::memory::MemoryProblem problem;
  std::vector<std::string> ids; ///< ids[i] is that of buffers[i]
};

/// minimalloc's CSV (github.com/google/minimalloc): a line of column names, then a buffer a line.
/// Columns, in any order: id (or buffer, buffer_id), lower (start, begin), upper, or end, which is
/// the last instant itself, size in bytes, alignment in bytes (default 1), gaps as in "2-4 7-9",
/// ends not counted in, and offset, which is ignored. Times are integers, sizes are not negative,
/// ids are unique. Every malformed line is reported; `file` names it.
Result<NamedProblem> parseProblem(std::string_view text, const std::string& file,
                                  Diagnostics& diagnostics);

/// The same form with an offset for each buffer.
std::string solutionText(const NamedProblem& named, const solvers::memory::MemoryPlan& plan);

} // namespace candela::program::report
