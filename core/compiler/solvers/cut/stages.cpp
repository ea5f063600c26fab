#include "core/compiler/solvers/cut/stages.h"

#include <algorithm>

namespace candela::solvers::cut {

namespace {

/// What a value means to an order of items.
struct Use {
  uint32_t value = 0;
  bool isLast = false; ///< nobody reads it behind this
};

/// Who makes and reads what, by item.
struct Uses {
  std::vector<std::vector<Use>> made, read;

  explicit Uses(const CutProblem& problem)
      : made(problem.costs.size()), read(problem.costs.size()) {
    for (uint32_t v = 0; v < problem.values.size(); ++v) {
      const CutValue& value = problem.values[v];
      const bool isRead = !value.readers.empty();
      const uint32_t last = isRead ? *std::ranges::max_element(value.readers) : 0;
      if (value.producer != kOutside)
        made[value.producer].push_back({v, !isRead && !value.isReadOutside});
      for (const uint32_t reader : value.readers)
        read[reader].push_back({v, reader == last && !value.isReadOutside});
    }
  }
};

/// A stage on one label.
struct Stage {
  uint64_t work = 0, moved = 0;
  bool isAllowed = true;
  uint64_t time() const { return work + moved; }
};

/// Stages from one item on that grow item by item, one for each label.
class Growing {
public:
  Growing(const CutProblem& problem, const Uses& uses)
      : problem_(problem), uses_(uses), entered_(problem.values.size(), kOutside) {}

  void begin(uint32_t first) {
    first_ = first;
    stages_.assign(problem_.labels, {});
  }
  const std::vector<Stage>& stages() const { return stages_; }
  bool anyIsAllowed() const { return std::ranges::any_of(stages_, &Stage::isAllowed); }

  void add(uint32_t item, std::span<const CutTie* const> ties) {
    for (uint32_t label = 0; label < problem_.labels; ++label) {
      const uint64_t cost = problem_.costs[item][label];
      stages_[label].isAllowed &= cost != kForbidden;
      if (cost != kForbidden) stages_[label].work += cost;
    }
    for (const CutTie* tie : ties)
      if (tie->leader < first_) stages_[tie->label].isAllowed = false;
    for (const Use& use : uses_.read[item]) read(use);
    for (const Use& use : uses_.made[item])
      if (!use.isLast) move(problem_.values[use.value].leave, true);
  }

private:
  void read(const Use& use) {
    const CutValue& value = problem_.values[use.value];
    const bool isInside = value.producer != kOutside && value.producer >= first_;
    if (isInside) {
      if (use.isLast) move(value.leave, false);
      return;
    }
    if (entered_[use.value] == first_) return;
    entered_[use.value] = first_;
    move(value.enter, true);
  }

  void move(const std::vector<uint64_t>& costs, bool isMore) {
    for (uint32_t label = 0; label < problem_.labels; ++label) {
      uint64_t& moved = stages_[label].moved;
      moved = isMore ? moved + costs[label] : moved - costs[label];
    }
  }

  const CutProblem& problem_;
  const Uses& uses_;
  std::vector<uint32_t> entered_; ///< by value: the beginning of the stage that it entered last
  std::vector<Stage> stages_;
  uint32_t first_ = 0;
};

/// The best way to have the first items in the first stages.
struct Best {
  uint64_t value = kForbidden;
  uint32_t begin = 0; ///< of the last of these stages
};

class Planner {
public:
  explicit Planner(const CutProblem& problem)
      : problem_(problem), uses_(problem), ties_(problem.costs.size()) {
    for (const CutTie& tie : problem.ties) ties_[tie.item].push_back(&tie);
  }

  /// The least of what `valueOf` makes of the value of earlier stages and one more stage, by count
  /// of stages and of items.
  template <typename ValueOf> std::vector<std::vector<Best>> sweep(ValueOf&& valueOf) const {
    const auto count = static_cast<uint32_t>(problem_.costs.size());
    std::vector<std::vector<Best>> best(problem_.labels + 1, std::vector<Best>(count + 1));
    best[0][0].value = 0;
    Growing growing(problem_, uses_);
    for (uint32_t begin = 0; begin <= count; ++begin) {
      for (uint32_t label = 0; label < problem_.labels; ++label) // an empty stage
        if (best[label][begin].value < best[label + 1][begin].value)
          best[label + 1][begin] = {best[label][begin].value, begin};
      growing.begin(begin);
      for (uint32_t item = begin; item < count && growing.anyIsAllowed(); ++item) {
        growing.add(item, ties_[item]);
        for (uint32_t label = 0; label < problem_.labels; ++label) {
          const Stage& stage = growing.stages()[label];
          const uint64_t before = best[label][begin].value;
          if (!stage.isAllowed || before == kForbidden) continue;
          const uint64_t value = valueOf(before, stage);
          if (value < best[label + 1][item + 1].value) best[label + 1][item + 1] = {value, begin};
        }
      }
    }
    return best;
  }

  /// Labels of items, and times of stages, from the end on.
  StagePlan planOf(const std::vector<std::vector<Best>>& best) const {
    StagePlan plan{std::vector<uint32_t>(problem_.costs.size()),
                   std::vector<uint64_t>(problem_.labels)};
    Growing growing(problem_, uses_);
    auto end = static_cast<uint32_t>(problem_.costs.size());
    for (uint32_t label = problem_.labels; label-- > 0;) {
      const uint32_t begin = best[label + 1][end].begin;
      growing.begin(begin);
      for (uint32_t item = begin; item < end; ++item) {
        growing.add(item, ties_[item]);
        plan.labels[item] = label;
      }
      const Stage stage = growing.stages()[label];
      plan.times[label] = stage.time();
      plan.moved += stage.moved;
      end = begin;
    }
    return plan;
  }

private:
  const CutProblem& problem_;
  const Uses uses_;
  std::vector<std::vector<const CutTie*>> ties_; ///< by item
};

Status checkOrder(const CutProblem& problem) {
  for (size_t v = 0; v < problem.values.size(); ++v)
    for (const uint32_t reader : problem.values[v].readers)
      if (problem.values[v].producer != kOutside && reader <= problem.values[v].producer)
        return badArgument("value {} of item {} is read by item {} before it", v,
                           problem.values[v].producer, reader);
  return Status::ok();
}

} // namespace

Result<StagePlan> planStages(const CutProblem& problem) {
  CDL_TRY(checkProblem(problem));
  CDL_TRY(checkOrder(problem));
  const Planner planner(problem);
  const auto slowest = planner.sweep(
      [](uint64_t before, const Stage& stage) { return std::max(before, stage.time()); });
  const uint64_t least = slowest[problem.labels][problem.costs.size()].value;
  if (least == kForbidden)
    return failure(Code::unsupported, "no {} contiguous stages are allowed", problem.labels);
  const auto moved = planner.sweep([&](uint64_t before, const Stage& stage) {
    return stage.time() <= least ? before + stage.moved : kForbidden;
  });
  StagePlan plan = planner.planOf(moved);
  plan.slowest = least;
  return plan;
}

} // namespace candela::solvers::cut
