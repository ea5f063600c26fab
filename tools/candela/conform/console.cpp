// candela conform: what the terminal says.
#include <algorithm>
#include <functional>
#include <map>

#include "conformance/report/reasons.h"
#include "conformance/report/tally.h"
#include "tools/candela/conform/conform.h"

namespace candela::tool {
namespace {

using conformance::CaseResult, conformance::report::Report, conformance::report::Tally;
using Outcome = CaseResult::Outcome;

constexpr uint64_t kFailuresShown = 10;

/// The first line of a reason, of a length that a terminal bears.
std::string inShort(const std::string& reason) {
  constexpr size_t kLongest = 400;
  const size_t end = std::min({reason.find('\n'), reason.size(), kLongest});
  return reason.substr(0, end) + (end < reason.size() ? " ..." : "");
}

std::string shareText(double ratio) { return fmt::format("{:.1f} %", 100 * ratio); }

/// A line for each tier; columns of what did not happen are left out, but for failures.
std::string tierTable(const Report& report) {
  const Tally all = conformance::report::tallyOf(report.results);
  std::vector<Outcome> shown;
  for (const Outcome outcome :
       {Outcome::unsupported, Outcome::emulated, Outcome::xfail, Outcome::mistrusted})
    if (all[outcome]) shown.push_back(outcome);
  shown.push_back(Outcome::failed);
  std::vector<std::string> columns = {"tier", "passed"};
  for (const Outcome outcome : shown)
    columns.emplace_back(conformance::report::outcomeName(outcome));
  columns.emplace_back("time");
  Table table(columns);
  const auto add = [&](const std::string& name, const Tally& tally) {
    std::vector<std::string> row = {name, groupedText(tally[Outcome::passed]) + "/" +
                                              groupedText(tally.total)};
    for (const Outcome outcome : shown) row.push_back(groupedText(tally[outcome]));
    row.push_back(timeText(tally.milliseconds));
    table.add(row);
  };
  const conformance::report::Tallies tiers = conformance::report::tallyByTier(report.results);
  for (const auto& [tier, tally] : tiers) add(tier, tally);
  if (tiers.size() > 1) add("all", all);
  return table.text();
}

/// Why cases are unsupported: the commonest reasons, or classes of them.
std::string unsupportedText(const Report& report) {
  constexpr size_t kShown = 6;
  std::map<std::string, uint64_t> counts;
  for (const CaseResult& result : report.results) {
    if (result.outcome != Outcome::unsupported) continue;
    const std::string name = conformance::report::reasonClass(result.reason);
    // What to change stands behind a colon, details in parentheses.
    const size_t end = std::min(result.reason.find_first_of("(\n"), result.reason.find(": "));
    ++counts[name == "other" ? result.reason.substr(0, end) : name];
  }
  std::vector<std::pair<std::string, uint64_t>> reasons(counts.begin(), counts.end());
  std::ranges::stable_sort(reasons, std::greater(), &std::pair<std::string, uint64_t>::second);
  std::string text;
  uint64_t others = 0;
  for (size_t i = 0; i < reasons.size(); ++i)
    if (i < kShown)
      text += fmt::format("{}{} {}", i ? "; " : "", groupedText(reasons[i].second),
                          inShort(reasons[i].first));
    else
      others += reasons[i].second;
  return others ? fmt::format("{}; {} for {} other reasons (--json and --html have them)", text,
                              groupedText(others), reasons.size() - kShown)
                : text;
}

} // namespace

void ConformView::begin() {
  const conformance::report::Candidate& candidate = report_.candidate;
  std::string who = console_.bold(candidate.name);
  if (!candidate.version.empty()) who += " " + candidate.version;
  if (!candidate.device.empty()) who += " on " + candidate.device;
  const conformance::report::Setting& setting = report_.setting;
  console_.print("{}   suite {}, {}, seed {}: {} cases{}\n", who, report_.suiteVersion,
                 conformance::report::sizeName(setting.size), setting.seed,
                 groupedText(report_.selected),
                 setting.shard.count > 1 ? ", shard " + setting.shard.text() : "");
  std::fflush(stdout);
}

void ConformView::tellFailure(const CaseResult& result) {
  progress_.clear();
  console_.print("{}  {}   {}\n  rerun {}\n", console_.red("FAILED"), result.name,
                 inShort(result.reason), conformance::report::rerunCommand(report_, result.name));
  std::fflush(stdout);
}

void ConformView::caseDone(const CaseResult& result, size_t finished, size_t all) {
  if (result.outcome == Outcome::failed && failed_++ < kFailuresShown) tellFailure(result);
  progress_.update(fmt::format("{}/{}, {} failed", finished, all, failed_),
                   static_cast<double>(finished) / static_cast<double>(all));
}

void ConformView::tellFailures() {
  for (const CaseResult& result : report_.results)
    if (result.outcome == Outcome::failed && failed_++ < kFailuresShown) tellFailure(result);
}

void printConformSummary(const Report& report, Console& console) {
  const Tally all = conformance::report::tallyOf(report.results);
  if (all[Outcome::failed] > kFailuresShown)
    console.print("and {} more failures (--json and --html have them all)\n",
                  groupedText(all[Outcome::failed] - kFailuresShown));
  const auto unsteady = std::ranges::count_if(report.results, &CaseResult::isUnsteady);
  if (unsteady > 0)
    console.print("{} of the failures {} unsteady: not the same in each run. `candela debug MODEL "
                  "--backend {} --twice 4` "
                  "finds instructions whose results differ from run to run\n",
                  groupedText(static_cast<uint64_t>(unsteady)), unsteady == 1 ? "is" : "are",
                  report.candidate.backend);
  console.printText(tierTable(report));
  const conformance::report::Native native = conformance::report::nativeOf(report.results);
  std::vector<std::string> shares;
  if (native.rows)
    shares.push_back(fmt::format("{} of rows ({} of {} whole)", shareText(native.rowShare),
                                 native.wholeRows, native.rows));
  if (native.work.nodes) {
    shares.push_back(
        shareText(conformance::report::ratioOf(native.work.nativeNodes, native.work.nodes)) +
        " of nodes");
    shares.push_back(
        shareText(conformance::report::ratioOf(native.work.nativeMacs, native.work.macs)) +
        " of MACs");
  }
  if (!shares.empty()) console.print("native  {}\n", fmt::join(shares, ", "));
  if (all[Outcome::unsupported]) console.print("unsupported  {}\n", unsupportedText(report));
  for (const std::string& row : report.candidate.idleRows)
    console.print("never answers  {}\n", row);
  for (const std::string& problem : conformance::report::problemsOf(report))
    console.print("{}  {}\n", console.red("PROBLEM"), problem);
  const bool good = conformance::report::isConformant(report);
  const std::string verdict =
      good ? console.green("nothing failed of what it claims")
           : console.red(fmt::format("{} failed", groupedText(all[Outcome::failed])));
  console.print("{}   {} cases in {}\n", verdict, groupedText(all.total),
                timeText(report.wallMilliseconds));
}

} // namespace candela::tool
