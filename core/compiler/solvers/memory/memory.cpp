#include "core/compiler/solvers/memory/memory.h"

#include <algorithm>

#include "core/compiler/solvers/memory/greedy.h"
#include "core/compiler/solvers/memory/search.h"

namespace candela::solvers::memory {
namespace {

struct Event {
  int64_t time;
  uint64_t bytes;
  bool birth;
};

uint64_t mostAtOnce(std::vector<Event> events) {
  // the dead make room first
  std::ranges::sort(events, {}, [](const Event& e) { return std::pair{e.time, e.birth}; });
  uint64_t live = 0, most = 0;
  for (const Event& e : events) {
    if (!e.birth)
      live -= e.bytes;
    else if (__builtin_add_overflow(live, e.bytes, &live))
      return UINT64_MAX;
    most = std::max(most, live);
  }
  return most;
}

void addLife(std::vector<Event>& events, int64_t begin, int64_t end, uint64_t bytes) {
  if (begin >= end) return;
  events.push_back({begin, bytes, true});
  events.push_back({end, bytes, false});
}

/// Adds the bytes that the parts of a body take together, over time.
void addUnion(std::vector<Event>& events, const Body& body) {
  std::vector<int64_t> times;
  for (const Part& part : body.parts) {
    times.push_back(part.begin);
    times.push_back(part.end);
  }
  std::ranges::sort(times);
  for (size_t t = 0; t + 1 < times.size(); ++t) {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const Part& part : body.parts)
      if (part.begin <= times[t] && part.end > times[t]) ranges.emplace_back(part.low, part.high);
    std::ranges::sort(ranges);
    uint64_t bytes = 0, reach = 0;
    for (const auto& [low, high] : ranges) {
      bytes += std::max(high, reach) - std::max(low, reach);
      reach = std::max(reach, high);
    }
    addLife(events, times[t], times[t + 1], bytes);
  }
}

/// Looks for the smallest plan by bisection between the proved bound and the plan at hand, and
/// raises the bound where the exact search proves that nothing fits.
void shrink(const Bodies& bodies, std::vector<uint64_t>& origins, MemoryPlan& plan,
            const PlanOptions& options) {
  const bool proves = isFlat(bodies);
  uint64_t left = options.shrinkNodes, low = plan.bound;
  Search search(bodies);
  for (uint64_t target = low; low < plan.size && left > 0;) {
    SearchResult result = search.run(target, std::max<uint64_t>(left / 2, 1), options.threads);
    plan.nodes += result.nodes;
    left -= std::min(left, std::max<uint64_t>(result.nodes, 1));
    if (result.verdict == Verdict::Fits) {
      origins = std::move(result.origins);
      plan.size = bodies.planOf(origins).size;
    } else {
      if (result.verdict == Verdict::NeverFits && proves && low == plan.bound)
        plan.bound = target + 1;
      low = target + 1;
    }
    target = low + (plan.size - low) / 2;
    if (result.nodes == 0 && result.verdict == Verdict::Undecided) break; // too large for it
  }
}

} // namespace

uint64_t maxLive(const MemoryProblem& problem) {
  std::vector<Event> events;
  if (!problem.ties.empty()) {
    const auto bodies = Bodies::make(problem);
    if (!bodies) return UINT64_MAX;
    for (const Body& body : bodies->all()) addUnion(events, body);
    return mostAtOnce(std::move(events));
  }
  for (const Interval& b : problem.buffers) {
    uint64_t bytes = 0;
    if (__builtin_add_overflow(b.haloBefore, b.size, &bytes) ||
        __builtin_add_overflow(bytes, b.haloAfter, &bytes))
      return UINT64_MAX;
    int64_t from = b.begin;
    for (const TimeSpan& gap : b.gaps) {
      addLife(events, from, gap.begin, bytes);
      from = gap.end;
    }
    addLife(events, from, b.end, bytes);
  }
  return mostAtOnce(std::move(events));
}

static Result<std::vector<uint64_t>> firstOrigins(const Bodies& bodies,
                                                  const MemoryProblem& problem, uint64_t live,
                                                  const PlanOptions& options) {
  const uint64_t work = options.placements * 100;
  if (!options.ownsCapacity) return greedy(bodies, live, work);
  if (auto origins = rotating(bodies, problem.capacity, work)) return std::move(*origins);
  return greedy(bodies, std::max(live, problem.capacity), work);
}

Result<MemoryPlan> planMemory(const MemoryProblem& problem, const PlanOptions& options) {
  CDL_ASSIGN(const Bodies bodies, Bodies::make(problem));
  const uint64_t live = maxLive(problem);
  CDL_ASSIGN(std::vector<uint64_t> origins, firstOrigins(bodies, problem, live, options));
  MemoryPlan plan = bodies.planOf(origins);
  plan.bound = live;
  bool proven = live > problem.capacity;
  if (plan.size > problem.capacity && !proven) {
    SearchResult result = Search(bodies).run(problem.capacity, options.nodes, options.threads);
    plan.nodes = result.nodes;
    proven = result.verdict == Verdict::NeverFits && isFlat(bodies);
    if (result.verdict == Verdict::Fits) {
      origins = std::move(result.origins);
      plan.size = bodies.planOf(origins).size;
    }
  } else if (plan.size <= problem.capacity && !options.ownsCapacity) {
    shrink(bodies, origins, plan, options);
  }
  if (plan.size > problem.capacity)
    return failure(
        Code::out_of_memory,
        "the buffers need {} bytes (at least {} are alive at once) but the capacity is {}{}",
        plan.size, live, problem.capacity,
        proven ? "" : fmt::format("; none better found in {} nodes", plan.nodes));
  MemoryPlan made = bodies.planOf(origins);
  made.bound = plan.bound;
  made.nodes = plan.nodes;
  const auto wrong = validate(problem, made);
  CDL_CHECK(!wrong, "{}", *wrong);
  return made;
}

} // namespace candela::solvers::memory
