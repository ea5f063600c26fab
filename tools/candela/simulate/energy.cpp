#include "tools/candela/simulate/energy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "core/support/file.h"

namespace candela::tool {
namespace {

// Orders of magnitude for 45 nm at 0.9 V, from M. Horowitz, "Computing's Energy Problem", ISSCC
// 2014, figure 1.1.9: an 8-bit product 0.2 pJ and a 32-bit sum 0.1 pJ, a 16-bit float product 1.1
// pJ and a 32-bit float sum 0.9 pJ; 64 bits of an 8 KB memory 10 pJ, of 1 MB 100 pJ; 64 bits of
// DRAM 1.3 to 2.6 nJ. What time costs, whatever is done in it: N. Jouppi, "In-Datacenter
// Performance Analysis of a Tensor Processing Unit", ISCA 2017, table 2: 65,536 multipliers and 28
// MiB at 700 MHz in 28 nm take 28 W when idle, 0.6 pJ a multiplier and cycle with all else on the
// chip, of which the clock is taken for a half. Micron's data sheet of DDR4-2400, 8 Gb x8: IDD3N,
// active standby, of about 50 mA at 1.2 V.
constexpr const char* kBuiltIn = R"(action,picojoule,tag,source
mac,0.30,assumed,Horowitz 2014: product 0.2 + sum 0.1
mac_bf16,2.0,assumed,Horowitz 2014: 16-bit float product 1.1 + 32-bit float sum 0.9
accumulator,1.2,assumed,Horowitz 2014: 8 KB memory
scratchpad,3.0,assumed,Horowitz 2014: between 8 KB and 1 MB
requant,3.5,assumed,Horowitz 2014: a 32-bit product 3.1 and three sums
vector,0.50,assumed,Horowitz 2014: an 8-bit product and sums
dram,240,assumed,Horowitz 2014: the middle of 160 to 320
sram,12.5,assumed,Horowitz 2014: 1 MB memory
flash,180,assumed,data sheets of octal NOR flash: 40 mA at 1.8 V for 400 MB/s
clock,0.30,assumed,Jouppi 2017: a half of TPU v1 idle
leakage,0.10,assumed,Jouppi 2017: a quarter of TPU v1 idle less its memories
leakage_memory,0.02,assumed,20 mW a MiB: order of magnitude of SRAM in 28 to 45 nm
dram_background,60,assumed,Micron DDR4-2400 x8: IDD3N of 50 mA at 1.2 V
)";

std::string actionNames() {
  std::string names;
  for (const EnergyAction& action : kEnergyActions)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", action.name);
  return names;
}

const EnergyPrice* priceOf(const EnergyTable& table, std::string_view action) {
  const auto found = std::ranges::find(table.prices, action, &EnergyPrice::action);
  return found == table.prices.end() ? nullptr : &*found;
}

/// The action that prices bytes of a memory of that type, as dram.type and second.type have them.
const char* actionOf(const std::string& type) {
  if (type.starts_with("SRAM-")) return "sram";
  return type.starts_with("NOR-") ? "flash" : "dram";
}

/// What memories do: bytes by action, DRAM's bus and SRAM's cells in time.
struct MemoryUse {
  std::map<std::string, double> bytes;
  double busBytes = 0;
  double kibibytes = 0;

  void add(const npu::Configuration& npu, int type, int width, int size, double moved) {
    // Of a size that nobody gave only so much of an SRAM leaks: 4 GiB of it are no memory.
    constexpr int64_t kLargestSram = 32 << 20;
    const std::string action = actionOf(npu.valueText(type));
    bytes[action] += moved;
    if (action == "dram") busBytes += static_cast<double>(npu[width]) / 8;
    if (action == "sram")
      kibibytes += static_cast<double>(std::min(npu[size], kLargestSram)) / 1024;
  }
};

MemoryUse memoryUse(const npu::Configuration& npu, double moved, double second) {
  using namespace npu::key;
  MemoryUse use;
  use.add(npu, kDramType, kDramWidthBits, kDramBytes, moved - second);
  if (npu.hasSecond()) use.add(npu, kSecondType, kSecondWidthBits, kSecondBytes, second);
  return use;
}

} // namespace

EnergyTable readEnergyTable(const std::string& path) {
  EnergyTable table{path.empty() ? "built in" : path, {}};
  std::string text = kBuiltIn;
  if (!path.empty()) {
    const Bytes bytes = check(mapFile(path));
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::istringstream lines(text);
  size_t number = 0;
  bool hasHead = false;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    if (!hasHead) {
      if (line != "action,picojoule,tag,source")
        fail(kBadInput, "{}:{}: the head is '{}', wanted 'action,picojoule,tag,source'", table.name,
             number, line);
      hasHead = true;
      continue;
    }
    std::string cells[4];
    std::istringstream row(line);
    for (int i = 0; i < 3; ++i) std::getline(row, cells[i], ',');
    std::getline(row, cells[3]);
    EnergyPrice price{cells[0], 0, cells[2], cells[3]};
    const char* const end = cells[1].data() + cells[1].size();
    const auto [stop, bad] = std::from_chars(cells[1].data(), end, price.picojoule);
    if (bad != std::errc() || stop != end || !std::isfinite(price.picojoule) ||
        price.picojoule < 0 || price.picojoule > 1e12)
      fail(kBadInput, "{}:{}: '{}' is no energy in picojoules", table.name, number, cells[1]);
    if (std::ranges::none_of(kEnergyActions,
                             [&](const EnergyAction& a) { return a.name == price.action; }))
      fail(kBadInput, "{}:{}: '{}' is no action: {}", table.name, number, price.action,
           actionNames());
    if (std::ranges::any_of(table.prices,
                            [&](const EnergyPrice& p) { return p.action == price.action; }))
      fail(kBadInput, "{}:{}: '{}' has a price already", table.name, number, price.action);
    table.prices.push_back(std::move(price));
  }
  for (const EnergyAction& action : kEnergyActions)
    if (!action.otherwise && !priceOf(table, action.name))
      fail(kBadInput, "{}: no price of '{}', a {}; 0 leaves it out", table.name, action.name,
           action.unit);
  return table;
}

Json energyOf(const EnergyTable& table, const Json& counts, const npu::Configuration& npu) {
  const auto of = [&](const char* key) {
    return static_cast<double>(counts.value(key, uint64_t{0}));
  };
  const auto key = [&](int which) { return static_cast<double>(npu[which]); };
  const auto cores = static_cast<double>(npu.cores());
  const double multipliers = cores * static_cast<double>(npu.rows() * npu.columns());
  const double nanoseconds = 1000 * of("cycles") / key(npu::key::kClockMhz);
  const MemoryUse memory =
      memoryUse(npu,
                of("weights") + of("tables") + of("loaded") + of("stored") + of("program_bytes") -
                    of("expanded_bytes") + of("compressed_bytes"),
                of("second_loaded") + of("second_stored"));
  const double kibibytes =
      cores * (key(npu::key::kScratchpadBytes) + key(npu::key::kAccumulatorBytes)) / 1024 +
      memory.kibibytes;
  // What a pass writes is read once, by the next pass that adds to it or by requant; sums that stay
  // in the array until they are whole are written once, all rows of a fold.
  const double sums =
      npu.isOutputStationary() ? of("folds") * static_cast<double>(npu.rows()) : of("passes");
  const double sumBytes = 2 * sums * static_cast<double>(npu.columns()) * 4;
  std::vector<std::pair<std::string, double>> done = {
      {"mac", of("macs") - of("bf16_macs")},
      {"accumulator", sumBytes},
      {"scratchpad", of("scratchpad_read") + of("scratchpad_written")},
      {"requant", of("requant_values")},
      {"vector", of("vector_values")},
      {"clock", of("cycles") * multipliers},
      {"leakage", nanoseconds * multipliers},
      {"leakage_memory", nanoseconds * kibibytes},
      {"dram_background", nanoseconds * memory.busBytes},
  };
  if (of("bf16_macs") > 0) done.emplace_back("mac_bf16", of("bf16_macs"));
  done.insert(done.end(), memory.bytes.begin(), memory.bytes.end());
  Json energy = Json::object();
  for (const auto& [action, times] : done) {
    const EnergyPrice* price = priceOf(table, action);
    for (const EnergyAction& each : kEnergyActions)
      if (!price && each.name == action) price = priceOf(table, each.otherwise);
    energy[action] = times * price->picojoule / 1000;
  }
  return energy;
}

double energySum(const Json& energy) {
  double sum = 0;
  for (const auto& [action, value] : energy.items()) sum += value.get<double>();
  return sum;
}

std::string energyText(double nanojoule) {
  const char* const units[] = {"nJ", "uJ", "mJ", "J"};
  size_t unit = 0;
  while (nanojoule >= 995 && unit + 1 < std::size(units)) {
    nanojoule /= 1000;
    ++unit;
  }
  if (nanojoule >= 100) return fmt::format("{} {}", 10 * std::lround(nanojoule / 10), units[unit]);
  return fmt::format("{:.{}f} {}", nanojoule, nanojoule >= 9.95 ? 0 : 1, units[unit]);
}

} // namespace candela::tool
