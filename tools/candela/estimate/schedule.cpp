#include "tools/candela/estimate/schedule.h"

#include <algorithm>

namespace candela::tool {
namespace {

constexpr size_t kMostExecuted = 5000000;

/// A list schedule in the order of the program.
class Scheduler {
public:
  Scheduler(const cdl_image_t* image, const std::vector<InstrCost>& costs)
      : image_(image), costs_(costs), done_(costs.size()) {
    uint16_t engines = 0;
    for (uint32_t i = 1; i < costs.size(); ++i)
      engines = std::max(engines, cdl_get_instr(image, i)->engine);
    engineFree_.resize(engines + 1u);
  }

  std::optional<Schedule> run() {
    int64_t values[CDL_MAX_LOOP_NESTING] = {};
    for (uint32_t i = 1; i < costs_.size();) {
      if (schedule_.order.size() == kMostExecuted) return std::nullopt;
      execute(i);
      const uint32_t next = cdl_next_instr(image_, i, values);
      const bool isBackEdge = next <= i;
      if (isBackEdge) rest();
      i = next;
    }
    return std::move(schedule_);
  }

private:
  /// A barrier stands at the back edge of a loop.
  void rest() {
    std::ranges::fill(engineFree_, schedule_.cycles);
    busFree_ = schedule_.cycles;
  }

  void execute(uint32_t index) {
    const cdl_instr_t* instr = cdl_get_instr(image_, index);
    const InstrCost& cost = costs_[index];
    uint64_t start = engineFree_[instr->engine];
    for (uint32_t w = 0; w < instr->waits; ++w)
      start = std::max(start, done_[cdl_get_wait(image_, instr->first_wait + w)->instr]);
    uint64_t done = start + cost.cycles;
    if (cost.busCycles > 0) {
      done = std::max(done, busFree_ + cost.busCycles);
      busFree_ = done;
    }
    engineFree_[instr->engine] = done;
    done_[index] = done;
    schedule_.cycles = std::max(schedule_.cycles, done);
    schedule_.order.push_back({index, start, done});
  }

  const cdl_image_t* image_;
  const std::vector<InstrCost>& costs_;
  Schedule schedule_;
  std::vector<uint64_t> engineFree_, done_;
  uint64_t busFree_ = 0;
};

/// Stretches of time, one behind the other.
class Taken {
public:
  /// Takes what is left of a stretch; how much that was. Calls come by their starts.
  uint64_t take(uint64_t start, uint64_t done) {
    uint64_t left = 0;
    while (next_ < before_.size() && before_[next_].second <= start) ++next_;
    uint64_t at = std::max(start, last_);
    for (size_t k = next_; at < done; ++k) {
      const uint64_t end = k < before_.size() ? std::min(done, before_[k].first) : done;
      if (end > at) left += end - at;
      if (k == before_.size()) break;
      at = std::max(at, before_[k].second);
    }
    last_ = std::max(last_, done);
    now_.emplace_back(start, done);
    return left;
  }

  /// What was taken since counts for those that come next.
  void next() {
    std::vector<Stretch> all = std::move(before_);
    all.insert(all.end(), now_.begin(), now_.end());
    std::ranges::sort(all);
    before_.clear();
    for (const Stretch& each : all) {
      const bool goesOn = !before_.empty() && each.first <= before_.back().second;
      if (goesOn)
        before_.back().second = std::max(before_.back().second, each.second);
      else
        before_.push_back(each);
    }
    now_.clear();
    next_ = 0;
    last_ = 0;
  }

private:
  using Stretch = std::pair<uint64_t, uint64_t>;
  std::vector<Stretch> before_, now_;
  size_t next_ = 0;
  uint64_t last_ = 0;
};

bool computes(Unit unit) { return unit == Unit::matrix || unit == Unit::vector; }

void shareMoments(const std::vector<InstrCost>& costs, Schedule& schedule) {
  schedule.own.resize(costs.size());
  schedule.runs.resize(costs.size());
  for (const ScheduledInstr& each : schedule.order) ++schedule.runs[each.instr];
  Taken taken;
  const auto takeAll = [&](auto&& isOfKind) {
    for (const ScheduledInstr& each : schedule.order)
      if (isOfKind(costs[each.instr].unit))
        schedule.own[each.instr] += taken.take(each.start, each.done);
    taken.next();
  };
  takeAll(computes);
  takeAll([](Unit unit) { return unit == Unit::load; });
  takeAll([](Unit unit) { return unit == Unit::store; });
}

} // namespace

std::optional<Schedule> scheduleOf(const cdl_image_t* image, const std::vector<InstrCost>& costs) {
  std::optional<Schedule> schedule = Scheduler(image, costs).run();
  if (schedule) shareMoments(costs, *schedule);
  return schedule;
}

} // namespace candela::tool
