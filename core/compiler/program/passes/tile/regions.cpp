#include "core/compiler/program/passes/tile/regions.h"

#include <algorithm>
#include <numeric>

namespace candela::program::passes::tile {

namespace {

using How = DimMap::How;

DimMap along(size_t axis) { return {How::axis, axis}; }
DimMap all() { return {}; }

std::vector<int64_t> valuesOr(const Instr& instr, uint16_t id, std::vector<int64_t> otherwise) {
  const Attr* attr = instr.attr(id);
  return attr ? attr->values : std::move(otherwise);
}

/// The extents by logical dim, blocks rounded up.
std::vector<int64_t> logicalDims(const View& view) {
  if (view.layout.isRowMajor()) return view.dims;
  std::vector<int64_t> dims(view.layout.logicalRank, 1);
  for (size_t i = 0; i < view.layout.steps.size(); ++i)
    dims[view.layout.steps[i].dim] *= view.dims[i];
  return dims;
}

/// Collects the axes of one instruction; maps come by logical dim.
class Builder {
public:
  explicit Builder(const Instr& instr) : instr_(instr) {}

  size_t axis(int64_t extent, bool cut = true) {
    work_.axes.push_back({extent, 1, cut});
    return work_.axes.size() - 1;
  }
  Axis& operator[](size_t axis) { return work_.axes[axis]; }
  void family(std::vector<size_t> axes) { work_.families.push_back(std::move(axes)); }
  void input(ViewMap map) {
    work_.inputs.push_back(physical(std::move(map), instr_.inputs[work_.inputs.size()]));
  }
  void output(ViewMap map) {
    work_.outputs.push_back(physical(std::move(map), instr_.outputs[work_.outputs.size()]));
  }
  /// A zero point: one element, or one for each index of the axis.
  void zero(size_t axis) {
    const View& view = instr_.inputs[work_.inputs.size()];
    input({view.dims[0] > 1 ? along(axis) : all()});
  }
  bool hasOperand() const { return work_.inputs.size() < instr_.operandCount(); }
  /// Gives all other operands the map of the result: what the epilogue reads has its dims.
  Work finish(const ViewMap& result) {
    while (work_.outputs.size() < instr_.outputs.size()) output(result);
    while (work_.inputs.size() < instr_.inputs.size()) input(result);
    return std::move(work_);
  }

private:
  /// A map by physical dim. Cuts of an axis fall between blocks; where a window moves along blocks,
  /// or elements share bytes, there are none.
  ViewMap physical(ViewMap logical, const View& view) {
    if (isPacked(view.elem))
      for (const DimMap& map : logical)
        if (map.how != How::whole) work_.axes[map.axis].cut = false;
    if (view.layout.isRowMajor()) return logical;
    ViewMap result;
    for (size_t i = 0; i < view.dims.size(); ++i) {
      const uint8_t dim = view.layout.steps[i].dim;
      DimMap map = logical[dim];
      bool isOutermost = true;
      for (size_t j = 0; j < i; ++j) isOutermost &= view.layout.steps[j].dim != dim;
      for (size_t j = i + 1; j < view.dims.size(); ++j)
        if (view.layout.steps[j].dim == dim) map.unit *= view.dims[j];
      if (map.how != How::whole && (map.unit > 1 || !isOutermost)) {
        Axis& axis = work_.axes[map.axis];
        if (map.how == How::axis)
          axis.unit = std::lcm(axis.unit, map.unit);
        else
          axis.cut = false;
        if (!isOutermost || map.how != How::axis) map = all();
      }
      result.push_back(map);
    }
    return result;
  }

  const Instr& instr_;
  Work work_;
};

DimMap window(size_t axis, const Instr& instr, size_t i, int64_t kernel) {
  DimMap map{How::window, axis};
  map.stride = valuesOr(instr, CDL_ATTR_STRIDES, {1, 1})[i];
  map.dilation = valuesOr(instr, CDL_ATTR_DILATIONS, {1, 1})[i];
  map.pad = valuesOr(instr, CDL_ATTR_PADS, {0, 0, 0, 0})[i];
  map.kernel = kernel;
  return map;
}

/// Whether no window lies in the padding alone: such a one has no part of the operand.
bool everyWindowMeets(const DimMap& map, int64_t places, int64_t extent) {
  return (map.kernel - 1) * map.dilation >= map.pad && (places - 1) * map.stride - map.pad < extent;
}

Work conv2d(const Instr& instr) {
  Builder work(instr);
  const std::vector<int64_t> x = logicalDims(instr.inputs[0]), w = logicalDims(instr.inputs[1]),
                             y = logicalDims(instr.outputs[0]);
  const int64_t group = instr.intAttr(CDL_ATTR_GROUP, 1);
  const bool isBlocked = !std::ranges::all_of(
      // blocks round channels up
      instr.inputs, [](const View& view) { return view.dims.size() <= 4; });
  const size_t n = work.axis(std::min(x[0], y[0]));
  if (instr.intAttr(CDL_ATTR_TRANSPOSED, 0)) {
    const size_t o = work.axis(y[1], group == 1 && !isBlocked);
    work.family({n});
    work.family({o});
    work.input({along(n), all(), all(), all()});
    work.input({all(), group == 1 ? along(o) : all(), all(), all()});
    while (work.hasOperand()) work.zero(o);
    return work.finish({along(n), group == 1 ? along(o) : all(), all(), all()});
  }
  const int64_t outputs = w[0] / group, inputs = w[1];
  const size_t o = work.axis(std::min(w[0], y[1]), group == 1 || !isBlocked);
  if (group > 1) work[o].unit = outputs;
  const DimMap high = window(2, instr, 0, w[2]), wide = window(3, instr, 1, w[3]);
  const size_t h = work.axis(y[2], everyWindowMeets(high, y[2], x[2]));
  const size_t v = work.axis(y[3], everyWindowMeets(wide, y[3], x[3]));
  const Elem own = accumulatorElem(instr);
  const size_t k = work.axis(std::min(inputs, x[1]),
                             group == 1 && own == instr.outputs[0].elem && elemBits(own) >= 32);
  work[k].sum = true;
  work.family({n, h, v});
  work.family({o});
  DimMap channels{How::channels, o};
  channels.outputs = outputs;
  channels.inputs = inputs;
  work.input({along(n), group == 1 ? along(k) : channels, high, wide});
  work.input({along(o), group == 1 ? along(k) : all(), all(), all()});
  while (work.hasOperand()) work.zero(o);
  return work.finish({along(n), along(o), along(h), along(v)});
}

Work pool2d(const Instr& instr) {
  Builder work(instr);
  const std::vector<int64_t> x = logicalDims(instr.inputs[0]), y = logicalDims(instr.outputs[0]);
  const std::vector<int64_t> kernel = instr.attr(CDL_ATTR_KERNEL)->values;
  const DimMap high = window(2, instr, 0, kernel[0]), wide = window(3, instr, 1, kernel[1]);
  const size_t n = work.axis(std::min(x[0], y[0])), c = work.axis(std::min(x[1], y[1]));
  const size_t h = work.axis(y[2], everyWindowMeets(high, y[2], x[2]));
  const size_t v = work.axis(y[3], everyWindowMeets(wide, y[3], x[3]));
  work.family({n, h, v});
  work.family({c});
  work.input({along(n), along(c), high, wide});
  return work.finish({along(n), along(c), along(h), along(v)});
}

Work matmul(const Instr& instr) {
  Builder work(instr);
  const std::vector<int64_t> a = logicalDims(instr.inputs[0]), b = logicalDims(instr.inputs[1]),
                             y = logicalDims(instr.outputs[0]);
  const Elem own = accumulatorElem(instr);
  const size_t batch = work.axis(std::min({a[0], b[0], y[0]})), m = work.axis(std::min(a[1], y[1]));
  const size_t n = work.axis(std::min(b[2], y[2]));
  const size_t k =
      work.axis(std::min(a[2], b[1]), own == instr.outputs[0].elem && elemBits(own) >= 32);
  work[k].sum = true;
  work.family({batch, m});
  work.family({n});
  work.input({along(batch), along(m), along(k)});
  work.input({along(batch), along(k), along(n)});
  while (work.hasOperand()) work.zero(n);
  return work.finish({along(batch), along(m), along(n)});
}

/// a[M,K] by w[N,G,S], with scales and zero points w[N,G], and scales a[M,G]. Sums stay whole: a
/// block of them has a scale.
Work scaledMatmul(const Instr& instr) {
  Builder work(instr);
  const std::vector<int64_t> y = logicalDims(instr.outputs[0]);
  const size_t m = work.axis(y[0]);
  const size_t n = work.axis(y[1]);
  work.family({m});
  work.family({n});
  const ViewMap operands[] = {{along(m), all()},
                              {along(n), all(), all()},
                              {along(n), all()},
                              {along(n), all()},
                              {along(m), all()}};
  for (size_t i = 0; i < instr.operandCount(); ++i) work.input(operands[i]);
  return work.finish({along(m), along(n)});
}

/// Work whose axes are some dims of the result; `inputs`: by operand and dim, an axis or all.
Work rows(const Instr& instr, const std::vector<size_t>& resultDims,
          const std::vector<ViewMap>& inputs) {
  Builder work(instr);
  const View& y = instr.outputs[0];
  ViewMap result(y.dims.size(), all());
  std::vector<size_t> family;
  for (const size_t dim : resultDims) {
    family.push_back(work.axis(y.dims[dim]));
    result[dim] = along(family.back());
  }
  work.family(family);
  for (size_t i = 0; i < inputs.size() && i < instr.operandCount(); ++i) work.input(inputs[i]);
  return work.finish(result);
}

/// Work whose axes are the physical dims, whatever they mean.
Work elementwise(const Instr& instr) {
  Work work;
  const View& y = instr.outputs[0];
  work.families.emplace_back();
  ViewMap map;
  for (const int64_t extent : y.dims) {
    map.push_back(along(work.axes.size()));
    work.families[0].push_back(work.axes.size());
    work.axes.push_back({extent});
  }
  work.outputs = {map};
  for (size_t i = 0; i < instr.inputs.size(); ++i)
    work.inputs.push_back(instr.kind == CDL_KIND_TABLE && i == 1 ? ViewMap(1, all()) : map);
  for (const auto* views : {&instr.inputs, &instr.outputs})
    for (const View& view : *views)
      if (isPacked(view.elem))
        for (Axis& axis : work.axes) axis.cut = false;
  return work;
}

/// Work in one piece: what nothing is known of.
Work whole(const Instr& instr) {
  Work work;
  for (const View& view : instr.inputs) work.inputs.emplace_back(view.dims.size(), all());
  for (const View& view : instr.outputs) work.outputs.emplace_back(view.dims.size(), all());
  return work;
}

} // namespace

bool isElementwise(uint16_t kind) {
  switch (kind) {
  case CDL_KIND_CONVERT:
  case CDL_KIND_BINARY:
  case CDL_KIND_COMPARE:
  case CDL_KIND_SELECT:
  case CDL_KIND_UNARY:
  case CDL_KIND_RESCALE:
  case CDL_KIND_TABLE:
  case CDL_KIND_ELEMENTWISE: return true;
  default: return false;
  }
}

Range rangeOf(const DimMap& map, const Box& box, const std::vector<Axis>& axes, int64_t extent) {
  if (map.how == How::whole) return {0, extent};
  const Range& range = box[map.axis];
  const bool isLast = range.end == axes[map.axis].extent;
  switch (map.how) {
  case How::axis:
    return {range.begin / map.unit, isLast ? extent : (range.end + map.unit - 1) / map.unit};
  case How::channels:
    return {range.begin / map.outputs * map.inputs,
            isLast ? extent : range.end / map.outputs * map.inputs};
  default: {
    if (range.begin == 0 && isLast) return {0, extent};
    const int64_t begin = range.begin * map.stride - map.pad;
    const int64_t end =
        (range.end - 1) * map.stride - map.pad + (map.kernel - 1) * map.dilation + 1;
    return {std::max<int64_t>(begin, 0), std::min(end, extent)};
  }
  }
}

std::vector<Range> regionOf(const ViewMap& map, const Box& box, const std::vector<Axis>& axes,
                            const View& view) {
  std::vector<Range> region;
  for (size_t d = 0; d < map.size(); ++d)
    region.push_back(rangeOf(map[d], box, axes, view.dims[d]));
  return region;
}

Work workOf(const Instr& instr) {
  const DimMap first = along(0), second = along(1), third = along(2);
  switch (instr.kind) {
  case CDL_KIND_CONV2D: return conv2d(instr);
  case CDL_KIND_POOL2D: return pool2d(instr);
  case CDL_KIND_MATMUL: return matmul(instr);
  case CDL_KIND_SCALED_MATMUL: return scaledMatmul(instr);
  case CDL_KIND_GATHER: return rows(instr, {0, 1, 2}, {{first, all(), third}, {second}});
  case CDL_KIND_SCATTER: return rows(instr, {0, 2}, {{all()}, {first, all(), second}});
  case CDL_KIND_REDUCE: // a prologue reads several views alike
  case CDL_KIND_ARG_REDUCE:
    return rows(instr, {0, 1}, std::vector<ViewMap>(instr.operandCount(), {first, all(), second}));
  case CDL_KIND_SOFTMAX:
  case CDL_KIND_SORT: return rows(instr, {0, 2}, {{first, all(), second}});
  case CDL_KIND_NORM: return rows(instr, {0}, {{first, all()}, {all()}, {all()}});
  case CDL_KIND_ATTENTION:
    return rows(instr, {0, 1},
                {{first, second, all()},
                 {first, all(), all()},
                 {first, all(), all()},
                 {first, second, all()}});
  case CDL_KIND_COPY:
  case CDL_KIND_FILL: return elementwise(instr);
  default: return isElementwise(instr.kind) ? elementwise(instr) : whole(instr);
  }
}

Instr partOf(const Instr& instr, const Work& work, const Box& box) {
  Instr part = instr;
  const auto set = [&](Attr attr) {
    const auto at = std::ranges::find(part.attrs, attr.id, &Attr::id);
    if (at == part.attrs.end())
      part.attrs.push_back(std::move(attr));
    else
      *at = std::move(attr);
  };
  // The sums are those of products alone: what follows one tile by tile runs once they are whole.
  const bool sums = instr.kind == CDL_KIND_CONV2D || instr.kind == CDL_KIND_MATMUL;
  for (size_t a = 0; a < work.axes.size() && sums; ++a) {
    if (!work.axes[a].sum || box[a].size() == work.axes[a].extent) continue;
    const bool goesOn = box[a].begin > 0;
    if (goesOn) {
      set(Attr::ofInt(CDL_ATTR_ACCUMULATE, 1));
      part.inout = true;
    }
    if (box[a].end < work.axes[a].extent) { // the epilogue is for the sum
      part.inputs.resize(part.operandCount());
      part.expr.clear();
    }
  }
  if (instr.kind != CDL_KIND_CONV2D && instr.kind != CDL_KIND_POOL2D) return part;
  std::vector<int64_t> pads = valuesOr(instr, CDL_ATTR_PADS, {0, 0, 0, 0});
  const std::vector<int64_t> x = logicalDims(instr.inputs[0]);
  size_t i = 0;
  for (const DimMap& map : work.inputs[0]) {
    if (map.how == How::channels && box[map.axis].size() != work.axes[map.axis].extent)
      set(Attr::ofInt(CDL_ATTR_GROUP, box[map.axis].size() / map.outputs));
    if (map.how != How::window) continue;
    i = map.axis - 2;
    const Range& range = box[map.axis];
    if (range.size() == work.axes[map.axis].extent) continue;
    const int64_t begin = range.begin * map.stride - map.pad;
    const int64_t end =
        (range.end - 1) * map.stride - map.pad + (map.kernel - 1) * map.dilation + 1;
    pads[i] = std::max<int64_t>(-begin, 0);
    pads[i + 2] = std::max<int64_t>(end - x[2 + i], 0);
  }
  if (pads != valuesOr(instr, CDL_ATTR_PADS, {0, 0, 0, 0})) set(Attr::ofInts(CDL_ATTR_PADS, pads));
  return part;
}

void skipPixels(Instr& instr) {
  if (instr.kind != CDL_KIND_CONV2D || instr.intAttr(CDL_ATTR_TRANSPOSED, 0)) return;
  View& x = instr.inputs[0];
  const std::vector<int64_t> w = logicalDims(instr.inputs[1]), y = logicalDims(instr.outputs[0]);
  const std::vector<int64_t> pads = valuesOr(instr, CDL_ATTR_PADS, {0, 0, 0, 0});
  std::vector<int64_t> strides = valuesOr(instr, CDL_ATTR_STRIDES, {1, 1});
  for (size_t i = 0; i < 2; ++i) {
    size_t dim = 2 + i, factors = 1;
    if (!x.layout.isRowMajor()) {
      factors = 0;
      for (size_t p = 0; p < x.dims.size(); ++p)
        if (x.layout.steps[p].dim == 2 + i) {
          dim = p;
          ++factors;
        }
    }
    if (strides[i] == 1 || w[2 + i] != 1 || pads[i] || pads[i + 2] || factors != 1) continue;
    x.dims[dim] = y[2 + i];
    x.strides[dim] *= strides[i];
    if (!x.layout.isRowMajor()) x.layout.steps[dim].factor = 0;
    strides[i] = 1;
  }
  for (Attr& attr : instr.attrs)
    if (attr.id == CDL_ATTR_STRIDES) attr.values = strides;
}

} // namespace candela::program::passes::tile
