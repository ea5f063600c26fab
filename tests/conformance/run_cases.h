#pragma once

#include <map>
#include <string>

#include "conformance/suite.h"
#include "conformance/workers.h"

namespace candela::conformance {

/// Runs the cases whose address contains `part` in worker processes; why those failed that did, by
/// their addresses.
inline std::map<std::string, std::string> failuresOf(Port& port, std::vector<Case> cases,
                                                     const std::string& part,
                                                     const WorkerOptions& options) {
  std::erase_if(cases,
                [&](const Case& one) { return one.address.find(part) == std::string::npos; });
  std::vector<std::string> names;
  for (const Case& one : cases) names.push_back(one.address);
  const auto run = [&](size_t i) {
    CaseResult result = cases[i].run(port);
    result.name = names[i];
    return result;
  };
  std::map<std::string, std::string> failed;
  for (const CaseResult& result : runInWorkers(names, run, options, nullptr).orAbort())
    if (result.outcome == CaseResult::Outcome::failed) failed[result.name] = result.reason;
  return failed;
}

} // namespace candela::conformance
