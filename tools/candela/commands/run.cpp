// candela run: compile and run a model, look at the answer, compare it.
#include "tools/candela/run/steps.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/support/file.h"
#include "core/support/text/scan.h"
#include "tools/candela/support/io_layout.h"
#include "tools/candela/support/profile.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela run digits.onnx --backend soft --input images=test_images.npy --labels test_labels.npy
  candela run resnet50.onnx --backend ./libacme.so,soft --random 1 --dim N=1 \
      --expect logits=logits.npy
  candela run model.onnx --input x=x.npy --dump values --only Conv_12
  candela run model.onnx --backend ./libacme.so --random 1 --profile --trace trace.json

Symbolic dimensions take their values from the given tensors unless --dim or --shape says
otherwise.
--random fills what no --input gives; the definition is in tests/models/README.md.
A name may hold '=': a=b=x.npy is the file x.npy for the input a=b where the model has that, or
b=x.npy for the input a.)";

struct Arguments {
  RunOptions run;
  std::vector<std::string> inputs, expects;
  std::optional<double> rtol, atol;
  std::string outputFolder, only, labels, namesFile, trace;
  int top = 0;
  int repeat = 1;
  int threads = 0;
  int steps = 0;
  std::optional<uint64_t> randomSeed;
  bool explain = false, profile = false;
};

constexpr double kLargestBound = 1e300; ///< more would be no bound

/// Names of classes, one a line.
std::vector<std::string> readNames(const std::string& path) {
  const Bytes file = check(mapFile(path));
  std::vector<std::string> names =
      text::split({reinterpret_cast<const char*>(file.data()), file.size()}, '\n');
  if (names.back().empty()) names.pop_back();
  return names;
}

void printTop(const Arguments& arguments, const Tensor& scores, Console& console, Json& report) {
  const std::vector<std::string> names =
      arguments.namesFile.empty() ? std::vector<std::string>() : readNames(arguments.namesFile);
  const auto rows = topOf(scores, arguments.top);
  constexpr size_t kShown = 16;
  Json all = Json::array();
  for (size_t row = 0; row < rows.size(); ++row) {
    Json list = Json::array();
    for (const auto& [index, score] : rows[row]) {
      const std::string name =
          static_cast<size_t>(index) < names.size() ? names[static_cast<size_t>(index)] : "";
      list.push_back({{"index", index}, {"score", score}});
      if (!name.empty()) list.back()["name"] = name;
      if (row < kShown) console.print("  {:>4}  {:>6}  {:<12.6g} {}\n", row, index, score, name);
    }
    all.push_back(std::move(list));
  }
  if (rows.size() > kShown) console.print("  and {} more rows\n", rows.size() - kShown);
  report["top"] = std::move(all);
}

/// Writes every value that the model kept, or those of one node. `own`: the model's outputs.
void dump(const Arguments& arguments, const Session& session, const std::vector<Tensor>& outputs,
          Console& console) {
  TensorFolder folder(arguments.run.dumpFolder);
  std::set<std::string> ofNode;
  for (const Json& value : session.report.value("values", Json::array()))
    if (value.value("node", "") == arguments.only) ofNode.insert(value.value("name", ""));
  size_t written = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.outputPorts[i].name;
    if (!arguments.only.empty() && !ofNode.count(name) &&
        fnmatch(arguments.only.c_str(), name.c_str(), 0) != 0)
      continue;
    folder.write(name, outputs[i]);
    ++written;
  }
  if (written == 0) fail(kBadInput, "--only {}: no node or value has this name", arguments.only);
  console.print("{} values in {}\n", written, arguments.run.dumpFolder);
}

/// Compares as --expect asks; returns whether all is within the bound.
bool compare(const Arguments& arguments, const Session& session, const std::vector<Tensor>& outputs,
             Console& console, Json& report) {
  CompareBound bound;
  bound.relative = arguments.rtol.value_or(bound.relative);
  bound.absolute = arguments.atol.value_or(bound.absolute);
  bound.exactIntegers = !arguments.rtol && !arguments.atol;
  Json compared = Json::array(), mismatches = Json::array();
  std::set<std::string> names;
  for (const sdk::Port& port : session.outputPorts) names.insert(port.name);
  for (const std::string& text : arguments.expects) {
    const Binding expect = parseFileBinding("--expect", text, names);
    const size_t index = session.outputIndex("--expect", expect.name);
    const Tensor want = asStored(readTensorFile(expect.value), outputs[index].elem);
    const Comparison result =
        compareTensors(session.shaped(outputs[index], want.dims), want, bound);
    Json entry = {{"name", expect.name},      {"file", expect.value},
                  {"count", result.count},    {"mismatches", result.mismatches},
                  {"max_abs", result.maxAbs}, {"max_rel", result.maxRel}};
    if (!result.typeProblem.empty()) entry["reason"] = result.typeProblem;
    if (result.mismatches)
      entry.update({{"first", result.first}, {"got", result.firstGot}, {"want", result.firstWant}});
    compared.push_back(entry);
    if (result.passed()) {
      console.print("{}  {}  {} values, largest difference {:.3g} (relative {:.3g})\n",
                    console.green("equal"), expect.name, result.count, result.maxAbs,
                    result.maxRel);
    } else {
      mismatches.push_back(entry);
      console.print("{}  {}  {}\n", console.red("MISMATCH"), expect.name, result.text());
    }
  }
  const bool passed = mismatches.empty();
  report["rtol"] = bound.relative;
  report["atol"] = bound.absolute;
  report["mismatches"] = std::move(mismatches);
  report["compared"] = std::move(compared);
  return passed;
}

/// Takes what the options say of each other.
void checkArguments(Arguments& arguments, Console& console) {
  arguments.run.addInputs(arguments.inputs, true);
  if (!arguments.only.empty() && arguments.run.dumpFolder.empty())
    fail(kBadInput, "--only needs --dump");
  if (!arguments.namesFile.empty() && arguments.top == 0) fail(kBadInput, "--names needs --top");
  if (arguments.threads) {
    arguments.run.keepsCompiled = false;
    arguments.run.model.passThreads(arguments.threads, console);
  }

  if (arguments.randomSeed) {
    arguments.run.keepsCompiled = false;
    arguments.run.model.options.push_back(
        fmt::format("import.random_seed={}", *arguments.randomSeed));
  }
}

/// What the runs left.
struct Ran {
  std::vector<double> latencies; ///< in ms
  Results results;               ///< of the last one
  ProfileSum profile;

  double median() const {
    std::vector<double> sorted = latencies;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  double min() const { return *std::ranges::min_element(latencies); }
};

Ran runAll(const Arguments& arguments, Session& session) {
  Ran ran;
  try {
    Progress progress("running");
    const auto runs =
        static_cast<int>(std::max(session.runs(), static_cast<size_t>(arguments.repeat)));
    if (session.runs() > 1 && arguments.repeat > 1)
      fail(kBadInput, "--repeat {}: the files of --input make {} runs", arguments.repeat,
           session.runs());
    ran.latencies.reserve(static_cast<size_t>(std::min(runs, 1 << 20)));
    for (int i = 0; i < runs; ++i) {
      if (i > 0) session.prepare(static_cast<size_t>(i));
      session.model.profile(arguments.profile || (!arguments.trace.empty() && i + 1 == runs));
      session.run(ran.latencies, ran.results, i + 1 == runs);
      if (arguments.profile) ran.profile.add(session.model.traceJson());
      fmt::memory_buffer stage;
      fmt::format_to(std::back_inserter(stage), "{} of {}", i + 1, runs);
      progress.update({stage.data(), stage.size()}, double(i + 1) / runs);
    }
  } catch (const sdk::Error& error) {
    failWith(error, arguments.run.model.path);
  }
  return ran;
}

/// Names of the values that --dump kept: they come as outputs, beside the model's own.
std::set<std::string> keptValues(const Session& session) {
  std::set<std::string> kept;
  for (const Json& value : session.report.value("values", Json::array()))
    kept.insert(value.value("name", ""));
  return kept;
}

/// The first lines: the model, the time, and what the outputs are or say.
void printAnswer(const Arguments& arguments, const Session& session, const Ran& ran,
                 const Table& summary, Console& console, Json& report) {
  const std::vector<Tensor>& outputs = ran.results.outputs;
  console.print("{}  {}   {} in {}\n", console.bold(fileName(arguments.run.model.path)),
                placementLine(session.report),
                endsWith(arguments.run.model.path, ".cdb") ? "loaded" : "compiled",
                timeText(session.compileMs));
  std::string line = fmt::format("latency  {}", timeText(ran.min()));
  if (ran.latencies.size() > 1)
    line += fmt::format(" (median {} of {})", timeText(ran.median()), ran.latencies.size());
  line += "   " + memoryText(session.report);
  if (outputs.empty() && (!arguments.labels.empty() || arguments.top))
    fail(kBadInput, "{}: the model has no output", arguments.run.model.path);
  if (arguments.labels.empty()) {
    console.print("{}\n", line);
    if (arguments.top)
      printTop(arguments, outputs[0], console, report);
    else
      console.printText(summary.text());
    return;
  }
  const Accuracy accuracy = measureAccuracy(session, outputs[0], arguments.labels);
  report["accuracy"] = accuracy.fraction();
  report["correct"] = accuracy.correct;
  report["total"] = accuracy.total;
  report["predictions_sha256"] = accuracy.predictionsSha256;
  console.print("accuracy  {}  ({} of {})      {}\n",
                console.bold(fmt::format("{:.2f} %", 100 * accuracy.fraction())), accuracy.correct,
                accuracy.total, line);
  console.print("predictions sha256  {}\n", accuracy.predictionsSha256);
}

/// --output, --dump and --trace.
void writeResults(const Arguments& arguments, const Session& session,
                  const std::vector<Tensor>& outputs, const std::set<std::string>& kept,
                  Console& console) {
  if (!arguments.outputFolder.empty()) {
    TensorFolder folder(arguments.outputFolder);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (!kept.count(session.outputPorts[i].name))
        folder.write(session.outputPorts[i].name, outputs[i]);
  }
  if (!arguments.run.dumpFolder.empty()) dump(arguments, session, outputs, console);
  if (!arguments.trace.empty()) {
    const std::string trace = session.model.traceJson();
    check(writeFile(arguments.trace, trace.data(), trace.size()), kWorkFailed);
  }
}

/// --expect, and the end of the report. Fails where something differs.
void compareAsAsked(const Arguments& arguments, const Session& session,
                    const std::vector<Tensor>& outputs, Console& console, Json& report) {
  const bool equal =
      arguments.expects.empty() || compare(arguments, session, outputs, console, report);
  console.writeJson(report);
  if (equal) return;
  console.finish();
  fail(kWorkFailed, "{}: {} of {} expected outputs differ", arguments.run.model.path,
       report["mismatches"].size(), arguments.expects.size());
}

/// --steps: of the answers the last ones are written, if they are wanted.
void goOn(const Arguments& arguments, Console& console) {
  if (arguments.repeat > 1 || !arguments.run.laterFiles.empty())
    fail(kBadInput, "--steps goes on from one run, without --repeat or more files for an input");
  Steps steps = [&] {
    try {
      return runSteps(arguments.run, arguments.steps);
    } catch (const sdk::Error& error) {
      failWith(error, arguments.run.model.path);
    }
  }();
  Json report = console.report("run");
  report["model"] = arguments.run.model.path;
  addPlacement(report, steps.session.report, arguments.explain);
  report["compile_ms"] = steps.session.compileMs;
  console.print("{}  {}   compiled in {}\n", console.bold(fileName(arguments.run.model.path)),
                placementLine(steps.session.report), timeText(steps.session.compileMs));
  printSteps(steps, console, report);
  if (arguments.explain) console.printText(explainText(steps.session.report));
  writeResults(arguments, steps.session, steps.results.outputs, {}, console);
  compareAsAsked(arguments, steps.session, steps.results.outputs, console, report);
}

void run(Arguments& arguments, Console& console) {
  checkArguments(arguments, console);
  layOutBorders(arguments.run.model);
  if (arguments.steps) return goOn(arguments, console);
  Session session = openSession(arguments.run);
  Json report = console.report("run");
  const Ran ran = runAll(arguments, session);
  const std::vector<Tensor>& outputs = ran.results.outputs;

  report["model"] = arguments.run.model.path;
  addPlacement(report, session.report, arguments.explain);
  report["compile_ms"] = session.compileMs;
  report["latency_ms"] = {
      {"min", ran.min()}, {"median", ran.median()}, {"runs", ran.latencies.size()}};
  const std::set<std::string> kept = keptValues(session);
  report["outputs"] = Json::array();
  Table summary({"output", "type", "values"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (kept.count(session.outputPorts[i].name)) continue;
    report["outputs"].push_back(summaryJson(session.outputPorts[i], outputs[i]));
    summary.add({session.outputPorts[i].name, outputs[i].typeText(), summaryText(outputs[i])});
  }

  printAnswer(arguments, session, ran, summary, console, report);
  if (arguments.profile) {
    report["profile"] = ran.profile.json(session.report);
    console.printText(
        ran.profile.empty()
            ? std::string("no instruction was profiled: the oracle and models without "
                          "work have none, and a backend that compiles need not tell\n")
            : ran.profile.text(session.report, 20));
  }
  if (arguments.explain) console.printText(explainText(session.report));
  writeResults(arguments, session, outputs, kept, console);
  compareAsAsked(arguments, session, outputs, console, report);
}

/// What the next run gets from the one before.
void addStepOptions(CLI::App* command, Arguments& a) {
  a.run.model.addStatesTo(command);
  command
      ->add_option("--steps", a.steps,
                   "then N runs more, each with what the one before left in states; prints tokens "
                   "per second")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
}

} // namespace

void addRun(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "run", "Compile and run a model; print, compare or store what it answers.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  a.run.model.addTo(command, {".cdl", ".cdb"});
  a.run.model.addIoLayoutTo(command);
  addRepeated(
      command, "--input", a.inputs,
      "data for an input, or instead of an initializer that is an input too: .npy or ONNX .pb",
      "NAME=FILE");
  addSeedOption(command, a.run.seed, "random data for the other inputs");
  addSeedOption(command, a.randomSeed,
                "other numbers from random nodes without a seed of their own", "--seed");
  addStepOptions(command, a);
  command->add_option("--output", a.outputFolder, "write the outputs to this folder as .npy")
      ->type_name("DIR");
  command->add_option("--dump", a.run.dumpFolder, "write the value of every node to this folder")
      ->type_name("DIR");
  command->add_option("--only", a.only, "with --dump: only this node, or values that match a glob")
      ->type_name("NODE");
  addRepeated(command, "--expect", a.expects, "compare an output with a tensor", "NAME=FILE");
  command
      ->add_option("--rtol", a.rtol,
                   "relative part of the bound (1e-3; integers exact unless it is given)")
      ->check(numberIn(0, kLargestBound));
  command->add_option("--atol", a.atol, "absolute part of the bound (1e-7)")
      ->check(numberIn(0, kLargestBound));
  command->add_option("--top", a.top, "print the K largest values of each row of the first output")
      ->type_name("K")
      ->check(CLI::Range(1, 1000000));
  command->add_option("--names", a.namesFile, "with --top: names of the classes, one a line")
      ->type_name("FILE");
  command->add_option("--labels", a.labels, "print the top-1 accuracy of the first output")
      ->type_name("FILE");
  command
      ->add_option("--repeat", a.repeat, "run N times and report the shortest and the median time")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  command
      ->add_option("--threads", a.threads,
                   "threads of the host, and of backends that have an option threads")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      ->add_option("--trace", a.trace,
                   "write a trace of compiling and of the last run for ui.perfetto.dev")
      ->type_name("FILE");
  command->add_flag("--profile", a.profile,
                    "per instruction: its node, time, share; of --repeat N runs the shortest time");
  command->add_flag("--explain", a.explain, "per node: native, emulated or host, and why");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    arguments->run.keepsCompiled = !saysHowToCompile(command);
    run(*arguments, console);
  });
}

} // namespace candela::tool
