// candela simulate: a model on the simulated NPU, and what it did there.
#include <cstring>
#include <fstream>

#include "core/support/compare.h"
#include "simulator/config/configuration.h"
#include "tools/candela/npu.h"
#include "tools/candela/run.h"
#include "tools/candela/temporary_file.h"

namespace candela::tool {
namespace {

constexpr const char* kFooter = R"(Examples:
  candela simulate resnet50_int8.onnx --npu gem16 --dim N=1 --random 1
  candela simulate mobilenet_int8.onnx --npu my.toml --dim N=1 --random 1 --verify --json -

Compiles for the NPU, runs on a model of it, and counts: bytes between DRAM and scratchpad by what they are, products,
instructions. What the device has no instruction for is done by the host, and listed with the reason. The engine func has
no time: it executes the program bit by bit, and stops it at the first race, unwritten byte, address outside of its memory,
or deadlock. --verify compares every output with the host's own executor, which follows the same law of integers: integers
bit by bit, floats within the bound of `candela run --expect`.

Presets: tiny, nv_small, gem16, edge4t, edge8t, tpu1; `candela npu config` lists them. Exit status 1: not verified.)";

struct Arguments {
  RunOptions run;
  std::vector<std::string> inputs;
  std::string configuration = "gem16", engine = "func";
  size_t rows = 20;
  bool verify = false;
};

/// The counts of one run, all programs together; layers in their order.
struct Counted {
  Json counters = Json::object();
  Json layers = Json::array();
  uint64_t programs = 0;
};

Counted readCounts(const std::string& path) {
  Counted counted;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    Json record = Json::parse(line, nullptr, false);
    if (!record.is_object()) fail(kWorkFailed, "{}: the backend wrote a line that is no JSON object", path);
    for (Json& layer : record["layers"]) counted.layers.push_back(std::move(layer));
    for (const auto& [name, value] : record.items())
      if (value.is_number_unsigned()) counted.counters[name] = counted.counters.value(name, uint64_t(0)) + value.get<uint64_t>();
    ++counted.programs;
  }
  return counted;
}

uint64_t sumOf(const Json& layers, const char* key) {
  uint64_t sum = 0;
  for (const Json& layer : layers) sum += layer.value(key, uint64_t(0));
  return sum;
}

std::string kilobytes(uint64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1000); }

/// Outputs of the same inputs on the host; whether all are equal, floats within the bound.
bool verify(const Session& session, const Arguments& arguments, const std::vector<Tensor>& outputs, Console& console,
            Json& report) {
  RunOptions host = arguments.run;
  host.model.backends = "soft";
  host.model.options.clear();
  Session other = openSession(host);
  other.inputs = session.inputs;
  std::vector<double> ignored;
  const std::vector<Tensor> wanted = other.run(ignored);
  CompareBound bound;
  bound.exactIntegers = true;
  Json mismatches = Json::array();
  size_t bitwise = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.outputPorts[i].name;
    const Comparison result = compareTensors(outputs[i], wanted[i], bound);
    bitwise += outputs[i].bytes.size() == wanted[i].bytes.size() &&
               std::memcmp(outputs[i].bytes.data(), wanted[i].bytes.data(), wanted[i].bytes.size()) == 0;
    if (result.passed()) continue;
    console.print("{}  {}  {}\n", console.red("MISMATCH"), name, result.text());
    mismatches.push_back({{"name", name}, {"mismatches", result.mismatches}, {"max_abs", result.maxAbs}});
  }
  if (mismatches.empty())
    console.print("{}  {} output{}, {} of them to the bit\n", console.green("verified"), outputs.size(),
                  outputs.size() == 1 ? "" : "s", bitwise);
  report["verified"] = mismatches.empty();
  report["outputs_equal_to_the_bit"] = bitwise;
  report["mismatches"] = std::move(mismatches);
  return report["verified"].get<bool>();
}

void printLayers(const Json& layers, size_t rows, Console& console) {
  Table table({"MACs", "weights KB", "tables KB", "loaded KB", "stored KB", "layer"});
  size_t shown = 0;
  for (const Json& layer : layers) {
    const auto of = [&](const char* key) { return layer.value(key, uint64_t(0)); };
    if (of("macs") + of("weights") + of("tables") + of("loaded") + of("stored") == 0) continue;
    if (shown++ < rows)
      table.add({countText(of("macs")), kilobytes(of("weights")), kilobytes(of("tables")), kilobytes(of("loaded")),
                 kilobytes(of("stored")), layer.value("node", "")});
  }
  console.print("{}", table.text());
  if (shown > rows) console.print("  and {} more (--rows)\n", shown - rows);
}

void printHost(const Json& placement, Console& console) {
  Table table({"host", "op", "MACs", "why"});
  for (const Json& node : placement.value("nodes_detail", Json::array()))
    if (node.value("class", "") != "native")
      table.add({node.value("node", ""), node.value("op", ""),
                 countText(node.value("macs", uint64_t(0)) - node.value("native_macs", uint64_t(0))), node.value("why", "")});
  if (!table.empty()) console.print("{}", table.text());
}

void simulate(Arguments& arguments, Console& console) {
  if (arguments.engine != "func")
    fail(kBadInput, "--engine {}: there is func, the model without time", arguments.engine);
  const npu::Configuration npu = checkNpu(npu::findConfiguration(arguments.configuration));
  refuseBundle(arguments.run.model.path);
  arguments.run.addInputs(arguments.inputs);
  const TemporaryFile counts("candela_simulate");
  arguments.run.model.backends = "npu_sim";
  arguments.run.model.options.push_back("npu_sim.npu=" + arguments.configuration);
  arguments.run.model.options.push_back("npu_sim.report=" + counts.path());
  const Session session = openSession(arguments.run);
  std::vector<double> latencies;
  const std::vector<Tensor> outputs = session.run(latencies);
  const Counted counted = readCounts(counts.path());
  const auto counter = [&](const char* name) { return counted.counters.value(name, uint64_t(0)); };
  const uint64_t weights = sumOf(counted.layers, "weights"), tables = sumOf(counted.layers, "tables"),
                 loaded = sumOf(counted.layers, "loaded"), stored = sumOf(counted.layers, "stored"),
                 macs = counter("macs");
  const uint64_t dram = weights + tables + loaded + stored;
  // The compiler's sums and what the device counted are two ways to the same numbers.
  const uint64_t read = counter("dram_read_constants") + counter("dram_read_input") + counter("dram_read_output") +
                        counter("dram_read_activations") + counter("dram_read_spill");
  const uint64_t written = counter("dram_written_output") + counter("dram_written_activations") +
                           counter("dram_written_input") + counter("dram_written_spill");
  if (read != weights + tables + loaded || written != stored || macs != sumOf(counted.layers, "macs"))
    fail(kWorkFailed,
         "the compiler counts {} bytes read, {} written and {} MACs, the device {}, {} and {}: one of them is wrong",
         weights + tables + loaded, stored, sumOf(counted.layers, "macs"), read, written, macs);
  const Json& placement = session.report;
  const Json hostMacs = placement.value("macs", Json::object());
  const uint64_t macsOnHost = hostMacs.value("host", uint64_t(0)) + hostMacs.value("emulated", uint64_t(0));

  console.print("{}  {}x{} @ {} MHz, {}+{} KB, {}   {} MACs   DRAM {} + {} of program   {} program{}, {} instructions\n",
                console.bold(npu.name), npu.rows(), npu.columns(), npu[npu::key::kClockMhz],
                npu.scratchpadBytes() / 1024, npu[npu::key::kAccumulatorBytes] / 1024,
                npu.valueText(npu::key::kDramType), countText(macs), bytesText(dram),
                bytesText(counter("dram_read_program")), counted.programs, counted.programs == 1 ? "" : "s",
                counter("instructions"));
  printLayers(counted.layers, arguments.rows, console);
  console.print("  all: weights {}, tables {}, values loaded {}, stored {}\n", bytesText(weights), bytesText(tables),
                bytesText(loaded), bytesText(stored));
  const uint64_t tiledTables = sumOf(counted.layers, "tiled_tables");
  console.print("  the tiled Program copies the same weights and values, and tables of {}: multipliers, shifts and biases "
                "are packed records here\n",
                bytesText(tiledTables));
  printHost(placement, console);
  console.print("  {} MACs on the host; compiled in {}, simulated in {} without time\n", countText(macsOnHost),
                timeText(session.compileMs), timeText(latencies.front()));

  Json report = console.report("simulate");
  addPlacement(report, placement, true); // whose `macs` are by place
  report["model"] = arguments.run.model.path;
  report["npu"] = npu.name;
  report["configuration"] = npu.toml();
  report["engine"] = arguments.engine;
  report["macs"] = macs;
  report["host_macs"] = macsOnHost;
  report["dram_bytes"] = {{"weights", weights},
                          {"tables", tables},
                          {"activations", loaded + stored},
                          {"activations_loaded", loaded},
                          {"activations_stored", stored},
                          {"spill", counter("dram_read_spill") + counter("dram_written_spill")},
                          {"program", counter("dram_read_program")}};
  report["tiled_bytes"] = {{"weights", weights}, {"tables", tiledTables}, {"loaded", loaded}, {"stored", stored}};
  report["counters"] = counted.counters;
  report["layers"] = counted.layers;
  report["compile_ms"] = session.compileMs;
  report["wall_ms"] = latencies.front();
  const bool right = !arguments.verify || verify(session, arguments, outputs, console, report);
  console.writeJson(report);
  if (!right) throw Failure(kWorkFailed, "the NPU's outputs are not the host's");
}

} // namespace

void addSimulate(CLI::App& app, Console& console) {
  auto* command = app.add_subcommand("simulate", "Run a model on the simulated NPU and count what it does there.");
  auto arguments = std::make_shared<Arguments>();
  ModelOptions& model = arguments->run.model;
  command->add_option("MODEL", model.path, "a model: .onnx or .cdl")->required()->type_name("FILE");
  command->add_option("--npu", arguments->configuration, "a preset or a .toml file (gem16)")->type_name("CONFIG");
  command->add_option("--engine", arguments->engine, "func: bit by bit, without time (func)")->type_name("ENGINE");
  addRepeated(command, "--shape", model.shapes, "the shape of an input: images=1x3x224x224", "NAME=DIMS");
  addRepeated(command, "--dim", model.dims, "the value of a symbolic dimension: N=1", "NAME=VALUE");
  addRepeated(command, "--input", arguments->inputs, "data for an input: .npy or ONNX .pb", "NAME=FILE");
  addSeedOption(command, arguments->run.seed, "random data for the other inputs");
  command->add_flag("--verify", arguments->verify, "compare the outputs with the host's own executor");
  command->add_option("--rows", arguments->rows, "layers that are printed (20)")->type_name("N");
  addJsonOption(command, console);
  command->footer(kFooter);
  command->callback([arguments, &console] { simulate(*arguments, console); });
}

} // namespace candela::tool
