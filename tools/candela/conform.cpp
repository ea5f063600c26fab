// candela conform: the conformance suite.
#include <algorithm>
#include <thread>

#include "core/conform/backend_runner.h"
#include "core/conform/onnx_tier.h"
#include "core/conform/report.h"
#include "core/conform/workers.h"
#include "core/support/file.h"
#include "tools/candela/model.h"

namespace candela::tool {
namespace {

using conform::CaseResult;

constexpr const char* kFooter = R"(Examples:
  candela conform --backend ./libacme.so --tier onnx
  candela conform --backend ./libacme.so --tier onnx --cases 'onnx:test_conv_*' --to-primitives
  candela conform --backend soft --tier onnx --shard 1/4 --jobs 4 --json shard1.json --junit shard1.xml

--onnx-data holds the ONNX project's test folders: <case>/model.onnx, test_data_set_*/input_*.pb and output_*.pb; or
suites of such, whose cases are named onnx:<suite>/<case>: /usr/share/libonnx-testdata/data has four.
A case that crashes the backend fails with the signal's name, and the run goes on.)";

struct Arguments {
  std::string backend, onnxData = "/usr/share/libonnx-testdata/data/node", query, shard = "1/1", junit;
  std::vector<std::string> tiers;
  bool toPrimitives = false;
  int jobs = 0;
  double timeLimit = 60;
};

std::vector<conform::OnnxCase> selectCases(const Arguments& arguments) {
  const std::vector<conform::OnnxCase> all = check(conform::listOnnxCases(arguments.onnxData));
  const conform::Shard shard = check(conform::parseShard(arguments.shard));
  std::vector<conform::OnnxCase> matching, selected;
  for (const conform::OnnxCase& c : all)
    if (arguments.query.empty() || conform::matchesQuery(c.name, arguments.query)) matching.push_back(c);
  if (matching.empty()) fail(kBadInput, "--cases {}: none of {} cases has such a name", arguments.query, all.size());
  for (size_t i = 0; i < matching.size(); ++i)
    if (shard.holds(i)) selected.push_back(matching[i]);
  return selected;
}

/// What to type to run one case again.
std::string rerunCommand(const Arguments& arguments, const std::string& name) {
  std::string command = fmt::format("candela conform --backend {} --tier onnx", shellQuoted(arguments.backend));
  if (arguments.onnxData != Arguments().onnxData) command += " --onnx-data " + shellQuoted(arguments.onnxData);
  if (arguments.toPrimitives) command += " --to-primitives";
  return command + " --cases " + fmt::format("'{}'", name);
}

void printResults(const Arguments& arguments, const std::vector<CaseResult>& results, double milliseconds,
                  Console& console) {
  const conform::Summary summary = conform::summarise(results);
  console.print("onnx  {}/{} passed ({} raw), {} unsupported, {} expected to fail, {}      {}   {}\n", summary.passed,
                summary.total, summary.rawPassed, summary.unsupported, summary.xfail,
                summary.failed ? console.red(fmt::format("{} failed", summary.failed)) : "0 failed",
                console.bold(arguments.backend), timeText(milliseconds));
  const auto percent = [](uint64_t part, uint64_t whole) { return whole ? 100.0 * double(part) / double(whole) : 0.0; };
  console.print("native  {:.1f} % of nodes, {:.1f} % of MACs\n", percent(summary.work.nativeNodes, summary.work.nodes),
                percent(summary.work.nativeMacs, summary.work.macs));
  std::string classes;
  for (const auto& [name, count] : summary.unsupportedByClass)
    classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", name, count);
  if (!classes.empty()) console.print("unsupported  {}\n", classes);
  constexpr uint64_t kShown = 10;
  uint64_t shown = 0;
  std::string first;
  for (const CaseResult& result : results) {
    if (result.outcome != CaseResult::Outcome::failed || shown == kShown) continue;
    if (shown++ == 0) first = result.name;
    console.print("{}  {}   {}\n", console.red("FAILED"), result.name, result.reason);
  }
  if (summary.failed > shown) console.print("and {} more (--json has them all)\n", summary.failed - shown);
  if (!first.empty()) console.print("rerun   {}\n", rerunCommand(arguments, first));
}

void conformCommand(Arguments& arguments, Console& console) {
  for (const std::string& tier : arguments.tiers)
    if (tier != "onnx") fail(kBadInput, "--tier {}: not available yet in this version: tiers are onnx", tier);
  if (arguments.backend == "reference" && arguments.toPrimitives)
    fail(kBadInput, "--to-primitives: the reference runs every op as it is");
  if (arguments.backend.find(',') != std::string::npos)
    fail(kBadInput, "--backend {}: conform judges one backend", arguments.backend);
  const std::vector<conform::OnnxCase> cases = selectCases(arguments);
  check(conform::probeBackend(arguments.backend));
  std::vector<std::string> names;
  for (const conform::OnnxCase& c : cases) names.push_back(c.name);

  const auto start = std::chrono::steady_clock::now();
  conform::WorkerOptions options;
  options.jobs = arguments.jobs ? arguments.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.timeLimitSeconds = arguments.timeLimit;
  // Every worker has its own copy, and opens the backend there.
  const conform::RunCase run = conform::backendRunner(arguments.backend, arguments.toPrimitives);
  uint64_t failed = 0;
  std::vector<CaseResult> results;
  {
    Progress progress("onnx");
    results = check(conform::runInWorkers(
                        names, [&](size_t index) { return conform::runOnnxCase(cases[index], run); }, options,
                        [&](const CaseResult& result, size_t finished) {
                          failed += result.outcome == CaseResult::Outcome::failed;
                          progress.update(fmt::format("{}/{}, {} failed", finished, names.size(), failed),
                                          double(finished) / double(names.size()));
                        }),
                    kWorkFailed);
  }
  const double milliseconds = millisecondsSince(start);
  printResults(arguments, results, milliseconds, console);
  Json report = console.report("conform");
  report["backend"] = arguments.backend;
  report["tiers"] = {"onnx"};
  report["to_primitives"] = arguments.toPrimitives;
  report["shard"] = arguments.shard;
  report["wall_ms"] = milliseconds;
  report.update(conform::resultsJson(results));
  console.writeJson(report);
  if (!arguments.junit.empty()) {
    const std::string xml = conform::junitXml(results, arguments.backend);
    check(writeFile(arguments.junit, xml.data(), xml.size()), kWorkFailed);
  }
  if (failed) {
    console.finish();
    fail(kWorkFailed, "{} of {} cases failed on {}", failed, results.size(), arguments.backend);
  }
}

} // namespace

void addConform(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("conform", "Run the conformance suite on a backend.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  command->add_option("--backend", a.backend, "the backend, by name or path")->required()->type_name("B");
  addRepeated(command, "--tier", a.tiers, "what to run: onnx", "T");
  command->add_option("--cases", a.query, "only cases whose name matches this glob")->type_name("QUERY");
  command->add_option("--onnx-data", a.onnxData, "folder of the ONNX node tests")->type_name("DIR");
  command->add_flag("--to-primitives", a.toPrimitives, "lower every op to the 13 primitives first");
  command->add_option("--shard", a.shard, "only part K of N")->type_name("K/N");
  command->add_option("--jobs", a.jobs, "worker processes (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--time-limit", a.timeLimit, "seconds for one case (60)")
      ->type_name("S")
      ->check(CLI::Range(0.1, 86400.0));
  command->add_option("--junit", a.junit, "write JUnit XML")->type_name("FILE");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { conformCommand(*arguments, console); });
}

} // namespace candela::tool
