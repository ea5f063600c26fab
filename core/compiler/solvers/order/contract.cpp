// Makes a problem smaller without raising its least peak: joins a task with the only one behind it
// where nothing can be gained by running another in between, and cuts the order where every order
// has to pass. Both are exchange arguments: any order can be changed to one of the smaller problem,
// and its peak does not rise. By symmetry (reversed()) the same holds for a task and the only one
// before it.
#include <algorithm>
#include <numeric>
#include <set>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {

namespace {

/// By task: the one that it goes right before, or itself.
///
/// A task that needs no room for itself, and all of whose buffers the only task behind it touches
/// too, gives nothing back before that one runs. When it runs later, right before that one, less is
/// taken in between, and its own bytes are no more than those of that task.
std::vector<uint32_t> leadersOf(const OrderProblem& problem) {
  const size_t count = problem.tasks.size();
  std::vector<uint32_t> users(count, 0), onlyUser(count, 0), leaders(count);
  for (uint32_t t = 0; t < count; ++t)
    for (const uint32_t before : problem.tasks[t].after) {
      ++users[before];
      onlyUser[before] = t;
    }
  std::vector<uint32_t> touchedBy(problem.buffers.size(), UINT32_MAX);
  std::iota(leaders.begin(), leaders.end(), 0);
  for (uint32_t t = 0; t < count; ++t) {
    const OrderTask& task = problem.tasks[t];
    bool takes = users[t] == 1;
    if (takes)
      for (const OrderStep& step : problem.tasks[onlyUser[t]].steps)
        for (const uint32_t buffer : step.buffers) touchedBy[buffer] = t;
    // What neither touches anything nor has neighbours can run anywhere.
    const bool isFree = users[t] == 0 && task.after.empty() && t + 1 < count;
    for (const OrderStep& step : task.steps) {
      takes &= step.transient == 0;
      takes &= std::ranges::all_of(step.buffers,
                                   [&](uint32_t b) { return touchedBy[b] == t || isFree; });
    }
    if (takes) leaders[t] = onlyUser[t];
    const auto isIdle = [](const OrderStep& step) {
      return step.buffers.empty() && step.transient == 0;
    };
    if (isFree && std::ranges::all_of(task.steps, isIdle)) leaders[t] = t + 1;
  }
  for (uint32_t t = static_cast<uint32_t>(count); t-- > 0;) leaders[t] = leaders[leaders[t]];
  return leaders;
}

Contraction joined(const OrderProblem& problem) {
  const std::vector<uint32_t> leaders = leadersOf(problem);
  Contraction result;
  std::vector<uint32_t> newTask(problem.tasks.size());
  for (uint32_t t = 0; t < leaders.size(); ++t)
    if (leaders[t] == t) {
      newTask[t] = static_cast<uint32_t>(result.members.size());
      result.members.emplace_back();
    }
  result.problem.buffers = problem.buffers;
  result.problem.base = problem.base;
  result.problem.tasks.resize(result.members.size());
  for (uint32_t t = 0; t < leaders.size(); ++t) {
    const uint32_t into = newTask[leaders[t]];
    result.members[into].push_back(t);
    OrderTask& task = result.problem.tasks[into];
    task.steps.insert(task.steps.end(), problem.tasks[t].steps.begin(),
                      problem.tasks[t].steps.end());
    for (const uint32_t before : problem.tasks[t].after)
      if (leaders[before] != leaders[t]) task.after.push_back(newTask[leaders[before]]);
  }
  for (OrderTask& task : result.problem.tasks) {
    std::ranges::sort(task.after);
    task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
  }
  return result;
}

} // namespace

Contraction contract(const OrderProblem& problem) {
  const Contraction takers = joined(problem);
  Contraction givers = joined(reversed(takers.problem));
  Contraction result;
  result.problem = reversed(givers.problem);
  std::ranges::reverse(givers.members);
  const auto count = static_cast<uint32_t>(takers.members.size());
  for (std::vector<uint32_t>& members : givers.members) {
    std::vector<uint32_t>& all = result.members.emplace_back();
    std::ranges::reverse(members);
    for (const uint32_t member : members) {
      const std::vector<uint32_t>& own = takers.members[count - 1 - member];
      all.insert(all.end(), own.begin(), own.end());
    }
  }
  return result;
}

std::vector<size_t> cutsOf(const OrderProblem& problem) {
  // All before a place run before all behind it when each of those that could run first behind it
  // stands directly behind all of those that nobody before it waits for.
  const size_t count = problem.tasks.size();
  std::vector<size_t> firstUser(count, count);
  // by place: tasks that wait for none from there on
  std::vector<std::vector<size_t>> opens(count + 1);
  for (size_t t = count; t-- > 0;) {
    size_t place = 0;
    for (const uint32_t before : problem.tasks[t].after) {
      firstUser[before] = t;
      place = std::max<size_t>(place, before + 1);
    }
    opens[place].push_back(t);
  }
  std::vector<size_t> ends(count + 1, 0); // by place: tasks whose first user stands right before it
  std::set<size_t> open(opens[0].begin(), opens[0].end());
  std::vector<size_t> cuts;
  size_t unused = 0;
  for (size_t p = 1; p < count; ++p) {
    if (firstUser[p - 1] < count) ++ends[firstUser[p - 1] + 1];
    unused = unused + 1 - ends[p];
    open.erase(p - 1);
    open.insert(opens[p].begin(), opens[p].end());
    const auto isBehindAll = [&](size_t t) {
      const std::vector<uint32_t>& after = problem.tasks[t].after;
      return after.size() >= unused && std::ranges::count_if(after, [&](uint32_t before) {
                                         return firstUser[before] >= p;
                                       }) == static_cast<std::ptrdiff_t>(unused);
    };
    if (std::ranges::all_of(open, isBehindAll)) cuts.push_back(p);
  }
  return cuts;
}

} // namespace candela::solvers::order
