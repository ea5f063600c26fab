// candela opt: passes on the text of an IR.
#include <algorithm>

#include "core/compiler/differentiate/differentiate.h"
#include "core/compiler/driver/packing.h"
#include "core/compiler/graph/passes/passes.h"
#include "core/compiler/import/formats.h"
#include "core/compiler/program/passes/passes.h"
#include "core/compiler/program/passes/schedule/lifetimes.h"
#include "core/compiler/program/report/traffic.h"
#include "core/support/file.h"
#include "tools/candela/support/command.h"
#include "tools/candela/support/expect.h"
#include "tools/candela/support/ir_file.h"
#include "tools/candela/support/lowered.h"
#include "tools/candela/support/model.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela opt conv.cdl --passes fold-batch-norm,dead-code
  candela opt model.onnx --dim N=1 --passes optimize -o model.cdl
  candela opt loss.cdl --passes differentiate,optimize
  candela opt program.cdl --passes schedule,place
  candela opt program.cdl --passes join-movement --backend cpu
  candela opt bad.cdl --verify-diagnostics

Without --passes the file is parsed, verified and printed. `optimize` is the standard order,
repeated until nothing changes. With --verify-diagnostics each error has to be announced in the
file, and each announcement has to come true:
  // expected-error {{text}}        in the same line; @+1, @-2: a line below, two lines above; @*:
  //                                any line
Lines of `// -----` cut such a file into parts that are read one by one.)";

struct Arguments {
  std::string path, output;
  std::vector<std::string> passes;
  ModelOptions device; ///< for passes of programs that ask one
  ImportFlags import;
  bool printAfterAll = false, verifyDiagnostics = false, list = false;
};

Status runPasses(graph::Graph& graph, const Arguments& arguments, Console& console, Json& report) {
  const auto show = [&](std::string_view pass, const graph::Graph& after) {
    report["passes"].push_back({{"pass", pass}, {"nodes_after", after.nodeCount()}});
    if (arguments.printAfterAll)
      console.printText(fmt::format("// after {}\n{}", pass, printGraph(after, "")));
  };
  for (const std::string& pass : arguments.passes) {
    if (pass == "optimize") {
      CDL_TRY(graph::passes::optimize(graph, show));
      continue;
    }
    if (pass == "differentiate") {
      CDL_TRY(differentiate::differentiateGraph(graph));
      CDL_TRY(graph::verify(graph));
    } else {
      CDL_TRY(graph::passes::runPasses(graph, std::span(&pass, 1)));
    }
    show(pass, graph);
  }
  return Status::ok();
}

/// The device of --backend and what its target says, for as long as passes ask it.
struct DeviceOfPasses {
  std::vector<std::shared_ptr<runtime::plugin::Device>> devices;
  std::optional<capabilities::Target> nativeOnly;
  program::passes::PassContext context;

  explicit DeviceOfPasses(const ModelOptions& options) : devices(openDevices(options)) {
    context.bandBytes = program::report::kBandBytes;
    context.target = &driver::hostTarget();
    if (!devices.empty()) {
      const capabilities::Target& whole = devices[0]->target();
      if (devices[0]->compiles()) nativeOnly = whole.nativeOnly();
      context.target = nativeOnly ? &*nativeOnly : &whole;
      context.packer = driver::packerOf(devices[0]);
      context.machine = program::passes::tile::machineOf(whole);
    }
    if (!options.tile.empty()) context.machine = machineOf(options);
  }
};

Status planProgram(program::Program& program, const Arguments& arguments, Console& console,
                   Json& report) {
  const DeviceOfPasses device(arguments.device);
  for (const std::string& name : arguments.passes) {
    if (std::ranges::find(program::passes::allPasses(), name, &program::passes::PassInfo::name) ==
        program::passes::allPasses().end())
      return badArgument(
          "pass '{}' does not work on programs; candela opt --list names those that do", name);
    const std::string_view pass = name;
    CDL_TRY(program::passes::runPasses(program, std::span(&pass, 1), device.context).status());
    CDL_TRY(program::verify(program));
    Json peaks = Json::object();
    const std::vector<uint64_t> bytes = program::passes::schedule::peakBytes(
        program, program::passes::schedule::sharesOf(program, true));
    for (size_t s = 0; s < bytes.size(); ++s) peaks[program.spaces[s].name] = bytes[s];
    report["passes"].push_back({{"pass", name},
                                {"instructions_after", program.instrs.size()},
                                {"max_live_bytes", std::move(peaks)}});
    if (arguments.printAfterAll)
      console.printText(fmt::format("// after {}\n{}", name, printProgram(program, "")));
  }
  return Status::ok();
}

Status runPasses(Ir& ir, const Arguments& arguments, Console& console, Json& report) {
  if (arguments.passes.empty()) return Status::ok();
  if (auto* graph = std::get_if<graph::Graph>(&ir))
    return runPasses(*graph, arguments, console, report);
  return planProgram(std::get<program::Program>(ir), arguments, console, report);
}

size_t sizeOf(const Ir& ir) {
  const auto* graph = std::get_if<graph::Graph>(&ir);
  return graph ? graph->nodeCount() : std::get<program::Program>(ir).instrs.size();
}

void verifyDiagnostics(const Arguments& arguments, Console& console) {
  const std::string text = check(readText(arguments.path));
  ExpectedErrors expected(text, arguments.path);
  for (const std::string& part : splitParts(text)) {
    Diagnostics diagnostics;
    Result<Ir> ir = parseIr(part, arguments.path, diagnostics);
    Status status = ir.status();
    Json unreported;
    if (ir) status = runPasses(*ir, arguments, console, unreported);
    for (const Diagnostic& diagnostic : diagnostics.list())
      expected.match(diagnostic.location.line, diagnostic.message);
    if (diagnostics.empty() && !status) expected.match(0, status.message());
  }
  check(expected.finish(), kWorkFailed);
}

void opt(const Arguments& arguments, Console& console) {
  if (arguments.list) {
    Table table({"pass", "does", "numbers"});
    for (const graph::passes::PassInfo& pass : graph::passes::allPasses())
      table.add({std::string(pass.name), std::string(pass.summary), std::string(pass.values)});
    table.add({"optimize", "the standard order, repeated until nothing changes",
               "what those do together"});
    table.add(
        {"differentiate",
         "of each float input x an output d_x: the gradient of the only number that comes out, "
         "or of all outputs y times inputs d_y",
         "outputs keep their bits"});
    for (const graph::passes::PassInfo& pass : graph::passes::requestedPasses())
      table.add({std::string(pass.name), std::string(pass.summary), std::string(pass.values)});
    for (const program::passes::PassInfo& pass : program::passes::allPasses())
      table.add({std::string(pass.name), fmt::format("of a program: {}", pass.summary),
                 std::string(pass.values)});
    console.printText(table.text(0));
    return;
  }
  if (arguments.path.empty()) fail(kBadInput, "a file is needed");
  refuseBundle(arguments.path);
  if (arguments.verifyDiagnostics) return verifyDiagnostics(arguments, console);
  Ir ir;
  if (import::isModelFile(arguments.path)) {
    ir = readGraph(arguments.path, arguments.import);
  } else {
    Diagnostics diagnostics;
    Result<Ir> parsed = parseIr(check(readText(arguments.path)), arguments.path, diagnostics);
    check(diagnostics.status());
    ir = check(std::move(parsed));
  }
  Json report = console.report("opt");
  report["ir"] = std::holds_alternative<graph::Graph>(ir) ? "graph" : "program";
  report["size_before"] = sizeOf(ir);
  report["passes"] = Json::array();
  check(runPasses(ir, arguments, console, report).context(arguments.path));
  report["size_after"] = sizeOf(ir);
  if (arguments.output.empty()) {
    console.printText(printIr(ir, ""));
  } else {
    const std::string text = printIr(ir, resourceFolderOf(arguments.output));
    check(writeFile(arguments.output, text.data(), text.size()), kWorkFailed);
  }
  console.writeJson(report);
}

} // namespace

void addOpt(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "opt", "Run passes on the textual form of either IR; parse, verify and print it.");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("FILE", arguments->path,
                   "a .cdl file (graph or program) or a model: " + import::extensionsText())
      ->type_name("FILE");
  command->add_option("--passes", arguments->passes, "passes in order, or optimize")
      ->delimiter(',')
      ->type_name("A,B...")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--backend", arguments->device.backends,
          "for passes of programs that ask a device, which join-movement, pack and tile do: its "
          "backend")
      ->type_name("B");
  arguments->device.addTilingTo(command);
  command->add_flag("--list", arguments->list,
                    "list the passes, and what each may change of numbers");
  command->add_flag("--print-ir-after-all", arguments->printAfterAll,
                    "print the graph after each pass that changed it");
  command->add_flag("--verify-diagnostics", arguments->verifyDiagnostics,
                    "check the errors that the file announces");
  addRepeated(command, "--dim", arguments->import.dims,
              "of a model: the value of a symbolic dimension", "NAME=VALUE");
  addRepeated(command, "--shape", arguments->import.shapes, "of a model: the shape of an input",
              "NAME=DIMS");
  command
      ->add_option("-o,--output", arguments->output,
                   "write here instead of to stdout, large constants beside it")
      ->type_name("FILE");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { opt(*arguments, console); });
}

} // namespace candela::tool
