#pragma once

#include <nlohmann/json_fwd.hpp>

#include "conformance/report/candidate.h"
#include "conformance/report/query.h"

/// All that a run of the suite has to tell. Every page is made of this and of nothing else.
namespace candela::conformance::report {

/// An entry of expectations.toml.
struct Waiver {
  std::string list;                     ///< "unsupported" or "xfail"
  std::string cases;                    ///< a query
  std::string reason;                   ///< why
  std::string owner = {}, expires = {}; ///< of an xfail
};

/// What was asked for.
struct Setting {
  Size size = Size::full;
  uint64_t seed = 1;
  bool toPrimitives = false;
  std::string onnxData;             ///< empty: where the distribution has it
  std::vector<std::string> tiers;   ///< that ran
  std::vector<std::string> queries; ///< empty: all cases
  Shard shard = {};
};

struct Report {
  std::string candelaVersion, suiteVersion, corpusHash;
  Setting setting;
  Candidate candidate;
  uint64_t selected = 0;           ///< cases of all shards together
  std::vector<CaseResult> results; ///< in the order of the suite
  std::vector<Waiver> waivers;
  /// What is wrong with the expectations as a whole: entries without a case, or that have expired.
  std::vector<std::string> expectationProblems;
  std::vector<std::pair<std::string, std::string>> absent; ///< tiers that did not run, and why
  /// addresses that a rerun needs a size for
  std::vector<std::string> notInNightly;
  double wallMilliseconds = 0;

  /// All of its size: no chosen tiers or cases, no single shard. A tier whose data is not installed
  /// stands in `absent`.
  bool isWhole() const;
};

/// What fails a run beside its cases: expectationProblems, and rows with more than 5 % of their
/// cases mistrusted. The latter is asked where all cases of a tier ran.
std::vector<std::string> problemsOf(const Report& report);
/// No case failed, and there are no problems.
bool isConformant(const Report& report);

const char* sizeName(Size size);
/// nullopt when there is none of this name.
std::optional<Size> sizeNamed(std::string_view name);

/// What to type for this run, and for one case of it.
std::string runCommand(const Report& report);
std::string rerunCommand(const Report& report, const std::string& address);

/// The fields that scripts rely on, and a record of every case. Times stand under keys that end in
/// "_ms", all else is the same for the same run.
nlohmann::ordered_json reportJson(const Report& report);
std::string reportText(const nlohmann::ordered_json& report);
/// Failure: bad_model with the field that is not there or not of its type.
Result<Report> parseReport(const std::string& text, const std::string& file);
Result<Report> readReport(const std::string& file);

/// JUnit XML, one test suite per tier; cases that neither passed nor failed are skipped.
std::string junitXml(const Report& report);

} // namespace candela::conformance::report
