#include "core/plan/memory/memory.h"

#include <algorithm>

namespace candela::plan {
namespace {

enum class Order { Size, Begin, Breadth };

// A buffer that has its place. Kept apart from Interval: the scan over these is the planner's inner
// loop.
struct Placed {
  uint64_t begin, end; // bytes
  int64_t firstTime, lastTime;
  size_t index;
};

/// A malformed buffer, or sizes whose plan might not fit 64 bits.
Status check(const MemoryProblem& problem) {
  uint64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Interval& b = problem.buffers[i];
    if (b.begin >= b.end) return badArgument("buffer {} begins at {} but ends at {}", i, b.begin, b.end);
    if (b.alignment == 0 || (b.alignment & (b.alignment - 1)) != 0)
      return badArgument("buffer {} has alignment {}, not a power of two", i, b.alignment);
    uint64_t room = 0;
    if (__builtin_add_overflow(b.size, b.alignment - 1, &room) || __builtin_add_overflow(total, room, &total))
      return badArgument("buffer {} of {} bytes is beyond 64 bits", i, b.size);
  }
  return Status::ok();
}

class Planner {
public:
  explicit Planner(const MemoryProblem& problem) : problem_(problem) {}

  MemoryPlan plan(Order order, bool best) { return plan(sorted(order), best); }

  // Greedy orders leave gaps where a large buffer comes too late. So, from each of them: whoever
  // ends highest goes to an earlier turn, by a fixed sequence of numbers, and stays there unless
  // the plan grew. `bound` ends the search.
  MemoryPlan improve(Order order, bool best, uint64_t bound) {
    std::vector<size_t> indices = sorted(order);
    MemoryPlan least = plan(indices, best);
    uint64_t sequence = 1;
    // A round costs the square of the buffers: large problems get few.
    const uint64_t count = std::max<uint64_t>(indices.size(), 1);
    for (uint64_t rounds = std::min<uint64_t>(300, 10'000'000 / (count * count)); rounds > 0; --rounds) {
      const auto highest = std::find(indices.begin(), indices.end(), highest_);
      if (least.size <= bound || highest == indices.end()) break;
      sequence = sequence * 6364136223846793005u + 1442695040888963407u;
      const auto turn = static_cast<uint64_t>(highest - indices.begin());
      if (turn == 0) break;
      std::vector<size_t> trial = indices;
      const auto from = trial.begin() + static_cast<int64_t>(turn);
      std::rotate(trial.begin() + static_cast<int64_t>((sequence >> 33) % turn), from, from + 1);
      const size_t kept = highest_;
      MemoryPlan next = plan(trial, best);
      if (next.size > least.size) {
        highest_ = kept;
        continue;
      }
      indices = std::move(trial);
      least = std::move(next);
    }
    return least;
  }

private:
  MemoryPlan plan(const std::vector<size_t>& indices, bool best) {
    placed_.clear();
    MemoryPlan plan;
    plan.offsets.assign(problem_.buffers.size(), 0);
    for (size_t i : indices) {
      const Interval& b = problem_.buffers[i];
      const uint64_t offset = plan.offsets[i] = fit(b, best);
      const auto after = std::ranges::upper_bound(placed_, offset, {}, &Placed::begin);
      placed_.insert(after, {offset, offset + b.size, b.begin, b.end, i});
    }
    for (const Placed& p : placed_)
      if (p.end > plan.size) {
        plan.size = p.end;
        highest_ = p.index;
      }
    return plan;
  }

  static uint64_t alignUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

  // What has to be placed, the hardest first; ties by index.
  std::vector<size_t> sorted(Order order) const {
    std::vector<size_t> indices;
    for (size_t i = 0; i < problem_.buffers.size(); ++i)
      if (problem_.buffers[i].size != 0) indices.push_back(i);
    std::ranges::stable_sort(indices, {}, [&](size_t i) -> std::pair<long double, long double> {
      const Interval& b = problem_.buffers[i];
      const long double size = b.size, begin = b.begin, end = b.end; // which holds 64 bits
      if (order == Order::Begin) return {begin, -size};
      return {order == Order::Size ? -size : -size * (end - begin), 0};
    });
    return indices;
  }

  // The lowest or the tightest gap between the buffers that live at the same time as b, else the room above them.
  uint64_t fit(const Interval& b, bool best) const {
    uint64_t free = 0, tightest = UINT64_MAX;
    std::optional<uint64_t> offset;
    for (const Placed& p : placed_) {
      if (p.firstTime >= b.end || b.begin >= p.lastTime) continue;
      const uint64_t at = alignUp(free, b.alignment);
      if (at <= p.begin && p.begin - at >= b.size && p.begin - free < tightest) {
        if (!best || p.begin - free == b.size) return at;
        offset = at;
        tightest = p.begin - free;
      }
      free = std::max(free, p.end);
    }
    return offset.value_or(alignUp(free, b.alignment));
  }

  const MemoryProblem& problem_;
  std::vector<Placed> placed_; // by offset
  size_t highest_ = 0;         // who ends highest in the latest plan
};

} // namespace

uint64_t maxLive(const MemoryProblem& problem) {
  struct Event {
    int64_t time;
    uint64_t size;
    bool birth;
  };
  std::vector<Event> events;
  for (const Interval& b : problem.buffers) {
    if (b.begin >= b.end) continue;
    events.push_back({b.begin, b.size, true});
    events.push_back({b.end, b.size, false});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.birth < b.birth; // the dead make room first
  });
  uint64_t live = 0, most = 0;
  for (const Event& e : events) {
    if (!e.birth)
      live -= e.size;
    else if (__builtin_add_overflow(live, e.size, &live))
      return UINT64_MAX;
    most = std::max(most, live);
  }
  return most;
}

Result<MemoryPlan> planMemory(const MemoryProblem& problem) {
  CDL_TRY(check(problem));
  Planner planner(problem);
  const uint64_t bound = maxLive(problem);
  std::optional<MemoryPlan> best;
  for (const bool search : {false, true})
    for (const Order order : {Order::Size, Order::Breadth, Order::Begin})
      for (const bool bestFit : {false, true}) {
        if (best && best->size <= bound) break; // cannot be beaten
        MemoryPlan plan = search ? planner.improve(order, bestFit, bound) : planner.plan(order, bestFit);
        if (!best || plan.size < best->size) best = std::move(plan);
      }
  if (best->size > problem.capacity)
    return failure(Code::out_of_memory,
                   "the buffers need {} bytes (at least {} are alive at once) but the capacity is {}", best->size,
                   bound, problem.capacity);
  return *std::move(best);
}

} // namespace candela::plan
