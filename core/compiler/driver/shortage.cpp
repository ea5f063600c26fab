#include "core/compiler/driver/shortage.h"

#include "core/compiler/capabilities/refusal.h"

namespace candela::driver {

using lowering::partition::Demand, runtime::bundle::Holding;

bool hasMemoryOfItsOwn(const runtime::plugin::Device& device) {
  const auto& spaces = device.target().spaces();
  if (spaces.empty()) return false;
  const cdl_space_t& space = spaces[0].space;
  return space.capacity_bytes != 0 || !(space.flags & CDL_SPACE_HOST_MAPPED);
}

namespace {

/// What the device was to hold when it came to the part: that one whole, of others what they hold.
Demand askedFor(std::span<const LoweredPart> parts, size_t last) {
  Demand sum = parts[last].demand;
  for (size_t p = 0; p < parts.size(); ++p) {
    const LoweredPart& part = parts[p];
    if (p == last || part.target != parts[last].target) continue;
    if (part.holding == Holding::everything && p < last) {
      sum.arena += part.demand.arena;
      sum.values += part.demand.values;
    }
    if (part.holding != Holding::nothing && p < last) sum.constants += part.demand.constants;
  }
  return sum;
}

} // namespace

Status Shortages::learn(std::span<const LoweredPart> parts, size_t part, const Status& failure,
                        std::vector<MemoryLimit>& limits) {
  const size_t target = parts[part].target;
  runtime::plugin::Device& device = *devices_[target];
  granted_[target] = std::max(granted_[target], device.takeShortage());
  const Demand asked = askedFor(parts, part);
  lowering::partition::Capacity& capacity = limits[target].capacity;
  uint64_t& limit = capacity.bytes;
  const uint64_t taken = capacity.constants ? asked.working() : asked.total();
  const uint64_t before = limit ? std::min(limit, taken) : taken;
  limit = std::max(granted_[target], before / 2);
  limit = std::max<uint64_t>(std::min(limit, before / 10 * 9), 1);
  const lowering::partition::Capacity declared = memoryLimitOf(device).capacity;
  const std::string text =
      fmt::format("{}; {} was asked for {}, and declares {}", failure.message(), device.id(),
                  asked.text(), declared.isLimited() ? declared.text() + " bytes" : "no capacity");
  return Status(Code::out_of_memory, capabilities::refusalText(CDL_REASON_MEMORY, text));
}

} // namespace candela::driver
