// The judge of memory plans. Deliberately apart from the planner: it sweeps time, the planner scans
// space.
#include <map>

#include "core/plan/memory/memory.h"

namespace candela::plan {
std::optional<std::string> validate(const MemoryProblem& problem, const MemoryPlan& plan) {
  const auto& buffers = problem.buffers;
  if (plan.offsets.size() != buffers.size())
    return fmt::format("the plan has {} offsets for {} buffers", plan.offsets.size(), buffers.size());
  if (plan.size > problem.capacity)
    return fmt::format("the plan takes {} bytes but the capacity is {}", plan.size, problem.capacity);
  std::multimap<int64_t, size_t> births, deaths;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Interval& b = buffers[i];
    const uint64_t offset = plan.offsets[i];
    if (b.begin >= b.end) return fmt::format("buffer {} begins at {} but ends at {}", i, b.begin, b.end);
    if (b.alignment == 0 || offset % b.alignment != 0)
      return fmt::format("buffer {} is at {}, not a multiple of its alignment {}", i, offset, b.alignment);
    if (b.size == 0) continue;
    if (offset > plan.size || plan.size - offset < b.size)
      return fmt::format("buffer {} of {} bytes at {} ends beyond the plan's {} bytes", i, b.size, offset, plan.size);
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
      const uint64_t otherOffset = plan.offsets[other];
      return fmt::format("buffers {} and {} are alive at once from {} on and share bytes: [{},{}) and [{},{})", other,
                         i, time, otherOffset, otherOffset + buffers[other].size, offset, offset + buffers[i].size);
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
