// How a chain is cut: the size of its tiles, the order of the loops over them, what of its operands
// is held, and how many buffers rotate.
//
// A chain is modelled as a nest of loops over boxes of its index space, and a tiling costs the time
// from its first copy to its last, copying and computing overlapped as far as there are buffers. An
// operand is copied again by those loops alone that go around the innermost loop that it depends on
// (loadOf). So, for a given size of tiles, only the order of groups of axes matters: those that
// walk the same operands (Work::families). Within a group, axes before the one that is cut are down
// to their unit, and those behind it are whole, so that what is copied lies side by side. That
// leaves few enough tilings to try all of them: sizes in steps of a quarter, orders of families,
// buffers, held operands. A device that knows its own costs then ranks the best of them.
//
// That reuse follows from the order of loops: Wolf and Lam, "A Data Locality Optimizing Algorithm",
// PLDI 1991. A search through all tilings of an accelerator by a cost model: Parashar et al.,
// "Timeloop: A Systematic Approach to DNN Accelerator Evaluation", ISPASS 2019.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "core/compiler/program/passes/schedule/described.h"
#include "core/compiler/program/passes/tile/device_costs.h"
#include "core/compiler/program/passes/tile/tiling.h"

namespace candela::program::passes::tile {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
uint64_t aligned(uint64_t bytes, uint32_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

bool repeats(const View& view, size_t d) { return view.strides[d] == 0 || view.dims[d] == 1; }

/// Tile extents of an axis, the largest first: about so many even parts each.
std::vector<int64_t> extentsOf(const Axis& axis, uint32_t columns) {
  std::vector<int64_t> extents{axis.extent};
  if (!axis.cut) return extents;
  for (int64_t parts = 2;; parts = std::max(parts + 1, parts * 5 / 4)) {
    int64_t extent = ceilDiv(ceilDiv(axis.extent, parts), axis.unit) * axis.unit;
    if (extent > columns && axis.unit == 1) extent = ceilDiv(extent, columns) * columns;
    // a whole pass
    if (extent < columns && extents.back() > columns && axis.unit == 1) extents.push_back(columns);
    if (extent < extents.back()) extents.push_back(extent);
    if (parts >= axis.extent || extent <= axis.unit) break;
  }
  if (axis.unit < extents.back()) extents.push_back(axis.unit);
  return extents;
}

/// How long one dim is under one extent of its axis: the most and the least elements of a tile, and
/// those of all tiles together, which may overlap.
struct Length {
  int64_t most = 1, least = 1, sum = 1;
};

/// The elements of the last tile, of `tile` each, of so many.
int64_t lastOf(int64_t extent, int64_t tile) { return extent - (ceilDiv(extent, tile) - 1) * tile; }

Length lengthOf(const DimMap& map, int64_t dim, const std::vector<Axis>& axes, int64_t tile) {
  if (map.how == DimMap::How::whole || tile == axes[map.axis].extent) return {dim, dim, dim};
  const int64_t last = lastOf(axes[map.axis].extent, tile);
  if (map.how == DimMap::How::axis)
    return {std::min(dim, ceilDiv(tile, map.unit)), std::min(dim, ceilDiv(last, map.unit)), dim};
  if (map.how == DimMap::How::channels)
    return {std::min(dim, tile / map.outputs * map.inputs),
            std::min(dim, last / map.outputs * map.inputs), dim};
  Length length{0, dim, 0};
  Box box(axes.size());
  for (int64_t begin = 0; begin < axes[map.axis].extent; begin += tile) {
    box[map.axis] = {begin, std::min(begin + tile, axes[map.axis].extent)};
    const int64_t size = rangeOf(map, box, axes, dim).size();
    length.most = std::max(length.most, size);
    length.least = std::min(length.least, size);
    length.sum += size;
  }
  return length;
}

/// Whether a result lies in the memory for sums while it is computed.
bool isSum(const Instr& instr) {
  const bool multiplies = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL;
  return multiplies && elemBits(instr.outputs[0].elem) >= 32;
}

using Places = std::vector<size_t>; ///< by axis: which of its extents a tile has

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

class Chooser {
public:
  Chooser(const Chain& chain, const std::vector<Port>& ports, const Setting& setting,
          const TileCosts& costs)
      : chain_(chain), axes_(chain.work.axes), ports_(ports), setting_(setting), costs_(costs) {
    for (const Axis& axis : axes_) extents_.push_back(extentsOf(axis, costs.columns));
    for (const Port& port : ports) views_.push_back(measure(port.view, port.map));
    for (size_t l = 0; l + 1 < chain.links.size(); ++l)
      between_.push_back(measure(chain.links[l].work.outputs[0], chain.links[l].outputs[0]));
    for (const Link& link : chain.links) elements_.push_back(mostElements(link.work));
    for (const Port& port : ports)
      for (size_t operand = 0; operand < 2; ++operand)
        isOperand_[operand].push_back(
            std::ranges::find(port.uses, std::pair<size_t, size_t>(0, operand)) != port.uses.end());
    room_ =
        setting.memory->capacityBytes - std::min(setting.reserved, setting.memory->capacityBytes);
  }

  Result<Tiling> choose() {
    for (const bool cutSums : {false, true})
      for (const bool holdSmall : {true, false}) {
        search(cutSums, holdSmall);
        if (best_ && asks()) rank();
        if (best_) return *best_;
      }
    return doesNotFit();
  }

private:
  Status doesNotFit() const {
    constexpr const char* text = "the smallest tiles need {} bytes of memory '{}', which has {}{}";
    const LocalMemory* sums = setting_.sums;
    if (sums && leastSums_ != UINT64_MAX && leastSums_ > sums->capacityBytes)
      return failure(Code::out_of_memory, text, leastSums_, sums->name, sums->capacityBytes, "");
    return failure(Code::out_of_memory, text, least_, setting_.memory->name, room_,
                   setting_.reserved ? " left" : "");
  }

  /// How large the tiles of one view are, whatever the extents of its axes.
  struct Measure {
    std::vector<std::vector<Length>> lengths; ///< by dim, and by the place of its axis' extent
    std::vector<size_t> axis;                 ///< of each dim; none: SIZE_MAX
    std::vector<bool> depends;                ///< by axis
    uint64_t bits = 8, wholeBytes = 0;
  };

  Measure measure(const View& view, const ViewMap& map) const {
    Measure result;
    result.depends.assign(axes_.size(), false);
    result.bits = static_cast<uint64_t>(elemBits(view.elem));
    uint64_t whole = result.bits;
    for (size_t d = 0; d < view.dims.size(); ++d) {
      if (repeats(view, d)) continue;
      whole *= static_cast<uint64_t>(view.dims[d]);
      const bool isCut = map[d].how != DimMap::How::whole;
      result.axis.push_back(isCut ? map[d].axis : SIZE_MAX);
      std::vector<Length>& lengths = result.lengths.emplace_back();
      if (!isCut) {
        lengths.push_back({view.dims[d], view.dims[d], view.dims[d]});
        continue;
      }
      result.depends[map[d].axis] = true;
      for (const int64_t extent : extents_[map[d].axis])
        lengths.push_back(lengthOf(map[d], view.dims[d], axes_, extent));
    }
    result.wholeBytes = (whole + 7) / 8;
    return result;
  }

  /// What copying one view takes, for the tiles and the order of loops at hand.
  struct Load {
    uint64_t tileBytes = 0, bytes = 0, copies = 1;
  };
  /// A tile is copied again whenever a loop around the innermost one that it depends on goes on;
  /// loops within that one find it where it is.
  Load loadOf(const Measure& view, const Places& at, const std::vector<size_t>& order) const {
    uint64_t most = view.bits, sum = view.bits;
    for (size_t d = 0; d < view.lengths.size(); ++d) {
      const Length& length = view.lengths[d][view.axis[d] == SIZE_MAX ? 0 : at[view.axis[d]]];
      most *= static_cast<uint64_t>(length.most);
      sum *= static_cast<uint64_t>(length.sum);
    }
    Load load{(most + 7) / 8, 0, 1};
    uint64_t again = 1, pending = 1, changes = 1;
    for (const size_t axis : order) {
      const auto trips = static_cast<uint64_t>(trips_[axis]);
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
    load.bytes = (sum * again + 7) / 8;
    return load;
  }

  /// Tries all tile sizes; sums in parts too if `cutSums`, in as few as fit.
  void search(bool cutSums, bool holdSmall) {
    std::vector<std::vector<std::vector<size_t>>> choices; // by family
    for (const auto& family : chain_.work.families) choices.push_back(choicesOf(family));
    std::vector<size_t> sums;
    for (size_t a = 0; a < axes_.size(); ++a)
      if (axes_[a].sum) sums.push_back(a);
    if (!cutSums) {
      tryFamilies(Places(axes_.size(), 0), choices, sums, holdSmall);
      return;
    }
    if (sums.empty() || !axes_[sums[0]].cut) return;
    if (!setting_.splitSums && isFloat(chain_.links[0].work.inputs[0].elem)) return;
    for (size_t s = 1; s < extents_[sums[0]].size() && !best_; ++s) {
      Places at(axes_.size(), 0);
      at[sums[0]] = s;
      tryFamilies(at, choices, sums, holdSmall);
    }
  }

  /// Tries each combination of the families' choices.
  void tryFamilies(Places at, const std::vector<std::vector<std::vector<size_t>>>& choices,
                   const std::vector<size_t>& sums, bool holdSmall) {
    std::vector<size_t> chosen(choices.size(), 0);
    const auto next = [&] { // as an odometer, the first family the fastest
      for (size_t f = 0; f < choices.size(); ++f) {
        if (++chosen[f] < choices[f].size()) return true;
        chosen[f] = 0;
      }
      return false;
    };
    do {
      for (size_t f = 0; f < choices.size(); ++f)
        for (size_t i = 0; i < chain_.work.families[f].size(); ++i)
          at[chain_.work.families[f][i]] = choices[f][chosen[f]][i];
      tryTile(at, sums, holdSmall);
    } while (next());
  }

  /// The places of a family's axes: one of them is cut anywhere, those before it are down to their
  /// unit, and those behind it are whole.
  std::vector<std::vector<size_t>> choicesOf(const std::vector<size_t>& family) const {
    std::vector<std::vector<size_t>> choices{std::vector<size_t>(family.size(), 0)};
    for (size_t i = 0; i < family.size(); ++i) {
      std::vector<size_t> choice(family.size(), 0);
      for (size_t before = 0; before < i; ++before)
        choice[before] = extents_[family[before]].size() - 1;
      for (size_t c = 1; c < extents_[family[i]].size(); ++c) {
        choice[i] = c;
        choices.push_back(choice);
      }
    }
    return choices;
  }

  void tryTile(const Places& at, const std::vector<size_t>& sums, bool holdSmall) {
    trips_.resize(axes_.size());
    for (size_t a = 0; a < axes_.size(); ++a)
      // a sum of nothing
      trips_[a] = axes_[a].extent ? ceilDiv(axes_[a].extent, extents_[a][at[a]]) : 1;
    isTakenInPlace_.clear();
    for (size_t p = 0; p < ports_.size(); ++p) {
      isTakenInPlace_.push_back(isTakenInPlace(p, at));
      if (setting_.stays[p] != Stay::no && !isTakenInPlace_[p]) return;
    }
    boxes_ = 1;
    for (const int64_t trips : trips_) boxes_ *= static_cast<uint64_t>(trips);
    computing_ = computeCycles(at, boxes_);
    std::vector<size_t> families(chain_.work.families.size());
    for (size_t f = 0; f < families.size(); ++f) families[f] = f;
    do {
      std::vector<size_t> order;
      for (const size_t f : families)
        order.insert(order.end(), chain_.work.families[f].begin(), chain_.work.families[f].end());
      order.insert(order.end(), sums.begin(), sums.end());
      tryOrder(at, order, holdSmall);
    } while (std::next_permutation(families.begin(), families.end()));
  }

  void tryOrder(const Places& at, const std::vector<size_t>& order, bool holdSmall) {
    loads_.clear();
    for (const Measure& view : views_) loads_.push_back(loadOf(view, at, order));
    for (const Measure& view : between_) loads_.push_back(loadOf(view, at, order));
    const std::span<const HeldOperands> holds(kHolds, holdSmall ? std::size(kHolds) : 1);
    for (uint32_t buffers = setting_.mostBuffers; buffers >= 1; --buffers)
      for (const HeldOperands& held : holds) {
        if (!winsByHolding(held)) continue;
        Variant variant{buffers, held, holdSmall, costs_.storesLast};
        if (tryVariant(at, order, variant) || !variant.storesLast) continue;
        variant.storesLast = false;
        tryVariant(at, order, variant);
      }
  }

  /// Whether the device takes each tile at hand of a port where it lies among the others.
  bool isTakenInPlace(size_t p, const Places& at) const {
    switch (ports_[p].widest) {
    case capabilities::OperandClass::affine: return true;
    case capabilities::OperandClass::rowStrided: return hasRows(p, at);
    default: return hasDenseParts(ports_[p], at);
    }
  }

  /// Whether the innermost dim of each tile at hand lies side by side. That of a tile with one
  /// element in its innermost dim is the next one outside, which does not.
  bool hasRows(size_t p, const Places& at) const {
    const View& view = ports_[p].view;
    const Measure& measure = views_[p];
    size_t innermost = view.dims.size();
    while (innermost > 0 && repeats(view, innermost - 1)) --innermost;
    if (innermost == 0) return true;
    if (view.strides[innermost - 1] != 1) return false;
    const auto lengthAt = [&](size_t d) -> const Length& {
      return measure.lengths[d][measure.axis[d] == SIZE_MAX ? 0 : at[measure.axis[d]]];
    };
    size_t d = measure.lengths.size() - 1;
    if (lengthAt(d).least > 1) return true;
    while (d-- > 0)
      if (lengthAt(d).most > 1) return false;
    return true;
  }

  /// Whether each tile at hand of a view that lies among the others is dense: what is cut has no
  /// rows outside of it.
  bool hasDenseParts(const Port& port, const Places& at) const {
    const View& view = port.view;
    int64_t outer = 1, run = 1; // elements of a tile in the dims outside
    for (size_t d = view.dims.size(); d-- > 0;) {
      if (!repeats(view, d) && view.strides[d] != run) return false;
      run *= repeats(view, d) ? 1 : view.dims[d];
    }
    for (size_t d = 0; d < view.dims.size(); ++d) {
      if (repeats(view, d)) continue;
      const bool isCut = port.map[d].how != DimMap::How::whole && trips_[port.map[d].axis] > 1;
      if (isCut && outer > 1) return false;
      outer *= isCut ? lengthOf(port.map[d], view.dims[d], axes_,
                                extents_[port.map[d].axis][at[port.map[d].axis]])
                           .most
                     : view.dims[d];
    }
    return true;
  }

  bool isHeld(const HeldOperands& held, size_t port) const {
    return (held.first && isOperand_[0][port]) || (held.second && isOperand_[1][port]);
  }

  /// Whether to hold these operands saves copies, and tiles of them can be read where they lie.
  bool winsByHolding(const HeldOperands& held) const {
    for (size_t p = 0; p < ports_.size(); ++p) {
      if (setting_.stays[p] == Stay::local || ports_[p].output || !isHeld(held, p)) continue;
      const bool savesCopies = loads_[p].copies > 1 && loads_[p].bytes > views_[p].wholeBytes;
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
    const uint64_t whole = aligned(views_[p].wholeBytes, alignment);
    const uint64_t inTurn = load.copies > 1 ? variant.buffers : 1;
    const uint64_t rotating = inTurn * aligned(load.tileBytes, alignment);
    const bool isMain = isOperand_[0][p] || isOperand_[1][p];
    const bool isSmall = variant.holdsSmall && !isMain && isTakenInPlace_[p] && load.copies > 1 &&
                         (whole <= rotating || whole <= room_ / 32);
    demand.held[p] = isSmall || isHeld(variant.held, p);
    if (demand.held[p]) {
      demand.localBytes += whole;
      demand.bytes += views_[p].wholeBytes;
      demand.copies += 1;
      demand.firstBytes += views_[p].wholeBytes;
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
    for (size_t l = 0; l < between_.size(); ++l) {
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
  bool tryVariant(const Places& at, const std::vector<size_t>& order, const Variant& variant) {
    const std::optional<Demand> demand = demandOf(variant);
    if (!demand) return false;
    least_ = std::min(least_, demand->localBytes);
    leastSums_ = std::min(leastSums_, demand->sumBytes);
    if (demand->localBytes > room_) return false;
    if (setting_.sums && demand->sumBytes > setting_.sums->capacityBytes) return false;
    Tiling tiling;
    tiling.storesLast = variant.storesLast && demand->stores > 0;
    tiling.copying = copyCycles(demand->bytes, demand->copies);
    tiling.computing = computing_;
    Times times;
    times.overlaps = variant.buffers > 1 && boxes_ > 1;
    times.filling = times.overlaps ? static_cast<double>(demand->firstBytes) / costs_.bytesPerCycle
                                   : tiling.copying;
    times.storing = copyCycles(demand->storedBytes, demand->stores);
    times.boxes = boxes_;
    tiling.cost = costOf(tiling, times);
    const bool isBest = !best_ || tiling.cost < best_->cost;
    if (!isBest && !asks()) return true;
    tiling.buffers = variant.buffers;
    tiling.held = demand->held;
    tiling.bytes = demand->bytes;
    tiling.localBytes = demand->localBytes;
    tiling.instrs = demand->copies + boxes_ * chain_.links.size();
    for (size_t a = 0; a < axes_.size(); ++a) tiling.tile.push_back(extents_[a][at[a]]);
    tiling.order = order;
    if (asks()) remember({tiling, times});
    if (isBest) best_ = std::move(tiling);
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

  /// How many elements an instruction computes: those of its largest view, or the results of a
  /// product.
  static double mostElements(const Instr& instr) {
    int64_t most = instr.outputs[0].count();
    if (instr.kind != CDL_KIND_CONV2D && instr.kind != CDL_KIND_MATMUL)
      for (const View& view : instr.inputs) most = std::max(most, view.count());
    return static_cast<double>(most);
  }

  double computeCycles(const Places& at, uint64_t boxes) const {
    double cycles = static_cast<double>(boxes * chain_.links.size()) * costs_.instrCycles;
    for (size_t l = 0; l < chain_.links.size(); ++l) {
      const Instr& instr = chain_.links[l].work;
      const double elements = elements_[l] * (l < between_.size() ? againOf(between_[l], at) : 1);
      if (!isConvolution(instr) && instr.kind != CDL_KIND_MATMUL)
        cycles += elements / costs_.lanes;
      else if (l > 0)
        cycles += followerCycles(chain_.links[l], elements, boxes);
      else
        cycles += headCycles(instr, elements, at, boxes);
    }
    return cycles;
  }

  static bool isConvolution(const Instr& instr) {
    return instr.kind == CDL_KIND_CONV2D && !instr.intAttr(CDL_ATTR_TRANSPOSED, 0);
  }

  /// A product that follows another instruction: it has all channels of each tile.
  double followerCycles(const Link& link, double elements, uint64_t boxes) const {
    const double outputs = wholeOf(link.work.outputs[0], link.outputs[0]);
    const double inputs = wholeOf(link.work.inputs[0], link.inputs[0]);
    return passCycles(elements / outputs, boxes) * std::ceil(inputs / costs_.rows) *
           std::ceil(outputs / costs_.columns);
  }

  /// A product whose axes are the chain's.
  double headCycles(const Instr& instr, double elements, const Places& at, uint64_t boxes) const {
    const bool isConv = isConvolution(instr);
    const size_t o = isConv ? 1 : 2; // the axis of output channels
    const size_t k = isConv ? 4 : 3; // the axis of sums
    const int64_t groups = instr.intAttr(CDL_ATTR_GROUP, 1);
    const int64_t kernel = isConv ? kernelSize(instr.inputs[1]) : 1;
    const int64_t outputs = extents_[o][at[o]], inputs = extents_[k][at[k]];
    const double positions = elements / static_cast<double>(axes_[o].extent);
    const auto parts = static_cast<uint64_t>(trips_[o] * trips_[k]);
    const auto times = static_cast<double>(parts);
    // a column for each channel, a tap after the other
    if (groups > 1 && groups == axes_[o].extent)
      return positions * times * static_cast<double>(kernel * ceilDiv(outputs, costs_.columns));
    const int64_t columns = std::max<int64_t>(outputs / groups, 1); // of one group
    const int64_t folds = ceilDiv(inputs * kernel, costs_.rows) * ceilDiv(columns, costs_.columns) *
                          std::min(groups, outputs);
    return times * static_cast<double>(folds) *
           passCycles(positions, boxes / std::max<uint64_t>(parts, 1));
  }

  /// The taps of a convolution's weights.
  static int64_t kernelSize(const View& weights) {
    int64_t size = 1;
    for (size_t d = 0; d < weights.dims.size(); ++d) {
      const size_t dim = weights.layout.isRowMajor() ? d : weights.layout.steps[d].dim;
      if (dim >= 2) size *= weights.dims[d];
    }
    return size;
  }

  /// One pass of all tiles over so many positions in all. The weights of the next pass come in a
  /// row a cycle meanwhile: no pass is shorter than that.
  double passCycles(double positions, uint64_t tiles) const {
    return std::max(positions, static_cast<double>(tiles) * costs_.rows);
  }

  /// How often each element is computed, where windows of tiles overlap.
  static double againOf(const Measure& view, const Places& at) {
    double again = 1;
    for (size_t d = 0; d < view.lengths.size(); ++d) {
      const std::vector<Length>& lengths = view.lengths[d];
      if (view.axis[d] != SIZE_MAX)
        again *= static_cast<double>(lengths[at[view.axis[d]]].sum) /
                 static_cast<double>(lengths[0].sum);
    }
    return again;
  }

  /// Elements of the dims that every tile has all of.
  static double wholeOf(const View& view, const ViewMap& map) {
    double count = 1;
    for (size_t d = 0; d < view.dims.size(); ++d)
      if (map[d].how == DimMap::How::whole) count *= static_cast<double>(view.dims[d]);
    return count;
  }

  const Chain& chain_;
  const std::vector<Axis>& axes_;
  const std::vector<Port>& ports_;
  const Setting& setting_;
  const TileCosts& costs_;
  std::vector<std::vector<int64_t>> extents_; ///< by axis
  std::vector<Measure> views_, between_;
  std::vector<double> elements_;   ///< by link
  std::vector<bool> isOperand_[2]; ///< by port: it is operand 0, 1 of the first link
  std::vector<int64_t> trips_;     ///< by axis, under the tile at hand
  uint64_t boxes_ = 1;             ///< of the tile at hand
  double computing_ = 0;           ///< under it, in cycles
  std::vector<Load> loads_;        ///< by port and what is between, in the order at hand
  /// by port, under the tile at hand: parts of what stays or is held lie as the device's rows take
  /// them
  std::vector<bool> isTakenInPlace_;
  uint64_t room_ = 0, least_ = UINT64_MAX, leastSums_ = UINT64_MAX;
  std::optional<Tiling> best_;
  std::vector<Candidate> candidates_; ///< the cheapest first; empty without a device to ask
};

/// The view in a buffer of its own: `step` elements from one to the next of its innermost dim, and
/// `gap` more elements, of each dim, behind each row.
View laidOut(View view, int64_t step, int64_t gap) {
  int64_t run = step;
  for (size_t d = view.dims.size(); d-- > 0;) {
    if (!repeats(view, d)) {
      view.strides[d] = run;
      run = (run + gap) * view.dims[d];
    } else if (view.strides[d]) {
      view.strides[d] = run;
    }
  }
  view.offset = 0;
  return view;
}

/// Some row of the function does not take every view: the question below is dear, and most devices
/// need not be asked.
bool hasNarrowRow(const capabilities::Target& target, const Instr& instr) {
  return std::ranges::any_of(target.rows(), [&](const capabilities::Target::Row& entry) {
    const cdl_row_t& row = entry.row;
    return row.kind == instr.kind && row.fn == instr.fn && row.operand_class < CDL_CLASS_AFFINE;
  });
}

/// How the target does the instruction, whose operands lie as their views say.
capabilities::Support supportOf(const Program& program, const Instr& instr,
                                const capabilities::Target& target) {
  capabilities::InstrDesc desc = schedule::described(program, instr);
  schedule::describeLayouts(instr, desc);
  return target.query(desc).support;
}

/// The widest class of this view with which the target still does the instruction as it does it
/// with all views dense; affine where it does not do it then either.
capabilities::OperandClass widestOf(const Program& program, const Instr& work, bool output,
                                    size_t operand, const capabilities::Target& target) {
  using capabilities::OperandClass;
  if (!hasNarrowRow(target, work)) return OperandClass::affine;
  Instr dense = work;
  for (auto* views : {&dense.inputs, &dense.outputs})
    for (View& view : *views) view = laidOut(view, 1, 0);
  const capabilities::Support support = supportOf(program, dense, target);
  if (support == capabilities::Support::none) return OperandClass::affine;
  const auto takes = [&](int64_t step, int64_t gap) {
    Instr wider = dense;
    View& view = (output ? wider.outputs : wider.inputs)[operand];
    view = laidOut(view, step, gap);
    return supportOf(program, wider, target) == support;
  };
  if (takes(2, 0)) return OperandClass::affine;
  return takes(1, 1) ? OperandClass::rowStrided : OperandClass::dense;
}

/// The widest class that is taken by each instruction that uses the port, and by each one that
/// follows where it is a result.
capabilities::OperandClass widestOf(const Program& program, const Chain& chain, const Port& port,
                                    const capabilities::Target& target) {
  auto widest = capabilities::OperandClass::affine;
  for (const auto& [l, operand] : port.uses) {
    widest = std::min(widest, widestOf(program, chain.links[l].work, port.output, operand, target));
    if (!port.output || l + 1 == chain.links.size()) continue;
    for (const size_t i : chain.links[l + 1].fromBefore)
      widest = std::min(widest, widestOf(program, chain.links[l + 1].work, false, i, target));
  }
  return widest;
}

} // namespace

std::vector<Port> portsOf(const Program& program, const Chain& chain, const Machine& machine,
                          bool hasSums) {
  std::vector<Port> ports;
  for (size_t l = 0; l < chain.links.size(); ++l) {
    const Link& link = chain.links[l];
    for (size_t i = 0; i < link.work.inputs.size(); ++i) {
      if (std::ranges::find(link.fromBefore, i) != link.fromBefore.end()) continue;
      const View& view = link.work.inputs[i];
      const auto same = std::ranges::find_if(ports, [&](const Port& port) {
        return port.view.buffer == view.buffer && port.view.elem == view.elem &&
               port.view.offset == view.offset && port.view.dims == view.dims &&
               port.view.strides == view.strides && port.view.layout == view.layout &&
               port.map == link.inputs[i];
      });
      if (same != ports.end())
        same->uses.emplace_back(l, i);
      else
        ports.push_back({view, link.inputs[i], {{l, i}}});
    }
  }
  for (size_t l = 0; l < chain.links.size(); ++l) {
    const Link& link = chain.links[l];
    const bool isLast = l + 1 == chain.links.size();
    if (!isLast && !link.leaves) continue;
    const bool isInSums = hasSums && isSum(link.work);
    for (size_t i = 0; i < link.work.outputs.size(); ++i)
      ports.push_back(
          {link.work.outputs[i], link.outputs[i], {{l, i}}, true, link.work.inout, isInSums});
  }
  if (machine.target)
    for (Port& port : ports) port.widest = widestOf(program, chain, port, *machine.target);
  return ports;
}

uint64_t compactBytes(const View& view, const std::vector<Range>& region) {
  uint64_t count = 1;
  for (size_t d = 0; d < region.size(); ++d)
    if (!repeats(view, d)) count *= static_cast<uint64_t>(region[d].size());
  return elemBytes(view.elem, count);
}

Result<Tiling> chooseTiling(const Chain& chain, const std::vector<Port>& ports,
                            const Setting& setting, const TileCosts& costs) {
  return Chooser(chain, ports, setting, costs).choose();
}

} // namespace candela::program::passes::tile
