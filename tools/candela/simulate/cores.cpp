#include "tools/candela/simulate/cores.h"

#include <algorithm>
#include <map>

#include "tools/candela/support/command.h"

namespace candela::tool {
namespace {

/// From which share of the time on the memory is called busy, and cores unequal.
constexpr double kBusy = 0.75;
constexpr double kUnequal = 0.9;
constexpr double kWaits = 0.1;
/// From which share of all cycles on it is told what they went to.
constexpr double kHangs = 0.08;

double shareOf(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// The most cycles that an engine of a core stood for a cause.
uint64_t mostStalled(const Json& core, const char* cause) {
  uint64_t most = 0;
  for (const auto& [engine, stalls] : core["stall"].items())
    if (engine != "control") most = std::max(most, stalls.value(cause, uint64_t{0}));
  return most;
}

/// The busier of two memories, and the share of the time in which it is busy.
struct BusyMemory {
  std::string name;
  double busy = 0;
};
BusyMemory busiestMemory(const Json& time, double cycles) {
  const BusyMemory dram{"dram", shareOf(time["dram"].value("bus_busy", 0.0), cycles)};
  const BusyMemory second{
      "second", shareOf(time.value("second", Json::object()).value("bus_busy", 0.0), cycles)};
  return second.busy > dram.busy ? second : dram;
}

/// What keeps the cores from being as many times as fast as there are. `onMemory`: the share of all
/// cycles that went to the memory.
std::string limitText(const Json& cores, double onMemory) {
  const std::string memory = cores["busiest_memory"];
  const double busy = cores["memory_busy"];
  const double balance = cores["balance"];
  const double waits = cores["core_wait"];
  if (busy >= kBusy)
    return fmt::format("{} is busy {:.0f} % of the time, and all cores share it", memory,
                       100 * busy);
  // What the busiest core has more than the mean is lost to the others.
  const bool isMostlyMemory = onMemory >= kHangs && onMemory >= 1 - balance;
  if (balance < kUnequal && !isMostlyMemory)
    return fmt::format("the array of the busiest core has {:.2f} times the cycles of the mean",
                       1 / balance);
  if (isMostlyMemory)
    return fmt::format("{:.0f} % of all cycles go to the memory, {} most of all, which serves one "
                       "core while the others wait",
                       100 * onMemory, memory);
  if (waits >= kWaits)
    return fmt::format("engines wait for other cores {:.0f} % of the time", 100 * waits);
  return "each core has its own products, and loads its own copy of shared weights";
}

/// "batch", "rows" or "channels", of a layer whose result has so many images.
std::string splitOf(const Json& parts, int64_t images) {
  if (parts.value("interleaved", false)) return "channels";
  std::map<std::pair<int64_t, int64_t>, int64_t> coreOf; // by bytes of all, and image
  for (const Json& range : parts["ranges"]) {
    const int64_t core = range[0];
    const int64_t begin = range[1];
    const int64_t end = range[2];
    const int64_t all = range[3];
    const int64_t bytes = std::max<int64_t>(1, all / images);
    for (int64_t image = begin / bytes; image * bytes < end; ++image)
      if (const auto [at, isNew] = coreOf.try_emplace({all, image}, core);
          !isNew && at->second != core)
        return "rows";
  }
  return images > 1 ? "batch" : "rows";
}

} // namespace

void nameSplits(Json& layers, int64_t images) {
  for (Json& layer : layers) {
    if (!layer.contains("parts")) continue;
    layer["split"] = layer["cores"].size() < 2 ? "none" : splitOf(layer["parts"], images);
    layer.erase("parts");
  }
}

void addCores(Json& report, const npu::Configuration& npu) {
  if (!report.contains("time") || !report["time"].contains("cores")) return;
  const Json& time = report["time"];
  const double cycles = time.value("cycles", 0.0);
  Json cores = {{"count", npu.cores()}};
  double most = 0;
  double sum = 0;
  double memory = 0;
  double waits = 0;
  for (const Json& core : time["cores"]) {
    const auto matrix = core["busy"].value("matrix", 0.0);
    const auto dram = static_cast<double>(mostStalled(core, "dram"));
    const auto others = static_cast<double>(mostStalled(core, "core"));
    most = std::max(most, matrix);
    sum += matrix;
    memory = std::max(memory, shareOf(dram, cycles));
    waits = std::max(waits, shareOf(others, cycles));
    cores["each"].push_back({{"cycles", core["cycles"]},
                             {"array_busy", shareOf(matrix, cycles)},
                             {"memory_wait", shareOf(dram, cycles)},
                             {"core_wait", shareOf(others, cycles)}});
  }
  const auto count = static_cast<double>(npu.cores());
  cores["balance"] = most > 0 ? sum / count / most : 1.0;
  cores["array_busy"] = shareOf(sum, count * cycles);
  const BusyMemory busiest = busiestMemory(time, cycles);
  cores["busiest_memory"] = busiest.name;
  cores["memory_busy"] = busiest.busy;
  cores["memory_wait"] = memory;
  cores["core_wait"] = waits;
  const double onMemory =
      time.contains("causes") ? shareOf(time["causes"].value("dram", 0.0), cycles) : 0;
  cores["limit"] = limitText(cores, onMemory);
  std::map<std::string, size_t> splits;
  for (const Json& layer : report["layers"])
    if (layer.contains("split")) ++splits[layer["split"].get<std::string>()];
  cores["splits"] = splits;
  report["cores"] = std::move(cores);
}

void printCores(const Json& report, Console& console) {
  if (!report.contains("cores")) return;
  const Json& cores = report["cores"];
  std::string layers;
  for (const auto& [split, count] : cores["splits"].items())
    layers += fmt::format("{}{} by {}", layers.empty() ? "" : ", ", count.get<size_t>(), split);
  Table table({"core", "cycles", "array busy", "waits for memory", "for cores"});
  size_t number = 0;
  for (const Json& core : cores["each"])
    table.add({fmt::format("{}", number++), fmt::format("{}", core["cycles"].get<uint64_t>()),
               fmt::format("{:.1f} %", 100 * core["array_busy"].get<double>()),
               fmt::format("{:.1f} %", 100 * core["memory_wait"].get<double>()),
               fmt::format("{:.1f} %", 100 * core["core_wait"].get<double>())});
  console.printText(table.text());
  console.print("  {} cores; {} is busy {:.0f} %; balance {:.2f}; layers split: {}\n"
                "  what limits them: {}\n",
                cores["count"].get<size_t>(), cores["busiest_memory"].get<std::string>(),
                100 * cores["memory_busy"].get<double>(), cores["balance"].get<double>(),
                layers.empty() ? "none" : layers, cores["limit"].get<std::string>());
}

std::vector<std::string> timelineEngines(const Json& report) {
  const size_t cores =
      report.contains("cores") ? report["cores"]["count"].get<size_t>() : size_t{1};
  std::vector<std::string> engines;
  for (size_t core = 0; core < cores; ++core)
    for (const auto& [engine, busy] : report["engines"].items())
      engines.push_back(cores > 1 ? fmt::format("core {} {}", core, engine) : engine);
  return engines;
}

} // namespace candela::tool
