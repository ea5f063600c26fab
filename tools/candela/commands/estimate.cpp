// candela estimate: how long a model takes on a device by what that says of itself.
#include <filesystem>

#include "core/compiler/import/formats.h"
#include "core/compiler/program/image.h"
#include "core/runtime/api/model.h"
#include "core/support/file.h"
#include "tools/candela/estimate/described_device.h"
#include "tools/candela/estimate/estimate.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/host_share.h"
#include "tools/candela/simulate/layer_shapes.h"
#include "tools/candela/simulate/least.h"
#include "tools/candela/simulate/margin.h"
#include "tools/candela/simulate/scratchpad.h"
#include "tools/candela/simulate/sweep_command.h"
#include "tools/candela/support/assumed.h"
#include "tools/candela/support/io_layout.h"
#include "tools/candela/support/ir_file.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter = R"(Examples:
  candela estimate resnet50.onnx --device edge.toml --dim N=1
  candela estimate resnet50_int8.onnx --device edge.toml --dim N=1 --html edge.html
  candela estimate mobilenet_int8.onnx --backend ./libcandela_acme.so --dim N=1 --clock-mhz 800
  candela calibrate-host --output host.json && candela estimate bert_int8.onnx \
      --device edge.toml --host-rates host.json
  candela estimate --sweep devices.toml

Compiles the model and runs nothing. --backend takes any plugin: each instruction costs what its
cost_batch says, or else what it takes by the rates of cdl_tiling_t. --device takes a device that a
file describes, before there is a plugin: see docs/reference/device_description.md.

An instruction takes the larger time of computing and of moving its bytes, after what goes before
both. Engines work beside each other, each in the order of the program and once what it waits for
is done; bytes from and to memory move one transfer at a time. A moment belongs to the layer that
computes then, else to the one that loads, else to the one that stores, so that layers sum to the
whole. What the device leaves to the host is listed with the reason; with --host-rates its time is
counted too.)";

struct Arguments {
  ModelOptions model;
  HostArguments host;
  SweepArguments sweep;
  std::string device;
  std::string html;
  std::string csv;
  std::string trace;
  std::string compare;
  uint32_t clockMhz = 0;
  size_t rows = 20;
};

/// One model on one device.
struct Subject {
  std::shared_ptr<runtime::plugin::Device> device;
  std::optional<DeviceDescription> description;
  std::optional<double> clockHz;

  std::string name() const { return description ? description->name : device->name(); }
};

Subject openSubject(Arguments& arguments) {
  Subject subject;
  if (!arguments.device.empty()) {
    subject.description = readDescription(arguments.device);
    useDescribedDevice(arguments.model, arguments.device);
  }
  const auto devices = openDevices(arguments.model);
  if (devices.size() != 1)
    fail(kBadInput, "--backend {}: one device is estimated at a time, or --device FILE.toml",
         arguments.model.backends);
  subject.device = devices[0];
  subject.clockHz = clockOf(*subject.device);
  if (arguments.clockMhz) subject.clockHz = arguments.clockMhz * 1e6;
  return subject;
}

std::string sourceText(const Estimate& estimate, const Subject& subject) {
  if (subject.description) return fmt::format("rates of {}", subject.description->file);
  return estimate.source == CostSource::device ? "cost_batch of the plugin"
                                               : "rates of cdl_tiling_t";
}

/// The file that describes the device, or how the backend was opened.
std::string configurationOf(const Arguments& arguments, const Subject& subject) {
  if (subject.description) return check(readText(subject.description->file));
  std::string text = fmt::format("--backend {}\n", arguments.model.backends);
  for (const std::string& option : arguments.model.options)
    text += fmt::format("--option {}\n", option);
  return text;
}

/// The rates, as the page and the report list constants.
Json constantsOf(const Estimate& estimate, const std::string& source) {
  const DeviceRates& rates = estimate.rates;
  Json constants = Json::array();
  const auto add = [&](const std::string& name, double value, const char* unit) {
    constants.push_back({{"name", name},
                         {"value", value},
                         {"unit", unit},
                         {"tag", "declared"},
                         {"source", source}});
  };
  const auto addRate = [&](const char* name, const RateByElem& rate, const char* unit) {
    for (const auto& [elem, value] : rate.known)
      add(fmt::format("{} {}", name, elemName(elem)), value, unit);
    if (rate.known.empty()) add(name, rate.others, unit);
  };
  addRate("products", rates.matrix.macsPerCycle, "a cycle");
  add("rows", rates.matrix.rows, "terms");
  add("columns", rates.matrix.columns, "results");
  if (rates.matrix.depthwiseMacsPerCycle > 0)
    add("depthwise products", rates.matrix.depthwiseMacsPerCycle, "a cycle");
  add("before a product", rates.matrix.startCycles, "cycles");
  addRate("elements", rates.vector.elementsPerCycle, "a cycle");
  if (rates.vector.functionsPerCycle > 0)
    add("functions", rates.vector.functionsPerCycle, "a cycle");
  add("before elements", rates.vector.startCycles, "cycles");
  add("memory", rates.bytesPerCycle, "bytes a cycle");
  add("before a transfer", rates.copyStartCycles, "cycles");
  return constants;
}

/// Of all memories that copies fill.
/// ": node 'Conv_0': no row for conv2d", of the first step that is the host's.
std::string firstReason(const Json& placement) {
  for (const Json& node : placement.value("nodes_detail", Json::array()))
    if (const std::string why = node.value("why", ""); !why.empty())
      return fmt::format(": node '{}': {}", node.value("node", ""), why);
  return "";
}

uint64_t localBytes(const runtime::plugin::Device& device) {
  uint64_t bytes = 0;
  for (const auto& space : device.target().spaces())
    if (space.space.flags & CDL_SPACE_LOCAL) bytes += space.space.capacity_bytes;
  return bytes;
}

/// As a report of a simulation has it, with what only an estimate knows.
Json reportOf(const Arguments& arguments, const Subject& subject, const Estimate& estimate,
              const Json& placement, Console& console) {
  const Measured& m = estimate.measured;
  Json report = console.report("estimate");
  tellAssumed(arguments.model, "cycles", report, console);
  addPlacement(report, placement, true);
  report["model"] = fileName(arguments.model.path);
  report["npu"] = subject.name();
  report["engine"] = "estimated";
  report["source"] = sourceText(estimate, subject);
  report["configuration"] = configurationOf(arguments, subject);
  report["programs"] = m.programs;
  report["macs"] = m.counter("macs");
  addHostShare(arguments.host, placement, report);
  report["dram_bytes"] = dramBytesOf(m);
  report["scratchpad_bytes"] = localBytes(*subject.device);
  report["layers"] = m.layers;
  addShapes(report["layers"], placement);
  report["margin"] = marginOf("estimate");
  report["array"] = {{"rows", estimate.rates.matrix.rows},
                     {"columns", estimate.rates.matrix.columns},
                     {"loads_weights", false},
                     {"takes_channels", false}};
  report["counters"] = m.counters;
  report["cycles"] = m.cycles();
  report["mac_utilization"] = estimate.macUtilization;
  if (const auto least = leastCycles(m.layers); least && *least > 0) {
    report["least_cycles"] = *least;
    report["of_least"] = static_cast<double>(m.cycles()) / static_cast<double>(*least);
  }
  report["engines"] = m.time["busy"];
  report["time"] = m.time;
  report["time"]["provenance"] = {{"declared", 1.0}};
  report["time"]["constants"] = constantsOf(estimate, report["source"].get<std::string>());
  if (estimate.deviceCycles) report["device_cycles"] = *estimate.deviceCycles;
  if (subject.clockHz) {
    report["clock_mhz"] = *subject.clockHz / 1e6;
    report["time_ms"] = static_cast<double>(m.cycles()) / *subject.clockHz * 1e3;
    report["network"] = networkOf(report);
  }
  return report;
}

std::string timeOf(const Json& report) {
  if (!report.contains("network")) return "no time without a clock (--clock-mhz)";
  return networkText(report["network"], "device");
}

std::string kilobytesOf(const Json& layer) {
  uint64_t bytes = 0;
  for (const char* key : {"weights", "tables", "loaded", "stored"})
    bytes += layer.value(key, uint64_t{0});
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1000);
}

void printEstimate(const Arguments& arguments, const Estimate& estimate, const Json& report,
                   Console& console) {
  const Measured& m = estimate.measured;
  const bool hasPeak = m.time["peak_macs_per_cycle"].get<double>() > 0;
  const std::string share =
      hasPeak ? fmt::format("   MAC {:.1f} %", 100 * estimate.macUtilization) : std::string();
  console.print("{}   {} cycles  {}{}   memory {}   {} program{}\n",
                console.bold(report["npu"].get<std::string>()), countText(m.cycles()),
                timeOf(report), share, bytesText(m.dramBytes()), m.programs,
                m.programs == 1 ? "" : "s");
  Table table({"cycles", "of least", "MAC %", "bound by", "memory KB", "layer", "cycles go to"});
  size_t shown = 0;
  for (const Json& layer : m.layers) {
    if (layer["cycles"].get<uint64_t>() == 0) continue;
    if (shown++ >= arguments.rows) continue;
    table.add({fmt::format("{}", layer["cycles"].get<uint64_t>()), ofLeastText(layer),
               fmt::format("{:.1f}", 100 * layer["mac_utilization"].get<double>()),
               layer.value("bound", ""), kilobytesOf(layer), layer["name"].get<std::string>(),
               causesText(layer)});
  }
  console.printText(table.text());
  if (shown > arguments.rows) console.print("  and {} more (--rows)\n", shown - arguments.rows);
  console.print("  all: weights {}, tables {}, values loaded {}, stored {}\n",
                bytesText(m.sum("weights")), bytesText(m.sum("tables")), bytesText(m.sum("loaded")),
                bytesText(m.sum("stored")));
  console.print("  all cycles: {}\n", causesText(m.time));
  if (report.contains("of_least"))
    console.print("  {:.3f} times the least cycles of its layers one after the other\n",
                  report["of_least"].get<double>());
  printHost(report["host_nodes"], arguments.rows, console);
  if (estimate.deviceCycles && estimate.source == CostSource::declared)
    console.print("  cost_batch of the plugin says {} cycles of the whole\n",
                  countText(*estimate.deviceCycles));
  console.print("  estimated by {}; {} MACs on the host\n", report["source"].get<std::string>(),
                countText(report["host_macs"].get<uint64_t>()));
}

/// What can be told before the model is compiled.
void checkArguments(const Arguments& arguments, const CLI::App* command) {
  if (!arguments.device.empty() && command->count("--backend"))
    fail(kBadInput, "--device {}: --backend names a device too; one is estimated",
         arguments.device);
  refuseStandardOutput(
      {{"--html", arguments.html}, {"--csv", arguments.csv}, {"--trace", arguments.trace}});
  for (const auto& [name, path] : {std::pair{"--html", &arguments.html},
                                   {"--csv", &arguments.csv},
                                   {"--trace", &arguments.trace}}) {
    const fs::path folder = fs::path(*path).parent_path();
    if (!folder.empty() && !fs::is_directory(folder))
      fail(kBadInput, "{} {}: there is no folder '{}'", name, *path, folder.string());
  }
  refuseBundle(arguments.model.path);
  arguments.host.check();
}

void writeText(const std::string& path, const std::string& text) {
  if (!path.empty()) check(writeFile(path, text.data(), text.size()), kWorkFailed);
}

void writeEstimate(const Arguments& arguments, const Json& report, const Estimate& estimate,
                   const PlannedModel& planned, const Json* other) {
  if (!arguments.csv.empty()) writeText(arguments.csv, layersCsv(report));
  if (!arguments.trace.empty()) writeText(arguments.trace, chromeTrace(estimate.timeline, report));
  if (arguments.html.empty()) return;
  const Json memory = scratchpadMaps(planned, report["layers"]);
  writeText(arguments.html, simulationPage(report, estimate.timeline, memory, other));
}

/// The Programs that the devices got, from the compiled model itself.
PlannedModel plannedParts(const sdk::Model& model, const ModelOptions& options) {
  if (!model.get()->session)
    fail(kBadInput, "{}: its steps are decided as it runs, so that there is no one time of it",
         options.path);
  PlannedModel planned;
  planned.path = options.path;
  for (const runtime::bundle::BundlePartition& partition : model.get()->bundle().partitions) {
    Result<program::Program> program = program::fromImage(partition.image, nullptr);
    check(program.status().context(options.path));
    planned.parts.push_back(plannedProgram(std::move(program).value(), options));
    planned.parts.back().backend = partition.backend;
  }
  return planned;
}

void estimate(Arguments& arguments, const CLI::App* command, Console& console) {
  checkArguments(arguments, command);
  const std::optional<Json> other =
      arguments.compare.empty() ? std::nullopt : std::optional(readSimulation(arguments.compare));
  const Subject subject = openSubject(arguments);
  const bool wantsClock = !arguments.html.empty() || !arguments.trace.empty();
  if (wantsClock && !subject.clockHz)
    fail(kBadInput, "{} has no option clock_mhz: --html and --trace want --clock-mhz",
         subject.name());
  layOutBorders(arguments.model);
  assumeInt8(arguments.model);
  const sdk::Model model = compileModel(arguments.model);
  const Json placement = placementReport(model);
  const PlannedModel planned = plannedParts(model, arguments.model);
  const std::optional<DeviceRates> rates =
      subject.description ? std::optional(ratesOf(*subject.description)) : std::nullopt;
  const Estimate estimate = estimateOf(planned, subject.device, rates);
  if (estimate.measured.programs == 0)
    fail(kBadInput, "{}: nothing of it runs on {}{}", arguments.model.path, subject.name(),
         firstReason(placement));
  Json report = reportOf(arguments, subject, estimate, placement, console);
  printEstimate(arguments, estimate, report, console);
  if (other) {
    report["compared"] = comparedLayers(report, *other);
    printCompared(report["compared"], report["model"].get<std::string>(), arguments.rows, console);
  }
  writeEstimate(arguments, report, estimate, planned, other ? &*other : nullptr);
  console.writeJson(report);
}

} // namespace

void addEstimate(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "estimate", "How long a model takes on a device, by what that says of itself: no run.");
  auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("MODEL", arguments->model.path, "a model: " + import::extensionsText({".cdl"}))
      ->type_name("FILE");
  arguments->model.addCompilingTo(command);
  arguments->model.addAssumeInt8To(command);
  arguments->model.addIoLayoutTo(command);
  command->add_option("--device", arguments->device, "a device that a file describes")
      ->type_name("FILE.toml");
  command
      ->add_option("--clock-mhz", arguments->clockMhz,
                   "cycles in a microsecond (the device's option clock_mhz)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  arguments->host.addTo(command);
  command
      ->add_option("--html", arguments->html,
                   "write one page: timeline, memory, roofline, layers, what-if")
      ->type_name("FILE");
  command->add_option("--csv", arguments->csv, "write a line for each layer")->type_name("FILE");
  command
      ->add_option("--trace", arguments->trace,
                   "write when each instruction would run, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--compare", arguments->compare,
                   "set a report of before (--json) beside this one, of `candela simulate` too")
      ->type_name("RUN.json");
  command->add_option("--rows", arguments->rows, "layers that are printed (20)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000));
  arguments->sweep.addTo(command);
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    arguments->sweep.check(command);
    if (arguments->sweep)
      return sweepModels(arguments->sweep, arguments->csv, arguments->html, console);
    if (arguments->model.path.empty())
      fail(kBadInput, "estimate: a MODEL is wanted, or --sweep FILE.toml");
    estimate(*arguments, command, console);
  });
}

} // namespace candela::tool
