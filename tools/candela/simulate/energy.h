#pragma once

#include <string>
#include <vector>

#include "simulator/config/configuration.h"
#include "tools/candela/support/console.h"

/// Energy = counts of actions x a table that a user may replace.
namespace candela::tool {

struct EnergyPrice {
  std::string action; ///< one of kEnergyActions
  double picojoule = 0;
  std::string tag;    ///< measured | vendor | assumed
  std::string source; ///< where the figure comes from
};

struct EnergyTable {
  std::string name; ///< for reports: "built in", or the file
  std::vector<EnergyPrice> prices;
};

/// The actions that are counted, and how they are called in a report's layers and counters.
struct EnergyAction {
  const char* name;
  const char* unit;
  const char* otherwise = nullptr; ///< of a table without a price: the action whose price it has
};
inline constexpr EnergyAction kEnergyActions[] = {
    {"mac", "product of 8 bits, added to an accumulator"},
    {"mac_bf16", "product of bf16, added to an accumulator of f32", "mac"},
    {"accumulator", "byte of an accumulator written or read"},
    {"scratchpad", "byte of the scratchpad read or written"},
    {"requant", "value scaled, clamped and written"},
    {"vector", "element that the vector engine wrote"},
    {"dram", "byte between DRAM and scratchpad, or of the program"},
    {"clock", "cycle of a multiplier, whether it multiplies or not"},
    {"leakage", "nanosecond of a multiplier"},
    {"leakage_memory", "nanosecond of a KiB of scratchpad, accumulators or a memory of SRAM"},
    {"sram", "byte between a memory of SRAM and scratchpad", "dram"},
    {"flash", "byte between flash and scratchpad", "dram"},
    {"dram_background", "nanosecond of 8 bits of the memory's bus"},
};

/// CSV with a head `action,picojoule,tag,source`: each action once, those of bf16, SRAM and flash
/// at most once, no other; lines that begin with # are left out. An empty path: the built-in table.
/// Throws Failure with file and line.
EnergyTable readEnergyTable(const std::string& path);

/// Nanojoules by action of one layer of a report, or of its sums: the keys macs, bf16_macs, passes,
/// scratchpad_read, cycles, ...
Json energyOf(const EnergyTable& table, const Json& counts, const npu::Configuration& npu);
/// Their sum.
double energySum(const Json& energy);

/// With two digits: tables of assumed prices have no more. "3.4 mJ".
std::string energyText(double nanojoule);

} // namespace candela::tool
