// How a chain is cut: the size of its tiles, the order of the loops over them, what of its operands
// is held, and how many buffers rotate.
//
// A chain is modelled as a nest of loops over boxes of its index space, and a tiling costs the time
// from its first copy to its last, copying and computing overlapped as far as there are buffers. An
// operand is copied again by those loops alone that go around the innermost loop that it depends on
// (loadOf). So, for a given size of tiles, only the order of groups of axes matters: those that
// walk the same operands (Work::families). Within a group, axes before the one that is cut are down
// to their unit, and those behind it are whole, so that what is copied lies side by side. That
// leaves few tilings: sizes in steps of a quarter, orders of families, buffers, held operands. Each
// size has a bound, what it costs if every operand is copied once and all of that is hidden: sizes
// are tried from the least bound on, until a tiling is found that costs no more than the bounds of
// the others. Where a device knows its own costs all are tried, and it ranks the best of them.
//
// That reuse follows from the order of loops: Wolf and Lam, "A Data Locality Optimizing Algorithm",
// PLDI 1991. A search through all tilings of an accelerator by a cost model: Parashar et al.,
// "Timeloop: A Systematic Approach to DNN Accelerator Evaluation", ISPASS 2019.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/compiler/program/passes/tile/device_costs.h"
#include "core/compiler/program/passes/tile/tile_space.h"

namespace candela::program::passes::tile {

namespace {

uint64_t aligned(uint64_t bytes, uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Bounds and costs are sums of the same numbers in another order: what a bound may be above a cost
/// by rounding.
constexpr double kRounding = 1 + 1e-9;

/// Operands of the first link that are copied in whole, once, instead of tile by tile.
struct HeldOperands {
  bool first = false, second = false;
};
constexpr HeldOperands kHolds[] = {{false, false}, {true, false}, {false, true}, {true, true}};

/// How the tiles of one size and order are copied.
struct Variant {
  uint32_t buffers = 1; ///< for each tile that changes
  HeldOperands held;
  bool holdsSmall = false; ///< other operands too are held where they take little room
  bool storesLast = false; ///< Tiling::storesLast
};

/// What a variant takes of the memories, and what it moves.
struct Demand {
  uint64_t localBytes = 0, sumBytes = 0;
  uint64_t bytes = 0, copies = 0; ///< in and out
  uint64_t firstBytes = 0;        ///< loaded before the first tile is computed
  uint64_t storedBytes = 0, stores = 0;
  std::vector<bool> held; ///< by port
};

/// One choice, for one setting.
class Chooser {
public:
  Chooser(TileSpace& space, const Setting& setting, const TileCosts& costs)
      : space_(space), chain_(space.chain()), ports_(space.ports()), setting_(setting),
        costs_(costs), room_(setting.memory->capacityBytes -
                             std::min(setting.reserved, setting.memory->capacityBytes)),
        isTakenInPlace_(ports_.size(), false) {}

  std::optional<Tiling> choose() {
    for (const bool cutSums : {false, true})
      for (const bool holdSmall : {true, false}) {
        search(cutSums, holdSmall);
        if (best_ && asks()) rank();
        if (best_) return std::move(best_);
      }
    return std::nullopt;
  }

  /// What to say where there is none: tries all tiles once more.
  Status doesNotFit() {
    triesAll_ = true;
    choose();
    constexpr const char* text = "the smallest tiles need {} bytes of memory '{}', which has {}{}";
    const LocalMemory* sums = setting_.sums;
    if (sums && leastSums_ != UINT64_MAX && leastSums_ > sums->capacityBytes)
      return failure(Code::out_of_memory, text, leastSums_, sums->name, sums->capacityBytes, "");
    return failure(Code::out_of_memory, text, least_, setting_.memory->name, room_,
                   setting_.reserved ? " left" : "");
  }

private:
  /// What copying one view takes, for the tiles and the order of loops at hand.
  struct Load {
    uint64_t tileBytes = 0, bytes = 0, copies = 1;
  };
  /// A tile is copied again whenever a loop around the innermost one that it depends on goes on;
  /// loops within that one find it where it is.
  Load loadOf(size_t v, const TileSize& size, const std::vector<size_t>& order) const {
    const Measure& view = space_.view(v);
    Load load{size.views[v].tileBytes, 0, 1};
    uint64_t again = 1, pending = 1, changes = 1;
    for (const size_t axis : order) {
      const auto trips = static_cast<uint64_t>(size.trips[axis]);
      if (trips == 1) continue;
      changes *= trips;
      if (!view.depends[axis]) {
        pending *= trips;
        continue;
      }
      again *= pending;
      pending = 1;
      load.copies = changes;
    }
    load.bytes = (size.views[v].allBits * again + 7) / 8;
    return load;
  }

  /// Tries tile sizes; sums in parts if `cutSums`, in as few as fit.
  void search(bool cutSums, bool holdSmall) {
    if (!cutSums) return trySizes(0, holdSmall);
    const std::vector<size_t>& sums = space_.sums();
    if (sums.empty() || !space_.axes()[sums[0]].cut) return;
    if (!setting_.splitSums && isFloat(chain_.links[0].work.inputs[0].elem)) return;
    for (size_t s = 1; s < space_.extents()[sums[0]].size() && !best_; ++s) trySizes(s, holdSmall);
  }

  void trySizes(size_t sumsAt, bool holdSmall) {
    const std::vector<TileSize>& sizes = space_.sizes(sumsAt);
    if (triesAll_ || asks()) {
      for (turn_ = 0; turn_ < sizes.size(); ++turn_) trySize(sizes[turn_], holdSmall);
      return;
    }
    struct Candidate {
      double bound;
      size_t size;
    };
    std::vector<Candidate> candidates; // a heap, the least bound on top
    for (size_t i = 0; i < sizes.size(); ++i)
      if (const auto bound = boundOf(sizes[i])) candidates.push_back({*bound, i});
    const auto isBehind = [](const Candidate& a, const Candidate& b) { return a.bound > b.bound; };
    std::ranges::make_heap(candidates, isBehind);
    while (!candidates.empty()) {
      std::ranges::pop_heap(candidates, isBehind);
      const Candidate next = candidates.back();
      if (best_ && next.bound > best_->cost * kRounding) return;
      candidates.pop_back();
      turn_ = next.size;
      trySize(sizes[turn_], holdSmall);
    }
  }

  /// What tiles of this size cost at least; nothing where they do not fit.
  std::optional<double> boundOf(const TileSize& size) const {
    const uint32_t alignment = setting_.memory->alignment;
    uint64_t room = 0;
    uint64_t sums = 0;
    uint64_t bytes = 0;
    uint64_t copies = 0;
    for (size_t p = 0; p < ports_.size(); ++p) {
      const Port& port = ports_[p];
      const TileOfView& tile = size.views[p];
      const uint64_t once = (tile.allBits + 7) / 8;
      if (setting_.stays[p] == Stay::local) continue;
      if (!port.output) {
        const uint64_t whole = space_.view(p).wholeBytes;
        room += aligned(std::min(whole, tile.tileBytes), alignment);
        bytes += std::min(whole, once);
        ++copies;
        continue;
      }
      bytes += once * (port.inout ? 2 : 1);
      copies += tile.copies * (port.inout ? 2 : 1);
      const bool isOfCopy = chain_.links[port.uses[0].first].work.kind == CDL_KIND_COPY;
      if (setting_.stays[p] == Stay::stored || isOfCopy) continue;
      (port.sums ? sums : room) += aligned(tile.tileBytes, port.sums ? setting_.sums->alignment
                                                                     : setting_.memory->alignment);
    }
    for (size_t l = 0; l + 1 < chain_.links.size(); ++l) {
      if (chain_.links[l].leaves) continue; // a port
      const bool isInSums = setting_.sums && isSum(chain_.links[l].work);
      (isInSums ? sums : room) +=
          aligned(size.views[ports_.size() + l].tileBytes,
                  isInSums ? setting_.sums->alignment : setting_.memory->alignment);
    }
    if (room > room_ || (setting_.sums && sums > setting_.sums->capacityBytes)) return std::nullopt;
    const double copying = copyCycles(bytes, copies);
    return std::max(copying, size.computing) + copying;
  }

  void trySize(const TileSize& size, bool holdSmall) {
    for (size_t p = 0; p < ports_.size(); ++p) {
      isTakenInPlace_[p] = space_.isTakenInPlace(p, size);
      if (setting_.stays[p] != Stay::no && !isTakenInPlace_[p]) return;
    }
    const auto& families = chain_.work.families;
    std::vector<size_t> turns(families.size());
    std::iota(turns.begin(), turns.end(), size_t{0});
    const auto goesOn = [&](size_t family) {
      return std::ranges::any_of(families[family],
                                 [&](size_t axis) { return size.trips[axis] > 1; });
    };
    std::vector<std::vector<size_t>> tried; // families that have loops, in their order
    do {
      std::vector<size_t> loops;
      std::ranges::copy_if(turns, std::back_inserter(loops), goesOn);
      if (!triesAll_ && std::ranges::find(tried, loops) != tried.end()) continue;
      tried.push_back(std::move(loops));
      std::vector<size_t> order;
      for (const size_t f : turns)
        order.insert(order.end(), families[f].begin(), families[f].end());
      order.insert(order.end(), space_.sums().begin(), space_.sums().end());
      tryOrder(size, order, holdSmall);
    } while (std::next_permutation(turns.begin(), turns.end()));
  }

  void tryOrder(const TileSize& size, const std::vector<size_t>& order, bool holdSmall) {
    loads_.clear();
    for (size_t v = 0; v < size.views.size(); ++v) loads_.push_back(loadOf(v, size, order));
    const std::span<const HeldOperands> holds(kHolds, holdSmall ? std::size(kHolds) : 1);
    for (uint32_t buffers = setting_.mostBuffers; buffers >= 1; --buffers)
      for (const HeldOperands& held : holds) {
        if (!winsByHolding(held)) continue;
        Variant variant{buffers, held, holdSmall, costs_.storesLast};
        if (tryVariant(size, order, variant) || !variant.storesLast) continue;
        variant.storesLast = false;
        tryVariant(size, order, variant);
      }
  }

  bool isHeld(const HeldOperands& held, size_t port) const {
    return (held.first && space_.isOperand(0, port)) || (held.second && space_.isOperand(1, port));
  }

  /// Whether to hold these operands saves copies, and tiles of them can be read where they lie.
  bool winsByHolding(const HeldOperands& held) const {
    for (size_t p = 0; p < ports_.size(); ++p) {
      if (setting_.stays[p] == Stay::local || ports_[p].output || !isHeld(held, p)) continue;
      const bool savesCopies = loads_[p].copies > 1 && loads_[p].bytes > space_.view(p).wholeBytes;
      if (!savesCopies || !isTakenInPlace_[p]) return false;
    }
    return true;
  }

  /// Nothing where results cannot be stored last.
  std::optional<Demand> demandOf(const Variant& variant) const {
    Demand demand;
    demand.held.assign(ports_.size(), false);
    for (size_t p = 0; p < ports_.size(); ++p) {
      if (setting_.stays[p] == Stay::local) continue;
      if (!ports_[p].output)
        addOperand(demand, p, variant);
      else if (!addResult(demand, p, variant))
        return std::nullopt;
    }
    addBetween(demand, variant);
    return demand;
  }

  void addOperand(Demand& demand, size_t p, const Variant& variant) const {
    const Load& load = loads_[p];
    const uint32_t alignment = setting_.memory->alignment;
    const uint64_t whole = aligned(space_.view(p).wholeBytes, alignment);
    const uint64_t inTurn = load.copies > 1 ? variant.buffers : 1;
    const uint64_t rotating = inTurn * aligned(load.tileBytes, alignment);
    const bool isMain = space_.isOperand(0, p) || space_.isOperand(1, p);
    const bool isSmall = variant.holdsSmall && !isMain && isTakenInPlace_[p] && load.copies > 1 &&
                         (whole <= rotating || whole <= room_ / 32);
    demand.held[p] = isSmall || isHeld(variant.held, p);
    if (demand.held[p]) {
      demand.localBytes += whole;
      demand.bytes += space_.view(p).wholeBytes;
      demand.copies += 1;
      demand.firstBytes += space_.view(p).wholeBytes;
    } else {
      demand.localBytes += rotating;
      demand.bytes += load.bytes;
      demand.copies += load.copies;
      demand.firstBytes += load.bytes / load.copies;
    }
  }

  /// False where it cannot be stored last.
  bool addResult(Demand& demand, size_t p, const Variant& variant) const {
    const Port& port = ports_[p];
    const Load& load = loads_[p];
    demand.bytes += load.bytes * (port.inout ? 2 : 1);
    demand.copies += load.copies * (port.inout ? 2 : 1);
    demand.storedBytes += load.bytes;
    demand.stores += load.copies;
    if (setting_.stays[p] == Stay::stored) return true;
    // A copy goes from where its operand is, which the next tile takes.
    if (chain_.links[port.uses[0].first].work.kind == CDL_KIND_COPY)
      return !variant.storesLast || load.copies == 1;
    const LocalMemory& memory = port.sums ? *setting_.sums : *setting_.memory;
    const uint64_t inTurn = load.copies > 1 ? variant.buffers : 1;
    const uint64_t count = variant.storesLast ? load.copies : inTurn;
    (port.sums ? demand.sumBytes : demand.localBytes) +=
        count * aligned(load.tileBytes, memory.alignment);
    return true;
  }

  /// What one link leaves for the next one.
  void addBetween(Demand& demand, const Variant& variant) const {
    for (size_t l = 0; l + 1 < chain_.links.size(); ++l) {
      if (chain_.links[l].leaves) continue; // a port
      const Load& load = loads_[ports_.size() + l];
      const bool isInSums = setting_.sums && isSum(chain_.links[l].work);
      const LocalMemory& memory = isInSums ? *setting_.sums : *setting_.memory;
      const uint64_t inTurn = load.copies > 1 ? std::min(variant.buffers, 2u) : 1;
      (isInSums ? demand.sumBytes : demand.localBytes) +=
          inTurn * aligned(load.tileBytes, memory.alignment);
    }
  }

  double copyCycles(uint64_t bytes, uint64_t copies) const {
    return static_cast<double>(bytes) / costs_.bytesPerCycle +
           static_cast<double>(copies) * costs_.copyCycles;
  }

  /// Takes the variant where it fits and costs less than the best one so far. False: no room.
  bool tryVariant(const TileSize& size, const std::vector<size_t>& order, const Variant& variant) {
    const std::optional<Demand> demand = demandOf(variant);
    if (!demand) return false;
    least_ = std::min(least_, demand->localBytes);
    leastSums_ = std::min(leastSums_, demand->sumBytes);
    if (demand->localBytes > room_) return false;
    if (setting_.sums && demand->sumBytes > setting_.sums->capacityBytes) return false;
    Tiling tiling;
    tiling.storesLast = variant.storesLast && demand->stores > 0;
    tiling.copying = copyCycles(demand->bytes, demand->copies);
    tiling.computing = size.computing;
    Times times;
    times.overlaps = variant.buffers > 1 && size.boxes > 1;
    times.filling = times.overlaps ? static_cast<double>(demand->firstBytes) / costs_.bytesPerCycle
                                   : tiling.copying;
    times.storing = copyCycles(demand->storedBytes, demand->stores);
    times.boxes = size.boxes;
    tiling.cost = costOf(tiling, times);
    const bool isBest =
        !best_ || tiling.cost < best_->cost || (tiling.cost == best_->cost && turn_ < turnOfBest_);
    if (!isBest && !asks()) return true;
    tiling.buffers = variant.buffers;
    tiling.held = demand->held;
    tiling.bytes = demand->bytes;
    tiling.localBytes = demand->localBytes;
    tiling.instrs = demand->copies + size.boxes * chain_.links.size();
    for (size_t a = 0; a < size.at.size(); ++a)
      tiling.tile.push_back(space_.extents()[a][size.at[a]]);
    tiling.order = order;
    if (asks()) remember({tiling, times});
    if (!isBest) return true;
    best_ = std::move(tiling);
    turnOfBest_ = turn_;
    return true;
  }

  /// Parts of the time that copies take, in cycles.
  struct Times {
    double filling = 0; ///< before the first tile is computed: nothing of the chain runs meanwhile
    double storing = 0; ///< of results
    uint64_t boxes = 1;
    bool overlaps = false;
  };

  /// The time from the first copy to the last, and the time of all copies once more: they take from
  /// what others could copy meanwhile.
  static double costOf(const Tiling& tiling, const Times& times) {
    const double copying = tiling.copying, computing = tiling.computing, filling = times.filling;
    if (!tiling.storesLast) return filling + std::max(copying - filling, computing) + copying;
    const double storing = times.storing;
    const double loading = copying - storing;
    if (!times.overlaps) return loading + computing + storing + copying;
    // Behind the loads the last tile is computed while the others are stored.
    const double last = 1 / static_cast<double>(times.boxes);
    return std::max(loading, filling + computing * (1 - last)) +
           std::max(computing * last, storing * (1 - last)) + storing * last + copying;
  }

  bool asks() const { return costs_.device && costs_.device->knowsTiles(); }

  /// The best way to copy tiles of one size: the device is asked about the best of these.
  struct Candidate {
    Tiling tiling;
    Times times;
  };
  static constexpr size_t kMostAsked = 16;

  void remember(Candidate candidate) {
    const auto same = std::ranges::find_if(candidates_, [&](const Candidate& each) {
      return each.tiling.tile == candidate.tiling.tile;
    });
    if (same != candidates_.end()) {
      if (same->tiling.cost <= candidate.tiling.cost) return;
      candidates_.erase(same);
    }
    const auto at =
        std::ranges::upper_bound(candidates_, candidate.tiling.cost, {},
                                 [](const Candidate& each) { return each.tiling.cost; });
    candidates_.insert(at, std::move(candidate));
    if (candidates_.size() > kMostAsked) candidates_.pop_back();
  }

  /// Chooses among the candidates by what the device says of their tiles, where it knows all.
  void rank() {
    std::vector<Box> boxes;
    for (const Candidate& candidate : candidates_) {
      Box& box = boxes.emplace_back();
      for (const int64_t extent : candidate.tiling.tile) box.push_back({0, extent});
    }
    const LocalMemory& memory = *setting_.memory;
    const auto cycles = costs_.device->cyclesOf(
        chain_, boxes, {memory.name, false, true, memory.capacityBytes, memory.alignment, 0},
        setting_.engine);
    if (!std::ranges::all_of(cycles, [](const auto& each) { return each.has_value(); })) return;
    best_.reset();
    for (size_t c = 0; c < candidates_.size(); ++c) {
      Candidate& candidate = candidates_[c];
      candidate.tiling.computing = static_cast<double>(candidate.times.boxes) * *cycles[c];
      candidate.tiling.cost = costOf(candidate.tiling, candidate.times);
      if (!best_ || candidate.tiling.cost < best_->cost) best_ = candidate.tiling;
    }
  }

  TileSpace& space_;
  const Chain& chain_;
  const std::vector<Port>& ports_;
  const Setting& setting_;
  const TileCosts& costs_;
  const uint64_t room_;
  bool triesAll_ = false;
  std::vector<Load> loads_; ///< by port and what is between, in the order at hand
  /// by port, under the tile at hand: parts of what stays or is held lie as the device's rows take
  /// them
  std::vector<bool> isTakenInPlace_;
  uint64_t least_ = UINT64_MAX;
  uint64_t leastSums_ = UINT64_MAX;
  size_t turn_ = 0;       ///< of tile sizes
  size_t turnOfBest_ = 0; ///< of equal costs the first one is taken
  std::optional<Tiling> best_;
  std::vector<Candidate> candidates_; ///< the cheapest first; empty without a device to ask
};

} // namespace

std::optional<Tiling> chooseTiling(TileSpace& space, const Setting& setting,
                                   const TileCosts& costs) {
  return Chooser(space, setting, costs).choose();
}

Status whyNoTiling(TileSpace& space, const Setting& setting, const TileCosts& costs) {
  return Chooser(space, setting, costs).doesNotFit();
}

} // namespace candela::program::passes::tile
