// The best order of series-parallel graphs whose tasks take and give the same bytes in all orders.
//
// A job is a run of tasks with a hill, the most that it takes, and a net, what it leaves taken. Two
// jobs that nothing orders stand best by comesBefore: first jobs that give memory back, the lowest
// hill first; then jobs that take some, the largest fall from hill to net first. In series, a job
// that would like to stand before its predecessor is joined with it, for nothing gains by standing
// between them. What is left of a series is sorted, and so parallel parts merge like sorted lists.
//
// Proved best by H. Abdel-Wahab and T. Kameda, "Scheduling to Minimize Maximum Cumulative Cost
// Subject to Series-Parallel Precedence Constraints", Operations Research, 1978. A part that is
// neither in series nor in parallel keeps its order: there the result is a heuristic.
#include <algorithm>
#include <numeric>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {

namespace {

/// Tasks that run together, and the bytes that they take.
struct Job {
  std::vector<uint32_t> tasks;
  int64_t hill = 0; ///< at most
  int64_t net = 0;  ///< in the end
};

bool comesBefore(const Job& a, const Job& b) {
  if ((a.net <= 0) != (b.net <= 0)) return a.net <= 0;
  return a.net <= 0 ? a.hill < b.hill : a.hill - a.net > b.hill - b.net;
}

/// Adds the jobs of the next part in a series. Where a job would like to stand before the one in
/// front of it, the two are joined.
void append(std::vector<Job>& jobs, std::vector<Job> behind) {
  for (Job& job : behind) {
    jobs.push_back(std::move(job));
    while (jobs.size() > 1 && comesBefore(jobs.back(), jobs[jobs.size() - 2])) {
      const Job last = std::move(jobs.back());
      jobs.pop_back();
      Job& before = jobs.back();
      before.tasks.insert(before.tasks.end(), last.tasks.begin(), last.tasks.end());
      before.hill = std::max(before.hill, before.net + last.hill);
      before.net += last.net;
    }
  }
}

class Merger {
public:
  explicit Merger(const OrderProblem& problem)
      : problem_(problem), local_(problem.tasks.size(), UINT32_MAX) {
    const Walk walk(problem);
    WalkState state = walk.start(0);
    for (uint32_t t = 0; t < problem.tasks.size(); ++t) {
      const Effect effect = walk.effectOf(state, t);
      singles_.push_back({{t},
                          static_cast<int64_t>(effect.hill - state.live),
                          static_cast<int64_t>(effect.live) - static_cast<int64_t>(state.live)});
      walk.run(state, t, effect);
    }
  }

  /// The jobs of some tasks, sorted. The tasks stand in an allowed order.
  std::vector<Job> jobsOf(const std::vector<uint32_t>& tasks) {
    if (tasks.size() == 1) return {singles_[tasks[0]]};
    std::vector<Job> jobs;
    const OrderProblem graph = graphOf(tasks);
    std::vector<size_t> cuts = cutsOf(graph);
    if (!cuts.empty()) {
      cuts.push_back(tasks.size());
      size_t begin = 0;
      for (const size_t end : cuts) {
        append(jobs, jobsOf({tasks.begin() + static_cast<std::ptrdiff_t>(begin),
                             tasks.begin() + static_cast<std::ptrdiff_t>(end)}));
        begin = end;
      }
      return jobs;
    }
    const std::vector<std::vector<uint32_t>> parts = componentsOf(graph, tasks);
    if (parts.size() > 1) {
      for (const std::vector<uint32_t>& part : parts) {
        std::vector<Job> own = jobsOf(part);
        jobs.insert(jobs.end(), std::make_move_iterator(own.begin()),
                    std::make_move_iterator(own.end()));
      }
      std::ranges::stable_sort(jobs, comesBefore);
      return jobs;
    }
    for (const uint32_t task : tasks) append(jobs, {singles_[task]});
    return jobs;
  }

private:
  /// The precedences among these tasks, without buffers.
  OrderProblem graphOf(const std::vector<uint32_t>& tasks) {
    OrderProblem graph;
    for (uint32_t i = 0; i < tasks.size(); ++i) local_[tasks[i]] = i;
    for (const uint32_t t : tasks) {
      OrderTask& task = graph.tasks.emplace_back();
      for (const uint32_t before : problem_.tasks[t].after)
        if (local_[before] != UINT32_MAX) task.after.push_back(local_[before]);
    }
    for (const uint32_t t : tasks) local_[t] = UINT32_MAX;
    return graph;
  }

  static std::vector<std::vector<uint32_t>> componentsOf(const OrderProblem& graph,
                                                         const std::vector<uint32_t>& tasks) {
    std::vector<uint32_t> root(tasks.size());
    std::iota(root.begin(), root.end(), 0);
    const auto rootOf = [&](uint32_t t) {
      while (root[t] != t) t = root[t] = root[root[t]];
      return t;
    };
    for (uint32_t t = 0; t < graph.tasks.size(); ++t)
      for (const uint32_t before : graph.tasks[t].after) {
        const uint32_t a = rootOf(t), b = rootOf(before);
        root[std::max(a, b)] = std::min(a, b);
      }
    std::vector<std::vector<uint32_t>> parts;
    std::vector<uint32_t> partOf(tasks.size(), UINT32_MAX);
    for (uint32_t t = 0; t < tasks.size(); ++t) {
      uint32_t& part = partOf[rootOf(t)];
      if (part == UINT32_MAX) {
        part = static_cast<uint32_t>(parts.size());
        parts.emplace_back();
      }
      parts[part].push_back(tasks[t]);
    }
    return parts;
  }

  const OrderProblem& problem_;
  std::vector<Job> singles_;
  std::vector<uint32_t> local_; ///< scratch of graphOf
};

} // namespace

std::vector<uint32_t> mergedOrder(const OrderProblem& problem) {
  std::vector<uint32_t> tasks(problem.tasks.size()), order;
  std::iota(tasks.begin(), tasks.end(), 0);
  for (const Job& job : Merger(problem).jobsOf(tasks))
    order.insert(order.end(), job.tasks.begin(), job.tasks.end());
  return order;
}

} // namespace candela::solvers::order
