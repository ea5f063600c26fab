// The judge of memory plans. It shares no code and no method with the planner: it sweeps time from
// event to event and keeps what lives in order of place, the planner scans space.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/compiler/solvers/memory/memory.h"

namespace candela::solvers::memory {
namespace {

/// Bytes [low, high) that a buffer takes from `begin` to `end`, halos included.
struct Life {
  int64_t begin, end;
  uint64_t low, high;
  size_t buffer, group;
};

std::optional<std::string> alone(const MemoryProblem& problem, const MemoryPlan& plan, size_t i) {
  const Interval& b = problem.buffers[i];
  const uint64_t offset = plan.offsets[i];
  if (b.begin >= b.end)
    return fmt::format("buffer {} begins at {} but ends at {}", i, b.begin, b.end);
  if (b.alignment == 0 || offset % b.alignment != 0)
    return fmt::format("buffer {} is at {}, not a multiple of its alignment {}", i, offset,
                       b.alignment);
  if (b.offset && *b.offset != offset)
    return fmt::format("buffer {} is at {} but pinned at {}", i, offset, *b.offset);
  if (offset < b.haloBefore)
    return fmt::format("buffer {} is at {}, which leaves no halo of {} bytes before it", i, offset,
                       b.haloBefore);
  if (b.size == 0 && b.haloBefore == 0 && b.haloAfter == 0) return std::nullopt;
  if (offset > plan.size || plan.size - offset < b.size)
    return fmt::format("buffer {} of {} bytes at {} ends beyond the plan's {} bytes", i, b.size,
                       offset, plan.size);
  if (plan.size - offset - b.size < b.haloAfter)
    return fmt::format(
        "buffer {} of {} bytes at {} has a halo of {} that ends beyond the plan's {} bytes", i,
        b.size, offset, b.haloAfter, plan.size);
  if (problem.bankBytes != 0 && b.size != 0 &&
      offset / problem.bankBytes != (offset + b.size - 1) / problem.bankBytes)
    return fmt::format("buffer {} of {} bytes at {} lies across banks of {} bytes", i, b.size,
                       offset, problem.bankBytes);
  return std::nullopt;
}

/// Per buffer, the least index among those that ties connect with it; or a tie that the plan does
/// not keep.
std::optional<std::string> groups(const MemoryProblem& problem, const MemoryPlan& plan,
                                  std::vector<size_t>& group) {
  group.resize(problem.buffers.size());
  std::iota(group.begin(), group.end(), size_t{0});
  for (const Tie& tie : problem.ties) {
    if (tie.buffer >= group.size() || tie.base >= group.size())
      return fmt::format("a tie of buffer {} to buffer {}, of {} buffers", tie.buffer, tie.base,
                         group.size());
    const uint64_t at = plan.offsets[tie.buffer], base = plan.offsets[tie.base];
    if (at < base || at - base != tie.delta)
      return fmt::format("buffer {} is at {}, not {} above buffer {} at {}", tie.buffer, at,
                         tie.delta, tie.base, base);
  }
  for (bool again = true; again;) {
    again = false;
    for (const Tie& tie : problem.ties) {
      const size_t least = std::min(group[tie.buffer], group[tie.base]);
      again |= group[tie.buffer] != least || group[tie.base] != least;
      group[tie.buffer] = group[tie.base] = least;
    }
  }
  return std::nullopt;
}

void addLives(const MemoryProblem& problem, const MemoryPlan& plan,
              const std::vector<size_t>& group, std::vector<Life>& lives) {
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Interval& b = problem.buffers[i];
    const uint64_t low = plan.offsets[i] - b.haloBefore,
                   high = plan.offsets[i] + b.size + b.haloAfter;
    if (low == high) continue;
    int64_t from = b.begin;
    for (const TimeSpan& gap : b.gaps) {
      if (from < gap.begin) lives.push_back({from, gap.begin, low, high, i, group[i]});
      from = std::max(from, gap.end);
    }
    if (from < b.end) lives.push_back({from, b.end, low, high, i, group[i]});
  }
}

} // namespace

std::optional<std::string> validate(const MemoryProblem& problem, const MemoryPlan& plan) {
  const size_t count = problem.buffers.size();
  if (plan.offsets.size() != count)
    return fmt::format("the plan has {} offsets for {} buffers", plan.offsets.size(), count);
  if (plan.size > problem.capacity)
    return fmt::format("the plan takes {} bytes but the capacity is {}", plan.size,
                       problem.capacity);
  for (size_t i = 0; i < count; ++i)
    if (auto wrong = alone(problem, plan, i)) return wrong;
  std::vector<size_t> group;
  if (auto wrong = groups(problem, plan, group)) return wrong;
  std::vector<Life> lives;
  addLives(problem, plan, group, lives);
  std::multimap<int64_t, size_t> births, deaths;
  for (size_t i = 0; i < lives.size(); ++i) {
    births.emplace(lives[i].begin, i);
    deaths.emplace(lives[i].end, i);
  }
  // Sweep time. Who is alive stands by its first byte; of those that ties connect, several may
  // stand on the same bytes, so a new one looks at all that begin below its end, as far down as the
  // longest alive reaches.
  std::multimap<uint64_t, size_t> alive;
  std::multiset<uint64_t> lengths;
  auto death = deaths.begin();
  for (const auto& [time, i] : births) {
    for (; death != deaths.end() && death->first <= time; ++death) {
      const Life& dead = lives[death->second];
      auto at = alive.lower_bound(dead.low);
      while (at != alive.end() && at->second != death->second) ++at;
      if (at != alive.end()) alive.erase(at);
      lengths.erase(lengths.find(dead.high - dead.low));
    }
    const Life& life = lives[i];
    const uint64_t longest = lengths.empty() ? 0 : *lengths.rbegin();
    for (auto at = alive.lower_bound(life.low - std::min(life.low, longest));
         at != alive.end() && at->first < life.high; ++at)
      if (const Life& other = lives[at->second]; other.high > life.low && other.group != life.group)
        return fmt::format(
            "buffers {} and {} are alive at once from {} on and share bytes: [{},{}) and [{},{})",
            other.buffer, life.buffer, time, other.low, other.high, life.low, life.high);
    alive.emplace(life.low, i);
    lengths.insert(life.high - life.low);
  }
  return std::nullopt;
}

} // namespace candela::solvers::memory
