// candela debug: the first instruction of a compiled model that a backend computes wrong, made
// small.
#include <cmath>
#include <filesystem>

#include "core/support/file.h"
#include "tools/candela/debug/hunt.h"
#include "tools/candela/debug/layers.h"
#include "tools/candela/debug/shrink.h"
#include "tools/candela/debug/written.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela debug mobilenet.onnx --backend ./libacme.so --dim N=1
  candela debug model.onnx --backend acme --input x=x.npy --output fault --twice 4
  candela debug model.onnx --backend ./libacme_2.so --against ./libacme_1.so --exact
  candela debug model.onnx --backend soft --option fault=matmul.wrong_tail
  candela debug model_int8.onnx --float model.onnx --input x=x.npy

Runs what was compiled one instruction at a time, each alone on the backend, on the memory that
the backend's own results made. Names the first one that is outside of its bound, fails, dies of
a signal, exits, hangs, or, with --twice, gives other bytes in another run (status 1).
Everything that the backend does it does in processes of its own. When all instructions are
right alone, the whole Program must give what they gave; when it does not, the fewest of them
that show it are looked for.

What was found is made small while it shows the same fault: fewer instructions, shorter
expressions, smaller dims and buffers. It is written to --output as a .cdl file with its data,
and one command repeats it.

The portable executor `soft` looks at every result; where it differs by more than the bound, or
cannot run the instruction, the reference judges, and at last it judges what was made small.
With --reference it judges every instruction, which takes minutes for a large model. Integers
are held to be exact; a float may be off by 16 + 4 * sqrt(length of its sums) + 4 * steps of its
expression roundings of the largest result. `--backend soft` with an option is the soft of
`candela conform`: with fault=NAME one of its faulty backends.

--float looks for the errors of quantization instead: it runs the quantized and the float model on
the same inputs, tells the signal to noise of each layer, and the one that loses most of what
reaches it. Values are matched by name, behind the QuantizeLinear and DequantizeLinear that anyone
put there.)";

struct Arguments {
  RunOptions run;
  std::vector<std::string> inputs, againstOptions;
  std::string outputFolder, against, floatModel;
  bool all = false, exact = false, byReference = false, noReduce = false;
  int twice = 1;
  double timeout = 60, reduceSeconds = 60;
};

using Kind = Finding::Kind;

std::string boundText(double bound) {
  return bound > 0 ? fmt::format("{:.3g}", bound) : "none: exact";
}

std::string placeText(const Verdict& verdict) {
  return fmt::format("{}  op {}, on {}, {}", verdict.name, verdict.op, verdict.backend,
                     verdict.types);
}

/// What was wrong, where.
void printFinding(const Finding& finding, Console& console) {
  const Verdict& verdict = finding.verdict;
  std::string word(kindName(finding.kind));
  for (char& c : word) c = static_cast<char>(std::toupper(c));
  console.print("{}  {}\n", console.red(word), placeText(verdict));
  if (const std::string text = finding.summary(); !text.empty()) console.print("  {}\n", text);
  if (!verdict.where.empty())
    console.print("  {} of {} elements {}, the worst at {}\n  expected {}, got {}; difference "
                  "{:.3g}, bound {}\n",
                  verdict.outside, verdict.elements,
                  finding.kind == Kind::differs ? "differ" : "outside", verdict.where,
                  verdict.expected, verdict.found, verdict.difference, boundText(verdict.bound));
  if (!verdict.stray.empty()) console.print("  it changed what is no result: {}\n", verdict.stray);
}

void printViews(const Trial& trial, Console& console) {
  for (const program::Instr& instr : trial.program.instrs) {
    if (trial.program.instrs.size() > 1)
      console.print("  {}\n", trial.program.instrName(
                                  static_cast<uint32_t>(&instr - trial.program.instrs.data())));
    for (const auto& [what, views] :
         {std::pair("reads", &instr.inputs), std::pair("writes", &instr.outputs)})
      for (const program::View& view : *views)
        console.print("  {:<6} %{} {} offset {} strides [{}]\n", what,
                      trial.program.buffers[view.buffer].name,
                      typeText(elemName(view.elem), view.dims), view.offset,
                      fmt::join(view.strides, ","));
  }
}

Json toJson(const Finding& finding) {
  const Verdict& verdict = finding.verdict;
  Json json = {{"partition", verdict.partition},
               {"instr", verdict.instr},
               {"backend", verdict.backend},
               {"node", verdict.node},
               {"op", verdict.op},
               {"kind", verdict.kind},
               {"types", verdict.types},
               {"passed", !finding.isFault()},
               {"elements", verdict.elements},
               {"different", verdict.different},
               {"outside", verdict.outside},
               {"judged", verdict.judged}};
  if (!verdict.where.empty())
    json["worst"] = {{"at", verdict.where},
                     {"expected", verdict.expected},
                     {"got", verdict.found},
                     {"difference", verdict.difference},
                     {"bound", verdict.bound}};
  if (!verdict.stray.empty()) json["stray"] = verdict.stray;
  if (finding.isFault()) {
    json["fault"] = kindName(finding.kind);
    if (const std::string text = finding.summary(); !text.empty()) json["text"] = text;
  }
  return json;
}

std::string countOf(size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

uint64_t bytesOf(const program::Program& program) {
  uint64_t bytes = 0;
  for (const program::Buffer& buffer : program.buffers) bytes += buffer.bytes;
  return bytes;
}

class Debugger {
public:
  Debugger(Arguments& arguments, Console& console)
      : a_(arguments), path_(arguments.run.model.path), console_(console) {
    const ModelOptions& model = a_.run.model;
    std::vector<std::string> options = model.options;
    for (const std::string& name : splitList(model.backends)) {
      const BackendSpec backend{name, options};
      if (!backend.isHost()) hunt_.backends.push_back(backend);
    }
    hunt_.model = model;
    hunt_.question.times = a_.twice;
    hunt_.question.exact = a_.exact;
    hunt_.question.byReference = a_.byReference;
    hunt_.question.limitSeconds = a_.timeout;
    if (!a_.against.empty()) hunt_.question.against = BackendSpec{a_.against, a_.againstOptions};
  }

  void run() {
    const Session session = openOnHost();
    Compiled compiled = compileIn(hunt_, session.inputPorts);
    console_.print("{}  {}   compiled in {}\n", console_.bold(fileName(path_)),
                   placementLine(compiled.placement), timeText(compiled.compileMs));
    if (compiled.death)
      console_.print("{}  {}: instruction by instruction\n", console_.red("DIED"),
                     compiled.death->summary());
    Stepper stepper(compiled.bundle, session.inputs);
    const auto start = std::chrono::steady_clock::now();
    const std::vector<Finding> findings = stepIn(hunt_, stepper, a_.all, fileName(path_));
    stepSeconds_ = millisecondsSince(start) / 1000;
    Json report = console_.report("debug");
    report["model"] = path_;
    addPlacement(report, compiled.placement, false);
    const std::optional<size_t> first = summarize(findings, stepper, report);

    std::string error;
    std::optional<Finding> whole;
    if (first) {
      error = fmt::format("{} is the first instruction {}", findings[*first].verdict.name,
                          complaint(findings[*first]));
      if (!a_.noReduce) reduceOne(stepper, *first, findings[*first], report);
    } else {
      whole = runAll(compiled, stepper, session.inputs, report);
      if (whole)
        error = fmt::format("each instruction alone is right, the whole Program is not: {}",
                            whole->summary().empty()
                                ? fmt::format("{:.3g} of the largest", whole->verdict.difference)
                                : whole->summary());
      if (whole && !a_.noReduce) reduceWhole(stepper, report);
    }
    console_.writeJson(report);
    console_.finish();
    if (!error.empty()) fail(kWorkFailed, "{}: {}", path_, error);
  }

private:
  /// Ports and inputs by a session on the host, which nothing of a backend has to do with.
  Session openOnHost() const {
    RunOptions options = a_.run;
    options.model.backends = "soft";
    options.model.options.clear();
    try {
      return openSession(options);
    } catch (const Failure&) {
      if (hunt_.backends.empty()) throw;
      return openSession(a_.run); // ops of a plugin's domain are imported with the plugin alone
    }
  }

  static std::string complaint(const Finding& finding) {
    switch (finding.kind) {
    case Kind::wrong:
    case Kind::stray: return "outside of its bound";
    case Kind::differs: return "that differs";
    case Kind::unstable: return "that gives other bytes in another run";
    case Kind::stale: return "that gives what an earlier run gave";
    case Kind::failed: return "that fails: " + finding.text;
    default: return "that the backend does not survive: " + finding.summary();
    }
  }

  /// What was found, in a few lines; the number of the first fault.
  std::optional<size_t> summarize(const std::vector<Finding>& findings, const Stepper& stepper,
                                  Json& report) {
    uint64_t exact = 0, outside = 0, unjudged = 0;
    std::optional<size_t> first;
    const Verdict* nearest = nullptr;
    Json instrs = Json::array();
    for (size_t i = 0; i < findings.size(); ++i) {
      const Finding& finding = findings[i];
      instrs.push_back(toJson(finding));
      if (finding.isFault()) {
        ++outside;
        if (!first) first = i;
        printFinding(finding, console_);
        const auto place = *stepper.place(i);
        printViews(isolate(stepper.program(place.part), stepper.tape(place.part), place.execution),
                   console_);
      } else {
        exact += finding.verdict.different == 0 && finding.verdict.judged;
        unjudged += !finding.verdict.judged;
        if (!nearest || finding.verdict.largest > nearest->largest) nearest = &finding.verdict;
      }
    }
    console_.print(
        "{} of {} instructions checked: {} inside of their bounds, {} of them to the bit\n",
        findings.size(), stepper.executions(), findings.size() - outside, exact);
    if (unjudged)
      console_.print("{} CUSTOM taken as the backend gave them: the reference does not know the "
                     "ops of plugins; with "
                     "--to-primitives their other form is checked\n",
                     unjudged);
    if (nearest && nearest->largest > 0)
      console_.print("the nearest to its bound: {}, {:.1f} % of it\n", nearest->name,
                     100 * nearest->largest);
    report["checked"] = findings.size();
    report["exact"] = exact;
    report["outside"] = outside;
    report["unjudged"] = unjudged;
    report["whole_difference"] = 0;
    report["instrs"] = std::move(instrs);
    return first;
  }

  /// The fault of the whole run, when there is one.
  std::optional<Finding> runAll(const Compiled& compiled, const Stepper& stepper,
                                const std::vector<Tensor>& inputs, Json& report) {
    WholeRun whole;
    if (compiled.death)
      whole.finding = *compiled.death;
    else
      whole = runWhole(hunt_, compiled.bundle, inputs, stepper.outputs(), stepSeconds_);
    report["whole_difference"] =
        std::isfinite(whole.difference) ? Json(whole.difference) : Json("not finite");
    if (const std::string text = whole.finding.summary(); !text.empty())
      console_.print("the whole run: {}\n", text);
    else
      console_.print("the whole run gives {}\n",
                     whole.difference > 0
                         ? fmt::format("other outputs, by {:.3g} of the largest", whole.difference)
                         : "what its instructions gave one by one, to the bit");
    if (!whole.finding.isFault()) return std::nullopt;
    report["whole"] = {{"fault", kindName(whole.finding.kind)}, {"text", whole.finding.summary()}};
    return whole.finding;
  }

  Question questionOf(const Stepper& stepper, size_t part) const {
    Question question = hunt_.questionFor(stepper.backend(part));
    if (stepper.backend(part).empty()) question.against.reset();
    return question;
  }

  void reduceOne(const Stepper& stepper, size_t number, const Finding& found, Json& report) {
    const auto place = *stepper.place(number);
    Question question = questionOf(stepper, place.part);
    if (found.kind == Kind::late) question.limitSeconds = std::min(question.limitSeconds, 3.0);
    Progress progress("reducing");
    Search search(question, a_.reduceSeconds,
                  [&](const std::string& text) { progress.update(text, 0); });
    Suspect suspect{
        isolate(stepper.program(place.part), stepper.tape(place.part), place.execution), {}, 1};
    const uint64_t bytes = bytesOf(suspect.trial.program);
    suspect.finding = search.ask(suspect.trial);
    if (!suspect.finding.isFault()) {
      console_.print("alone in a new process it is right: what ran before it matters\n");
      reduceParts(stepper, {place.part}, place.execution, report);
      return;
    }
    shrink(suspect, search);
    progress.clear();
    write(suspect, question, bytes, 1, report);
  }

  void reduceWhole(const Stepper& stepper, Json& report) {
    std::vector<size_t> parts;
    for (size_t p = 0; p < stepper.parts(); ++p)
      if (!stepper.backend(p).empty()) parts.push_back(p);
    reduceParts(stepper, parts, std::nullopt, report);
  }

  void reduceParts(const Stepper& stepper, const std::vector<size_t>& parts,
                   std::optional<size_t> last, Json& report) {
    for (const size_t part : parts) {
      const Question question = questionOf(stepper, part);
      const program::Program& whole = stepper.program(part);
      Progress progress("reducing");
      Search search(question, 2 * a_.reduceSeconds,
                    [&](const std::string& text) { progress.update(text, 0); });
      auto suspect = findFew(whole, stepper.tape(part), last, search);
      if (!suspect) continue;
      const uint64_t bytes = bytesOf(whole);
      shrink(*suspect, search);
      progress.clear();
      printFinding(named(*suspect, stepper.backend(part)), console_);
      write(*suspect, question, bytes, whole.instrs.size(), report);
      return;
    }
    console_.print("no part of it alone shows that again: it may need more runs (--twice), or all "
                   "that runs\n");
  }

  /// With the names of all instructions that are left.
  static Finding named(const Suspect& suspect, const std::string& backend) {
    Finding finding = suspect.finding;
    const program::Program& program = suspect.trial.program;
    Verdict place = describe(program, static_cast<uint32_t>(program.instrs.size() - 1));
    finding.verdict.name.clear();
    for (uint32_t i = 0; i < program.instrs.size(); ++i)
      finding.verdict.name += (i ? ", " : "") + program.instrName(i);
    finding.verdict.op = place.op;
    finding.verdict.types = place.types;
    finding.verdict.backend = backend;
    return finding;
  }

  void write(Suspect& suspect, const Question& question, uint64_t bytes, size_t instrs,
             Json& report) {
    if (a_.outputFolder.empty())
      a_.outputFolder = std::filesystem::path(path_).stem().string() + ".fault";
    const Written written = writeTrial(a_.outputFolder, suspect, question);
    const program::Program& program = suspect.trial.program;
    const bool isJudged =
        suspect.finding.kind == Kind::wrong || suspect.finding.kind == Kind::stray;
    console_.print("{} to {} with {} of {}, in {} tries\n", console_.bold("reduced"),
                   countOf(program.instrs.size(), "instruction"), bytesText(bytesOf(program)),
                   bytesText(bytes), suspect.tries);
    printViews(suspect.trial, console_);
    if (!written.again.verdict.where.empty())
      console_.print("  expected {}, got {}\n", written.again.verdict.expected,
                     written.again.verdict.found);
    if (!written.again.isFault())
      console_.print("  {}\n",
                     isJudged ? "the reference agrees with the backend: soft is what is wrong here"
                              : "read from the files it shows no more: the fault comes and goes; "
                                "--twice N asks for results that differ from run to run");
    console_.print("  reproduce: {}\n", written.command);
    if (!written.underDebugger.empty())
      console_.print("  in a debugger: {}\n", written.underDebugger);
    report["reduced"] = {{"fault", kindName(suspect.finding.kind)},
                         {"instructions", program.instrs.size()},
                         {"of", instrs},
                         {"bytes", bytesOf(program)},
                         {"of_bytes", bytes},
                         {"tries", suspect.tries},
                         {"file", written.file},
                         {"command", written.command},
                         {"confirmed", written.again.isFault()}};
  }

  Arguments& a_;
  const std::string& path_;
  Console& console_;
  Hunt hunt_;
  double stepSeconds_ = 0;
};

/// What looks for a backend's fault says nothing about one of quantization.
void checkFloatOptions(const CLI::App* command) {
  for (const char* name :
       {"--twice", "--against", "--against-option", "--exact", "--reference", "--timeout",
        "--reduce-time", "--no-reduce", "--all", "--output", "--require-native"})
    if (command->count(name)) fail(kBadInput, "{}: it is not for --float", name);
}

} // namespace

void addDebug(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "debug", "Find the first instruction that a backend computes wrong, and make it small.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  a.run.model.addTo(command);
  addRepeated(command, "--input", a.inputs, "data for an input: .npy or ONNX .pb", "NAME=FILE");
  addSeedOption(command, a.run.seed, "random data for the other inputs (1)");
  command
      ->add_option("--twice", a.twice,
                   "run each N times on the same bytes (the second time on others): all the same?")
      ->type_name("N")
      ->check(CLI::Range(2, 1000));
  command
      ->add_option("--against", a.against,
                   "compare with this backend, another version of it, instead of the reference")
      ->type_name("B");
  addRepeated(command, "--against-option", a.againstOptions, "an option of that one", "KEY=VALUE");
  command->add_flag("--exact", a.exact,
                    "with --against: every bit counts, not only what is outside of the bounds");
  command->add_flag("--reference", a.byReference,
                    "the reference judges every instruction, not only what soft finds");
  command->add_option("--timeout", a.timeout, "an instruction that takes longer hangs (60)")
      ->type_name("SECONDS")
      ->check(numberIn(0.001, kLongestSeconds));
  command
      ->add_option("--reduce-time", a.reduceSeconds, "how long to look for something smaller (60)")
      ->type_name("SECONDS")
      ->check(numberIn(0, kLongestSeconds));
  command->add_flag("--no-reduce", a.noReduce, "say what is wrong, and write nothing");
  command->add_flag("--all", a.all,
                    "go on behind the first one: each is checked on what it received");
  command
      ->add_option("--output", a.outputFolder,
                   "write what was made small to this folder: .cdl, inputs (MODEL.fault)")
      ->type_name("DIR");
  command
      ->add_option("--float", a.floatModel,
                   "compare a quantized model with its float one, layer by layer")
      ->type_name("FILE.onnx");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    Arguments& a = *arguments;
    a.run.keepsCompiled = !saysHowToCompile(command);
    a.run.addInputs(a.inputs);
    if (!a.run.seed) a.run.seed = 1;
    if (!a.floatModel.empty()) checkFloatOptions(command);
    if (a.run.model.backends == "reference" || a.against == "reference")
      fail(kBadInput, "--backend reference: it is what others are compared with");
    if (endsWith(a.run.model.path, ".cdb"))
      fail(kBadInput, "{}: debug takes the model itself, not what was compiled of it",
           a.run.model.path);
    if (a.exact && a.against.empty())
      fail(kBadInput, "--exact: says how to compare with the backend of --against");
    if (!a.floatModel.empty()) return debugLayers(a.run, a.floatModel, console);
    Debugger(a, console).run();
  });
}

} // namespace candela::tool
