// candela conform: choosing cases and running them.
#include <algorithm>
#include <set>
#include <thread>
#include <utility>

#include "candela/candela.h"
#include "conformance/port.h"
#include "conformance/report/corpus.h"
#include "conformance/report/journal.h"
#include "conformance/workers.h"
#include "core/support/text/scan.h"
#include "tools/candela/conform/conform.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

using conformance::Case, conformance::CaseResult, conformance::report::Report,
    conformance::Selection;

constexpr int kRepeats = 2; ///< of a case that failed: whether it is wrong, or unsteady

struct Chosen {
  Selection selection;
  std::vector<std::string> tiers; ///< that there are cases of
  std::vector<Case> cases;        ///< of the shard
  uint64_t selected = 0;          ///< of all shards
  std::vector<std::pair<std::string, std::string>> absent;
};

/// The tiers that were asked for, be it by a query that names one.
std::vector<std::string> chosenTiers(const ConformArguments& arguments, bool& asked) {
  std::string known;
  for (const conformance::Tier& tier : conformance::allTiers())
    known += (known.empty() ? "" : ", ") + std::string(tier.name);
  for (const std::string& tier : arguments.tiers)
    if (!conformance::findTier(tier))
      fail(kBadInput, "--tier {}: no such tier; there are {}{}", tier, known,
           conformance::report::sizeNamed(tier) ? fmt::format("; {0} is a size: --size {0}", tier)
                                                : "");
  std::set<std::string, std::less<>> wanted(arguments.tiers.begin(), arguments.tiers.end());
  for (const std::string& query : arguments.queries) {
    if (!arguments.tiers.empty()) break;
    if (!conformance::findTier(conformance::report::tierOf(query))) {
      wanted.clear();
      break;
    }
    wanted.emplace(conformance::report::tierOf(query));
  }
  asked = !wanted.empty();
  std::vector<std::string> tiers;
  for (const conformance::Tier& tier : conformance::allTiers()) {
    const bool possible =
        arguments.backend != "reference" || text::isOneOf(tier.name, "onnx|models");
    if (wanted.contains(tier.name) && !possible)
      fail(kBadInput, "the tier {} judges plugins; the reference is none", tier.name);
    if (asked ? wanted.contains(tier.name) : possible) tiers.emplace_back(tier.name);
  }
  return tiers;
}

Chosen chooseCases(const ConformArguments& arguments) {
  Chosen chosen;
  Selection& selection = chosen.selection;
  const std::string usual = arguments.queries.empty() ? "full" : "nightly";
  selection.size = *conformance::report::sizeNamed(arguments.size.empty() ? usual : arguments.size);
  selection.seed = arguments.seed;
  selection.onnxData = arguments.onnxData;
  selection.toPrimitives = arguments.toPrimitives;
  selection.failures = arguments.failures;
  const conformance::report::Shard shard = check(conformance::report::parseShard(arguments.shard));
  bool asked = false;
  std::vector<Case> cases;
  for (const std::string& tier : chosenTiers(arguments, asked)) {
    auto listed = conformance::findTier(tier)->list(selection);
    if (!listed && listed.status().code() == Code::not_found && !asked) {
      chosen.absent.emplace_back(tier, listed.status().message());
      continue;
    }
    check(listed.status());
    chosen.tiers.push_back(tier);
    std::ranges::move(*listed, std::back_inserter(cases));
  }
  std::set<std::string_view> addresses;
  for (const Case& one : cases)
    if (!addresses.insert(one.address).second)
      fail(kWorkFailed, "the suite has two cases {}", one.address);
  for (const std::string& query : arguments.queries)
    if (conformance::report::matchingCases(cases, {query}).empty())
      fail(kBadInput, "--cases {}: none of {} cases has such a name", query, cases.size());
  const std::vector<size_t> matching = conformance::report::matchingCases(cases, arguments.queries);
  chosen.selected = matching.size();
  for (size_t i = 0; i < matching.size(); ++i)
    if (shard.holds(i)) chosen.cases.push_back(std::move(cases[matching[i]]));
  return chosen;
}

/// Addresses of a run that nightly does not have.
std::vector<std::string> notInNightly(const Chosen& chosen,
                                      const conformance::report::Corpus& corpus) {
  if (chosen.selection.size == conformance::Size::nightly) return {};
  Selection nightly = chosen.selection;
  nightly.size = conformance::Size::nightly;
  std::set<std::string> known;
  if (!corpus.addresses.empty() && nightly.seed == Selection().seed)
    known.insert(corpus.addresses.begin(), corpus.addresses.end());
  else
    for (const std::string& tier : chosen.tiers)
      for (Case& one : check(conformance::findTier(tier)->list(nightly)))
        known.insert(std::move(one.address));
  std::vector<std::string> apart;
  for (const Case& one : chosen.cases)
    if (!known.contains(one.address)) apart.push_back(one.address);
  return apart;
}

runtime::plugin::Options optionsOf(const std::vector<std::string>& given) {
  runtime::plugin::Options options;
  for (const std::string& text : given) {
    const Binding option = parseBinding("--option", text);
    options[option.name] = option.value;
  }
  return options;
}

/// Everything of a report that is known before a case has run.
Report beginReport(const ConformArguments& arguments, const Chosen& chosen,
                   const conformance::report::Corpus& corpus) {
  Report report;
  report.candelaVersion = candela_version();
  report.suiteVersion = conformance::report::kSuiteVersion.text();
  report.corpusHash = corpus.hash;
  report.setting.size = chosen.selection.size;
  report.setting.seed = arguments.seed;
  report.setting.toPrimitives = arguments.toPrimitives;
  if (arguments.onnxData != ConformArguments().onnxData)
    report.setting.onnxData = arguments.onnxData;
  report.setting.tiers = chosen.tiers;
  report.setting.queries = arguments.queries;
  report.setting.shard = check(conformance::report::parseShard(arguments.shard));
  report.selected = chosen.selected;
  report.absent = chosen.absent;
  if (!corpus.addresses.empty()) report.notInNightly = notInNightly(chosen, corpus);
  return report;
}

/// Results of all cases, in their order; those that the journal had are not run again.
std::vector<CaseResult> runCases(const ConformArguments& arguments, const std::vector<Case>& cases,
                                 conformance::Port& port,
                                 std::optional<conformance::report::Journal>& journal,
                                 const std::function<void(const CaseResult&, size_t)>& told) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < cases.size(); ++i) places[cases[i].address] = i;
  std::vector<CaseResult> results(cases.size());
  std::vector<bool> done(cases.size(), false);
  size_t finished = 0;
  for (const CaseResult& had : journal ? journal->had() : std::vector<CaseResult>()) {
    results[places.at(had.name)] = had;
    done[places.at(had.name)] = true;
    told(had, ++finished);
  }
  std::vector<size_t> left;
  std::vector<std::string> names;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (done[i]) continue;
    left.push_back(i);
    names.push_back(cases[i].address);
  }
  if (left.empty()) return results;
  conformance::WorkerOptions options;
  options.jobs = conformJobs(arguments);
  options.timeLimitSeconds = arguments.timeLimit;
  options.repeats = kRepeats;
  const auto runOne = [&](size_t index) {
    const auto began = std::chrono::steady_clock::now();
    CaseResult result = cases[left[index]].run(port);
    result.milliseconds = millisecondsSince(began);
    return result;
  };
  Status written;
  const auto caseDone = [&](const CaseResult& result, size_t) {
    if (journal && written) written = journal->add(result);
    told(result, ++finished);
  };
  std::vector<CaseResult> fresh =
      check(conformance::runInWorkers(names, runOne, options, caseDone), kWorkFailed);
  check(written, kWorkFailed);
  for (size_t i = 0; i < left.size(); ++i) results[left[i]] = std::move(fresh[i]);
  return results;
}

} // namespace

int conformJobs(const ConformArguments& arguments) {
  return arguments.jobs ? arguments.jobs
                        : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

void listConformCases(const ConformArguments& arguments, Console& console) {
  const Chosen chosen = chooseCases(arguments);
  for (const auto& [tier, why] : chosen.absent)
    console.note("the tier {} is left out: {}", tier, why);
  Json report = console.report("conform-list");
  report["size"] = conformance::report::sizeName(chosen.selection.size);
  report["seed"] = chosen.selection.seed;
  report["tiers"] = chosen.tiers;
  report["absent"] = chosen.absent;
  report["total"] = chosen.cases.size();
  Json& cases = report["cases"] = Json::array();
  for (const Case& one : chosen.cases) {
    console.print("{}\n", one.address);
    cases.push_back(one.address);
  }
  console.writeJson(report);
}

Report runConform(const ConformArguments& arguments, Console& console) {
  if (arguments.backend == "reference" && arguments.toPrimitives)
    fail(kBadInput, "--to-primitives: the reference runs every op as it is");
  if (arguments.backend.find(',') != std::string::npos)
    fail(kBadInput, "--backend {}: conform judges one backend", arguments.backend);
  const Chosen chosen = chooseCases(arguments);
  for (const auto& [tier, why] : chosen.absent)
    console.note("the tier {} is left out: {}", tier, why);
  // Every worker has its own copy, and opens the backend there.
  conformance::Port port(arguments.backend, optionsOf(arguments.options));
  const conformance::report::Candidate candidate =
      check(conformance::report::describeCandidate(port, arguments.timeLimit));
  const std::string listed = arguments.expectations.empty()
                                 ? conformance::expectationsBeside(candidate.file)
                                 : arguments.expectations;
  // Listing the whole suite and reading all that its cases read takes longer than a few cases do.
  const bool isTold = console.wantsJson() || !arguments.html.empty() || !arguments.junit.empty() ||
                      !arguments.certificate.empty() || !arguments.journal.empty() ||
                      !listed.empty();
  const conformance::report::Corpus corpus =
      isTold ? check(conformance::report::wholeCorpus(chosen.selection))
             : conformance::report::Corpus();
  Report report = beginReport(arguments, chosen, corpus);
  report.candidate = candidate;

  conformance::Expectations expectations;
  if (!listed.empty()) expectations = check(conformance::Expectations::read(listed));
  report.waivers = expectations.entries;
  report.expectationProblems = expectations.problems(corpus.addresses);

  std::optional<conformance::report::Journal> journal;
  if (!arguments.journal.empty()) {
    std::vector<std::string> addresses;
    for (const Case& one : chosen.cases) addresses.push_back(one.address);
    journal.emplace(
        check(conformance::report::Journal::open(arguments.journal, report, addresses)));
  }
  const auto start = std::chrono::steady_clock::now();
  ConformView view(report, console);
  view.begin();
  bool isKnown = isTold; // which of them nightly has: nobody else asks before a case fails
  report.results =
      runCases(arguments, chosen.cases, port, journal, [&](CaseResult result, size_t finished) {
        expectations.apply(result);
        if (result.outcome == CaseResult::Outcome::failed && !std::exchange(isKnown, true))
          report.notInNightly = notInNightly(chosen, corpus);
        view.caseDone(result, finished, chosen.cases.size());
      });
  for (CaseResult& result : report.results) expectations.apply(result);
  report.wallMilliseconds = millisecondsSince(start);
  return report;
}

} // namespace candela::tool
