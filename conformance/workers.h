#pragma once

#include "conformance/case.h"

namespace candela::conformance {

/// How the reason of a case that took too long begins.
inline constexpr std::string_view kNoAnswer = "no answer after ";

struct WorkerOptions {
  int jobs = 1;                 ///< processes at a time
  double timeLimitSeconds = 60; ///< of one case
  int repeats = 0;              ///< of what failed, but for want of time: whether it does so again
  /// A process of its own for each case, where what one breaks in memory would end another.
  bool isolates = false;
};

/// Runs cases 0 .. names.size() - 1 in worker processes that are forked here: a worker runs one
/// case after the other unless they are isolated; when it dies or takes too long, the case that it
/// ran fails with the signal's name or the limit, and a new worker goes on. Where failed cases are
/// repeated, CaseResult::again says what came of it, and the reason of an unsteady one begins with
/// how often it passed. `run` is called in the workers only, so what it loads or breaks stays
/// there. Their stdout goes to stderr. `done` is called here after each case, with how many are
/// done. Results come in the order of the names. The calling process must have one thread. Failure:
/// internal, when no worker can be started.
Result<std::vector<CaseResult>>
runInWorkers(const std::vector<std::string>& names,
             const std::function<CaseResult(size_t index)>& run, const WorkerOptions& options,
             const std::function<void(const CaseResult&, size_t finished)>& done);

} // namespace candela::conformance
