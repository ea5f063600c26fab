#include "core/compiler/program/passes/tile/emission.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>

#include "core/compiler/capabilities/views.h"

namespace candela::program::passes::tile {

namespace {

/// The local buffers of one value, which take turns.
struct Slot {
  std::vector<uint32_t> buffers;
  size_t turn = 0;
  bool isFilled = false;
  std::vector<Range> region;             ///< that the buffer whose turn it is holds
  std::function<uint32_t()> makeAnother; ///< where each region has a buffer of its own

  /// Whether the region is another one; the next buffer takes it then. What the view only repeats
  /// is the same everywhere.
  bool moveTo(std::vector<Range> to, const View& view) {
    for (size_t d = 0; d < to.size(); ++d)
      if (view.strides[d] == 0) to[d] = {0, 1};
    if (region == to && isFilled) return false;
    if (isFilled && makeAnother) buffers.push_back(makeAnother());
    if (isFilled) turn = (turn + 1) % buffers.size();
    region = std::move(to);
    return isFilled = true;
  }
};

/// The part of a view that a region is, in place.
View partOfView(const View& view, const std::vector<Range>& region) {
  View part = view;
  for (size_t d = 0; d < region.size(); ++d) {
    part.offset += region[d].begin * view.strides[d];
    part.dims[d] = region[d].size();
    if (!view.layout.isRowMajor() && part.dims[d] != view.dims[d]) part.layout.steps[d].factor = 0;
  }
  return part;
}

/// A view of the same elements, each once, that lie dense in a buffer of their own.
View packed(const View& view, uint32_t buffer, bool byColumns = false) {
  View result = view;
  result.buffer = buffer;
  result.offset = 0;
  int64_t run = 1;
  for (const size_t d : dimsInOrder(view.dims.size(), byColumns) | std::views::reverse) {
    result.strides[d] = view.strides[d] == 0 && view.dims[d] > 1 ? 0 : run;
    if (result.strides[d]) run *= view.dims[d];
  }
  return result;
}

View packed(const Port& port, const View& part, uint32_t buffer) {
  return packed(part, buffer, port.byColumns);
}

/// The instruction of a link as it is for the box, views of the whole Program.
Instr ownPart(const Chain& chain, size_t l, const Box& box) {
  const Link& link = chain.links[l];
  if (l > 0) {
    if (link.work.kind != CDL_KIND_POOL2D) return link.work;
    return partOf(link.work, {chain.work.axes, {}, link.inputs, link.outputs}, box);
  }
  if (chain.headAxes.empty()) return partOf(link.work, chain.work, box);
  Box own;
  for (size_t a = 0; a < chain.headAxes.size(); ++a)
    own.push_back(rangeOf(chain.headAxes[a], box, chain.work.axes, chain.head.axes[a].extent));
  return partOf(link.work, chain.head, own);
}

std::vector<Origin> originsOf(const Chain& chain, const char* op) {
  std::vector<Origin> origins;
  for (const Origin& origin : chain.links[0].work.provenance) {
    origins.push_back({origin.node, op});
    break;
  }
  return origins;
}

class Emitter {
public:
  Emitter(Program& program, const Chain& chain, const std::vector<Port>& ports,
          const Setting& setting, const Tiling& tiling, const std::vector<Kept>& kept,
          uint32_t space, uint32_t sumsSpace, const Machine& machine)
      : program_(program), chain_(chain), ports_(ports), setting_(setting), tiling_(tiling),
        kept_(kept), space_(space), sumsSpace_(sumsSpace), machine_(machine), slots_(ports.size()),
        between_(chain.links.size()) {}

  Emitted emit() {
    const std::vector<Axis>& axes = chain_.work.axes;
    Box box(axes.size());
    for (size_t a = 0; a < axes.size(); ++a) box[a] = {0, tiling_.tile[a]};
    makeSlots();
    for (size_t p = 0; p < ports_.size(); ++p)
      if (tiling_.held[p])
        load(ports_[p], packed(ports_[p], ports_[p].view, slots_[p].buffers[0]), ports_[p].view,
             first_);
    for (bool more = true; more;) {
      emitBox(box);
      more = false;
      for (size_t i = tiling_.order.size(); i-- > 0 && !more;) {
        const size_t a = tiling_.order[i];
        Range& range = box[a];
        more = range.end < axes[a].extent;
        range.begin = more ? range.end : 0;
        range.end = std::min(range.begin + tiling_.tile[a], axes[a].extent);
      }
    }
    if (tiling_.storesLast) {
      std::vector<Instr> stores;
      for (Emitted::Part& part : out_.parts)
        std::move(part.stores.begin(), part.stores.end(), std::back_inserter(stores)),
            part.stores.clear();
      out_.parts.back().stores = std::move(stores);
    }
    // What the first tile needs of constants may come early.
    Emitted::Part& first = out_.parts[0];
    std::vector<Instr> copies = std::move(first_);
    std::ranges::move(first.loads, std::back_inserter(copies));
    std::vector<Instr> others;
    for (Instr& copy : copies) {
      if (program_.buffers[copy.inputs[0].buffer].role != Role::constant) {
        others.push_back(std::move(copy));
        continue;
      }
      out_.aheadBytes.push_back(program_.buffers[copy.outputs[0].buffer].bytes);
      out_.ahead.push_back(std::move(copy));
    }
    first.loads = std::move(others);
    describe();
    return std::move(out_);
  }

private:
  bool stays(size_t p) const { return setting_.stays[p] != Stay::no; }

  MovedValue& moved(const Port& port) {
    const std::string& name = program_.buffers[port.view.buffer].name;
    const auto known = std::ranges::find(out_.step.moved, name, &MovedValue::name);
    return known != out_.step.moved.end() ? *known : out_.step.moved.emplace_back(MovedValue{name});
  }

  uint32_t addBuffer(const View& of, uint64_t bytes, uint32_t space, uint32_t alignment) {
    Buffer buffer;
    buffer.name =
        fmt::format("{}.{}", program_.buffers[of.buffer].name, program_.spaces[space].name);
    buffer.space = space;
    buffer.bytes = std::max<uint64_t>(bytes, 1);
    buffer.alignment = alignment;
    return program_.addBuffer(std::move(buffer));
  }

  /// Adds the buffers that take turns, each for the largest tile.
  Slot makeSlot(const View& view, const ViewMap& map, bool whole, uint32_t buffers, bool sums,
                bool grows = false) {
    uint64_t most = elemBits(view.elem);
    bool moves = false;
    for (size_t d = 0; d < view.dims.size(); ++d) {
      if (view.strides[d] == 0) continue;
      int64_t largest = view.dims[d];
      if (!whole && map[d].how != DimMap::How::whole) {
        const size_t a = map[d].axis;
        const int64_t extent = chain_.work.axes[a].extent;
        largest = 0;
        Box box(chain_.work.axes.size());
        for (int64_t begin = 0; begin < extent; begin += tiling_.tile[a]) {
          box[a] = {begin, std::min(begin + tiling_.tile[a], extent)};
          largest = std::max(largest, rangeOf(map[d], box, chain_.work.axes, view.dims[d]).size());
        }
        moves |= tiling_.tile[a] < extent;
      }
      most *= static_cast<uint64_t>(largest);
    }
    Slot slot;
    const auto make = [this, view, most, sums] {
      return addBuffer(view, (most + 7) / 8, sums ? sumsSpace_ : space_,
                       sums ? setting_.sums->alignment : setting_.memory->alignment);
    };
    for (uint32_t i = 0; i < (moves && !grows ? buffers : 1); ++i) slot.buffers.push_back(make());
    if (grows) slot.makeAnother = make;
    return slot;
  }

  void makeSlots() {
    for (size_t p = 0; p < ports_.size(); ++p) {
      const Port& port = ports_[p];
      if (stays(p) || (port.output && chain_.links[port.uses[0].first].work.kind == CDL_KIND_COPY))
        continue;
      slots_[p] = makeSlot(port.view, port.map, tiling_.held[p], tiling_.buffers, port.sums,
                           port.output && tiling_.storesLast);
    }
    for (size_t l = 0; l + 1 < chain_.links.size(); ++l) {
      const Instr& instr = chain_.links[l].work;
      const bool isProduct = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL;
      if (chain_.links[l].leaves) continue;
      const bool sums = setting_.sums && isProduct && elemBits(instr.outputs[0].elem) >= 32;
      between_[l] = makeSlot(instr.outputs[0], chain_.links[l].outputs[0], false,
                             std::min(tiling_.buffers, 2u), sums);
    }
  }

  void load(const Port& port, const View& to, const View& from, std::vector<Instr>& loads) {
    loads.push_back(copyBetween(from, to, machine_.loadEngine, originsOf(chain_, "load")));
    const uint64_t bytes =
        elemBytes(from.elem, static_cast<uint64_t>(loads.back().inputs[0].count()));
    out_.step.loadedBytes += bytes;
    moved(port).loadedBytes += bytes;
  }

  /// The local view of a port for the box; what is not there yet is copied in.
  View bring(size_t p, const Box& box, std::vector<Instr>& loads) {
    const Port& port = ports_[p];
    const std::vector<Range> region = regionOf(port.map, box, chain_.work.axes, port.view);
    if (stays(p)) {
      View view = partOfView(port.view, region);
      view.buffer = kept_[p].buffer;
      return view;
    }
    Slot& slot = slots_[p];
    if (tiling_.held[p]) return partOfView(packed(port, port.view, slot.buffers[0]), region);
    const View part = partOfView(port.view, region);
    const bool isNew = slot.moveTo(region, port.view);
    const View local = packed(port, part, slot.buffers[slot.turn]);
    if (isNew && (!port.output || port.inout) && part.count() > 0) load(port, local, part, loads);
    return local;
  }

  View nextBetween(size_t l, const Box& box) {
    Slot& slot = between_[l];
    const View& view = chain_.links[l].work.outputs[0];
    const std::vector<Range> region =
        regionOf(chain_.links[l].outputs[0], box, chain_.work.axes, view);
    slot.moveTo(region, view);
    return packed(partOfView(view, region), slot.buffers[slot.turn]);
  }

  size_t portOf(size_t link, size_t operand, bool output) const {
    for (size_t p = 0; p < ports_.size(); ++p)
      if (ports_[p].output == output &&
          std::ranges::find(ports_[p].uses, std::pair(link, operand)) != ports_[p].uses.end())
        return p;
    CDL_CHECK(false, "link {} has no port for operand {}", link, operand);
    return 0;
  }

  /// The view by which this operand sees what the link before it wrote for the box.
  View again(const Link& link, size_t i, const Box& box, uint32_t buffer, bool isPacked) const {
    const View& view = link.work.inputs[i];
    View part = partOfView(view, regionOf(link.inputs[i], box, chain_.work.axes, view));
    part.buffer = buffer;
    return isPacked ? packed(part, buffer) : part;
  }

  void emitBox(const Box& box) {
    Emitted::Part& part = out_.parts.emplace_back();
    bool isWhole = true; // of the sums
    for (size_t a = 0; a < box.size(); ++a)
      if (chain_.work.axes[a].sum) isWhole &= box[a].end == chain_.work.axes[a].extent;
    View before;
    bool isPacked = true;
    for (size_t l = 0; l < chain_.links.size() && (l == 0 || isWhole); ++l) {
      const Link& link = chain_.links[l];
      if (chain_.links.size() == 1 && copiesStraight(box, part)) break;
      Instr instr = ownPart(chain_, l, box);
      for (size_t i = 0; i < instr.inputs.size(); ++i) {
        const bool isBefore = std::ranges::find(link.fromBefore, i) != link.fromBefore.end();
        instr.inputs[i] = isBefore ? again(link, i, box, before.buffer, isPacked)
                                   : bring(portOf(l, i, false), box, part.loads);
      }
      const bool isLast = l + 1 == chain_.links.size();
      if (isLast && instr.kind == CDL_KIND_COPY) {
        finishCopy(instr.inputs[0], box, part);
        break;
      }
      const bool leaves = isLast || link.leaves;
      for (size_t i = 0; i < instr.outputs.size(); ++i)
        instr.outputs[i] =
            leaves ? bring(portOf(l, i, true), box, part.loads) : nextBetween(l, box);
      before = instr.outputs[0];
      isPacked = !leaves || !stays(portOf(l, 0, true));
      instr.engine = machine_.computeEngine;
      instr.waits.clear();
      instr.loop = instr.group = kNone;
      if (leaves && isWhole)
        for (size_t i = 0; i < instr.outputs.size(); ++i)
          store(portOf(l, i, true), instr.outputs[i], box, part);
      part.computes.push_back(std::move(instr));
    }
  }

  void store(size_t p, const View& local, const Box& box, Emitted::Part& part) {
    if (setting_.stays[p] == Stay::local) return;
    const Port& port = ports_[p];
    const View to = partOfView(port.view, regionOf(port.map, box, chain_.work.axes, port.view));
    part.stores.push_back(copyBetween(local, to, machine_.storeEngine, originsOf(chain_, "store")));
    const uint64_t bytes =
        elemBytes(to.elem, static_cast<uint64_t>(part.stores.back().inputs[0].count()));
    out_.step.storedBytes += bytes;
    moved(port).storedBytes += bytes;
  }

  /// A COPY of a value that is not in local memory to one that stays there is a load itself. False:
  /// the chain is no such copy.
  bool copiesStraight(const Box& box, Emitted::Part& part) {
    if (chain_.links[0].work.kind != CDL_KIND_COPY) return false;
    const size_t from = portOf(0, 0, false), to = portOf(0, 0, true);
    if (stays(from) || tiling_.held[from] || setting_.stays[to] != Stay::local) return false;
    const Port& port = ports_[from];
    const View view = partOfView(port.view, regionOf(port.map, box, chain_.work.axes, port.view));
    if (view.count() > 0) load(port, bring(to, box, part.loads), view, part.loads);
    return true;
  }

  /// The copy at the end of a chain needs no room of its own: what it copies goes straight to where
  /// it belongs.
  void finishCopy(const View& from, const Box& box, Emitted::Part& part) {
    const size_t p = portOf(chain_.links.size() - 1, 0, true);
    if (!stays(p)) return store(p, from, box, part);
    const View local = bring(p, box, part.loads);
    part.computes.push_back(
        copyBetween(from, local, machine_.computeEngine, chain_.last().work.provenance));
    store(p, local, box, part);
  }

  void describe() {
    TiledStep& step = out_.step;
    step.memory = setting_.memory->name;
    for (const Link& link : chain_.links) {
      step.kinds.push_back(link.work.kind);
      for (const Origin& origin : link.work.provenance)
        if (std::ranges::find(step.nodes, origin.node) == step.nodes.end())
          step.nodes.push_back(origin.node);
    }
    for (const Axis& axis : chain_.work.axes) step.extents.push_back(axis.extent);
    step.tile = tiling_.tile;
    step.buffers = tiling_.buffers;
    step.boxes = out_.parts.size();
    step.localBytes = tiling_.localBytes;
    for (size_t p = 0; p < ports_.size(); ++p)
      if (stays(p)) step.kept.push_back(program_.buffers[ports_[p].view.buffer].name);
  }

  Program& program_;
  const Chain& chain_;
  const std::vector<Port>& ports_;
  const Setting& setting_;
  const Tiling& tiling_;
  const std::vector<Kept>& kept_;
  uint32_t space_, sumsSpace_;
  const Machine& machine_;
  std::vector<Slot> slots_, between_;
  std::vector<Instr> first_; ///< copies of what is held
  Emitted out_;
};

} // namespace

Instr tileOf(const Chain& chain, size_t link, const Box& box) {
  const Link& from = chain.links[link];
  Instr instr = ownPart(chain, link, box);
  instr.waits.clear();
  instr.loop = instr.group = kNone;
  const auto part = [&](const View& view, const ViewMap& map) {
    return partOfView(view, regionOf(map, box, chain.work.axes, view));
  };
  for (size_t i = 0; i < instr.inputs.size(); ++i) {
    const View& view = instr.inputs[i];
    const bool byColumns = liesByColumns(from.work, i);
    instr.inputs[i] = packed(part(view, from.inputs[i]), view.buffer, byColumns);
  }
  for (size_t i = 0; i < instr.outputs.size(); ++i) {
    const View& view = instr.outputs[i];
    instr.outputs[i] = packed(part(view, from.outputs[i]), view.buffer);
  }
  return instr;
}

Instr copyBetween(const View& from, const View& to, uint16_t engine, std::vector<Origin> origins) {
  capabilities::Walk walk{{}, {{}, {}}};
  for (size_t d = 0; d < from.dims.size(); ++d) {
    const bool isRepeated = from.strides[d] == 0 && to.strides[d] == 0;
    walk.dims.push_back(isRepeated ? 1 : from.dims[d]);
    walk.strides[0].push_back(from.strides[d]);
    walk.strides[1].push_back(to.strides[d]);
  }
  walk = capabilities::coalesce(walk);
  Instr copy;
  copy.kind = CDL_KIND_COPY;
  copy.engine = engine;
  copy.provenance = std::move(origins);
  copy.inputs = {from};
  copy.outputs = {to};
  for (View* view : {&copy.inputs[0], &copy.outputs[0]}) {
    view->layout = {};
    view->dims = walk.dims;
    view->strides = walk.strides[view == &copy.inputs[0] ? 0 : 1];
  }
  return copy;
}

Emitted emitChain(Program& program, const Chain& chain, const std::vector<Port>& ports,
                  const Setting& setting, const Tiling& tiling, const std::vector<Kept>& kept,
                  uint32_t space, uint32_t sumsSpace, const Machine& machine) {
  return Emitter(program, chain, ports, setting, tiling, kept, space, sumsSpace, machine).emit();
}

} // namespace candela::program::passes::tile
