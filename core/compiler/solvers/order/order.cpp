#include "core/compiler/solvers/order/order.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/compiler/solvers/order/walk.h"

namespace candela::solvers::order {

namespace {

constexpr size_t kWindow = 24;            // tasks around a peak that are ordered anew
constexpr uint64_t kWindowStates = 2'000; // for one of them
constexpr int kWindows = 64;              // in one part
constexpr size_t kWideTasks = 500;        // a beam over more of them is narrower

Status check(const OrderProblem& problem, const OrderOptions& options) {
  if (options.width == 0) return badArgument("a beam of width 0 keeps nothing");
  uint64_t total = problem.base;
  const auto add = [&](uint64_t bytes) { return !__builtin_add_overflow(total, bytes, &total); };
  for (size_t b = 0; b < problem.buffers.size(); ++b)
    if (!add(problem.buffers[b].bytes))
      return badArgument("buffer {} of {} bytes is beyond 64 bits", b, problem.buffers[b].bytes);
  std::vector<std::pair<size_t, size_t>> seen(problem.buffers.size(), {SIZE_MAX, 0});
  for (size_t t = 0; t < problem.tasks.size(); ++t) {
    for (const uint32_t before : problem.tasks[t].after)
      if (before >= t)
        return badArgument("task {} stands behind task {}, which is not before it", t, before);
    for (size_t s = 0; s < problem.tasks[t].steps.size(); ++s) {
      const OrderStep& step = problem.tasks[t].steps[s];
      if (!add(step.transient))
        return badArgument("task {} takes {} bytes, beyond 64 bits", t, step.transient);
      for (const uint32_t buffer : step.buffers) {
        if (buffer >= problem.buffers.size())
          return badArgument("task {} touches buffer {} of {}", t, buffer, problem.buffers.size());
        if (seen[buffer] == std::pair(t, s))
          return badArgument("task {} names buffer {} twice in a step", t, buffer);
        seen[buffer] = {t, s};
      }
      for (const auto& [a, b] : step.inPlace) {
        const auto isTouched = [&](uint32_t x) {
          return x < seen.size() && seen[x] == std::pair(t, s);
        };
        if (!isTouched(a) || !isTouched(b) || a == b)
          return badArgument("task {} puts buffer {} in the place of {}, and does not touch both",
                             t, a, b);
        if (problem.buffers[a].bytes != problem.buffers[b].bytes)
          return badArgument("task {} puts buffer {} of {} bytes in the place of {}, which has {}",
                             t, a, problem.buffers[a].bytes, b, problem.buffers[b].bytes);
      }
    }
  }
  for (size_t b = 0; b < seen.size(); ++b)
    if (seen[b].first == SIZE_MAX && problem.buffers[b].liveIn != problem.buffers[b].liveOut)
      return badArgument("buffer {} is live at one end alone, and no task touches it", b);
  return Status::ok();
}

std::vector<uint32_t> upTo(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// One part of a problem, and the best order of it so far.
class Part {
public:
  Part(OrderProblem problem, uint32_t width)
      : problem_(std::move(problem)), order_(upTo(problem_.tasks.size())),
        peak_(peakOf(problem_, order_)),
        width_(std::max<uint32_t>(
            1, static_cast<uint32_t>(width * kWideTasks /
                                     std::max(kWideTasks, problem_.tasks.size())))) {}

  const std::vector<uint32_t>& order() const { return order_; }
  uint64_t peak() const { return peak_; }
  bool isSolved() const { return solved_; }
  bool isProved() const { return proved_; }

  /// Peaks up to `bound` are as good as that.
  void solve(uint64_t bound, uint64_t& states) {
    solved_ = true;
    const OrderProblem backwards = reversed(problem_);
    const auto fromBehind = [&](std::vector<uint32_t> order) {
      std::ranges::reverse(order);
      for (uint32_t& task : order) task = static_cast<uint32_t>(problem_.tasks.size()) - 1 - task;
      return order;
    };
    const std::function<void()> quick[] = {
        [&] { take(beamOrder(problem_, bound, 1, true)); }, [&] { take(mergedOrder(problem_)); },
        [&] { take(fromBehind(beamOrder(backwards, bound, 1, true))); }};
    for (const auto& heuristic : quick) {
      if ((proved_ = peak_ <= bound)) return;
      heuristic();
    }
    if ((proved_ = peak_ <= bound)) return;
    // One direction may take far fewer states than the other.
    ExactResult best = search(problem_, bound, states);
    if (!best.complete) {
      best = search(backwards, bound, states);
      best.order = fromBehind(std::move(best.order));
    }
    if (!best.order.empty()) take(std::move(best.order));
    if ((proved_ = best.complete)) return;
    if (width_ > 1) {
      take(beamOrder(problem_, bound, width_, false));
      take(fromBehind(beamOrder(backwards, bound, width_, false)));
    }
    mergeAgain();
    for (int i = 0; i < kWindows && peak_ > bound && betterWindow(bound, states); ++i) {}
    proved_ = peak_ <= bound;
  }

private:
  void take(std::vector<uint32_t> order) {
    const uint64_t peak = peakOf(problem_, order);
    if (peak >= peak_) return;
    order_ = std::move(order);
    peak_ = peak;
  }

  ExactResult search(const OrderProblem& problem, uint64_t bound, uint64_t& states) const {
    const uint64_t share = states / 2; // other parts may need some
    uint64_t left = share;
    ExactResult best = exactOrder(problem, bound, peak_, left);
    states -= share - left;
    return best;
  }

  /// Merges anew, by what the tasks take and give in the best order so far, as long as that helps.
  void mergeAgain() {
    for (uint64_t before = 0; before != peak_;) {
      before = peak_;
      std::vector<uint32_t> order;
      for (const uint32_t at : mergedOrder(reordered(problem_, order_)))
        order.push_back(order_[at]);
      take(std::move(order));
    }
  }

  /// Searches a better order for the tasks around the peak. True: the hill there is lower now.
  bool betterWindow(uint64_t bound, uint64_t& states) {
    const size_t at = placeOfPeak();
    const size_t count = order_.size(), size = std::min(kWindow, count);
    for (const size_t behind : {size / 2, size / 4, 3 * size / 4}) {
      const size_t begin = std::min(at - std::min(at, size - behind), count - size);
      const OrderProblem window = partOf(problem_, order_, begin, begin + size);
      uint64_t left = std::min(kWindowStates, states);
      states -= left;
      const ExactResult better = exactOrder(window, bound, peak_, left);
      states += left;
      if (better.order.empty()) continue;
      std::vector<uint32_t> order = order_;
      for (size_t i = 0; i < size; ++i) order[begin + i] = order_[begin + better.order[i]];
      order_ = std::move(order);
      peak_ = peakOf(problem_, order_);
      return true;
    }
    return false;
  }

  size_t placeOfPeak() const {
    const Walk walk(problem_);
    WalkState state = walk.start(0);
    for (size_t at = 0; at < order_.size(); ++at) {
      const Effect effect = walk.effectOf(state, order_[at]);
      if (effect.hill == peak_) return at;
      walk.run(state, order_[at], effect);
    }
    return 0;
  }

  OrderProblem problem_;
  std::vector<uint32_t> order_;
  uint64_t peak_ = 0;
  uint32_t width_ = 1;
  bool solved_ = false, proved_ = false;
};

/// The cuts next to which more than `bound` is taken in the tasks' own order: parts between other
/// cuts have nothing to gain.
std::vector<size_t> cutsAbove(const OrderProblem& problem, uint64_t bound) {
  const Walk walk(problem);
  WalkState state = walk.start(0);
  const std::vector<size_t> cuts = cutsOf(problem);
  std::vector<size_t> above;
  size_t next = 0;
  bool wasHigh = false, isHigh = false; // before and behind the last cut
  for (uint32_t t = 0; t <= problem.tasks.size(); ++t) {
    const bool isCut = next < cuts.size() && cuts[next] == t;
    if (isCut || t == problem.tasks.size()) {
      if (next > 0 && (wasHigh || isHigh)) above.push_back(cuts[next - 1]);
      wasHigh = isHigh;
      isHigh = false;
      next += isCut;
      if (t == problem.tasks.size()) break;
    }
    const Effect effect = walk.effectOf(state, t);
    isHigh |= effect.hill > bound;
    walk.run(state, t, effect);
  }
  return above;
}

/// Cuts the problem into parts and improves the one with the highest peak, until that is proved to
/// be the least or was searched already. Sets plan.optimal and plan.states.
std::vector<Part> solveParts(const OrderProblem& problem, const OrderOptions& options,
                             OrderPlan& plan) {
  uint64_t bound = lowerBound(problem);
  std::vector<size_t> cuts = cutsAbove(problem, bound);
  cuts.push_back(problem.tasks.size());
  const std::vector<uint32_t> all = upTo(problem.tasks.size());
  std::vector<Part> parts;
  size_t begin = 0;
  for (const size_t end : cuts) {
    OrderProblem part = partOf(problem, all, begin, end);
    bound = std::max(bound, lowerBound(part));
    parts.emplace_back(std::move(part), options.width);
    begin = end;
  }
  uint64_t states = options.states;
  // The highest part decides: one that is lower than another's best needs no better order.
  for (;;) {
    Part& highest = *std::ranges::max_element(parts, {}, &Part::peak);
    plan.optimal = highest.peak() <= bound;
    if (plan.optimal || highest.isSolved()) break;
    highest.solve(bound, states);
    if (highest.isProved()) bound = std::max(bound, highest.peak());
  }
  plan.states = options.states - states;
  return parts;
}

} // namespace

Result<OrderPlan> planOrder(const OrderProblem& problem, const OrderOptions& options) {
  CDL_TRY(check(problem, options));
  OrderPlan plan;
  plan.order = upTo(problem.tasks.size());
  plan.peak = peakOf(problem, plan.order);
  plan.optimal = plan.peak <= lowerBound(problem);
  if (plan.optimal) return plan;
  const Contraction contraction = contract(problem);
  const std::vector<Part> parts = solveParts(contraction.problem, options, plan);
  std::vector<uint32_t> order;
  uint32_t first = 0;
  for (const Part& part : parts) {
    for (const uint32_t task : part.order()) {
      const std::vector<uint32_t>& members = contraction.members[first + task];
      order.insert(order.end(), members.begin(), members.end());
    }
    first += static_cast<uint32_t>(part.order().size());
  }
  if (const uint64_t peak = peakOf(problem, order); peak < plan.peak) {
    plan.order = std::move(order);
    plan.peak = peak;
  }
  return plan;
}

} // namespace candela::solvers::order
