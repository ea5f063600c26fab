#include "core/compiler/program/passes/tile/tile_space.h"

#include <algorithm>
#include <cmath>
#include <ranges>

namespace candela::program::passes::tile {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

/// How many elements an instruction computes: those of its largest view, or the results of a
/// product.
double mostElements(const Instr& instr) {
  int64_t most = instr.outputs[0].count();
  if (instr.kind != CDL_KIND_CONV2D && instr.kind != CDL_KIND_MATMUL)
    for (const View& view : instr.inputs) most = std::max(most, view.count());
  return static_cast<double>(most);
}

bool isConvolution(const Instr& instr) {
  return instr.kind == CDL_KIND_CONV2D && !instr.intAttr(CDL_ATTR_TRANSPOSED, 0);
}

/// The taps of a convolution's weights.
int64_t kernelSize(const View& weights) {
  int64_t size = 1;
  for (size_t d = 0; d < weights.dims.size(); ++d) {
    const size_t dim = weights.layout.isRowMajor() ? d : weights.layout.steps[d].dim;
    if (dim >= 2) size *= weights.dims[d];
  }
  return size;
}

/// How often each element is computed, where windows of tiles overlap.
double againOf(const Measure& view, std::span<const size_t> at) {
  double again = 1;
  for (size_t d = 0; d < view.lengths.size(); ++d) {
    const std::vector<Length>& lengths = view.lengths[d];
    if (view.axis[d] != SIZE_MAX)
      again *=
          static_cast<double>(lengths[at[view.axis[d]]].sum) / static_cast<double>(lengths[0].sum);
  }
  return again;
}

/// Elements of the dims that every tile has all of.
double wholeOf(const View& view, const ViewMap& map) {
  double count = 1;
  for (size_t d = 0; d < view.dims.size(); ++d)
    if (map[d].how == DimMap::How::whole) count *= static_cast<double>(view.dims[d]);
  return count;
}

} // namespace

bool repeats(const View& view, size_t d) { return view.strides[d] == 0 || view.dims[d] == 1; }

bool isSum(const Instr& instr) {
  const bool multiplies = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL;
  return multiplies && elemBits(instr.outputs[0].elem) >= 32;
}

TileSpace::TileSpace(const Chain& chain, const std::vector<Port>& ports, const TileCosts& costs)
    : chain_(chain), ports_(ports), costs_(costs) {
  costs_.device = nullptr; // which may go before this
  for (const Axis& axis : axes()) extents_.push_back(extentsOf(axis, costs.columns));
  for (const Port& port : ports) views_.push_back(measure(port.view, port.map, port.order));
  for (size_t l = 0; l + 1 < chain.links.size(); ++l) {
    const View& view = chain.links[l].work.outputs[0];
    views_.push_back(
        measure(view, chain.links[l].outputs[0], dimsInOrder(view.dims.size(), false)));
  }
  for (const Link& link : chain.links) elements_.push_back(mostElements(link.work));
  for (const Port& port : ports)
    for (size_t operand = 0; operand < 2; ++operand)
      isOperand_[operand].push_back(
          std::ranges::find(port.uses, std::pair<size_t, size_t>(0, operand)) != port.uses.end());
  for (size_t a = 0; a < axes().size(); ++a)
    if (axes()[a].sum) sums_.push_back(a);
  sizes_.resize(sums_.empty() ? 1 : extents_[sums_[0]].size());
}

Measure TileSpace::measure(const View& view, const ViewMap& map,
                           const std::vector<size_t>& order) const {
  Measure result;
  result.depends.assign(axes().size(), false);
  result.bits = static_cast<uint64_t>(elemBits(view.elem));
  uint64_t whole = result.bits;
  for (const size_t d : order) {
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
      lengths.push_back(lengthOf(map[d], view.dims[d], axes(), extent));
  }
  result.wholeBytes = (whole + 7) / 8;
  return result;
}

const std::vector<TileSize>& TileSpace::sizes(size_t sumsAt) {
  Sizes& sizes = sizes_[sumsAt];
  if (!sizes.all.empty()) return sizes.all;
  const auto& families = chain_.work.families;
  std::vector<std::vector<std::vector<size_t>>> choices; // by family
  size_t count = 1;
  for (const auto& family : families) {
    choices.push_back(choicesOf(family));
    count *= choices.back().size();
  }
  sizes.all.reserve(count); // the lists must stay where they are
  sizes.at.reserve(count * axes().size());
  sizes.trips.reserve(count * axes().size());
  sizes.views.reserve(count * views_.size());
  std::vector<size_t> at(axes().size(), 0);
  if (sumsAt) at[sums_[0]] = sumsAt;
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
      for (size_t i = 0; i < families[f].size(); ++i) at[families[f][i]] = choices[f][chosen[f]][i];
    addSize(at, sizes);
  } while (next());
  return sizes.all;
}

/// The places of a family's axes: one of them is cut anywhere, those before it are down to their
/// unit, and those behind it are whole.
std::vector<std::vector<size_t>> TileSpace::choicesOf(const std::vector<size_t>& family) const {
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

void TileSpace::addSize(const std::vector<size_t>& at, Sizes& sizes) const {
  TileSize& size = sizes.all.emplace_back();
  size.at = {sizes.at.insert(sizes.at.end(), at.begin(), at.end()), sizes.at.end()};
  for (size_t a = 0; a < axes().size(); ++a) {
    const int64_t extent = axes()[a].extent; // 0: a sum of nothing
    const int64_t trips = extent ? ceilDiv(extent, extents_[a][at[a]]) : 1;
    sizes.trips.push_back(trips);
    size.boxes *= static_cast<uint64_t>(trips);
  }
  size.trips = std::span<const int64_t>(sizes.trips).last(axes().size());
  size.computing = computeCycles(size);
  for (const Measure& view : views_) sizes.views.push_back(tileOf(view, size));
  size.views = std::span<const TileOfView>(sizes.views).last(views_.size());
}

TileOfView TileSpace::tileOf(const Measure& view, const TileSize& size) const {
  uint64_t most = view.bits;
  TileOfView tile{0, view.bits, 1};
  for (size_t d = 0; d < view.lengths.size(); ++d) {
    const Length& length = view.lengths[d][view.axis[d] == SIZE_MAX ? 0 : size.at[view.axis[d]]];
    most *= static_cast<uint64_t>(length.most);
    tile.allBits *= static_cast<uint64_t>(length.sum);
  }
  tile.tileBytes = (most + 7) / 8;
  for (size_t a = 0; a < size.trips.size(); ++a)
    if (view.depends[a]) tile.copies *= static_cast<uint64_t>(size.trips[a]);
  return tile;
}

bool TileSpace::isTakenInPlace(size_t p, const TileSize& size) const {
  switch (ports_[p].widest) {
  case capabilities::OperandClass::affine: return true;
  case capabilities::OperandClass::rowStrided: return hasRows(p, size);
  default: return hasDenseParts(ports_[p], size);
  }
}

/// Whether the innermost dim of each tile lies side by side. That of a tile with one
/// element in its innermost dim is the next one outside, which does not.
bool TileSpace::hasRows(size_t p, const TileSize& size) const {
  const View& view = ports_[p].view;
  const Measure& measure = views_[p];
  const std::vector<size_t>& order = ports_[p].order;
  size_t innermost = order.size();
  while (innermost > 0 && repeats(view, order[innermost - 1])) --innermost;
  if (innermost == 0) return true;
  if (view.strides[order[innermost - 1]] != 1) return false;
  const auto lengthAt = [&](size_t d) -> const Length& {
    return measure.lengths[d][measure.axis[d] == SIZE_MAX ? 0 : size.at[measure.axis[d]]];
  };
  size_t d = measure.lengths.size() - 1;
  if (lengthAt(d).least > 1) return true;
  while (d-- > 0)
    if (lengthAt(d).most > 1) return false;
  return true;
}

/// Whether each tile of a view that lies among the others is dense: what is cut has no
/// rows outside of it.
bool TileSpace::hasDenseParts(const Port& port, const TileSize& size) const {
  const View& view = port.view;
  int64_t outer = 1; // elements of a tile in the dims outside
  int64_t run = 1;
  for (const size_t d : port.order | std::views::reverse) {
    if (!repeats(view, d) && view.strides[d] != run) return false;
    run *= repeats(view, d) ? 1 : view.dims[d];
  }
  for (const size_t d : port.order) {
    if (repeats(view, d)) continue;
    const bool isCut = port.map[d].how != DimMap::How::whole && size.trips[port.map[d].axis] > 1;
    if (isCut && outer > 1) return false;
    outer *= isCut ? lengthOf(port.map[d], view.dims[d], axes(),
                              extents_[port.map[d].axis][size.at[port.map[d].axis]])
                         .most
                   : view.dims[d];
  }
  return true;
}

double TileSpace::computeCycles(const TileSize& size) const {
  const uint64_t boxes = size.boxes;
  double cycles = static_cast<double>(boxes * chain_.links.size()) * costs_.instrCycles;
  for (size_t l = 0; l < chain_.links.size(); ++l) {
    const Instr& instr = chain_.links[l].work;
    const double elements =
        elements_[l] *
        (l + 1 < chain_.links.size() ? againOf(views_[ports_.size() + l], size.at) : 1);
    if (!isConvolution(instr) && instr.kind != CDL_KIND_MATMUL)
      cycles += elements / costs_.lanes;
    else if (l > 0)
      cycles += followerCycles(chain_.links[l], elements, boxes);
    else
      cycles += headCycles(instr, elements, size);
  }
  return cycles;
}

/// A product that follows another instruction: it has all channels of each tile.
double TileSpace::followerCycles(const Link& link, double elements, uint64_t boxes) const {
  const double outputs = wholeOf(link.work.outputs[0], link.outputs[0]);
  const double inputs = wholeOf(link.work.inputs[0], link.inputs[0]);
  return passCycles(elements / outputs, boxes) * std::ceil(inputs / costs_.rows) *
         std::ceil(outputs / costs_.columns);
}

/// A product whose axes are the chain's.
double TileSpace::headCycles(const Instr& instr, double elements, const TileSize& size) const {
  const bool isConv = isConvolution(instr);
  const size_t o = isConv ? 1 : 2; // the axis of output channels
  const size_t k = isConv ? 4 : 3; // the axis of sums
  const int64_t groups = instr.intAttr(CDL_ATTR_GROUP, 1);
  const int64_t kernel = isConv ? kernelSize(instr.inputs[1]) : 1;
  const int64_t outputs = extents_[o][size.at[o]];
  const int64_t inputs = extents_[k][size.at[k]];
  const double positions = elements / static_cast<double>(axes()[o].extent);
  const auto parts = static_cast<uint64_t>(size.trips[o] * size.trips[k]);
  const auto times = static_cast<double>(parts);
  // a column for each channel, a tap after the other
  if (groups > 1 && groups == axes()[o].extent)
    return positions * times * static_cast<double>(kernel * ceilDiv(outputs, costs_.columns));
  const int64_t columns = std::max<int64_t>(outputs / groups, 1); // of one group
  const int64_t folds = ceilDiv(inputs * kernel, costs_.rows) * ceilDiv(columns, costs_.columns) *
                        std::min(groups, outputs);
  return times * static_cast<double>(folds) *
         passCycles(positions, size.boxes / std::max<uint64_t>(parts, 1));
}

/// One pass of all tiles over so many positions in all. The weights of the next pass come in a
/// row a cycle meanwhile: no pass is shorter than that.
double TileSpace::passCycles(double positions, uint64_t tiles) const {
  return std::max(positions, static_cast<double>(tiles) * costs_.rows);
}

} // namespace candela::program::passes::tile
