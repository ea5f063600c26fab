#pragma once

#include "conformance/expectations.h"
#include "tools/candela/support/console.h"

/// The parts of `candela conform`.
namespace candela::tool {

struct ConformArguments {
  std::string backend, size, shard = "1/1", onnxData = "/usr/share/libonnx-testdata/data/node";
  std::string expectations, journal, junit, html, certificate, verify, failures;
  std::vector<std::string> tiers, options, queries, merged;
  uint64_t seed = 1;
  bool toPrimitives = false, list = false, mutants = false;
  int jobs = 0;
  double timeLimit = 60;
};

// run.cpp
int conformJobs(const ConformArguments& arguments);
/// Prints the addresses that would run, and writes them to --json.
void listConformCases(const ConformArguments& arguments, Console& console);
/// Runs the suite, telling failures as they happen.
conformance::report::Report runConform(const ConformArguments& arguments, Console& console);

// console.cpp
/// Tells on the terminal how a run goes.
class ConformView {
public:
  ConformView(const conformance::report::Report& report, Console& console)
      : report_(report), console_(console) {}
  void begin();
  void caseDone(const conformance::CaseResult& result, size_t finished, size_t all);
  /// The first failures of a run that is over.
  void tellFailures();

private:
  void tellFailure(const conformance::CaseResult& result);
  const conformance::report::Report& report_;
  Console& console_;
  Progress progress_{"conform"};
  uint64_t failed_ = 0;
};
/// What came out: a line for each tier, what is native, what to do next.
void printConformSummary(const conformance::report::Report& report, Console& console);

// files.cpp
conformance::report::Report mergeConform(const ConformArguments& arguments);
/// Refuses what cannot be written, before hours have gone into it.
void checkConformFiles(const ConformArguments& arguments, const Console& console);
/// Writes the files that were asked for: one that fails does not keep the others from being
/// written.
void writeConformFiles(const ConformArguments& arguments, const conformance::report::Report& report,
                       Console& console);
void verifyConform(const ConformArguments& arguments, Console& console);

} // namespace candela::tool
