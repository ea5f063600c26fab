// candela conform: the conformance suite.
#include "tools/candela/conform/conform.h"

#include "conformance/report/tally.h"
#include "conformance/suite.h"
#include "tools/candela/conform/mutants.h"
#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela conform --backend ./libacme.so
  candela conform --backend ./libacme.so --size nightly --resume acme.journal \
      --html acme.html --certificate acme.cert
  candela conform --backend ./libacme.so --cases 'primitives:matmul/i8_i8:data=extremes;*'
  candela conform --backend ./libacme.so --shard 1/4 --json shard1.json
  candela conform --merge shard1.json shard2.json shard3.json shard4.json --json acme.json \
      --html acme.html
  candela conform --verify acme.cert --backend ./libacme.so

A case's address is tier:group/row:axis=value;axis=value. A query is an address, a glob of
addresses, or a glob of a row and values of some of its axes in any order, with * for the
others. Without --size, --cases searches the whole suite. A case that crashes or hangs the
backend fails with the signal's name or --time-limit, and the run goes on. A query or a
device_open without an answer is waited for once, and fails the cases that need it. One run at a
time writes a journal.

libacme.expectations.toml beside libacme.so may hold two lists, [[unsupported]] (cases, reason)
and [[xfail]] (cases, reason, owner, expires: the version of the suite that ends it). What is
listed and passes has failed.

--onnx-data holds the ONNX project's test folders: <case>/model.onnx, test_data_set_*/input_*.pb
and output_*.pb; or suites of such, whose cases are named onnx:<suite>/<case>:
/usr/share/libonnx-testdata/data has four.)";

/// What the command writes beside --json, where it runs no case.
void refuseFiles(const ConformArguments& arguments, const char* command) {
  for (const auto& [option, file] : {std::pair{"--junit", &arguments.junit},
                                     {"--html", &arguments.html},
                                     {"--certificate", &arguments.certificate},
                                     {"--resume", &arguments.journal},
                                     {"--failures", &arguments.failures}})
    if (!file->empty())
      fail(kBadInput, "{}: {} runs no case that it could tell of", option, command);
}

void conformCommand(const ConformArguments& arguments, Console& console) {
  if (arguments.list) {
    refuseFiles(arguments, "--list");
    return listConformCases(arguments, console);
  }
  if (!arguments.verify.empty()) return verifyConform(arguments, console);
  if (arguments.mutants) {
    if (arguments.queries.size() > 1) fail(kBadInput, "--mutants: takes one --cases");
    const std::string query = arguments.queries.empty() ? "" : arguments.queries[0];
    return conformMutants({conformJobs(arguments), arguments.onnxData, query, arguments.tiers},
                          console);
  }
  const bool merges = !arguments.merged.empty();
  if (!merges && arguments.backend.empty())
    fail(kBadInput, "--backend is required: the name of a backend, or a plugin's path");
  const bool inPart =
      !arguments.queries.empty() || !arguments.tiers.empty() || arguments.shard != "1/1";
  if (!arguments.certificate.empty() && !merges && inPart)
    fail(kBadInput, "--certificate: of a whole run only, of all tiers; --merge joins shards");
  checkConformFiles(arguments, console);
  const conformance::report::Report report =
      merges ? mergeConform(arguments) : runConform(arguments, console);
  if (!arguments.certificate.empty() && !report.isWhole())
    fail(kBadInput, "--certificate: {} has chosen cases or tiers only", arguments.merged.front());
  if (merges) {
    ConformView view(report, console);
    view.begin();
    view.tellFailures();
  }
  printConformSummary(report, console);
  const bool certifies = conformance::report::nativeOf(report.results).work.nativeNodes > 0;
  ConformArguments files = arguments;
  if (!certifies) files.certificate.clear();
  writeConformFiles(files, report, console);
  if (!certifies && !arguments.certificate.empty()) {
    console.finish();
    fail(kWorkFailed, "--certificate: nothing runs native on {}: there is no port to certify",
         report.candidate.backend);
  }
  if (conformance::report::isConformant(report)) return;
  console.finish();
  const conformance::report::Tally all = conformance::report::tallyOf(report.results);
  if (const uint64_t failed = all[conformance::CaseResult::Outcome::failed])
    fail(kWorkFailed, "{} of {} cases failed on {}", failed, all.total, report.candidate.backend);
  fail(kWorkFailed, "{}: {}", report.candidate.backend,
       conformance::report::problemsOf(report).front());
}

void addSelection(CLI::App* command, ConformArguments& a) {
  command->add_option("--backend", a.backend, "the backend, by name or path")->type_name("B");
  addRepeated(command, "--option", a.options, "an option of the backend", "NAME=VALUE");
  addRepeated(command, "--tier", a.tiers, "what to run (default: all tiers)", "T");
  addRepeated(command, "--cases", a.queries, "only cases whose address matches", "QUERY");
  command->add_option("--size", a.size, "how much of the suite (full)")
      ->type_name("quick|full|nightly")
      ->check(CLI::IsMember({"quick", "full", "nightly"}));
  command->add_option("--seed", a.seed, "of the sample that `full` takes, and of random graphs (1)")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  command->add_option("--onnx-data", a.onnxData, "folder of the ONNX node tests")->type_name("DIR");
  command->add_flag("--to-primitives", a.toPrimitives, "lower every op to the 13 primitives first");
  command->add_option("--shard", a.shard, "only part K of N")->type_name("K/N");
  command->add_flag("--list", a.list, "print the addresses and run nothing");
}

void addRunning(CLI::App* command, ConformArguments& a) {
  command->add_option("--jobs", a.jobs, "worker processes (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_option("--time-limit", a.timeLimit, "seconds for one case (60)")
      ->type_name("S")
      ->check(numberIn(kShortestSeconds, kLongestSeconds));
  command
      ->add_option("--expectations", a.expectations,
                   "what is unsupported or fails (default: beside the plugin)")
      ->type_name("FILE");
  command->add_option("--resume", a.journal, "keep what is done in a journal, and go on from there")
      ->type_name("FILE");
  command->add_option("--failures", a.failures, "write random graphs that fail there, made small")
      ->type_name("DIR");
  command->add_flag("--mutants", a.mutants,
                    "run the suite on its own catalogue of faulty backends instead");
  command->add_option("--merge", a.merged, "join the reports of all shards instead of running")
      ->type_name("FILE")
      ->expected(1, -1);
  command
      ->add_option("--verify", a.verify,
                   "check a certificate, its report and, with --backend, the plugin's file")
      ->type_name("FILE");
  command->add_option("--junit", a.junit, "write JUnit XML")->type_name("FILE");
  command->add_option("--html", a.html, "write a page to read")->type_name("FILE");
  command
      ->add_option("--certificate", a.certificate, "write a certificate, with the report beside it")
      ->type_name("FILE");
}

} // namespace

void addConform(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("conform", "Run the conformance suite on a backend.");
  auto arguments = std::make_shared<ConformArguments>();
  addSelection(command, *arguments);
  addRunning(command, *arguments);
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { conformCommand(*arguments, console); });
}

} // namespace candela::tool
