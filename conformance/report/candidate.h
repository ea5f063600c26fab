#pragma once

#include <map>

#include "conformance/workers.h"

namespace candela::conformance::report {

/// What is judged.
struct Candidate {
  std::string backend; ///< as it was asked for
  std::map<std::string, std::string> options = {};
  std::string file = {}, sha256 = {}; ///< of the plugin; empty where it is linked in
  std::string name = {}, version = {}, description = {}, device = {};
  unsigned abiMajor = 0, abiMinor = 0; ///< of its table
  /// Rows that never answer, by number and with why: no case can ask for them.
  std::vector<std::string> idleRows = {};
};

/// Asks the backend who it is, in a process of its own. Failure: what is wrong with the backend or
/// its options. One that takes the process down is described as far as the file goes, with what
/// happened as its description: its cases will tell.
/// Query or device_open that give no answer within the limit are given up in the port, so that they
/// cost it once.
Result<Candidate> describeCandidate(Port& port,
                                    double limitSeconds = WorkerOptions().timeLimitSeconds);

/// The file of a backend: a path as it is, what a name is found at (asked in a process of its own);
/// empty for what is linked in. Failure: what is wrong with the backend.
Result<std::string> pluginFileOf(const std::string& backend);

/// SHA-256 of a file. Failure: not_found or io.
Result<std::string> fileHash(const std::string& path);

} // namespace candela::conformance::report
