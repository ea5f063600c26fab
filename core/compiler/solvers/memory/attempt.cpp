// Models a plan as rectangles in a strip: a body takes a stretch of time, and is placed at a
// height. Asked is whether all bodies fit below the capacity.
//
// A plan in which a body can be lowered stays a plan when it is lowered. So only plans in which
// none can be lowered are searched, and those can be built bottom up: a body that is placed lies as
// low as those placed before it let it, and what meets it later lies above it. A choice is which
// body is the next from below. Three techniques keep the search small:
// - A node tries only the bodies of one valley, a stretch of time whose neighbours reach higher:
//   some body there must be the next from below, or none anywhere.
// - A body that failed at its place sleeps until one that it meets is placed, so that the same plan
//   is not tried in another order. A sleeping body must lie above one that is still to come, which
//   raises the lowest place that it can have (sleep sets).
// - A failure names the placed bodies that it follows from. Where the latest choice is not among
//   them, its alternatives are passed over (conflict-directed backjumping).
//
// Sections of time, the search from below and the static orders: M. Moffitt, "MiniMalloc: A
// Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023. Sleep sets:
// P. Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems", 1996.
// Backjumping: P. Prosser, "Hybrid Algorithms for the Constraint Satisfaction Problem", 1993.
#include "core/compiler/solvers/memory/attempt.h"

#include <algorithm>
#include <utility>

namespace candela::solvers::memory {
namespace {

constexpr uint32_t kNobody = UINT32_MAX;

/// A set of items, as bits.
class ItemSet {
public:
  explicit ItemSet(size_t count) : words_((count + 63) / 64, 0) {}
  void add(uint32_t i) { words_[i >> 6] |= uint64_t{1} << (i & 63); }
  void remove(uint32_t i) { words_[i >> 6] &= ~(uint64_t{1} << (i & 63)); }
  bool has(uint32_t i) const { return (words_[i >> 6] >> (i & 63) & 1) != 0; }
  void add(const ItemSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  void addCommon(const ItemSet& a, const ItemSet& b) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= a.words_[w] & b.words_[w];
  }
  void clear() { std::ranges::fill(words_, 0); }

private:
  std::vector<uint64_t> words_;
};

/// What is known of an item that is not placed.
struct State {
  uint64_t rest = 0;     ///< the lowest place above the items that are placed
  uint64_t least = 0;    ///< no plan has it lower; above `rest` only because it slept
  uint32_t on = kNobody; ///< the placed item that `rest` follows from
  bool sleeps = false;
};

/// Items that are not placed and touch in time, by first section.
struct Rest {
  std::vector<uint32_t> items;
  uint32_t first = 0, last = 0; // sections
};

class Run {
public:
  Run(const Bodies& bodies, const Sections& sections, uint64_t capacity,
      const std::vector<uint32_t>& rank, uint64_t limit)
      : bodies_(bodies), sections_(sections), items_(sections.items), capacity_(capacity),
        rank_(rank), limit_(limit), states_(items_.size()), on_(items_.size(), kNobody),
        unplaced_(items_.size(), true), asked_(items_.size(), 0), placed_(items_.size()),
        meets_(items_.size(), ItemSet(items_.size())),
        slept_(items_.size(), ItemSet(items_.size())),
        raised_(items_.size(), ItemSet(items_.size())), left_(sections.count, 0),
        floor_(sections.count, 0) {
    made_.origins.assign(items_.size(), 0);
    for (uint32_t i = 0; i < items_.size(); ++i) {
      for (const uint32_t j : items_[i].near) meets_[i].add(j);
      addHeights(i, 1);
    }
  }

  Attempt run() {
    Rest all{{}, 0, sections_.count};
    for (uint32_t i = 0; i < items_.size(); ++i) {
      all.items.push_back(i);
      states_[i].rest = states_[i].least = lowest(i, 0);
      if (!reaches(i, states_[i].rest)) made_.verdict = Verdict::NeverFits;
    }
    if (made_.verdict == Verdict::NeverFits) return made_;
    ItemSet why(items_.size());
    if (solve(all, why))
      made_.verdict = Verdict::Fits;
    else
      made_.verdict = stopped_ ? Verdict::Undecided : Verdict::NeverFits;
    return std::move(made_);
  }

private:
  uint64_t lowest(uint32_t item, uint64_t from) const {
    return bodies_.lowest(bodies_.all()[items_[item].body], from);
  }
  bool reaches(uint32_t item, uint64_t place) const {
    return place != kNowhere && place + items_[item].height <= capacity_;
  }

  void addHeights(uint32_t item, int sign) {
    for (const Piece& piece : items_[item].pieces)
      for (uint32_t s = piece.first; s < piece.last; ++s)
        left_[s] += sign > 0 ? piece.height : -piece.height;
  }

  // Adds the placed items below an item, down to the ground.
  void addBelow(uint32_t on, ItemSet& why) const {
    for (; on != kNobody; on = on_[on]) why.add(on);
  }
  // Adds the placed items from which it follows that an item lies no lower than `least`, once per
  // explanation.
  void explain(uint32_t item, ItemSet& why) {
    if (asked_[item] == explanation_) return;
    asked_[item] = explanation_;
    addBelow(states_[item].on, why);
    if (states_[item].least > states_[item].rest) why.add(raised_[item]);
  }

  struct Raise {
    uint32_t item;
    uint64_t least;
    ItemSet why;
  };

  // Raises each sleeping item above the lowest one that is still to come and that it meets. False,
  // with the reason, when it then fits nowhere.
  bool raiseSleepers(const Rest& rest, std::vector<Raise>& raises, ItemSet& why) {
    constexpr int kPasses = 3; // further ones rarely raise anybody
    bool more = true;
    for (int pass = 0; more && pass < kPasses; ++pass) {
      more = false;
      for (const uint32_t i : rest.items) {
        if (!states_[i].sleeps) continue;
        uint64_t above = kNowhere;
        for (const uint32_t j : items_[i].near)
          if (unplaced_[j]) above = std::min(above, states_[j].least + sections_.heightUnder(j, i));
        if (above <= states_[i].least) continue;
        const uint64_t place = above == kNowhere ? kNowhere : lowest(i, above);
        const bool fits = reaches(i, place);
        ItemSet reason = slept_[i];
        reason.addCommon(placed_, meets_[i]);
        addBelow(states_[i].on, reason);
        asked_[i] = ++explanation_;
        const uint64_t needed = fits ? above : std::min(above, capacity_ - items_[i].height + 1);
        for (const uint32_t j : items_[i].near)
          if (unplaced_[j] && sections_.heightUnder(j, i) < needed) explain(j, reason);
        if (!fits) {
          why = std::move(reason);
          return false;
        }
        raises.push_back({i, states_[i].least, std::exchange(raised_[i], std::move(reason))});
        states_[i].least = place;
        more = true;
      }
    }
    return true;
  }

  // Whether each section has room for all that is still to come there. False with the reason.
  bool haveRoom(const Rest& rest, ItemSet& why) {
    std::fill(floor_.begin() + rest.first, floor_.begin() + rest.last, kNowhere);
    for (const uint32_t i : rest.items)
      for (const Piece& piece : items_[i].pieces)
        for (uint32_t s = piece.first; s < piece.last; ++s)
          floor_[s] = std::min(floor_[s], states_[i].least);
    uint32_t fullest = kNobody;
    uint64_t most = capacity_;
    for (uint32_t s = rest.first; s < rest.last; ++s)
      if (left_[s] != 0 && floor_[s] + left_[s] > most) {
        most = floor_[s] + left_[s];
        fullest = s;
      }
    if (fullest == kNobody) return true;
    why.clear();
    ++explanation_;
    for (const uint32_t i : rest.items)
      for (const Piece& piece : items_[i].pieces)
        if (piece.first <= fullest && fullest < piece.last) explain(i, why);
    return false;
  }

  // The item whose valley is filled next: the one with the lowest top.
  uint32_t chosen(const Rest& rest) const {
    return *std::ranges::min_element(
        rest.items, {}, [&](uint32_t i) { return states_[i].least + items_[i].height; });
  }

  // The items that may be the next from below in the valley of `item`, in the order of preference;
  // `why` gets the reasons against all others. In a plan in which nobody can be lowered, `item`
  // lies at its place, or above one that it meets and that begins below its top; so on from that
  // one, always below the top: the last in this chain is in the valley.
  std::vector<uint32_t> candidates(const Rest& rest, uint32_t item, ItemSet& why) {
    const uint64_t top = states_[item].least + items_[item].height;
    uint32_t first = items_[item].first, last = items_[item].last;
    const auto inside = [&](uint32_t i) {
      return items_[i].first < last && first < items_[i].last;
    };
    for (bool grows = true; grows;) {
      grows = false;
      for (const uint32_t i : rest.items)
        if (states_[i].least < top && inside(i) &&
            (items_[i].first < first || items_[i].last > last)) {
          first = std::min(first, items_[i].first);
          last = std::max(last, items_[i].last);
          grows = true;
        }
    }
    ++explanation_;
    std::vector<uint32_t> found;
    for (const uint32_t i : rest.items) {
      if (!inside(i)) continue;
      const State& state = states_[i];
      if (state.least < top) why.addCommon(placed_, meets_[i]);
      if (state.sleeps && state.least < top) why.add(slept_[i]);
      if (state.least >= top || state.least > state.rest)
        explain(i, why);
      else if (!state.sleeps &&
               !(items_[i].twin >= 0 && unplaced_[static_cast<size_t>(items_[i].twin)]))
        found.push_back(i);
    }
    std::ranges::sort(found, {}, [&](uint32_t i) { return std::pair{states_[i].rest, rank_[i]}; });
    return found;
  }

  // Lifts the other items after `item` was placed, and splits them into parts that no item reaches
  // across. Returns the first one that fits nowhere any more.
  std::optional<uint32_t> lift(const Rest& rest, uint32_t item, std::vector<Rest>& parts) {
    const uint64_t origin = made_.origins[item];
    uint32_t reach = 0;
    for (const uint32_t i : rest.items) {
      if (i == item) continue;
      State& state = states_[i];
      if (const uint64_t height = sections_.heightUnder(item, i); height != 0) {
        state.sleeps = false;
        if (const uint64_t place = lowest(i, origin + height); place > state.rest) {
          state.rest = place;
          state.on = item;
        }
        state.least = std::max(state.least, state.rest);
      }
      if (!reaches(i, state.rest)) return i;
      if (parts.empty() || items_[i].first >= reach) parts.push_back({{}, items_[i].first, 0});
      reach = std::max(reach, items_[i].last);
      parts.back().items.push_back(i);
      parts.back().last = reach;
    }
    std::ranges::stable_sort(parts, {}, [](const Rest& part) { return part.items.size(); });
    return std::nullopt;
  }

  // Follows one choice. False: `why` holds the placed items, perhaps this one too, from which it
  // follows that there is no plan.
  bool place(const Rest& rest, uint32_t item, ItemSet& why) {
    made_.origins[item] = states_[item].rest;
    on_[item] = states_[item].on;
    placed_.add(item);
    unplaced_[item] = false;
    addHeights(item, -1);
    std::vector<Rest> parts;
    bool good = true;
    if (const auto stuck = lift(rest, item, parts)) {
      good = false;
      why.clear();
      addBelow(states_[*stuck].on, why);
    }
    for (size_t i = 0; good && i < parts.size(); ++i) good = solve(parts[i], why);
    addHeights(item, 1);
    unplaced_[item] = true;
    placed_.remove(item);
    return good;
  }

  bool branch(const Rest& rest, ItemSet& why) {
    ItemSet reasons(items_.size());
    const std::vector<uint32_t> tries = candidates(rest, chosen(rest), reasons);
    std::vector<State> before;
    for (const uint32_t i : rest.items) before.push_back(states_[i]);
    const auto back = [&] {
      for (size_t k = 0; k < before.size(); ++k) states_[rest.items[k]] = before[k];
    };
    std::vector<std::pair<uint32_t, ItemSet>> sleepers; // with what slept_ held before
    bool good = false, jumps = false;
    for (const uint32_t item : tries) {
      ItemSet failure(items_.size());
      good = place(rest, item, failure);
      if (good) break;
      back();
      for (const auto& [sleeper, kept] : sleepers) states_[sleeper].sleeps = true;
      if (stopped_) break;
      if (!failure.has(item)) {
        jumps = true;
        why = std::move(failure);
        break;
      }
      failure.remove(item);
      addBelow(states_[item].on, failure);
      reasons.add(failure);
      sleepers.emplace_back(item, std::exchange(slept_[item], std::move(failure)));
      states_[item].sleeps = true;
    }
    for (auto& [sleeper, kept] : sleepers) slept_[sleeper] = std::move(kept);
    if (good) return true;
    back();
    if (!jumps) why = std::move(reasons);
    return false;
  }

  bool solve(const Rest& rest, ItemSet& why) {
    if (rest.items.empty()) return true;
    if (made_.nodes == limit_) {
      stopped_ = true;
      return false;
    }
    ++made_.nodes;
    std::vector<Raise> raises;
    if (raiseSleepers(rest, raises, why) && haveRoom(rest, why) && branch(rest, why)) return true;
    for (; !raises.empty(); raises.pop_back()) {
      states_[raises.back().item].least = raises.back().least;
      raised_[raises.back().item] = std::move(raises.back().why);
    }
    return false;
  }

  const Bodies& bodies_;
  const Sections& sections_;
  const std::vector<Item>& items_;
  const uint64_t capacity_;
  const std::vector<uint32_t>& rank_;
  const uint64_t limit_;
  Attempt made_;
  bool stopped_ = false;
  std::vector<State> states_;
  std::vector<uint32_t> on_; // of placed items: the placed item each rests on
  std::vector<bool> unplaced_;
  std::vector<uint64_t> asked_; // by item: the latest explanation that it is in
  uint64_t explanation_ = 0;
  ItemSet placed_;
  std::vector<ItemSet> meets_;          // by item: those with a section in common
  std::vector<ItemSet> slept_, raised_; // by item: the placed ones from which it follows that it
                                        // sleeps, or was raised
  std::vector<uint64_t> left_;          // by section: bytes to come
  std::vector<uint64_t> floor_;         // by section: the lowest place that one of them may have
};

} // namespace

Attempt attempt(const Bodies& bodies, const Sections& sections, uint64_t capacity,
                const std::vector<uint32_t>& rank, uint64_t limit) {
  return Run(bodies, sections, capacity, rank, limit).run();
}

} // namespace candela::solvers::memory
