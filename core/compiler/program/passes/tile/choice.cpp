#include <algorithm>
#include <cmath>
#include <limits>

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

/// Of one dim under one extent of its axis: the most elements of a tile, and those of all tiles
/// together.
struct Length {
  int64_t most = 1, sum = 1;
};

Length lengthOf(const DimMap& map, int64_t dim, const std::vector<Axis>& axes, int64_t tile) {
  if (map.how == DimMap::How::whole || tile == axes[map.axis].extent) return {dim, dim};
  if (map.how == DimMap::How::axis) return {std::min(dim, ceilDiv(tile, map.unit)), dim};
  if (map.how == DimMap::How::channels)
    return {std::min(dim, tile / map.outputs * map.inputs), dim};
  Length length{0, 0};
  Box box(axes.size());
  for (int64_t begin = 0; begin < axes[map.axis].extent; begin += tile) {
    box[map.axis] = {begin, std::min(begin + tile, axes[map.axis].extent)};
    const int64_t size = rangeOf(map, box, axes, dim).size();
    length.most = std::max(length.most, size);
    length.sum += size;
  }
  return length;
}

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
    const bool isSums =
        leastSums_ != UINT64_MAX && setting_.sums && leastSums_ > setting_.sums->capacityBytes;
    const LocalMemory& memory = isSums ? *setting_.sums : *setting_.memory;
    return failure(Code::out_of_memory,
                   "the smallest tiles need {} bytes of memory '{}', which has {}{}",
                   isSums ? leastSums_ : least_, memory.name, isSums ? memory.capacityBytes : room_,
                   setting_.reserved && !isSums ? " left" : "");
  }

private:
  /// By dim and place among the extents of its axis.
  struct Measure {
    std::vector<std::vector<Length>> lengths;
    std::vector<size_t> axis;  ///< of each dim; none: SIZE_MAX
    std::vector<bool> depends; ///< by axis
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
        lengths.push_back({view.dims[d], view.dims[d]});
        continue;
      }
      result.depends[map[d].axis] = true;
      for (const int64_t extent : extents_[map[d].axis])
        lengths.push_back(lengthOf(map[d], view.dims[d], axes_, extent));
    }
    result.wholeBytes = (whole + 7) / 8;
    return result;
  }

  /// Of one view under the tile at hand.
  struct Load {
    uint64_t tileBytes = 0, bytes = 0, copies = 1;
  };
  Load loadOf(const Measure& view, const std::vector<size_t>& at,
              const std::vector<size_t>& order) const {
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

  void search(bool cutSums, bool holdSmall) {
    // by family: places among the extents of its axes
    std::vector<std::vector<std::vector<size_t>>> choices;
    for (const auto& family : chain_.work.families) choices.push_back(choicesOf(family));
    std::vector<size_t> sums;
    for (size_t a = 0; a < axes_.size(); ++a)
      if (axes_[a].sum) sums.push_back(a);
    if (cutSums && (sums.empty() || !axes_[sums[0]].cut ||
                    (!setting_.splitSums && isFloat(chain_.links[0].work.inputs[0].elem))))
      return;
    std::vector<size_t> at(axes_.size(), 0), family(choices.size(), 0);
    for (size_t s = cutSums ? 1 : 0; s < (cutSums ? extents_[sums[0]].size() : 1); ++s) {
      if (cutSums) at[sums[0]] = s;
      std::ranges::fill(family, 0);
      for (bool more = true; more;) {
        for (size_t f = 0; f < choices.size(); ++f)
          for (size_t i = 0; i < chain_.work.families[f].size(); ++i)
            at[chain_.work.families[f][i]] = choices[f][family[f]][i];
        tryTile(at, sums, holdSmall);
        more = false;
        for (size_t f = 0; f < choices.size() && !more; ++f) {
          more = ++family[f] < choices[f].size();
          if (!more) family[f] = 0;
        }
      }
      if (cutSums && best_) return; // the fewest parts
    }
  }

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

  void tryTile(const std::vector<size_t>& at, const std::vector<size_t>& sums, bool holdSmall) {
    trips_.resize(axes_.size());
    for (size_t a = 0; a < axes_.size(); ++a)
      // a sum of nothing
      trips_[a] = axes_[a].extent ? ceilDiv(axes_[a].extent, extents_[a][at[a]]) : 1;
    isDenseInPlace_.clear();
    for (size_t p = 0; p < ports_.size(); ++p) {
      isDenseInPlace_.push_back(!ports_[p].isCompact || hasDenseParts(ports_[p], at));
      if (setting_.stays[p] != Stay::no && !isDenseInPlace_[p]) return;
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
      loads_.clear();
      for (const Measure& view : views_) loads_.push_back(loadOf(view, at, order));
      for (const Measure& view : between_) loads_.push_back(loadOf(view, at, order));
      for (uint32_t buffers = setting_.mostBuffers; buffers >= 1; --buffers)
        for (unsigned hold = 0; hold < (holdSmall ? 4 : 1); ++hold)
          if (!costs_.storesLast || !tryOrder(at, order, buffers, hold, holdSmall, true))
            tryOrder(at, order, buffers, hold, holdSmall, false);
    } while (std::next_permutation(families.begin(), families.end()));
  }

  /// Whether each tile at hand of a view that lies among the others is dense: what is cut has no
  /// rows outside of it.
  bool hasDenseParts(const Port& port, const std::vector<size_t>& at) const {
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

  /// Bit i of `hold`: operand i of the first link is held. False where that does not fit.
  bool tryOrder(const std::vector<size_t>& at, const std::vector<size_t>& order, uint32_t buffers,
                unsigned hold, bool holdSmall, bool storesLast) {
    held_.assign(ports_.size(), false);
    uint64_t bytes = 0, copies = 0, local = 0, sumBytes = 0, first = 0, stored = 0, stores = 0;
    for (size_t p = 0; p < ports_.size(); ++p) {
      const Port& port = ports_[p];
      if (setting_.stays[p] == Stay::local) continue;
      const Load& load = loads_[p];
      const uint64_t inRotation = load.copies > 1 ? buffers : 1;
      if (port.output) {
        bytes += load.bytes * (port.inout ? 2 : 1);
        copies += load.copies * (port.inout ? 2 : 1);
        stored += load.bytes;
        stores += load.copies;
        const Link& link = chain_.links[port.uses[0].first];
        if (setting_.stays[p] == Stay::stored) continue;
        // it goes from where its operand is, which the next tile takes
        if (link.work.kind == CDL_KIND_COPY) {
          if (storesLast && load.copies > 1) return false;
          continue;
        }
        const LocalMemory& memory = port.sums ? *setting_.sums : *setting_.memory;
        const uint64_t count = storesLast ? load.copies : inRotation;
        (port.sums ? sumBytes : local) += count * aligned(load.tileBytes, memory.alignment);
        continue;
      }
      const uint64_t whole = aligned(views_[p].wholeBytes, setting_.memory->alignment);
      const uint64_t rotating = inRotation * aligned(load.tileBytes, setting_.memory->alignment);
      const bool isMain = isOperand_[0][p] || isOperand_[1][p];
      const bool asked = (isOperand_[0][p] && (hold & 1)) || (isOperand_[1][p] && (hold & 2));
      // nothing to win
      if (asked && (load.copies == 1 || load.bytes <= views_[p].wholeBytes)) return true;
      if (asked && !isDenseInPlace_[p]) return true;
      const bool isSmall = holdSmall && !isMain && isDenseInPlace_[p] && load.copies > 1 &&
                           (whole <= rotating || whole <= room_ / 32);
      const bool held = asked || isSmall;
      held_[p] = held;
      local += held ? whole : rotating;
      bytes += held ? views_[p].wholeBytes : load.bytes;
      copies += held ? 1 : load.copies;
      first += held ? views_[p].wholeBytes : load.bytes / load.copies;
    }
    for (size_t l = 0; l < between_.size(); ++l) {
      if (chain_.links[l].leaves) continue; // a port
      const Load& load = loads_[ports_.size() + l];
      const bool isSum = setting_.sums && isSumOf(chain_.links[l].work);
      const LocalMemory& memory = isSum ? *setting_.sums : *setting_.memory;
      (isSum ? sumBytes : local) +=
          (load.copies > 1 ? std::min(buffers, 2u) : 1) * aligned(load.tileBytes, memory.alignment);
    }
    least_ = std::min(least_, local);
    leastSums_ = std::min(leastSums_, sumBytes);
    if (local > room_ || (setting_.sums && sumBytes > setting_.sums->capacityBytes)) return false;
    const auto cyclesOf = [&](uint64_t moved, uint64_t times) {
      return static_cast<double>(moved) / costs_.bytesPerCycle +
             static_cast<double>(times) * costs_.copyCycles;
    };
    Tiling tiling;
    tiling.storesLast = storesLast && stores > 0;
    tiling.copying = cyclesOf(bytes, copies);
    tiling.computing = computing_;
    const bool overlaps = buffers > 1 && boxes_ > 1;
    const double filling =
        overlaps ? static_cast<double>(first) / costs_.bytesPerCycle : tiling.copying;
    const Times times{filling, cyclesOf(stored, stores), boxes_, overlaps};
    tiling.cost = costOf(tiling, times);
    const bool isBest = !best_ || tiling.cost < best_->cost;
    if (!isBest && !asks()) return true;
    tiling.buffers = buffers;
    tiling.held = held_;
    tiling.bytes = bytes;
    tiling.localBytes = local;
    tiling.instrs = copies + boxes_ * chain_.links.size();
    for (size_t a = 0; a < axes_.size(); ++a) tiling.tile.push_back(extents_[a][at[a]]);
    tiling.order = order;
    if (asks()) remember({tiling, times});
    if (isBest) best_ = std::move(tiling);
    return true;
  }

  /// What of the copies stands before or behind the rest.
  struct Times {
    /// before the first tile is computed, beside which nothing of this instruction runs
    double filling = 0;
    double storing = 0;
    uint64_t boxes = 1;
    bool overlaps = false;
  };

  /// Copies count once more, for they take from the others.
  static double costOf(const Tiling& tiling, const Times& times) {
    const double copying = tiling.copying, computing = tiling.computing, filling = times.filling;
    if (!tiling.storesLast) return filling + std::max(copying - filling, computing) + copying;
    const double storing = times.storing, loading = copying - storing,
                 last = 1 / static_cast<double>(times.boxes);
    if (!times.overlaps) return loading + computing + storing + copying;
    // Behind the loads the last tile is computed while the others are stored.
    return std::max(loading, filling + computing * (1 - last)) +
           std::max(computing * last, storing * (1 - last)) + storing * last + copying;
  }

  bool asks() const { return costs_.device && costs_.device->knowsTiles(); }

  /// What the device is asked about: the best of each tile, and of these the best.
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

  /// By what the device says of their tiles, where it knows all of them.
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

public:
  static bool isSumOf(const Instr& instr) {
    const bool multiplies = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL;
    return multiplies && elemBits(instr.outputs[0].elem) >= 32;
  }

private:
  /// Of the largest view; of what multiplies, the result's.
  static double mostElements(const Instr& instr) {
    int64_t most = instr.outputs[0].count();
    if (instr.kind != CDL_KIND_CONV2D && instr.kind != CDL_KIND_MATMUL)
      for (const View& view : instr.inputs) most = std::max(most, view.count());
    return static_cast<double>(most);
  }

  double computeCycles(const std::vector<size_t>& at, uint64_t boxes) const {
    double cycles = static_cast<double>(boxes * chain_.links.size()) * costs_.instrCycles;
    for (size_t l = 0; l < chain_.links.size(); ++l) {
      const Instr& instr = chain_.links[l].work;
      const bool isConv = instr.kind == CDL_KIND_CONV2D && !instr.intAttr(CDL_ATTR_TRANSPOSED, 0);
      const double elements = elements_[l] * (l < between_.size() ? againOf(between_[l], at) : 1);
      if (!isConv && instr.kind != CDL_KIND_MATMUL) {
        cycles += elements / costs_.lanes;
        continue;
      }
      if (l > 0) { // all channels to all channels
        const double outputs = wholeOf(instr.outputs[0], chain_.links[l].outputs[0]);
        const double inputs = wholeOf(instr.inputs[0], chain_.links[l].inputs[0]);
        cycles += passCycles(elements / outputs, boxes) * std::ceil(inputs / costs_.rows) *
                  std::ceil(outputs / costs_.columns);
        continue;
      }
      const size_t o = isConv ? 1 : 2, k = isConv ? 4 : 3;
      const int64_t groups = instr.intAttr(CDL_ATTR_GROUP, 1);
      int64_t kernel = 1;
      if (isConv)
        for (size_t d = 0; d < instr.inputs[1].dims.size(); ++d) {
          const View& w = instr.inputs[1];
          const size_t dim = w.layout.isRowMajor() ? d : w.layout.steps[d].dim;
          if (dim >= 2) kernel *= w.dims[d];
        }
      const int64_t outputs = extents_[o][at[o]], inputs = extents_[k][at[k]];
      const double positions = elements / static_cast<double>(axes_[o].extent);
      const auto times = static_cast<double>(trips_[k] * trips_[o]);
      // a column for each channel, a tap after the other
      if (groups > 1 && groups == axes_[o].extent) {
        cycles +=
            positions * times * static_cast<double>(kernel * ceilDiv(outputs, costs_.columns));
        continue;
      }
      const auto parts = static_cast<uint64_t>(trips_[o] * trips_[k]);
      const double folds =
          times *
          static_cast<double>(ceilDiv(inputs * kernel, costs_.rows) *
                              ceilDiv(std::max<int64_t>(outputs / groups, 1), costs_.columns) *
                              std::min(groups, outputs));
      cycles += folds * passCycles(positions, boxes / std::max<uint64_t>(parts, 1));
    }
    return cycles;
  }

  /// Of all tiles, over so many positions in all: weights of the next pass come in a row a cycle,
  /// and none is shorter.
  double passCycles(double positions, uint64_t tiles) const {
    return std::max(positions, static_cast<double>(tiles) * costs_.rows);
  }

  /// How often each element is computed, where windows of tiles overlap.
  static double againOf(const Measure& view, const std::vector<size_t>& at) {
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
  std::vector<bool> held_;
  std::vector<bool>
      /// by port, under the tile at hand: the parts of what stays or is held are as wanted
      isDenseInPlace_;
  uint64_t room_ = 0, least_ = UINT64_MAX, leastSums_ = UINT64_MAX;
  std::optional<Tiling> best_;
  std::vector<Candidate> candidates_; ///< the cheapest first; empty without a device to ask
};

} // namespace

namespace {

/// Dense, or with gaps between its rows.
View laidOut(View view, int64_t gap) {
  int64_t run = 1;
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

/// Some row of the function takes nothing with gaps: the question below is dear, and most devices
/// need not be asked.
bool hasDenseRow(const capabilities::Target& target, const Instr& instr) {
  return std::ranges::any_of(target.rows(), [&](const capabilities::Target::Row& entry) {
    const cdl_row_t& row = entry.row;
    return row.kind == instr.kind && row.fn == instr.fn &&
           row.operand_class < CDL_CLASS_ROW_STRIDED;
  });
}

/// Whether the target takes the instruction with all views dense and refuses it with gaps in this
/// one.
bool needsDense(const Program& program, const Instr& work, bool output, size_t operand,
                const capabilities::Target& target) {
  if (!hasDenseRow(target, work)) return false;
  Instr dense = work;
  for (auto* views : {&dense.inputs, &dense.outputs})
    for (View& view : *views) {
      if (!view.layout.isRowMajor()) return false;
      view = laidOut(view, 0);
    }
  Instr gapped = dense;
  View& view = (output ? gapped.outputs : gapped.inputs)[operand];
  view = laidOut(view, 1);
  const capabilities::Support support = target.query(schedule::described(program, dense)).support;
  return support != capabilities::Support::none &&
         target.query(schedule::described(program, gapped)).support != support;
}

/// Of those that use the port, and of the link that follows where it is a result.
bool needsDense(const Program& program, const Chain& chain, const Port& port,
                const capabilities::Target& target) {
  for (const auto& [l, operand] : port.uses) {
    if (needsDense(program, chain.links[l].work, port.output, operand, target)) return true;
    if (!port.output || l + 1 == chain.links.size()) continue;
    for (const size_t i : chain.links[l + 1].fromBefore)
      if (needsDense(program, chain.links[l + 1].work, false, i, target)) return true;
  }
  return false;
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
    const bool isSum = hasSums && Chooser::isSumOf(link.work);
    for (size_t i = 0; i < link.work.outputs.size(); ++i)
      ports.push_back(
          {link.work.outputs[i], link.outputs[i], {{l, i}}, true, link.work.inout, isSum});
  }
  if (machine.target)
    for (Port& port : ports) port.isCompact = needsDense(program, chain, port, *machine.target);
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
