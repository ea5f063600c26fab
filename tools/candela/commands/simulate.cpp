// candela simulate: a model on the simulated NPU, what it did there, and how long it took.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/compiler/import/formats.h"
#include "core/support/file.h"
#include "core/support/text/scan.h"
#include "simulator/config/configuration.h"
#include "tools/candela/commands/npu.h"
#include "tools/candela/simulate/cores.h"
#include "tools/candela/simulate/energy.h"
#include "tools/candela/simulate/files.h"
#include "tools/candela/simulate/host_share.h"
#include "tools/candela/simulate/layer_shapes.h"
#include "tools/candela/simulate/least.h"
#include "tools/candela/simulate/margin.h"
#include "tools/candela/simulate/measure.h"
#include "tools/candela/simulate/scratchpad.h"
#include "tools/candela/simulate/sweep_command.h"
#include "tools/candela/simulate/timeline.h"
#include "tools/candela/simulate/waves.h"
#include "tools/candela/simulate/what_if.h"
#include "tools/candela/support/assumed.h"
#include "tools/candela/support/io_layout.h"
#include "tools/candela/support/large_pages.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter = R"(Examples:
  candela simulate resnet50_int8.onnx --npu gem16 --dim N=1 --random 1
  candela simulate resnet50_int8.onnx --npu my.toml --dim N=1 --random 1 --html resnet50.html \
      --trace resnet50.json
  candela simulate mobilenet_int8.onnx --npu gem16 --dim N=1 --random 1 --engine func \
      --verify --json -
  candela simulate resnet50.onnx --npu gem16 --dim N=1 --random 1 --assume-int8
  candela simulate resnet50.onnx --npu bf16.toml --dim N=1 --random 1 --precision bf16
  candela calibrate-host --output host.json && candela simulate bert_int8.onnx --npu gem16 \
      --random 1 --host-rates host.json
  candela simulate --sweep sizes.toml

Compiles for the NPU, runs on a model of it, and counts: cycles, bytes between DRAM and
scratchpad by what they are, products, energy. What the device has no instruction for is done by
the host, and listed with the reason. With --host-rates its time is in the whole network's; without,
the first line says what is not counted, and no runs per second.

--engine timed executes each instruction bit by bit and says when it ran: with --fidelity
accurate by bursts, banks and rows of DRAM, with fast in closed form, with exact cycle by cycle as
the hardware has it. --engine systemc does the same in a SystemC simulation, in as many cycles.
--engine rtl runs the hardware description, which Verilator builds when a configuration is first
asked for (a minute or more; kept in the cache folder): its cycles are those of exact, to which
--lockstep holds each instruction. --engine func is without time. All stop a program at the first
race, unwritten byte, address outside of its memory, or deadlock. Energy is counts times the prices
of a table, two digits.
--verify compares every output with the host's own executor, which follows the same semantics of
integers: integers bit by bit, floats within the bound of `candela run --expect`; with --precision
bf16 within 1/32 of the largest magnitude of an output.
--assume-int8 takes a float model and quantizes it with scales that nobody measured: what it costs
in integers can be told without data, what it answers cannot.

Presets: tiny, nv_small, gem16, edge4t, edge8t, tpu1; `candela npu config` lists them. Equal
input gives equal files, but for wall_ms and compile_ms in JSON. Exit status 1: not verified, or
a file could not be written.)";

/// What compiling a network of 25 million weights takes.
constexpr size_t kHeapBytes = size_t{192} << 20;

struct Arguments {
  RunOptions run;
  std::vector<std::string> inputs;
  std::string configuration = "gem16", engine = "timed", fidelity = "accurate";
  std::string html;
  std::string csv;
  std::string trace;
  std::string compare;
  std::string energy;
  size_t rows = 20;
  HostArguments host;
  SweepArguments sweep;
  bool verify = false;
  bool noData = false;
  bool whatIf = false;
  bool lockstep = false;
  WaveArguments waves;
};

std::string kilobytes(uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1000);
}
std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }
uint64_t count(const Json& layer, const char* key) { return layer.value(key, uint64_t{0}); }

/// How far the results of a network with products of bf16 may be apart, of the largest magnitude of
/// an output: 8 times what one rounding moves a number by (docs/reference/precision.md).
constexpr double kBoundOfBf16 = 0x1p-5;

/// The bound of an output that the host computed.
CompareBound boundOf(const ModelOptions& model, const Tensor& wanted) {
  CompareBound bound;
  bound.exactIntegers = true;
  if (model.precision == "f32") return bound;
  double largest = 0;
  for (int64_t i = 0; isFloat(wanted.elem) && i < wanted.count(); ++i)
    if (const double size = std::abs(elementAsReal(wanted, i)); std::isfinite(size))
      largest = std::max(largest, size);
  bound.absolute = kBoundOfBf16 * largest;
  return bound;
}

/// Outputs of the same inputs on the host; whether all are equal, floats within the bound.
bool verify(const Simulation& simulation, const RunOptions& run, Console& console, Json& report) {
  const Session& session = simulation.session;
  RunOptions host = run;
  host.model.backends = "soft";
  host.model.precision = "f32"; // what rounds nothing
  Session other = openSession(host);
  other.inputs = session.inputs;
  std::vector<double> ignored;
  const std::vector<Tensor> wanted = other.run(ignored);
  Json mismatches = Json::array();
  size_t bitwise = 0;
  for (size_t i = 0; i < simulation.outputs.size(); ++i) {
    const Tensor& output = simulation.outputs[i];
    const std::string& name = session.outputPorts[i].name;
    const Comparison result = compareTensors(output, wanted[i], boundOf(run.model, wanted[i]));
    bitwise +=
        output.bytes.size() == wanted[i].bytes.size() &&
        std::memcmp(output.bytes.data(), wanted[i].bytes.data(), wanted[i].bytes.size()) == 0;
    if (result.passed()) continue;
    console.print("{}  {}  {}\n", console.red("MISMATCH"), name, result.text());
    mismatches.push_back(
        {{"name", name}, {"mismatches", result.mismatches}, {"max_abs", result.maxAbs}});
  }
  if (mismatches.empty())
    console.print("{}  {} output{}, {} of them to the bit\n", console.green("verified"),
                  simulation.outputs.size(), simulation.outputs.size() == 1 ? "" : "s", bitwise);
  report["verified"] = mismatches.empty();
  report["outputs_equal_to_the_bit"] = bitwise;
  report["mismatches"] = std::move(mismatches);
  return report["verified"].get<bool>();
}

void printLayers(const Measured& measured, size_t rows, Console& console) {
  const bool hasTime = !measured.time.is_null();
  Table table(hasTime ? std::vector<std::string>{"cycles", "of least", "MAC %", "bound by",
                                                 "DRAM KB", "layer", "cycles go to"}
                      : std::vector<std::string>{"MACs", "weights KB", "tables KB", "loaded KB",
                                                 "stored KB", "layer"});
  size_t shown = 0;
  for (const Json& layer : measured.layers) {
    const uint64_t dram = count(layer, "weights") + count(layer, "tables") +
                          count(layer, "loaded") + count(layer, "stored");
    if (count(layer, "macs") + dram + count(layer, "cycles") == 0) continue;
    if (shown++ >= rows) continue;
    const std::string name = layer.value("name", "");
    if (hasTime)
      table.add({fmt::format("{}", count(layer, "cycles")), ofLeastText(layer),
                 percent(layer.value("mac_utilization", 0.0)), layer.value("bound", ""),
                 kilobytes(dram), name, causesText(layer)});
    else
      table.add({countText(count(layer, "macs")), kilobytes(count(layer, "weights")),
                 kilobytes(count(layer, "tables")), kilobytes(count(layer, "loaded")),
                 kilobytes(count(layer, "stored")), name});
  }
  console.printText(table.text());
  if (shown > rows) console.print("  and {} more (--rows)\n", shown - rows);
}

/// What has a time alone: cycles, utilisation, energy.
void addTime(Json& report, const Measured& measured, const npu::Configuration& npu,
             const EnergyTable& prices) {
  report["cycles"] = measured.cycles();
  report["time_ms"] =
      static_cast<double>(measured.cycles()) / static_cast<double>(npu[npu::key::kClockMhz]) / 1000;
  report["mac_utilization"] = measured.macUtilization();
  if (const auto least = leastCycles(measured.layers); least && *least > 0) {
    report["least_cycles"] = *least;
    report["of_least"] = static_cast<double>(measured.cycles()) / static_cast<double>(*least);
  }
  report["engines"] = measured.time["busy"];
  report["time"] = measured.time;
  Json byAction = Json::object();
  for (Json& layer : report["layers"]) {
    const Json energy = energyOf(prices, layer, npu);
    for (const auto& [action, nanojoule] : energy.items())
      byAction[action] = byAction.value(action, 0.0) + nanojoule.get<double>();
    layer["energy_nj"] = energySum(energy);
  }
  report["energy"] = {
      {"table", prices.name}, {"nj", energySum(byAction)}, {"by_action", std::move(byAction)}};
}

/// The memories where there are two: what lies in each, what moved, and how long its bus was busy.
/// Null elsewhere.
Json memoriesOf(const Measured& m, const npu::Configuration& npu) {
  using namespace npu::key;
  if (m.time.is_null() || !npu.hasSecond()) return {};
  const std::string held = npu.valueText(kSecondHolds);
  const uint64_t second = m.sum("second_loaded") + m.sum("second_stored");
  const auto busy = [&](const char* memory) { return count(m.time[memory], "bus_busy"); };
  return {{{"memory", "dram"},
           {"type", npu.valueText(kDramType)},
           {"width_bits", npu[kDramWidthBits]},
           {"holds", held == "constants" ? "activations" : "constants"},
           {"bytes_per_cycle", m.time["dram_bytes_per_cycle"]},
           {"moved_bytes", m.dramBytes() + m.counter("dram_read_program") - second -
                               m.sum("expanded_bytes") + m.sum("compressed_bytes")},
           {"bus_busy", busy("dram")}},
          {{"memory", "second"},
           {"type", npu.valueText(kSecondType)},
           {"width_bits", npu[kSecondWidthBits]},
           {"holds", held},
           {"bytes_per_cycle", m.time["second_bytes_per_cycle"]},
           {"moved_bytes", second},
           {"bus_busy", busy("second")}}};
}

/// "dram SRAM-1000 x64 with activations: 6.5 MB moved, its bus busy in 12 % of all cycles"
std::string memoryText(const Json& memory, uint64_t cycles) {
  return fmt::format("{} {} x{} with {}: {} moved, its bus busy in {:.0f} % of all cycles",
                     memory["memory"].get<std::string>(), memory["type"].get<std::string>(),
                     memory["width_bits"].get<int64_t>(), memory["holds"].get<std::string>(),
                     bytesText(count(memory, "moved_bytes")),
                     100 * memory["bus_busy"].get<double>() /
                         static_cast<double>(std::max<uint64_t>(cycles, 1)));
}

/// Bytes of the constants before and after compression, and how often they are fewer; adds the last
/// to each layer that loads some. Null where they are not compressed.
Json compressionOf(const Measured& m, const npu::Configuration& npu, Json& layers) {
  if (m.time.is_null() || !npu.compressesConstants()) return {};
  const auto ratio = [](uint64_t before, uint64_t after) {
    return static_cast<double>(before) / static_cast<double>(std::max<uint64_t>(after, 1));
  };
  for (Json& layer : layers)
    if (const uint64_t before = count(layer, "expanded_bytes"))
      layer["compression_ratio"] = ratio(before, count(layer, "compressed_bytes"));
  const uint64_t before = m.sum("expanded_bytes");
  const uint64_t after = m.sum("compressed_bytes");
  const std::string scheme = npu.valueText(npu::key::kWeightsCompression);
  return {
      {"scheme", scheme},
      {"bytes_before", before},
      {"bytes_after", after},
      {"ratio", ratio(before, after)},
      {"text", fmt::format("weights.compression {}: {} of constants are moved as {}, a ratio of "
                           "{:.2f}",
                           scheme, bytesText(before), bytesText(after), ratio(before, after))}};
}

/// The whole report but what other runs add.
Json reportOf(const Arguments& arguments, const npu::Configuration& npu,
              const Simulation& simulation, Console& console) {
  const Measured& m = simulation.measured;
  const Json& placement = simulation.session.report;
  const EnergyTable prices = readEnergyTable(arguments.energy);
  Json report = console.report("simulate");
  tellAssumed(arguments.run.model, "cycles", report, console);
  addPlacement(report, placement, true); // whose `macs` are by place
  report["model"] = fileName(arguments.run.model.path);
  report["npu"] = npu.name;
  report["configuration"] = npu.toml();
  for (const npu::ModelOnly& setting : npu::modelOnly(npu))
    report["model_only"].push_back({{"key", setting.key}, {"value", setting.value}});
  report["scratchpad_bytes"] = npu.scratchpadBytes();
  report["scratchpad_peak_bytes"] = m.most("scratchpad_peak");
  report["clock_mhz"] = npu[npu::key::kClockMhz];
  report["engine"] = arguments.engine;
  report["macs"] = m.counter("macs");
  report["precision"] = arguments.run.model.precision;
  if (const uint64_t macs = m.sum("bf16_macs")) report["bf16_macs"] = macs;
  addHostShare(arguments.host, placement, report);
  report["dram_bytes"] = dramBytesOf(m);
  for (Json& memory : memoriesOf(m, npu)) {
    memory["text"] = memoryText(memory, m.cycles());
    report["memories"].push_back(std::move(memory));
  }
  report["dram_bytes"]["spill"] = m.counter("dram_read_spill") + m.counter("dram_written_spill");
  report["dram_bytes"]["program"] = m.counter("dram_read_program");
  report["tiled_bytes"] = {{"weights", m.sum("weights")},
                           {"tables", m.sum("tiled_tables")},
                           {"loaded", m.sum("loaded")},
                           {"stored", m.sum("stored")}};
  report["counters"] = m.counters;
  report["layers"] = m.layers;
  addShapes(report["layers"], placement);
  if (Json compression = compressionOf(m, npu, report["layers"]); !compression.is_null())
    report["compression"] = std::move(compression);
  const std::vector<Tensor>& inputs = simulation.session.inputs;
  const bool hasBatch = !inputs.empty() && !inputs[0].dims.empty();
  nameSplits(report["layers"], hasBatch ? std::max<int64_t>(1, inputs[0].dims[0]) : 1);
  if (!m.time.is_null()) {
    report["fidelity"] = arguments.fidelity;
    report["margin"] = marginOf(arguments.engine == "rtl" ? "rtl" : arguments.fidelity);
    if (report.contains("model_only"))
      report["margin"]["text"] = "none was measured of what no hardware has; without it " +
                                 report["margin"]["text"].get<std::string>();
    // A pass loads the weights of all rows, and a column takes a channel.
    report["array"] = {{"rows", npu.rows()},
                       {"columns", npu.columns()},
                       {"dataflow", npu.valueText(npu::key::kArrayDataflow)},
                       {"loads_weights", !npu.isOutputStationary()},
                       {"keeps_sums", npu.isOutputStationary()},
                       {"takes_channels", true}};
    addTime(report, m, npu, prices);
    report["network"] = networkOf(report);
  }
  addCores(report, npu);
  report["compile_ms"] = simulation.session.compileMs;
  report["wall_ms"] = simulation.wallMs;
  return report;
}

/// What all cycles went to, and what to do about borders whose order of dims is not the device's.
void printCauses(const Json& time, const ModelOptions& model, Console& console) {
  if (!time.contains("causes")) return;
  console.print("  all cycles: {}\n", causesText(time));
  const uint64_t scattered = count(time["causes"], "scatter");
  if (scattered == 0 || !model.ioLayout.empty()) return;
  console.print("  {} cycles put single bytes into another order, as of images with their channels "
                "first: --io-layout nhwc has them last\n",
                countText(scattered));
}

void printSummary(const Arguments& arguments, const npu::Configuration& npu,
                  const Simulation& simulation, const Json& report, Console& console) {
  const Measured& m = simulation.measured;
  console.print("{}  {}{}x{} @ {} MHz, {}+{} KB, {}", console.bold(npu.name),
                npu.cores() > 1 ? fmt::format("{} x ", npu.cores()) : "", npu.rows(), npu.columns(),
                npu[npu::key::kClockMhz], npu.scratchpadBytes() / 1024,
                npu[npu::key::kAccumulatorBytes] / 1024, npu.valueText(npu::key::kDramType));
  if (m.time.is_null())
    console.print("   {} MACs", countText(m.counter("macs")));
  else
    console.print("   {} cycles  {}   MAC {} %", countText(m.cycles()),
                  networkText(report["network"], "NPU"), percent(m.macUtilization()));
  console.print("   DRAM {} + {} of program   {} program{}, {} instructions\n",
                bytesText(m.dramBytes()), bytesText(m.counter("dram_read_program")), m.programs,
                m.programs == 1 ? "" : "s", m.counter("instructions"));
  for (const npu::ModelOnly& setting : npu::modelOnly(npu))
    console.print("  model only: {} = {}\n", setting.key, setting.value);
  if (report.contains("compression"))
    console.print("  {}\n", report["compression"]["text"].get<std::string>());
  for (const Json& memory : report.value("memories", Json::array()))
    console.print("  {}\n", memory["text"].get<std::string>());
  printLayers(m, arguments.rows, console);
  console.print("  all: weights {}, tables {}, values loaded {}, stored {}; at most {} of the "
                "scratchpad at once\n",
                bytesText(m.sum("weights")), bytesText(m.sum("tables")), bytesText(m.sum("loaded")),
                bytesText(m.sum("stored")), bytesText(m.most("scratchpad_peak")));
  if (npu.cores() > 1)
    console.print("  the tiled Program copies tables of {}: multipliers, shifts and biases are "
                  "packed records here; weights and values come to each core that needs them\n",
                  bytesText(m.sum("tiled_tables")));
  else
    console.print("  the tiled Program copies the same weights and values, and tables of {}: "
                  "multipliers, shifts and biases "
                  "are packed records here\n",
                  bytesText(m.sum("tiled_tables")));
  if (report.contains("of_least"))
    console.print("  {:.3f} times the least cycles of its layers one after the other\n",
                  report["of_least"].get<double>());
  printCores(report, console);
  printHost(report["host_nodes"], arguments.rows, console);
  if (!m.time.is_null()) {
    printCauses(m.time, arguments.run.model, console);
    console.print("  {}; {}; energy {}\n", arguments.fidelity, constantsText(m.time["provenance"]),
                  energyText(report["energy"]["nj"].get<double>()));
    console.print("  margin: {}\n", report["margin"]["text"].get<std::string>());
  }
  console.print("  {} MACs on the host; compiled in {}, simulated in {}{}\n",
                countText(report["host_macs"].get<uint64_t>()),
                timeText(simulation.session.compileMs), timeText(simulation.wallMs),
                m.time.is_null() ? " without time" : "");
  const bool mayGoOn = npu.hasBf16() && arguments.run.model.precision == "f32";
  if (mayGoOn && report["host_macs"].get<uint64_t>() > 0)
    console.print(
        "  --precision bf16 takes products of f32 as those of bf16, which this NPU has\n");
}

/// What can be told before minutes have gone.
void checkSimulation(const Arguments& arguments) {
  constexpr std::string_view kEngines[] = {"func", "timed", "systemc", "rtl"};
  if (std::find(std::begin(kEngines), std::end(kEngines), arguments.engine) == std::end(kEngines))
    fail(kBadInput, "--engine {}: there are func, without time, timed, systemc and rtl",
         arguments.engine);
  if (arguments.lockstep && arguments.engine != "rtl")
    fail(kBadInput, "--lockstep: --engine rtl is wanted, which has cycles of its own");
  if (arguments.engine == "rtl" && arguments.fidelity != "accurate")
    fail(kBadInput, "--fidelity {}: --engine rtl has bursts, as accurate has", arguments.fidelity);
  constexpr std::string_view kFidelities[] = {"fast", "accurate", "exact"};
  if (std::find(std::begin(kFidelities), std::end(kFidelities), arguments.fidelity) ==
      std::end(kFidelities))
    fail(kBadInput, "--fidelity {}: there are fast, accurate and exact", arguments.fidelity);
  if (arguments.engine == "systemc" && arguments.fidelity == "exact")
    fail(kBadInput, "--fidelity exact: --engine systemc has fast and accurate");
  if (arguments.noData && arguments.engine != "timed")
    fail(kBadInput, "--no-data: --engine {} computes values; timed need not", arguments.engine);
  if (arguments.noData && (arguments.verify || !arguments.inputs.empty()))
    fail(kBadInput, "--no-data: {} needs values", arguments.verify ? "--verify" : "--input");
  const bool hasTime = arguments.engine != "func";
  for (const auto& [name, path] : {std::pair{"--html", &arguments.html},
                                   {"--csv", &arguments.csv},
                                   {"--trace", &arguments.trace},
                                   {"--compare", &arguments.compare}})
    if (!hasTime && !path->empty())
      fail(kBadInput, "{} {}: --engine func has no time", name, *path);
  arguments.waves.check(arguments.engine);
  refuseStandardOutput(
      {{"--html", arguments.html}, {"--csv", arguments.csv}, {"--trace", arguments.trace}});
  for (const auto& [name, path] : {std::pair{"--html", &arguments.html},
                                   {"--csv", &arguments.csv},
                                   {"--trace", &arguments.trace}})
    if (const fs::path folder = fs::path(*path).parent_path();
        !folder.empty() && !fs::is_directory(folder))
      // told before the run
      fail(kBadInput, "{} {}: there is no folder '{}'", name, *path, folder.string());
  if (!hasTime && arguments.whatIf) fail(kBadInput, "--what-if: --engine func has no time");
  if (arguments.verify && !arguments.run.model.assumedScheme.empty())
    fail(kBadInput, "--verify: with --assume-int8 the network's results mean nothing");
}

/// Engines that follow the hardware description have what it has alone.
void checkHardware(const Arguments& arguments, const npu::Configuration& npu) {
  if (arguments.engine == "systemc")
    if (const npu::Outcome bad = npu::needOneCoreAndMemory(npu, "SystemC's NPU has"))
      fail(kBadInput, "--engine systemc: {}", bad->message);
  const std::string asked = arguments.engine == "rtl" ? "--engine rtl" : "--fidelity exact";
  if (arguments.engine != "rtl" && arguments.fidelity != "exact") return;
  if (const npu::Outcome bad = npu::needHardware(
          npu, "--engine func, and timed with --fidelity fast and accurate, are the model's"))
    fail(kBadInput, "{}: {}", asked, bad->message);
}

/// Products of bf16 are of configurations that have them; elsewhere all of them would be the
/// host's.
void checkPrecision(const ModelOptions& model, const npu::Configuration& npu) {
  if (model.precision == "f32" || npu.hasBf16()) return;
  fail(kBadInput,
       "--precision {}: '{}' has products of integers alone; features.bf16 = 1 in a configuration "
       "gives it those of bf16, and --assume-int8 takes a float model as one of integers",
       model.precision, npu.name);
}

/// The backend's name of the engine, which is called by its fidelity where it is the model alone.
std::string engineOf(const Arguments& arguments) {
  if (arguments.engine == "func") return "func";
  if (arguments.engine == "rtl") return arguments.lockstep ? "rtl_lockstep" : "rtl";
  if (arguments.engine == "systemc")
    return arguments.fidelity == "fast" ? "systemc_fast" : "systemc";
  return arguments.fidelity;
}

/// --html, --trace and --csv.
void writeFiles(const Arguments& arguments, const Json& report, const Json& memory,
                const std::string& timelineFile, const Json* other) {
  const auto write = [&](const std::string& path, const std::string& text) {
    if (!path.empty()) check(writeFile(path, text.data(), text.size()), kWorkFailed);
  };
  if (!arguments.csv.empty()) write(arguments.csv, layersCsv(report));
  if (arguments.html.empty() && arguments.trace.empty()) return;
  const Timeline timeline = readTimeline(timelineFile, timelineEngines(report), report["layers"]);
  if (!arguments.trace.empty()) write(arguments.trace, chromeTrace(timeline, report));
  if (!arguments.html.empty())
    write(arguments.html, simulationPage(report, timeline, memory, other));
}

void simulate(Arguments& arguments, Console& console) {
  checkSimulation(arguments);
  useLargePages(kHeapBytes);
  const bool hasTime = arguments.engine != "func";
  const npu::Configuration npu = checkNpu(npu::findConfiguration(arguments.configuration));
  checkHardware(arguments, npu);
  checkPrecision(arguments.run.model, npu);
  refuseBundle(arguments.run.model.path);
  (void)readEnergyTable(arguments.energy); // its mistakes are told before minutes have gone
  arguments.host.check();
  const std::optional<Json> other =
      arguments.compare.empty() ? std::nullopt : std::optional(readSimulation(arguments.compare));
  arguments.run.addInputs(arguments.inputs);
  layOutBorders(arguments.run.model);
  assumeInt8(arguments.run.model, arguments.run.inputFiles);

  if (arguments.engine == "rtl") sayHardwareIsBuilt(npu, arguments.waves, console);
  const bool wantsTimeline = !arguments.html.empty() || !arguments.trace.empty();
  const TemporaryFile timelineFile;
  RunOptions run = arguments.run;
  for (const std::string& option : arguments.waves.backendOptions())
    run.model.options.push_back("npu_sim." + option);
  if (arguments.noData) run.model.options.push_back("npu_sim.data=off");
  Simulation simulation = simulateOnce(run, arguments.configuration, engineOf(arguments),
                                       wantsTimeline ? timelineFile.path() : "");
  if (hasTime && simulation.measured.time.is_null())
    fail(kBadInput,
         "{}: nothing of it runs on the NPU, so that there is no time{}; --engine func lists the "
         "host's steps and why; --assume-int8 takes a float model as one of integers",
         arguments.run.model.path, whyOnHost(simulation.session.report));
  if (hasTime) addLeastCycles(simulation.measured, simulation.session.report, npu);
  Json report = reportOf(arguments, npu, simulation, console);
  Json memory = Json::array();
  if (!arguments.html.empty()) {
    ModelOptions planned = arguments.run.model;
    planned.backends = "npu_sim";
    planned.options.push_back("npu_sim.npu=" + arguments.configuration);
    memory = scratchpadMaps(planModel(planned), report["layers"]);
  }
  printSummary(arguments, npu, simulation, report, console);
  if (arguments.whatIf) {
    report["what_if"] = whatIf(arguments.run, npu);
    printWhatIf(report["what_if"], console);
  }
  if (other) {
    report["compared"] = comparedLayers(report, *other);
    printCompared(report["compared"], report["model"].get<std::string>(), arguments.rows, console);
  }
  writeFiles(arguments, report, memory, timelineFile.path(), other ? &*other : nullptr);
  const bool right = !arguments.verify || verify(simulation, arguments.run, console, report);
  console.writeJson(report);
  if (!right) throw Failure(kWorkFailed, "the NPU's outputs are not the host's");
}

/// What is run, and how.
void addRunOptions(CLI::App* command, Arguments& arguments) {
  ModelOptions& model = arguments.run.model;
  command->add_option("MODEL", model.path, "a model: " + import::extensionsText({".cdl"}))
      ->type_name("FILE");
  command->add_option("--npu", arguments.configuration, "a preset or a .toml file (gem16)")
      ->type_name("CONFIG");
  command
      ->add_option(
          "--engine", arguments.engine,
          "timed; systemc: the same time in a SystemC simulation; rtl: the hardware description; "
          "func: without time (timed)")
      ->type_name("ENGINE");
  command->add_flag(
      "--lockstep", arguments.lockstep,
      "with --engine rtl: stop at the first instruction whose cycles are not those of "
      "--engine timed");
  arguments.waves.addTo(command);
  command
      ->add_option("--fidelity", arguments.fidelity,
                   "accurate: bursts, banks and rows; fast: closed form; exact: each cycle of the "
                   "hardware (accurate)")
      ->type_name("FIDELITY");
  addRepeated(command, "--shape", model.shapes, "the shape of an input: images=1x3x224x224",
              "NAME=DIMS");
  addRepeated(command, "--dim", model.dims, "the value of a symbolic dimension: N=1", "NAME=VALUE");
  addRepeated(command, "--input", arguments.inputs, "data for an input: .npy or ONNX .pb",
              "NAME=FILE");
  addSeedOption(command, arguments.run.seed, "random data for the other inputs");
  model.addAssumeInt8To(command);
  command
      ->add_option("--precision", model.precision,
                   "bf16: products of f32 in bf16, where the configuration has features.bf16 (f32)")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->type_name("TYPE");
  model.addIoLayoutTo(command);
  command->add_flag("--verify", arguments.verify,
                    "compare the outputs with the host's own executor");
  command->add_flag("--no-data", arguments.noData,
                    "time and counts alone, as a sweep takes them: the NPU computes no values, and "
                    "branches and loops of the host see zeros");
}

/// What is written beside the table, and what is counted.
void addReportOptions(CLI::App* command, Arguments& arguments) {
  command
      ->add_option("--html", arguments.html,
                   "write one page: timeline, memory, roofline, layers, what-if")
      ->type_name("FILE");
  command->add_option("--csv", arguments.csv, "write a line for each layer")->type_name("FILE");
  command
      ->add_option("--trace", arguments.trace,
                   "write when each instruction ran, for ui.perfetto.dev")
      ->type_name("FILE");
  command
      ->add_option("--compare", arguments.compare,
                   "set a report of before (--json) beside this one")
      ->type_name("RUN.json");
  command->add_flag("--what-if", arguments.whatIf,
                    "compile anew for half and twice the bandwidth, columns and scratchpad");
  command->add_option("--energy", arguments.energy, "prices of actions: a .csv file (built in)")
      ->type_name("FILE");
  arguments.host.addTo(command);
}

} // namespace

void addSimulate(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand(
      "simulate", "Run a model on the simulated NPU: cycles, bytes, energy, what bounds it.");
  auto arguments = std::make_shared<Arguments>();
  addRunOptions(command, *arguments);
  addReportOptions(command, *arguments);
  arguments->sweep.addTo(command);
  command->add_option("--rows", arguments->rows, "layers that are printed (20)")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000));
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, command, &console] {
    arguments->sweep.check(command);
    if (arguments->sweep)
      return sweepModels(arguments->sweep, arguments->csv, arguments->html, console);
    if (arguments->run.model.path.empty())
      fail(kBadInput, "simulate: a MODEL is wanted, or --sweep FILE.toml");
    simulate(*arguments, console);
  });
}

} // namespace candela::tool
