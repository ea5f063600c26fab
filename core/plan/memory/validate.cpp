// The judge of memory plans. Deliberately apart from the planner: it sweeps time, the planner scans
// space.
#include <map>

#include "core/plan/memory/memory.h"

namespace candela::plan {
namespace {

std::string range(uint64_t offset, uint64_t size) {
  return "[" + std::to_string(offset) + "," + std::to_string(offset + size) + ")";
}

} // namespace

std::optional<std::string> validate(const MemoryProblem& problem, const MemoryPlan& plan) {
  const auto& buffers = problem.buffers;
  if (plan.offsets.size() != buffers.size())
    return "the plan has " + std::to_string(plan.offsets.size()) + " offsets for " + std::to_string(buffers.size()) +
           " buffers";
  if (plan.size > problem.capacity)
    return "the plan takes " + std::to_string(plan.size) + " bytes but the capacity is " +
           std::to_string(problem.capacity);
  std::multimap<int64_t, size_t> births, deaths;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Interval& b = buffers[i];
    const uint64_t offset = plan.offsets[i];
    const std::string name = "buffer " + std::to_string(i);
    if (b.begin >= b.end)
      return name + " begins at " + std::to_string(b.begin) + " but ends at " + std::to_string(b.end);
    if (b.alignment == 0 || offset % b.alignment != 0)
      return name + " is at " + std::to_string(offset) + ", not a multiple of its alignment " +
             std::to_string(b.alignment);
    if (b.pinned.value_or(offset) != offset)
      return name + " is at " + std::to_string(offset) + " but pinned to " + std::to_string(*b.pinned);
    if (b.size == 0) continue;
    if (offset > plan.size || plan.size - offset < b.size)
      return name + " of " + std::to_string(b.size) + " bytes at " + std::to_string(offset) +
             " ends beyond the plan's " + std::to_string(plan.size) + " bytes";
    births.emplace(b.begin, i);
    deaths.emplace(b.end, i);
  }
  // Sweep time; who is alive stands in order of its offset, so that only neighbours can collide.
  std::map<uint64_t, size_t> alive;
  auto death = deaths.begin();
  for (const auto& [time, i] : births) {
    for (; death != deaths.end() && death->first <= time; ++death) alive.erase(plan.offsets[death->second]);
    const uint64_t offset = plan.offsets[i];
    const auto next = alive.lower_bound(offset);
    const auto clash = [&](size_t other) {
      return "buffers " + std::to_string(other) + " and " + std::to_string(i) + " are alive at once from " +
             std::to_string(time) + " on and share bytes: " + range(plan.offsets[other], buffers[other].size) +
             " and " + range(offset, buffers[i].size);
    };
    if (next != alive.end() && next->first - offset < buffers[i].size) return clash(next->second);
    if (next != alive.begin()) {
      const auto& [below, other] = *std::prev(next);
      if (offset - below < buffers[other].size) return clash(other);
    }
    alive.emplace(offset, i);
  }
  return std::nullopt;
}

} // namespace candela::plan
