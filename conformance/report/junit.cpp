#include "conformance/report/escape.h"
#include "conformance/report/report.h"
#include "conformance/report/tally.h"

namespace candela::conformance::report {

using Outcome = CaseResult::Outcome;

std::string junitXml(const Report& report) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const auto& [tier, tally] : tallyByTier(report.results)) {
    out += fmt::format(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" "
        "time=\"{:.3f}\">\n",
        markupEscaped(report.candidate.backend + ":" + tier), tally.total, tally[Outcome::failed],
        tally.total - tally[Outcome::passed] - tally[Outcome::failed], tally.milliseconds / 1000);
    for (const CaseResult& result : report.results) {
      if (tierOf(result.name) != tier) continue;
      out +=
          fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3f}\"",
                      markupEscaped(tier), markupEscaped(result.name), result.milliseconds / 1000);
      if (result.outcome == Outcome::passed) {
        out += "/>\n";
        continue;
      }
      const bool failed = result.outcome == Outcome::failed;
      const std::string reason =
          failed || result.reason.empty()
              ? result.reason
              : fmt::format("{}: {}", outcomeName(result.outcome), result.reason);
      out += fmt::format("><{} message=\"{}\"/></testcase>\n", failed ? "failure" : "skipped",
                         markupEscaped(reason.empty() ? outcomeName(result.outcome) : reason));
    }
    out += "  </testsuite>\n";
  }
  if (const std::vector<std::string> problems = problemsOf(report); !problems.empty()) {
    out += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" "
                       "skipped=\"0\" time=\"0\">\n",
                       markupEscaped(report.candidate.backend + ":run"), problems.size(),
                       problems.size());
    for (const std::string& problem : problems)
      out += fmt::format("    <testcase classname=\"run\" name=\"{0}\" time=\"0\"><failure "
                         "message=\"{0}\"/></testcase>\n",
                         markupEscaped(problem));
    out += "  </testsuite>\n";
  }
  return out + "</testsuites>\n";
}

} // namespace candela::conformance::report
