// candela conform --mutants: the suite on its own catalogue of faulty backends.
#include "tools/candela/conform/mutants.h"

#include <chrono>

#include "conformance/mutants/kill.h"
#include "conformance/report/report.h"

namespace candela::tool {

void conformMutants(const MutantArguments& arguments, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  conformance::mutants::MutantOptions options;
  options.jobs = arguments.jobs;
  options.onnxData = arguments.onnxData;
  options.query = arguments.query;
  options.tiers = arguments.tiers;
  size_t survivors = 0, total = 0;
  for (const conformance::mutants::Fault& fault : conformance::mutants::allFaults())
    total += options.query.empty() || conformance::report::matchesQuery(fault.name, options.query);
  if (total == 0) fail(kBadInput, "--cases {}: no fault has such a name", options.query);
  std::vector<conformance::mutants::Verdict> verdicts;
  {
    Progress progress("mutants");
    verdicts =
        check(conformance::mutants::runMutants(
                  options,
                  [&](const conformance::mutants::Verdict& verdict, size_t finished) {
                    survivors += !verdict.killed;
                    progress.update(fmt::format("{}/{}, {} alive", finished, total, survivors),
                                    double(finished) / double(total));
                  }),
              kWorkFailed);
  }
  const double milliseconds = millisecondsSince(start);
  console.printText(conformance::mutants::matrixPage(verdicts));
  Json report = console.report("conform");
  report["wall_ms"] = milliseconds;
  Json& mutants = report["mutants"] = Json::array();
  size_t improper = 0;
  for (const conformance::mutants::Verdict& verdict : verdicts) {
    mutants.push_back({{"name", verdict.fault->name},
                       {"killed", verdict.killed},
                       {"by", verdict.tier},
                       {"case", verdict.address},
                       {"reason", verdict.reason},
                       {"ms", verdict.milliseconds}});
    improper += verdict.killed && !verdict.isProper();
    if (!verdict.killed)
      console.print("{}  {}\n", console.red("SURVIVES"), verdict.fault->name);
    else if (!verdict.isProper())
      console.print("killed by {}, not by {}: {}   {}\n", verdict.tier, verdict.fault->tier,
                    verdict.fault->name, verdict.address);
  }
  console.print("{}/{} killed, {} of them by another tier than they should   {}\n",
                verdicts.size() - survivors, verdicts.size(), improper, timeText(milliseconds));
  console.writeJson(report);
  if (survivors || (improper && options.tiers.empty())) {
    console.finish();
    fail(kWorkFailed, "{} of {} mutants survive, {} die by another tier than they should",
         survivors, verdicts.size(), improper);
  }
}

} // namespace candela::tool
