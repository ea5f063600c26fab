#include "core/compiler/driver/fit.h"

#include <algorithm>

namespace candela::driver {

using lowering::partition::Capacity, lowering::partition::Demand, lowering::partition::Part,
    runtime::bundle::Holding;

MemoryLimit memoryLimitOf(const runtime::plugin::Device& device) {
  const auto& spaces = device.target().spaces();
  Capacity capacity;
  if (!spaces.empty()) capacity.bytes = spaces[0].space.capacity_bytes;
  if (const auto* constants = device.target().constantSpace())
    capacity.constants = constants->space.capacity_bytes;
  return {capacity, device.table().memory_import == nullptr};
}

namespace {

Demand operator+(const Demand& a, const Demand& b) {
  return {a.constants + b.constants, a.arena + b.arena, a.values + b.values};
}

/// What a planned Program takes of memory that is not local.
Demand demandOf(const program::Program& program, const MemoryLimit& limit) {
  Demand demand;
  for (const program::Buffer& buffer : program.buffers) {
    if (program.spaces[buffer.space].local || buffer.role == program::Role::temp) continue;
    const uint64_t alignment = std::max<uint64_t>(buffer.alignment, 1);
    const uint64_t bytes = (buffer.bytes + alignment - 1) / alignment * alignment;
    if (buffer.role == program::Role::constant)
      demand.constants += bytes;
    else if (limit.holdsValues)
      demand.values += bytes;
  }
  demand.arena = program.arenaBytes();
  return demand;
}

/// Lowers parts as they are asked for, each once.
class Lowering {
  using Key = std::pair<size_t, std::vector<graph::Node*>>;

public:
  Lowering(const graph::Graph& graph, std::span<const capabilities::Target* const> targets,
           const CompileOptions& options)
      : extractor_(graph), targets_(targets), options_(options) {}

  /// Where no Program is made, for which the part is refused later, it takes nothing.
  Result<Demand> demand(const Part& part) {
    const Key key(part.target, part.nodes);
    if (const auto at = demands_.find(key); at != demands_.end()) return at->second;
    CDL_ASSIGN(LoweredPart made, lower(part));
    const Demand demand = demands_[key] = made.demand;
    lowered_.emplace(key, std::move(made));
    return demand;
  }

  /// Hands over what was lowered.
  Result<LoweredPart> take(const Part& part) {
    auto made = lowered_.extract(Key(part.target, part.nodes));
    return made ? std::move(made.mapped()) : lower(part);
  }

private:
  Result<LoweredPart> lower(const Part& part) {
    CDL_ASSIGN(LoweredPart made, lowerPart(extractor_, part, *targets_[part.target], options_));
    if (part.target < options_.memory.size() && made.unfused.empty())
      made.demand = demandOf(made.program, options_.memory[part.target]);
    return made;
  }

  const lowering::partition::Extractor extractor_;
  const std::span<const capabilities::Target* const> targets_;
  const CompileOptions& options_;
  std::map<Key, LoweredPart> lowered_;
  std::map<Key, Demand> demands_;
};

/// Whether each of these has room beside the constants that the device holds.
bool fitBeside(std::span<LoweredPart* const> parts, const Capacity& capacity) {
  uint64_t held = 0;
  for (const LoweredPart* part : parts)
    if (part->holding == Holding::constants) held += part->demand.constants;
  return std::ranges::all_of(parts, [&](const LoweredPart* part) {
    Demand demand = part->demand;
    if (part->holding == Holding::constants) demand.constants = 0; // they are among those held
    demand.constants += held;
    return capacity.holds(demand);
  });
}

/// What the parts of one device hold between their runs: everything where there is room for that,
/// else the largest constants that leave every part its room.
void chooseHoldings(std::span<LoweredPart*> parts, const Capacity& capacity) {
  Demand all;
  for (const LoweredPart* part : parts) all = all + part->demand;
  if (capacity.holds(all)) return;
  for (LoweredPart* part : parts) part->holding = Holding::nothing;
  std::ranges::stable_sort(parts, std::greater(),
                           [](const LoweredPart* part) { return part->demand.constants; });
  for (LoweredPart* part : parts) {
    part->holding = Holding::constants;
    if (!fitBeside(parts, capacity)) part->holding = Holding::nothing;
  }
}

/// The holdings of a target's parts; what there is to say where they do not hold everything.
std::optional<Overflow> settle(size_t target, const Capacity& capacity, FittedParts& fitted) {
  std::vector<LoweredPart*> parts;
  for (LoweredPart& part : fitted.parts)
    if (part.target == target && part.unfused.empty()) parts.push_back(&part);
  chooseHoldings(parts, capacity);
  Overflow overflow{target, {}, capacity, parts.size(), 0};
  bool fits = true;
  for (const LoweredPart* part : parts) {
    fits &= part->holding == Holding::everything;
    overflow.demand = overflow.demand + part->demand;
    if (part->holding == Holding::nothing) overflow.streamedBytes += part->demand.constants;
  }
  return fits ? std::nullopt : std::optional(overflow);
}

/// Replaces the sum over the parts by that over those which were cut, where a plan of them exists.
void describeWhole(std::span<const Part> parts, Lowering& lowering, Overflow& overflow) {
  Demand whole;
  for (const Part& part : parts) {
    if (part.target != overflow.target) continue;
    const Result<Demand> demand = lowering.demand(part);
    if (!demand) return;
    whole = whole + *demand;
  }
  overflow.demand = whole;
}

} // namespace

Result<FittedParts> lowerFitting(const graph::Graph& graph, const Placer& placer,
                                 std::span<const capabilities::Target* const> targets,
                                 lowering::partition::Barred& barred,
                                 const CompileOptions& options) {
  Lowering lowering(graph, targets, options);
  std::vector<Capacity> capacities;
  for (const MemoryLimit& limit : options.memory) capacities.push_back(limit.capacity);
  for (;;) {
    FittedParts fitted;
    CDL_ASSIGN(fitted.partitioning, placer.partition(graph, barred));
    std::vector<Part> whole = fitted.partitioning.parts;
    CDL_ASSIGN(
        lowering::partition::Fitting fitting,
        lowering::partition::fitParts(graph, fitted.partitioning, targets, capacities,
                                      [&](const Part& part) { return lowering.demand(part); }));
    if (!fitting.tooLarge.empty()) {
      barred.merge(fitting.tooLarge);
      continue;
    }
    fitted.partitioning.parts = std::move(fitting.parts);
    const size_t count = fitted.partitioning.parts.size();
    for (size_t p = 0; p < count; ++p) {
      if (options.progress) options.progress("lower", static_cast<double>(p) / count);
      CDL_ASSIGN(LoweredPart part, lowering.take(fitted.partitioning.parts[p]));
      fitted.parts.push_back(std::move(part));
    }
    if (options.progress) options.progress("lower", 1);
    for (size_t t = 0; t < capacities.size(); ++t) {
      if (!capacities[t].isLimited()) continue;
      std::optional<Overflow> overflow = settle(t, capacities[t], fitted);
      if (!overflow) continue;
      describeWhole(whole, lowering, *overflow);
      fitted.overflows.push_back(*overflow);
    }
    return fitted;
  }
}

} // namespace candela::driver
