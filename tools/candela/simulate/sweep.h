#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/candela/support/console.h"

/// Sweeps: one simulation for each of configurations x models x batch sizes, each in a process and
/// a file of its own, so that what was interrupted goes on and other machines can take part.
namespace candela::tool {

/// One simulation of a sweep.
struct SweepJob {
  /// 16 hexadecimal digits of what the result depends on: equal jobs have equal ids
  std::string id;
  std::string model, base;
  int64_t batch = 1;
  std::map<std::string, std::string> varied; ///< key of the configuration -> value
  std::string configuration;                 ///< or description of a device, as TOML
  /// why there is no such configuration; then it is not run
  std::string refused;
};

struct Sweep {
  /// Devices that files describe: `candela estimate` of each, in place of simulations.
  bool isOfDevices = false;
  /// of results; `<file without .toml>.sweep` unless it says another
  std::string file, folder;
  std::string fidelity = "fast", batchDim = "N";
  std::string hostRates;                         ///< file; empty: the host's steps have no time
  std::vector<std::string> dims, models, varied; ///< varied: the keys, for columns
  /// Of the models: those that branch or loop by values, which are computed then.
  std::set<std::string> withControlFlow;
  std::vector<SweepJob> jobs;
};

/// Keys of the file: models, npu or device, fidelity, batch, batch_dim, dims, host_rates, output
/// and the table vary; see docs/reference/simulate.md. Throws Failure with file and key.
Sweep readSweep(const std::string& file);

/// The command line of a job, to be run anywhere where files have the same names; it writes
/// resultOf().
std::vector<std::string> commandOf(const Sweep& sweep, const SweepJob& job,
                                   const std::string& program);
std::string resultOf(const Sweep& sweep, const SweepJob& job);

/// Writes the configurations that the jobs read.
void writeConfigurations(const Sweep& sweep);

struct SweepCounts {
  /// there is no such configuration, or the model cannot be used; kept as a result
  size_t refused = 0;
  size_t failed = 0; ///< for another reason, told as a note; the next run tries again
};
/// Runs what has no result yet, in `processes` at once. Results that are there are kept. A process
/// takes several jobs whose configurations are alike (reuse.h); where it ends early, that is its
/// job's failure, and others go on in another one. Forks: no other thread may run.
SweepCounts runSweep(const Sweep& sweep, size_t processes, Console& console);

/// A row for each job, done or not.
Json sweepRows(const Sweep& sweep);
std::string sweepCsv(const Sweep& sweep, const Json& rows);
/// A page with the Pareto front of any two columns, and the rows.
std::string sweepPage(const Sweep& sweep, const Json& rows);

} // namespace candela::tool
