#include "core/compiler/program/passes/tile/machine.h"

#include <algorithm>
#include <bit>
#include <set>

#include "core/support/text/scan.h"

namespace candela::program::passes::tile {

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 40;

Result<uint64_t> parseBytes(std::string_view word) {
  const std::optional<uint64_t> bytes = text::parseBytes(word);
  if (!bytes || *bytes > kMostBytes)
    return badArgument("'{}' is no number of at most {}", word, kMostBytes);
  return *bytes;
}

Status parseSetting(std::string_view name, uint64_t value, Machine& machine) {
  TileCosts& costs = machine.costs;
  const auto number = static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
  if (name == "copy_cycles") {
    costs.copyCycles = number;
  } else if (name == "instr_cycles") {
    costs.instrCycles = number;
  } else if (name == "stores_last") {
    if (value > 1) return badArgument("stores_last is {}, expected 0 or 1", value);
    costs.storesLast = value == 1;
  } else if (value == 0) {
    return badArgument("{} is 0, expected at least 1", name);
  } else if (name == "bytes_per_cycle") {
    costs.bytesPerCycle = static_cast<double>(value);
  } else if (name == "rows") {
    costs.rows = number;
  } else if (name == "columns") {
    costs.columns = number;
  } else if (name == "lanes") {
    costs.lanes = number;
  } else if (value == 3) {
    machine.loadEngine = 1;
    machine.storeEngine = 2;
  } else if (value != 1) {
    return badArgument("engines is {}, expected 1 or 3", value);
  }
  return Status::ok();
}

constexpr std::string_view kSettings[] = {
    "bytes_per_cycle", "copy_cycles", "instr_cycles", "rows",
    "columns",         "lanes",       "stores_last",  "engines"};

Status parseItem(std::string_view item, Machine& machine) {
  const auto words = text::split(std::string(item), ':');
  const std::string_view first = words[0];
  const size_t equals = first.find('=');
  if (equals == std::string_view::npos || equals == 0)
    return badArgument("'{}' is not NAME=BYTES", item);
  const std::string_view name = first.substr(0, equals);
  CDL_ASSIGN(const uint64_t value, parseBytes(first.substr(equals + 1)).context(name));
  if (std::ranges::find(kSettings, name) != std::end(kSettings)) {
    if (words.size() > 1) return badArgument("'{}' is a setting and takes no '{}'", name, words[1]);
    return parseSetting(name, value, machine);
  }
  LocalMemory memory{std::string(name), value};
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "sums") {
      memory.sums = true;
    } else if (word.starts_with("align=")) {
      CDL_ASSIGN(const uint64_t bytes, parseBytes(word.substr(6)).context(name));
      memory.alignment = static_cast<uint32_t>(std::min<uint64_t>(bytes, UINT32_MAX));
    } else {
      return badArgument("memory '{}' has no property '{}'; there are align=N and sums", name,
                         word);
    }
  }
  machine.memories.push_back(std::move(memory));
  return Status::ok();
}

} // namespace

Result<Machine> parseMachine(std::string_view text) {
  Machine machine;
  for (const auto& item : text::split(std::string(text), ',')) CDL_TRY(parseItem(item, machine));
  CDL_TRY(checkMachine(machine));
  return machine;
}

namespace {

/// What is declared, where something is: 0 stands for the default.
template <class To, class From> void take(To& to, From declared) {
  if (declared) to = declared;
}

} // namespace

TileCosts declaredCosts(const capabilities::Target& target) {
  TileCosts costs;
  if (!target.tiling()) return costs;
  const cdl_tiling_t& declared = *target.tiling();
  take(costs.rows, declared.rows);
  take(costs.columns, declared.columns);
  take(costs.lanes, declared.lanes);
  take(costs.copyCycles, declared.copy_cycles);
  take(costs.instrCycles, declared.instr_cycles);
  take(costs.bytesPerCycle, declared.bytes_per_kilocycle / 1000.0);
  return costs;
}

std::optional<Machine> machineOf(const capabilities::Target& target) {
  Machine machine;
  for (const capabilities::Target::SpaceInfo& info : target.spaces())
    if (info.space.flags & CDL_SPACE_LOCAL)
      machine.memories.push_back({info.name, info.space.capacity_bytes,
                                  std::max<uint32_t>(info.space.alignment, 8),
                                  (info.space.flags & CDL_SPACE_SUMS) != 0});
  if (machine.memories.empty()) return std::nullopt;
  machine.target = std::make_shared<const capabilities::Target>(target);
  if (target.engines() >= 3) {
    machine.loadEngine = 1;
    machine.storeEngine = 2;
  }
  if (!target.tiling()) return machine;
  const cdl_tiling_t& declared = *target.tiling();
  take(machine.computeEngine, declared.compute_engine);
  take(machine.loadEngine, declared.load_engine);
  take(machine.storeEngine, declared.store_engine);
  machine.costs = declaredCosts(target);
  return machine;
}

Status checkMachine(const Machine& machine) {
  std::set<std::string> names;
  for (const LocalMemory& memory : machine.memories) {
    if (memory.capacityBytes == 0) return badArgument("memory '{}' has 0 bytes", memory.name);
    if (!std::has_single_bit(memory.alignment) || memory.alignment < 8 ||
        memory.alignment > memory.capacityBytes)
      return badArgument("memory '{}' of {} bytes: alignment {} is no power of two from 8 to that",
                         memory.name, memory.capacityBytes, memory.alignment);
    if (!names.insert(memory.name).second)
      return badArgument("two memories are named '{}'", memory.name);
    const bool isLast = &memory == &machine.memories.back();
    if (memory.sums && (!isLast || machine.memories.size() == 1))
      return badArgument("memory '{}' for sums does not stand last, behind another one",
                         memory.name);
  }
  return machine.memories.empty() ? badArgument("no local memory is given") : Status::ok();
}

} // namespace candela::program::passes::tile
