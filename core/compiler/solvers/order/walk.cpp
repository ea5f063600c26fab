#include "core/compiler/solvers/order/walk.h"

#include <algorithm>

namespace candela::solvers::order {

Walk::Walk(const OrderProblem& problem)
    : problem_(problem), tasks_(problem.tasks.size()), touchers_(problem.buffers.size()),
      users_(problem.tasks.size()) {
  std::vector<uint32_t> seen(problem.buffers.size(), UINT32_MAX);
  for (uint32_t t = 0; t < problem.tasks.size(); ++t) {
    const OrderTask& task = problem.tasks[t];
    for (const uint32_t before : task.after) users_[before].push_back(t);
    std::vector<Step>& steps = tasks_[t];
    for (const OrderStep& step : task.steps) {
      Step& mine = steps.emplace_back();
      mine.step = &step;
      for (const uint32_t buffer : step.buffers) {
        const bool first = seen[buffer] != t;
        seen[buffer] = t;
        if (first) touchers_[buffer].push_back(t);
        mine.touches.push_back({buffer, first, false});
      }
    }
    for (size_t s = steps.size(); s-- > 0;)
      for (Touch& touch : steps[s].touches)
        if (seen[touch.buffer] == t) {
          touch.last = true;
          seen[touch.buffer] = UINT32_MAX;
        }
  }
}

WalkState Walk::start(uint64_t bound) const {
  WalkState state;
  state.done.assign((tasks_.size() + 63) / 64, 0);
  state.live = problem_.base;
  for (const OrderBuffer& buffer : problem_.buffers) state.live += buffer.liveIn ? buffer.bytes : 0;
  state.peak = std::max(state.live, bound);
  for (uint32_t t = 0; t < tasks_.size(); ++t)
    if (problem_.tasks[t].after.empty()) state.ready.push_back(t);
  return state;
}

/// Whether no task has touched it.
bool Walk::isNew(const WalkState& state, uint32_t buffer) const {
  return !problem_.buffers[buffer].liveIn &&
         std::ranges::none_of(touchers_[buffer],
                              [&](uint32_t task) { return isDone(state, task); });
}

/// Whether no other task will touch it.
bool Walk::isLast(const WalkState& state, uint32_t buffer, uint32_t task) const {
  return !problem_.buffers[buffer].liveOut &&
         std::ranges::all_of(touchers_[buffer],
                             [&](uint32_t other) { return other == task || isDone(state, other); });
}

Effect Walk::effectOf(const WalkState& state, uint32_t task) const {
  Effect effect{state.live, state.live};
  std::vector<uint32_t> born, gone;
  for (const Step& step : tasks_[task]) {
    uint64_t taken = 0, given = 0;
    born.clear();
    gone.clear();
    for (const Touch& touch : step.touches) {
      const uint64_t bytes = problem_.buffers[touch.buffer].bytes;
      if (touch.first && isNew(state, touch.buffer)) {
        taken += bytes;
        if (!step.step->inPlace.empty()) born.push_back(touch.buffer);
      }
      if (touch.last && isLast(state, touch.buffer, task)) {
        given += bytes;
        if (!step.step->inPlace.empty()) gone.push_back(touch.buffer);
      }
    }
    uint64_t shared = 0;
    const auto has = [](const std::vector<uint32_t>& list, uint32_t buffer) {
      return std::ranges::find(list, buffer) != list.end();
    };
    for (const auto& [a, b] : step.step->inPlace)
      if (has(born, a) && has(gone, b)) {
        shared = problem_.buffers[a].bytes;
        break;
      }
    effect.hill = std::max(effect.hill, effect.live + taken + step.step->transient - shared);
    effect.live = effect.live + taken - given;
  }
  return effect;
}

void Walk::run(WalkState& state, uint32_t task, const Effect& effect) const {
  state.done[task / 64] |= uint64_t{1} << (task % 64);
  state.live = effect.live;
  state.peak = std::max(state.peak, effect.hill);
  state.ready.erase(std::ranges::find(state.ready, task));
  for (const uint32_t user : users_[task])
    if (std::ranges::all_of(problem_.tasks[user].after,
                            [&](uint32_t before) { return isDone(state, before); }))
      state.ready.push_back(user);
}

void Walk::settle(WalkState& state, std::vector<uint32_t>& tasks) const {
  for (bool any = true; any;) { // others may give bytes back then
    any = false;
    for (size_t r = 0; r < state.ready.size();) {
      const uint32_t task = state.ready[r];
      const Effect effect = effectOf(state, task);
      if (effect.live > state.live || effect.hill > state.peak) {
        ++r;
        continue;
      }
      run(state, task, effect);
      tasks.push_back(task);
      any = true;
    }
  }
}

uint64_t peakOf(const OrderProblem& problem, std::span<const uint32_t> order) {
  const Walk walk(problem);
  WalkState state = walk.start(0);
  for (const uint32_t task : order) walk.run(state, task, walk.effectOf(state, task));
  return state.peak;
}

uint64_t lowerBound(const OrderProblem& problem) {
  uint64_t bound = 0;
  for (const OrderTask& task : problem.tasks)
    for (const OrderStep& step : task.steps) {
      uint64_t bytes = problem.base + step.transient, shared = 0;
      for (const uint32_t buffer : step.buffers) bytes += problem.buffers[buffer].bytes;
      for (const auto& pair : step.inPlace)
        shared = std::max(shared, problem.buffers[pair.first].bytes);
      bound = std::max(bound, bytes - shared);
    }
  uint64_t in = problem.base, out = problem.base;
  for (const OrderBuffer& buffer : problem.buffers) {
    in += buffer.liveIn ? buffer.bytes : 0;
    out += buffer.liveOut ? buffer.bytes : 0;
  }
  return std::max({bound, in, out});
}

static constexpr uint8_t kBefore = 1, kInside = 2, kBehind = 4;
static uint8_t placeOf(size_t at, size_t begin, size_t end) {
  if (at < begin) return kBefore;
  return at < end ? kInside : kBehind;
}

OrderProblem partOf(const OrderProblem& problem, std::span<const uint32_t> order, size_t begin,
                    size_t end) {
  // By buffer: on which sides of the part it is touched, as kBefore, kInside and kBehind.
  std::vector<uint8_t> where(problem.buffers.size(), 0);
  std::vector<uint32_t> newTask(problem.tasks.size(), UINT32_MAX),
      newBuffer(problem.buffers.size(), UINT32_MAX);
  for (size_t at = 0; at < order.size(); ++at)
    for (const OrderStep& step : problem.tasks[order[at]].steps)
      for (const uint32_t buffer : step.buffers) where[buffer] |= placeOf(at, begin, end);
  OrderProblem part;
  part.base = problem.base;
  for (uint32_t b = 0; b < problem.buffers.size(); ++b) {
    OrderBuffer buffer = problem.buffers[b];
    buffer.liveIn |= (where[b] & kBefore) != 0;
    buffer.liveOut |= (where[b] & kBehind) != 0;
    if (where[b] & kInside) {
      newBuffer[b] = static_cast<uint32_t>(part.buffers.size());
      part.buffers.push_back(buffer);
    } else if (buffer.liveIn && buffer.liveOut) {
      part.base += buffer.bytes;
    }
  }
  for (size_t at = begin; at < end; ++at) {
    OrderTask task = problem.tasks[order[at]];
    for (OrderStep& step : task.steps) {
      for (uint32_t& buffer : step.buffers) buffer = newBuffer[buffer];
      for (auto& [a, b] : step.inPlace) {
        a = newBuffer[a];
        b = newBuffer[b];
      }
    }
    std::erase_if(task.after, [&](uint32_t before) { return newTask[before] == UINT32_MAX; });
    for (uint32_t& before : task.after) before = newTask[before];
    newTask[order[at]] = static_cast<uint32_t>(part.tasks.size());
    part.tasks.push_back(std::move(task));
  }
  return part;
}

OrderProblem reordered(const OrderProblem& problem, std::span<const uint32_t> order) {
  return partOf(problem, order, 0, order.size());
}

OrderProblem reversed(const OrderProblem& problem) {
  OrderProblem other = problem;
  const auto count = static_cast<uint32_t>(problem.tasks.size());
  for (OrderBuffer& buffer : other.buffers) std::swap(buffer.liveIn, buffer.liveOut);
  std::ranges::reverse(other.tasks);
  for (OrderTask& task : other.tasks) {
    std::ranges::reverse(task.steps);
    for (OrderStep& step : task.steps)
      for (auto& [a, b] : step.inPlace) std::swap(a, b);
    task.after.clear();
  }
  for (uint32_t t = count; t-- > 0;) // from the last one: lists come out ascending
    for (const uint32_t before : problem.tasks[t].after)
      other.tasks[count - 1 - before].after.push_back(count - 1 - t);
  return other;
}

} // namespace candela::solvers::order
