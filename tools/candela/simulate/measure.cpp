#include "tools/candela/simulate/measure.h"

#include <algorithm>
#include <fstream>

#include "core/support/json.h"
#include "tools/candela/simulate/reuse.h"
#include "tools/candela/support/temporary_file.h"

namespace candela::tool {
namespace {

/// Adds each number of `from` to the one of the same name.
void addNumbers(Json& into, const Json& from) {
  for (const auto& [name, value] : from.items()) {
    if (value.is_object())
      addNumbers(into[name], value);
    else if (value.is_number_unsigned())
      into[name] = into.value(name, uint64_t{0}) + value.get<uint64_t>();
  }
}

/// The largest number first.
void sortDown(Json& numbers) {
  std::vector<std::pair<std::string, uint64_t>> entries;
  for (const auto& [name, value] : numbers.items()) entries.emplace_back(name, value);
  std::ranges::stable_sort(entries, std::greater<>(), [](const auto& each) { return each.second; });
  numbers = Json::object();
  for (const auto& [name, value] : entries) numbers[name] = value;
}

uint64_t busySum(const Json& time) {
  uint64_t sum = 0;
  for (const auto& [engine, cycles] : time["busy"].items()) sum += cycles.get<uint64_t>();
  return sum;
}

/// Programs run one after the other. What is no count is equal in all, but for the shares, which
/// follow the busy cycles.
void addTime(Json& into, const Json& from) {
  if (into.is_null()) {
    into = from;
    return;
  }
  const auto before = static_cast<double>(busySum(into)), more = static_cast<double>(busySum(from));
  for (const auto& [tag, share] : from["provenance"].items())
    if (before + more > 0)
      into["provenance"][tag] =
          (into["provenance"].value(tag, 0.0) * before + share.get<double>() * more) /
          (before + more);
  for (const char* part : {"busy", "stall", "dram"}) addNumbers(into[part], from[part]);
  if (from.contains("second")) addNumbers(into["second"], from["second"]);
  if (from.contains("causes")) {
    addNumbers(into["causes"], from["causes"]);
    sortDown(into["causes"]);
  }
  if (into.contains("cores"))
    for (size_t core = 0; core < into["cores"].size(); ++core)
      addNumbers(into["cores"][core], from["cores"][core]);
  into["cycles"] = into["cycles"].get<uint64_t>() + from["cycles"].get<uint64_t>();
}

Measured readCounts(const std::string& path) {
  Measured measured;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json record = parseJson<Json>(line);
    if (!record.is_object())
      fail(kWorkFailed, "{}: the backend wrote a line that is no JSON object", path);
    const uint64_t begin = measured.cycles();
    for (const Json& counted : record["layers"]) {
      Json layer = {{"name", counted.value("node", "")},
                    {"onnx_nodes", Json::array({counted.value("node", "")})},
                    {"program", measured.programs}};
      for (const auto& [name, value] : counted.items())
        if (name != "node")
          layer[name] =
              (name == "start" || name == "done") ? Json(begin + value.get<uint64_t>()) : value;
      // The most cycles come first.
      if (layer.contains("causes") && !layer["causes"].empty())
        layer["bound"] = layer["causes"].begin().key();
      measured.layers.push_back(std::move(layer));
    }
    for (const auto& [name, value] : record.items())
      if (value.is_number_unsigned())
        measured.counters[name] =
            measured.counters.value(name, uint64_t{0}) + value.get<uint64_t>();
    if (record.contains("time")) addTime(measured.time, record["time"]);
    ++measured.programs;
  }
  if (!measured.time.is_null())
    for (Json& layer : measured.layers) {
      const double possible =
          layer.value("cycles", 0.0) * measured.time.value("peak_macs_per_cycle", 0.0);
      layer["mac_utilization"] = possible > 0 ? layer.value("macs", 0.0) / possible : 0.0;
    }
  return measured;
}

/// The compiler's sums and what the device counted are two ways to the same numbers.
void checkSums(const Measured& m) {
  const uint64_t read = m.counter("dram_read_constants") + m.counter("dram_read_input") +
                        m.counter("dram_read_output") + m.counter("dram_read_activations") +
                        m.counter("dram_read_spill");
  const uint64_t written = m.counter("dram_written_output") +
                           m.counter("dram_written_activations") + m.counter("dram_written_input") +
                           m.counter("dram_written_spill");
  const uint64_t wanted = m.sum("weights") + m.sum("tables") + m.sum("loaded");
  if (read != wanted || written != m.sum("stored") || m.counter("macs") != m.sum("macs"))
    fail(kWorkFailed,
         "the compiler counts {} bytes read, {} written and {} MACs, the device {}, {} and {}: one "
         "of them is wrong",
         wanted, m.sum("stored"), m.sum("macs"), read, written, m.counter("macs"));
  if (m.sum("program_bytes") != m.counter("dram_read_program"))
    fail(kWorkFailed, "the layers have {} bytes of program, the device read {}",
         m.sum("program_bytes"), m.counter("dram_read_program"));
}

} // namespace

Json dramBytesOf(const Measured& measured) {
  const uint64_t loaded = measured.sum("loaded");
  const uint64_t stored = measured.sum("stored");
  return {{"all", measured.dramBytes()},      {"weights", measured.sum("weights")},
          {"tables", measured.sum("tables")}, {"activations", loaded + stored},
          {"activations_loaded", loaded},     {"activations_stored", stored}};
}

std::string causesText(const Json& layer) {
  std::string text;
  if (!layer.contains("causes")) return text;
  const double all = std::max(layer.value("cycles", 0.0), 1.0);
  for (const auto& [cause, cycles] : layer["causes"].items())
    if (const double share = 100 * cycles.get<double>() / all; share >= 0.5)
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", cause, share);
  return text;
}

std::map<std::pair<uint64_t, std::string>, size_t> layerIndex(const Json& layers) {
  std::map<std::pair<uint64_t, std::string>, size_t> index;
  for (size_t i = 0; i < layers.size(); ++i)
    index.try_emplace({layers[i].value("program", uint64_t{0}), layers[i].value("name", "")}, i);
  return index;
}

uint64_t Measured::sum(const char* key) const {
  uint64_t sum = 0;
  for (const Json& layer : layers) sum += layer.value(key, uint64_t{0});
  return sum;
}

uint64_t Measured::most(const char* key) const {
  uint64_t most = 0;
  for (const Json& layer : layers) most = std::max(most, layer.value(key, uint64_t{0}));
  return most;
}

double Measured::macUtilization() const {
  const double possible =
      time.is_null() ? 0 : static_cast<double>(cycles()) * time.value("peak_macs_per_cycle", 0.0);
  return possible > 0 ? static_cast<double>(counter("macs")) / possible : 0.0;
}

Simulation simulateOnce(const RunOptions& run, const std::string& configuration,
                        const std::string& engine, const std::string& timelinePath) {
  const TemporaryFile counts;
  RunOptions options = run;
  options.model.backends = "npu_sim";
  for (const std::string& option :
       {"npu=" + configuration, "report=" + counts.path(), "engine=" + engine})
    options.model.options.push_back("npu_sim." + option);
  if (Reuse::isOn()) options.model.options.emplace_back("npu_sim.reuse=on");
  if (!timelinePath.empty()) options.model.options.push_back("npu_sim.timeline=" + timelinePath);
  Simulation simulation{.session = openSession(options), .outputs = {}, .measured = {}};
  std::vector<double> latencies;
  simulation.outputs = simulation.session.run(latencies);
  simulation.wallMs = latencies.front();
  simulation.measured = readCounts(counts.path());
  checkSums(simulation.measured);
  return simulation;
}

} // namespace candela::tool
