#include "core/compiler/solvers/memory/greedy.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace candela::solvers::memory {
namespace {

enum class Order { Size, Area, Begin, Length, Neighbours, End };
constexpr std::array kOrders{Order::Size,   Order::Area,       Order::Begin,
                             Order::Length, Order::Neighbours, Order::End};

// A part that has its place. It is no Part: the scan over these is the inner loop, and wants what
// it reads side by side.
struct Placed {
  uint64_t low, high;
  int64_t begin, end;
  size_t body;
};

struct Layout {
  std::vector<uint64_t> origins;
  uint64_t size = 0;
  size_t highest = 0; // the body that ends highest
};

// The turn of a body that has its place before all others.
constexpr size_t kNoTurn = SIZE_MAX;

class Greedy {
public:
  Greedy(const Bodies& bodies, uint64_t work) : bodies_(bodies), work_(work) {}

  Status pin() {
    for (size_t i = 0; i < bodies_.all().size(); ++i) {
      const Body& body = bodies_.all()[i];
      if (!body.fixed) continue;
      for (const Part& part : body.parts)
        for (const Placed& p : pinned_)
          if (p.body != i && p.begin < part.end && part.begin < p.end &&
              p.low < *body.fixed + part.high && *body.fixed + part.low < p.high)
            return badArgument("buffers {} and {} are pinned to common bytes while both are alive",
                               bodies_.all()[p.body].members[0].buffer, body.members[0].buffer);
      add(pinned_, i, *body.fixed);
    }
    return Status::ok();
  }

  bool exhausted() const { return work_ == 0; }

  Layout plan(const std::vector<size_t>& order, bool best) {
    look(workOf(order));
    placed_ = pinned_;
    Layout layout;
    layout.origins = fixedOrigins();
    for (const size_t i : order) {
      layout.origins[i] = fit(bodies_.all()[i], best);
      add(placed_, i, layout.origins[i]);
    }
    finish(layout);
    return layout;
  }

  // A local search. Orders leave gaps where a large body comes too late, so in each round the body
  // that ends highest goes to an earlier turn, drawn from a fixed sequence of random numbers, and
  // stays there unless the plan grew.
  Layout improve(std::vector<size_t> order, bool best, Layout least, uint64_t bound, int rounds) {
    uint64_t sequence = 1;
    std::vector<size_t> turns = turnsOf(order);
    std::vector<Placed> placed = placedBy(order, least);
    for (; rounds > 0 && !exhausted() && least.size > bound; --rounds) {
      const size_t turn = turns[least.highest];
      if (turn == 0 || turn == kNoTurn) break;
      sequence = sequence * 6364136223846793005u + 1442695040888963407u;
      const size_t earlier = (sequence >> 33) % turn;
      const auto from = order.begin() + static_cast<std::ptrdiff_t>(turn);
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(earlier), from, from + 1);
      look(workOf(order));
      if (replan(order, best, earlier, turns, placed, least)) {
        for (size_t t = earlier; t <= turn; ++t) turns[order[t]] = t;
        placed = placed_;
        continue;
      }
      std::rotate(order.begin() + static_cast<std::ptrdiff_t>(earlier),
                  order.begin() + static_cast<std::ptrdiff_t>(earlier) + 1, from + 1);
    }
    return least;
  }

  // Plans an order that is that of `least`, with these places and turns, up to `earlier`: what
  // comes before keeps its place. False as soon as the plan is larger than `least`, which it
  // replaces otherwise.
  bool replan(const std::vector<size_t>& order, bool best, size_t earlier,
              const std::vector<size_t>& turns, const std::vector<Placed>& placed, Layout& least) {
    const auto keepsPlace = [&](const Placed& p) {
      return turns[p.body] == kNoTurn || turns[p.body] < earlier;
    };
    placed_.clear();
    std::ranges::copy_if(placed, std::back_inserter(placed_), keepsPlace);
    Layout layout;
    layout.origins = least.origins;
    for (size_t t = earlier; t < order.size(); ++t) {
      const Body& body = bodies_.all()[order[t]];
      const uint64_t origin = fit(body, best);
      if (origin + body.height > least.size) return false;
      layout.origins[order[t]] = origin;
      add(placed_, order[t], origin);
    }
    finish(layout);
    least = std::move(layout);
    return true;
  }

  // As `improve`, with all bodies at once that end above the bound: where there are many, a single
  // one changes little.
  Layout hurry(std::vector<size_t> order, bool best, Layout least, uint64_t bound, int rounds) {
    Layout latest = least;
    for (; rounds > 0 && !exhausted() && least.size > bound; --rounds) {
      std::ranges::stable_partition(
          order, [&](size_t i) { return latest.origins[i] + bodies_.all()[i].height > bound; });
      latest = plan(order, best);
      if (latest.size < least.size) least = latest;
    }
    return least;
  }

  // Places bodies in the order in which they begin to live, each behind the one before it, and from
  // the bottom again where the capacity ends: what was left last is taken again last. A body that
  // fits nowhere has the first turn in the next try. Nothing where no try fits.
  std::optional<Layout> rotate(uint64_t capacity) {
    constexpr int kTries = 64;
    std::vector<size_t> order = sorted(Order::Begin);
    const auto isSolid = [&](size_t i) {
      return bodies_.all()[i].parts.size() == 1 && !bodies_.all()[i].banked;
    };
    if (!std::ranges::all_of(order, isSolid)) return std::nullopt;
    for (int tries = 0; tries < kTries && !exhausted(); ++tries) {
      look(workOf(order));
      size_t unfit = 0; // its turn
      if (auto layout = rotateIn(order, capacity, unfit)) return layout;
      if (unfit == 0) return std::nullopt;
      const auto at = order.begin() + static_cast<std::ptrdiff_t>(unfit);
      std::rotate(order.begin(), at, at + 1);
    }
    return std::nullopt;
  }

  // The bodies that have to be placed, the hardest first; equal ones by index.
  std::vector<size_t> sorted(Order order) const {
    std::vector<size_t> indices;
    for (size_t i = 0; i < bodies_.all().size(); ++i)
      if (!bodies_.all()[i].parts.empty() && !bodies_.all()[i].fixed) indices.push_back(i);
    const std::vector<long double> neighbours =
        order == Order::Neighbours ? bytesBeside() : std::vector<long double>{};
    std::ranges::stable_sort(indices, {}, [&](size_t i) -> std::pair<long double, long double> {
      const Body& b = bodies_.all()[i];
      const long double size = b.height, begin = b.begin, end = b.end; // which holds 64 bits
      switch (order) {
      case Order::Size: return {-size, 0};
      case Order::Area: return {-size * (end - begin), 0};
      case Order::Begin: return {begin, -size};
      case Order::Length: return {begin - end, -size};
      case Order::Neighbours: return {-neighbours[i], -size};
      case Order::End: return {-end, -size};
      }
      return {};
    });
    return indices;
  }

private:
  // One try of `rotate`. Nothing where the body of the turn `unfit` fits nowhere.
  std::optional<Layout> rotateIn(const std::vector<size_t>& order, uint64_t capacity,
                                 size_t& unfit) {
    placed_ = pinned_;
    Layout layout;
    layout.origins = fixedOrigins();
    uint64_t behind = 0;
    for (size_t turn = 0; turn < order.size(); ++turn) {
      const Body& body = bodies_.all()[order[turn]];
      uint64_t origin = fitFrom(body, behind);
      if (origin + body.height > capacity) origin = fitFrom(body, 0);
      if (origin + body.height > capacity) {
        unfit = turn;
        return std::nullopt;
      }
      layout.origins[order[turn]] = origin;
      add(placed_, order[turn], origin);
      behind = origin + body.height;
    }
    finish(layout);
    return layout;
  }

  // Returns the lowest place of a body of one part that is not below `from`.
  uint64_t fitFrom(const Body& body, uint64_t from) const {
    const Part& b = body.parts[0];
    const uint64_t mask = body.alignment - 1;
    const auto aligned = [&](uint64_t value) { return value + ((body.residue - value) & mask); };
    uint64_t free = from;
    for (const Placed& p : placed_) {
      if (p.begin >= b.end || b.begin >= p.end) continue;
      const uint64_t at = aligned(free);
      if (at <= p.low && p.low - at >= body.height) return at;
      free = std::max(free, p.high);
    }
    return aligned(free);
  }

  void add(std::vector<Placed>& placed, size_t index, uint64_t origin) const {
    for (const Part& part : bodies_.all()[index].parts) {
      const uint64_t low = origin + part.low;
      placed.insert(std::ranges::upper_bound(placed, low, {}, &Placed::low),
                    {low, origin + part.high, part.begin, part.end, index});
    }
  }

  // By body: the bytes of those that are alive at some time of its life.
  std::vector<long double> bytesBeside() const {
    std::vector<std::pair<int64_t, long double>> begins, ends;
    for (const Body& b : bodies_.all()) {
      if (b.parts.empty()) continue;
      begins.emplace_back(b.begin, b.height);
      ends.emplace_back(b.end, b.height);
    }
    for (auto* list : {&begins, &ends}) {
      std::ranges::sort(*list);
      long double sum = 0;
      for (auto& [time, bytes] : *list) bytes = sum += bytes;
    }
    const auto until = [](const auto& list, auto at) {
      return at == list.begin() ? 0.0L : std::prev(at)->second;
    };
    using Entry = std::pair<int64_t, long double>;
    std::vector<long double> beside;
    for (const Body& b : bodies_.all())
      beside.push_back(until(begins, std::ranges::lower_bound(begins, b.end, {}, &Entry::first)) -
                       until(ends, std::ranges::upper_bound(ends, b.begin, {}, &Entry::first)));
    return beside;
  }

  void look(uint64_t count) { work_ -= std::min(work_, count); }

  // How many placed parts an order looks at, where each body looks at all of those before it.
  uint64_t workOf(const std::vector<size_t>& order) const {
    uint64_t placed = pinned_.size(), work = 0;
    for (const size_t i : order) {
      const uint64_t parts = bodies_.all()[i].parts.size();
      work += placed * parts;
      placed += parts;
    }
    return work;
  }

  std::vector<uint64_t> fixedOrigins() const {
    std::vector<uint64_t> origins(bodies_.all().size(), 0);
    for (size_t i = 0; i < bodies_.all().size(); ++i)
      if (const Body& body = bodies_.all()[i]; body.fixed || body.parts.empty())
        origins[i] = bodies_.lowest(body, body.fixed.value_or(0));
    return origins;
  }

  std::vector<Placed> placedBy(const std::vector<size_t>& order, const Layout& layout) const {
    std::vector<Placed> placed = pinned_;
    for (const size_t i : order) add(placed, i, layout.origins[i]);
    return placed;
  }

  // The size, of all that is placed.
  void finish(Layout& layout) const {
    for (const Placed& p : placed_)
      if (p.high > layout.size) {
        layout.size = p.high;
        layout.highest = p.body;
      }
  }

  // By body.
  std::vector<size_t> turnsOf(const std::vector<size_t>& order) const {
    std::vector<size_t> turns(bodies_.all().size(), kNoTurn);
    for (size_t t = 0; t < order.size(); ++t) turns[order[t]] = t;
    return turns;
  }

  // Returns the lowest or the tightest gap between bodies that live at the same time, else the room
  // above them.
  uint64_t fit(const Body& body, bool best) {
    return body.parts.size() == 1 && !body.banked ? fitOne(body, best) : fitMany(body);
  }

  uint64_t fitOne(const Body& body, bool best) const {
    const Part& b = body.parts[0];
    const uint64_t mask = body.alignment - 1;
    uint64_t free = 0, tightest = UINT64_MAX;
    std::optional<uint64_t> origin;
    const auto aligned = [&](uint64_t value) { return value + ((body.residue - value) & mask); };
    // Most live at another time. Whether one does is no branch, which would be guessed wrong: those
    // that do are collected, some at a time, and then looked at.
    constexpr size_t kAtATime = 64;
    std::array<const Placed*, kAtATime> beside;
    for (size_t first = 0; first < placed_.size(); first += kAtATime) {
      size_t count = 0;
      for (const Placed& p :
           std::span(placed_).subspan(first, std::min(kAtATime, placed_.size() - first))) {
        beside[count] = &p;
        count += static_cast<size_t>(p.begin < b.end) & static_cast<size_t>(b.begin < p.end);
      }
      for (size_t i = 0; i < count; ++i) {
        const auto [low, high] = std::pair(beside[i]->low, beside[i]->high);
        const uint64_t at = aligned(free);
        if (at <= low && low - at >= body.height && low - free < tightest) {
          if (!best || low - free == body.height) return at;
          origin = at;
          tightest = low - free;
        }
        free = std::max(free, high);
      }
    }
    return origin.value_or(aligned(free));
  }

  // Returns the lowest legal origin outside of the ranges that placed parts forbid: each forbids
  // one to each part that it meets.
  uint64_t fitMany(const Body& body) {
    forbidden_.clear();
    for (const Placed& p : placed_)
      for (const Part& part : body.parts)
        if (p.begin < part.end && part.begin < p.end && p.high > part.low)
          forbidden_.emplace_back(p.low >= part.high ? p.low - part.high + 1 : 0,
                                  p.high - part.low);
    std::ranges::sort(forbidden_);
    uint64_t at = bodies_.lowest(body, 0);
    for (const auto& [from, to] : forbidden_) {
      if (at < from) break;
      if (at < to) at = bodies_.lowest(body, to);
    }
    return at;
  }

  const Bodies& bodies_;
  uint64_t work_;
  std::vector<Placed> pinned_, placed_; // by low
  std::vector<std::pair<uint64_t, uint64_t>> forbidden_;
};

} // namespace

std::optional<std::vector<uint64_t>> rotating(const Bodies& bodies, uint64_t capacity,
                                              uint64_t work) {
  Greedy greedy(bodies, work);
  if (!greedy.pin().isOk()) return std::nullopt;
  std::optional<Layout> layout = greedy.rotate(capacity);
  if (!layout) return std::nullopt;
  return std::move(layout->origins);
}

Result<std::vector<uint64_t>> greedy(const Bodies& bodies, uint64_t bound, uint64_t work) {
  constexpr int kHurries = 12;
  constexpr size_t kHurried = 3;
  // A round costs the square of the bodies: large problems get few.
  const uint64_t count = std::max<uint64_t>(bodies.all().size(), 1);
  const int rounds = static_cast<int>(std::min<uint64_t>(300, 10'000'000 / (count * count)));
  Greedy greedy(bodies, work);
  CDL_TRY(greedy.pin());
  struct Start {
    std::vector<size_t> order;
    bool best;
    Layout layout;
  };
  std::vector<Start> starts;
  for (const Order order : kOrders)
    for (const bool best : {false, true}) {
      if (starts.size() >= 6 && greedy.exhausted()) break;
      std::vector<size_t> indices = greedy.sorted(order);
      Layout layout = greedy.plan(indices, best);
      if (layout.size <= bound) return std::move(layout.origins); // cannot be beaten
      starts.push_back({std::move(indices), best, std::move(layout)});
    }
  std::ranges::stable_sort(starts, {}, [](const Start& start) { return start.layout.size; });
  Layout least = starts[0].layout;
  for (size_t i = 0; i < starts.size() && i < kHurried && least.size > bound; ++i) {
    Layout layout =
        greedy.hurry(starts[i].order, starts[i].best, starts[i].layout, bound, kHurries);
    if (layout.size < least.size) least = std::move(layout);
  }
  for (Start& start : starts) {
    if (least.size <= bound || greedy.exhausted()) break;
    Layout layout =
        greedy.improve(std::move(start.order), start.best, std::move(start.layout), bound, rounds);
    if (layout.size < least.size) least = std::move(layout);
  }
  return std::move(least.origins);
}

} // namespace candela::solvers::memory
