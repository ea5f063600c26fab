// candela debug: the first instruction of a compiled model that a backend computes wrong.
#include <cmath>
#include <filesystem>

#include "core/support/compare.h"
#include "core/support/file.h"
#include "tools/candela/ir_file.h"
#include "tools/candela/run.h"
#include "tools/candela/stepper.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela debug mobilenet.onnx --backend ./libacme.so --dim N=1
  candela debug model.onnx --backend acme --input x=x.npy --output fault && cat fault/instruction.cdl

Runs what was compiled one instruction at a time, each alone on the backend and on the reference, on the memory that the
backend's own results made. Names the first one outside of its bound (status 1). When all are inside, the whole Program must
give what its instructions gave one by one. Integers are held to be exact; a float may be off by
16 + 4 * sqrt(length of its sums) + 4 * steps of its expression roundings of the largest result.)";

struct Arguments {
  RunOptions run;
  std::vector<std::string> inputs;
  std::string outputFolder;
  bool all = false;
};

/// The devices of the backends that were named, with the options that are for them, in their order.
std::vector<std::shared_ptr<runtime::Device>> openDevices(const ModelOptions& model) {
  std::vector<std::shared_ptr<runtime::Device>> devices;
  for (const std::string& name : splitList(model.backends)) {
    if (name == "soft") continue;
    const auto plugin = check(runtime::findPlugin(name));
    runtime::Options options;
    for (const std::string& text : model.options) { // that each is for one of them, openSession has seen
      const Binding option = parseBinding("--option", text);
      const size_t dot = option.name.find('.');
      if (dot == std::string::npos || option.name.substr(0, dot) == plugin->name())
        options[option.name.substr(dot + 1)] = option.value; // npos + 1 is 0
    }
    devices.push_back(check(plugin->open(0, options)));
  }
  return devices;
}

/// The model compiled for these devices, with all that the parts hold in memory: a stored bundle leaves out constants
/// that its executables have. Inputs have the dims of the session's.
std::unique_ptr<runtime::Session> compileFor(const std::vector<std::shared_ptr<runtime::Device>>& devices,
                                             const Session& session, const ModelOptions& model) {
  if (endsWith(model.path, ".cdl")) {
    Diagnostics diagnostics;
    Ir ir = check(parseIr(check(readText(model.path)), model.path, diagnostics));
    if (auto* program = std::get_if<program::Program>(&ir))
      return check(pipeline::compileProgram(std::move(*program), model.path, devices.empty() ? nullptr : devices[0]));
  }
  ImportFlags flags;
  if (!endsWith(model.path, ".cdl")) {
    flags.dims = model.dims;
    for (const sdk::Port& port : session.inputPorts)
      flags.shapes.push_back(fmt::format("{}={}", port.name, port.dims.empty() ? "scalar" : shapeText(port.dims)));
  }
  pipeline::CompileOptions options;
  options.toPrimitives = model.toPrimitives;
  return check(pipeline::compile(readGraph(model.path, flags), model.path, devices, options));
}

std::string boundText(double bound) { return bound > 0 ? fmt::format("{:.3g}", bound) : "none: exact"; }

void printOutside(const Verdict& verdict, const LoneInstr& lone, Console& console) {
  console.print("{}  {}  op {}, on {}, {}\n", console.red("OUTSIDE"), verdict.name, verdict.op, verdict.backend,
                verdict.types);
  if (!verdict.where.empty())
    console.print("  {} of {} elements outside, the worst at {}\n  expected {}, got {}; difference {:.3g}, bound {}\n",
                  verdict.outside, verdict.elements, verdict.where, verdict.expected, verdict.found, verdict.difference,
                  boundText(verdict.bound));
  if (!verdict.stray.empty()) console.print("  it changed what is no result: {}\n", verdict.stray);
  const program::Instr& instr = lone.program.instrs[0];
  for (const auto& [what, views] : {std::pair("reads", &instr.inputs), std::pair("writes", &instr.outputs)})
    for (const program::View& view : *views)
      console.print("  {:<6} %{} {} offset {} strides [{}]\n", what, lone.program.buffers[view.buffer].name,
                    typeText(elemName(view.elem), view.dims), view.offset, fmt::join(view.strides, ","));
}

/// The instruction as a Program that `candela run` takes, what it received, and what the reference makes of that.
void writeFault(const std::string& folder, const LoneInstr& lone, Console& console) {
  TensorFolder files(folder);
  const std::string path = (std::filesystem::path(folder) / "instruction.cdl").string();
  const std::string text = printProgram(lone.program, folder);
  check(writeFile(path, text.data(), text.size()), kWorkFailed);
  std::string rerun = fmt::format("candela run {} --backend B", shellQuoted(path));
  size_t in = 0, out = 0;
  for (const program::Buffer& buffer : lone.program.buffers) {
    if (buffer.role == program::Role::constant) continue;
    rerun += fmt::format(" --input {}={}", buffer.name, files.write("in_" + buffer.name, lone.inputs[in++]));
    if (buffer.role == program::Role::inout)
      rerun += fmt::format(" --expect {}={}", buffer.name, files.write("expected_" + buffer.name, lone.want[out++]));
  }
  console.print("  alone: {}\n", rerun);
}

Json toJson(const Verdict& verdict) {
  Json json = {{"partition", verdict.partition}, {"instr", verdict.instr},     {"backend", verdict.backend},
               {"node", verdict.node},           {"op", verdict.op},           {"kind", verdict.kind},
               {"types", verdict.types},         {"passed", verdict.passed()}, {"elements", verdict.elements},
               {"different", verdict.different}, {"outside", verdict.outside}};
  if (!verdict.where.empty())
    json["worst"] = {{"at", verdict.where},
                     {"expected", verdict.expected},
                     {"got", verdict.found},
                     {"difference", verdict.difference},
                     {"bound", verdict.bound}};
  if (!verdict.stray.empty()) json["stray"] = verdict.stray;
  return json;
}

/// The largest difference of the whole run's outputs from the steps', over the largest value of the output.
double differenceOf(const std::vector<Tensor>& whole, const std::vector<Tensor>& steps) {
  double worst = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    double largest = 0, difference = 0;
    for (int64_t at = 0; at < steps[i].count(); ++at) {
      const double a = elementAsReal(whole[i], at), b = elementAsReal(steps[i], at);
      if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
      if (a != b && !(std::isnan(a) && std::isnan(b)))
        difference = std::max(difference, std::isfinite(a - b) ? std::abs(a - b) : HUGE_VAL);
    }
    if (difference > 0) worst = std::max(worst, largest > 0 ? difference / largest : HUGE_VAL);
  }
  return worst;
}

void debug(Arguments& arguments, Console& console) {
  constexpr double kWholeBound = 2e-4; // kernels of a whole Program may round elsewhere than those of lone instructions
  RunOptions& options = arguments.run;
  const std::string& path = options.model.path;
  options.addInputs(arguments.inputs);
  if (!options.seed) options.seed = 1;
  if (options.model.backends == "reference")
    fail(kBadInput, "--backend reference: it is what others are compared with");
  if (endsWith(path, ".cdb")) fail(kBadInput, "{}: debug takes the model itself, not what was compiled of it", path);
  const Session session = openSession(options);
  const auto opened = openDevices(options.model);
  const auto compiled = compileFor(opened, session, options.model);
  Stepper::Devices devices;
  for (const auto& device : opened) devices[device->plugin().name()] = device;
  Stepper stepper(compiled->bundle(), devices);
  console.print("{}  {}   compiled in {}\n", console.bold(fileName(path)), placementLine(session.report),
                timeText(session.compileMs));

  Json instrs = Json::array();
  uint64_t done = 0, exact = 0, outside = 0;
  std::string first;
  Verdict worst;
  Progress progress("checking");
  const auto steps = stepper.run(session.inputs, [&](const Verdict& verdict, const LoneInstr& lone) {
    progress.update(verdict.name, double(++done) / double(stepper.executions()));
    instrs.push_back(toJson(verdict));
    exact += verdict.different == 0 && verdict.passed();
    if (verdict.passed()) {
      if (verdict.largest > worst.largest) worst = verdict;
      return true;
    }
    printOutside(verdict, lone, console);
    if (++outside == 1) {
      first = verdict.name;
      if (!arguments.outputFolder.empty()) writeFault(arguments.outputFolder, lone, console);
    }
    return arguments.all;
  });
  console.print("{} of {} instructions checked: {} inside of their bounds, {} of them to the bit\n", done,
                stepper.executions(), done - outside, exact);
  if (worst.largest > 0)
    console.print("the nearest to its bound: {}, {:.1f} % of it\n", worst.name, 100 * worst.largest);
  double difference = 0;
  if (steps && outside == 0) {
    std::vector<double> latencies;
    try {
      difference = differenceOf(session.run(latencies), *steps);
    } catch (const sdk::Error& error) { failWith(error, path); }
    console.print("the whole run gives {}\n", difference > 0
                                                  ? fmt::format("other outputs, by {:.3g} of the largest", difference)
                                                  : "what its instructions gave one by one, to the bit");
  }
  Json report = console.report("debug");
  report["model"] = path;
  addPlacement(report, session.report, false);
  report["checked"] = done;
  report["exact"] = exact;
  report["outside"] = outside;
  report["whole_difference"] = std::isfinite(difference) ? Json(difference) : Json("not finite");
  report["instrs"] = std::move(instrs);
  console.writeJson(report);
  console.finish();
  if (outside) fail(kWorkFailed, "{}: {} is the first instruction outside of its bound", path, first);
  if (difference > kWholeBound)
    fail(kWorkFailed, "{}: each instruction alone is right, the whole Program is not: {:.3g} of the largest", path,
         difference);
}

} // namespace

void addDebug(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("debug", "Find the first instruction that a backend computes wrong.");
  auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  a.run.model.addTo(command);
  addRepeated(command, "--input", a.inputs, "data for an input: .npy or ONNX .pb", "NAME=FILE");
  addSeedOption(command, a.run.seed, "random data for the other inputs (1)");
  command->add_flag("--all", a.all, "go on behind the first one: each is checked on what it received");
  command->add_option("--output", a.outputFolder, "write the first one to this folder: .cdl, inputs, expected results")
      ->type_name("DIR");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    arguments->run.keepsCompiled = !saysHowToCompile(command);
    debug(*arguments, console);
  });
}

} // namespace candela::tool
