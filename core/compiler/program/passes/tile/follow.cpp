#include "core/compiler/program/passes/tile/follow.h"

#include <algorithm>

namespace candela::program::passes::tile {

namespace {

using Dims = std::vector<int64_t>;
using How = DimMap::How;

/// Makes every tile have all that the map reaches.
void keepWhole(const DimMap& map, Work& work) {
  if (map.how != How::whole) work.axes[map.axis].cut = false;
}

/// Puts maps over an instruction's own axes over those of the chain: `of` says by own axis what it
/// is there. False: an axis has no such map, or is used in a way that the chain's maps cannot say.
bool recastMaps(std::vector<ViewMap>& maps, const std::vector<std::optional<DimMap>>& of) {
  for (ViewMap& map : maps)
    for (DimMap& dim : map) {
      if (dim.how == How::whole) continue;
      if (!of[dim.axis]) return false;
      const bool isSame =
          dim.how == How::axis || (dim.how == How::window && dim.kernel == 1 && dim.stride == 1);
      if (of[dim.axis]->how != How::whole && (!isSame || dim.unit != 1)) return false;
      dim = *of[dim.axis];
    }
  return true;
}

bool isPointwise(const Instr& instr, const Work& own) {
  if (instr.kind != CDL_KIND_CONV2D || instr.intAttr(CDL_ATTR_TRANSPOSED, 0) ||
      instr.intAttr(CDL_ATTR_GROUP, 1) != 1)
    return false;
  const Attr* pads = instr.attr(CDL_ATTR_PADS);
  if (pads && std::ranges::any_of(pads->values, [](int64_t pad) { return pad != 0; })) return false;
  return std::ranges::all_of(own.inputs[0], [](const DimMap& map) {
    return map.how != How::window || (map.kernel == 1 && map.stride == 1);
  });
}

/// A 1 x 1 convolution: all channels of some pixels make all channels of these pixels.
bool followByPixel(Chain& chain, Link& link, Work own) {
  const View& written = chain.last().work.outputs[0];
  if (link.work.inputs[0].dims != written.dims) return false;
  constexpr size_t kOutputs = 1, kInputs = 4;
  std::vector<std::optional<DimMap>> of(own.axes.size());
  of[kOutputs] = of[kInputs] = DimMap{};
  for (size_t d = 0; d < written.dims.size(); ++d) {
    const DimMap &read = own.inputs[0][d], &map = chain.last().outputs[0][d];
    if (read.how == How::whole || read.axis == kInputs)
      keepWhole(map, chain.work);
    else
      of[read.axis] = map;
  }
  if (!recastMaps(own.inputs, of) || !recastMaps(own.outputs, of)) return false;
  link.inputs = std::move(own.inputs);
  link.outputs = std::move(own.outputs);
  return true;
}

/// A reduction or normalization: its rows lie each within one tile of what was written.
bool followByRow(Chain& chain, Link& link, Work own) {
  const View &written = chain.last().work.outputs[0], &read = link.work.inputs[0];
  std::vector<std::optional<DimMap>> of(own.axes.size());
  size_t w = 0;
  for (size_t d = 0; d < read.dims.size(); ++d) {
    std::vector<size_t> parts;
    int64_t extent = 1;
    for (; w < written.dims.size() && (extent < read.dims[d] || written.dims[w] == 1); ++w) {
      if (written.dims[w] != 1) parts.push_back(w);
      extent *= written.dims[w];
    }
    if (extent != read.dims[d]) return false;
    const DimMap& own0 = own.inputs[0][d];
    DimMap map;
    if (parts.size() == 1 && own0.how == How::axis)
      map = chain.last().outputs[0][parts[0]];
    else
      for (const size_t part : parts) keepWhole(chain.last().outputs[0][part], chain.work);
    if (own0.how == How::axis) of[own0.axis] = map;
  }
  for (std::optional<DimMap>& map : of)
    if (!map) map = DimMap{};
  if (!recastMaps(own.inputs, of) || !recastMaps(own.outputs, of)) return false;
  link.inputs = std::move(own.inputs);
  link.outputs = std::move(own.outputs);
  return true;
}

/// Replaces `inner` by what it is where windows `outer` read its result: windows that reach as far.
/// False: it is no axis and no window.
bool compose(DimMap& inner, const DimMap& outer) {
  if (inner.how == How::axis && inner.unit == 1) {
    inner = outer;
    return true;
  }
  if (inner.how != How::window) return false;
  inner.kernel =
      (outer.kernel - 1) * outer.dilation * inner.stride + (inner.kernel - 1) * inner.dilation + 1;
  inner.pad += outer.pad * inner.stride;
  inner.stride *= outer.stride;
  inner.dilation = 1;
  return true;
}

/// Whether windows at so many places leave out no index.
bool reachAll(const DimMap& window, int64_t places, int64_t extent) {
  return window.dilation == 1 && window.kernel >= window.stride &&
         (places - 1) * window.stride - window.pad + window.kernel >= extent;
}

/// A pool: the places of its windows become the chain's axes, and the links before it compute as
/// much as the windows reach.
bool followByWindow(Chain& chain, Link& link, Work own) {
  const View& written = chain.last().work.outputs[0];
  const bool isConv = chain.links[0].work.kind == CDL_KIND_CONV2D &&
                      !chain.links[0].work.intAttr(CDL_ATTR_TRANSPOSED, 0);
  if (!isConv || link.work.inputs[0].dims != written.dims || !chain.headAxes.empty()) return false;
  std::vector<std::optional<DimMap>> of(own.axes.size());
  const Work head = chain.work;
  const bool leaves = std::ranges::any_of(chain.links, &Link::leaves); // others want all of it
  for (size_t a = 0; a < head.axes.size(); ++a) chain.headAxes.push_back({How::axis, a});
  for (size_t d = 0; d < written.dims.size(); ++d) {
    DimMap window = own.inputs[0][d];
    const DimMap map = chain.last().outputs[0][d];
    if (window.how == How::whole) return false;
    if (window.how == How::axis) {
      of[window.axis] = map;
      continue;
    }
    if (map.how != How::axis || map.unit != 1 || map.axis != window.axis) return false;
    if (leaves && !reachAll(window, own.axes[window.axis].extent, written.dims[d])) return false;
    Axis& axis = chain.work.axes[map.axis];
    axis = {own.axes[window.axis].extent, 1, axis.cut && own.axes[window.axis].cut};
    of[window.axis] = DimMap{How::axis, map.axis};
    chain.headAxes[map.axis] = window;
    for (Link& each : chain.links)
      for (auto* maps : {&each.inputs, &each.outputs})
        for (ViewMap& view : *maps)
          for (DimMap& dim : view)
            if (dim.how != How::whole && dim.axis == map.axis && !compose(dim, window))
              return false;
  }
  const ViewMap read = own.inputs[0];
  own.inputs[0].clear();
  if (!recastMaps(own.inputs, of) || !recastMaps(own.outputs, of)) return false;
  own.inputs[0] = read;
  for (DimMap& dim : own.inputs[0])
    if (dim.how == How::axis) {
      if (dim.unit != 1) return false;
      dim = *of[dim.axis];
    }
  chain.head = head;
  link.inputs = std::move(own.inputs);
  link.outputs = std::move(own.outputs);
  return true;
}

} // namespace

std::set<int64_t> cuts(const Dims& dims) {
  std::set<int64_t> products;
  int64_t product = 1;
  for (size_t d = dims.size(); d-- > 0;) products.insert(product *= dims[d]);
  products.erase(1);
  return products;
}

std::optional<Dims> refined(const Dims& a, const Dims& b) {
  std::set<int64_t> products = cuts(a);
  products.merge(cuts(b));
  Dims dims;
  int64_t before = 1;
  for (const int64_t product : products) {
    if (product % before) return std::nullopt;
    dims.insert(dims.begin(), product / before);
    before = product;
  }
  if (dims.empty()) dims = {1};
  return dims.size() <= CDL_MAX_RANK ? std::optional(dims) : std::nullopt;
}

std::optional<View> over(const View& view, const Dims& dims) {
  if (view.dims == dims) return view;
  View result = view;
  result.layout = {};
  result.dims = dims;
  result.strides.assign(dims.size(), 0);
  size_t d = dims.size();
  for (size_t old = view.dims.size(); old-- > 0;) {
    int64_t inside = 1;
    while (inside < view.dims[old]) {
      if (d == 0) return std::nullopt;
      --d;
      result.strides[d] = view.strides[old] * inside;
      inside *= dims[d];
    }
    if (inside != view.dims[old]) return std::nullopt;
  }
  while (d-- > 0)
    if (dims[d] != 1) return std::nullopt;
  return result;
}

bool walksAlike(const View& a, const View& b) {
  if (a.buffer != b.buffer || a.offset != b.offset || a.dims != b.dims || a.elem != b.elem)
    return false;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

bool follow(Chain& chain, Link& link) {
  const View &written = chain.last().work.outputs[0], &read = link.work.inputs[0];
  if (isPacked(read.elem)) return false;
  for (size_t i = 1; i < link.work.inputs.size(); ++i)
    if (link.work.inputs[i].buffer == written.buffer || isPacked(link.work.inputs[i].elem))
      return false;
  const auto dims = refined(written.dims, read.dims);
  if (!dims) return false;
  const auto a = over(written, *dims), b = over(read, *dims);
  if (!a || !b || !walksAlike(*a, *b)) return false;
  link.fromBefore = {0};
  Work own = workOf(link.work);
  switch (link.work.kind) {
  case CDL_KIND_CONV2D:
    return isPointwise(link.work, own) && followByPixel(chain, link, std::move(own));
  case CDL_KIND_POOL2D: return followByWindow(chain, link, std::move(own));
  case CDL_KIND_REDUCE:
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_NORM: return followByRow(chain, link, std::move(own));
  default: return false;
  }
}

} // namespace candela::program::passes::tile
