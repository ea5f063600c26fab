// Windows that move over a tensor.
#include <algorithm>
#include <numeric>

#include "core/compiler/import/stablehlo/join.h"
#include "core/compiler/import/stablehlo/places.h"

namespace candela::import::stablehlo {
namespace {

constexpr size_t kMostPoolDims = 3; // of pools of ONNX

struct Windows {
  Ints extents, strides, dilations, baseDilations, low, high;

  /// Whether the dim is left as it is.
  bool isPlain(size_t i) const {
    return extents[i] == 1 && strides[i] == 1 && baseDilations[i] == 1 && low[i] == 0 &&
           high[i] == 0;
  }
};

Windows readWindows(Step& step) {
  const size_t rank = step.type(0).rank();
  const Ints ones(rank, 1);
  Windows how;
  how.extents = step.ints("window_dimensions");
  how.strides = step.ints("window_strides", ones);
  how.dilations = step.ints("window_dilations", ones);
  how.baseDilations = step.ints("base_dilations", ones);
  for (const Ints* list : {&how.extents, &how.strides, &how.dilations, &how.baseDilations}) {
    if (list->size() != rank) reject("a window of {} dims over rank {}", list->size(), rank);
    for (const int64_t value : *list)
      if (value < 1 || value > kMostExtent)
        reject("a window has an extent, stride or dilation {}", value);
  }
  for (const auto& [low, high] : step.pairs("padding", rank)) {
    for (const int64_t pad : {low, high})
      if (pad < -kMostExtent || pad > kMostExtent) reject("padding is {}", pad);
    how.low.push_back(low);
    how.high.push_back(high);
  }
  return how;
}

/// How long a dim is, dilated and padded.
int64_t paddedExtent(const Windows& how, const Shape& dims, size_t i) {
  const int64_t apart =
      std::max<int64_t>(0, dims[i] - 1) * how.baseDilations[i] + std::min<int64_t>(1, dims[i]);
  return apart + how.low[i] + how.high[i];
}

Shape windowedDims(const Windows& how, const Shape& dims) {
  Shape result;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t reach = (how.extents[i] - 1) * how.dilations[i] + 1;
    const int64_t extent = paddedExtent(how, dims, i);
    result.push_back(extent < reach ? 0 : (extent - reach) / how.strides[i] + 1);
  }
  return result;
}

/// The dim along which each element is joined with all before it, or behind it.
struct Running {
  int64_t axis;
  bool isReverse;
};

std::optional<Running> runningDim(const Windows& how, const Shape& dims) {
  std::optional<Running> found;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (how.isPlain(i)) continue;
    const bool isAll = how.extents[i] == dims[i] && how.strides[i] == 1 && how.dilations[i] == 1 &&
                       how.baseDilations[i] == 1;
    const bool isForward = how.low[i] == dims[i] - 1 && how.high[i] == 0;
    const bool isBackward = how.high[i] == dims[i] - 1 && how.low[i] == 0;
    if (found || !isAll || (!isForward && !isBackward)) return {};
    found = Running{static_cast<int64_t>(i), isBackward};
  }
  return found;
}

/// Dims as a pool of ONNX has them: two that stay, then those that windows move along.
struct PoolLayout {
  Ints perm; ///< those that stay first
  size_t moving = 0;
  Shape dims; ///< of the pool's operand

  size_t staying() const { return perm.size() - moving; }
};

/// Nullopt where no pool of ONNX is like it.
std::optional<PoolLayout> poolLayout(const Windows& how, const Shape& dims) {
  PoolLayout layout;
  Ints moving;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t reach = (how.extents[i] - 1) * how.dilations[i] + 1;
    // No window of padding alone.
    if (how.baseDilations[i] != 1 || how.low[i] < 0 || how.high[i] < 0 || dims[i] < 1 ||
        how.low[i] >= reach || how.high[i] >= reach) {
      if (!how.isPlain(i)) return {};
    }
    Ints& to = how.isPlain(i) ? layout.perm : moving;
    to.push_back(static_cast<int64_t>(i));
  }
  if (moving.empty() || moving.size() > kMostPoolDims) return {};
  layout.moving = moving.size();
  layout.dims = {1, 1};
  if (layout.perm.size() == 2) {
    layout.dims = {dims[static_cast<size_t>(layout.perm[0])],
                   dims[static_cast<size_t>(layout.perm[1])]};
  } else {
    for (const int64_t axis : layout.perm) layout.dims[1] *= dims[static_cast<size_t>(axis)];
  }
  for (const int64_t axis : moving) layout.dims.push_back(dims[static_cast<size_t>(axis)]);
  layout.perm.insert(layout.perm.end(), moving.begin(), moving.end());
  return layout;
}

Ints movingOf(const PoolLayout& layout, const Ints& list) {
  Ints all;
  for (size_t i = layout.staying(); i < layout.perm.size(); ++i)
    all.push_back(list[static_cast<size_t>(layout.perm[i])]);
  return all;
}

Attributes poolAttributes(const PoolLayout& layout, const Windows& how) {
  Ints pads = movingOf(layout, how.low);
  const Ints back = movingOf(layout, how.high);
  pads.insert(pads.end(), back.begin(), back.end());
  return {{"kernel_shape", movingOf(layout, how.extents)},
          {"strides", movingOf(layout, how.strides)},
          {"dilations", movingOf(layout, how.dilations)},
          {"pads", pads}};
}

Part toPool(Step& step, const Part& x, const PoolLayout& layout) {
  return step.reshape(step.transpose(x, layout.perm), layout.dims);
}

/// Back from the order of a pool to that of these dims.
Part fromPool(Step& step, const Name& y, const Shape& pooled, const PoolLayout& layout,
              const Shape& dims) {
  Shape ordered;
  for (const int64_t axis : layout.perm) ordered.push_back(dims[static_cast<size_t>(axis)]);
  Ints back(layout.perm.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(layout.perm[i])] = static_cast<int64_t>(i);
  return step.transpose(step.reshape({y, pooled}, ordered), back);
}

Name pooled(Step& step, Join join, const Part& x, const PoolLayout& layout, const Windows& how) {
  Attributes attributes = poolAttributes(layout, how);
  if (join == Join::maximum) return step.add("MaxPool", {x.name}, std::move(attributes));
  if (join == Join::minimum)
    return step.add("Neg",
                    {step.add("MaxPool", {step.add("Neg", {x.name})}, std::move(attributes))});
  double taps = 1;
  for (const int64_t extent : movingOf(layout, how.extents)) taps *= static_cast<double>(extent);
  attributes["count_include_pad"] = int64_t(1);
  const Name mean = step.add("AveragePool", {x.name}, std::move(attributes));
  return step.add("Mul", {mean, step.number(taps, step.output().elem)});
}

/// Any join, strides and dilations: padded with what it begins with, then one dim after the other.
Part joinedWindows(Step& step, Join join, const Windows& how) {
  const Elem elem = step.output().elem;
  Ints interior = how.baseDilations;
  for (int64_t& apart : interior) --apart;
  Part x = step.pad(step.part(0), step.whole(1), how.low, how.high, interior);
  for (size_t i = 0; i < x.dims.size(); ++i) {
    if (how.extents[i] == 1 && how.strides[i] == 1) continue;
    x = joinWindows(step, join, elem, x, i, how.extents[i], how.dilations[i]);
    Ints strides(x.dims.size(), 1);
    strides[i] = how.strides[i];
    x = step.slice(x, Ints(x.dims.size(), 0), x.dims, strides);
  }
  return x;
}

void writeReduceWindow(Step& step) {
  if (step.inputCount() != 2) refuse("windows over {} operands", step.inputCount() / 2);
  const Windows how = readWindows(step);
  const Join join = joinApplied(step, 0);
  const Value& init = step.input(1);
  const Elem elem = step.type(0).elem;
  step.expectElem(elem);
  if (init.type.rank() != 0 || init.type.elem != elem) reject("begins with {}", init.type.text());
  const Shape dims = step.type(0).dims, result = windowedDims(how, dims);
  step.expectDims(result);
  for (size_t i = 0; i < dims.size(); ++i)
    if (result[i] < 1) refuse("windows whose result {} has no elements", step.output().text());
  const bool isPlain = isIdentity(init, join);
  const auto running = runningDim(how, dims);
  if (isPlain && running && join == Join::add && elem != Elem::bool_) {
    const Name axis = step.constant(Tensor::scalarI64(running->axis));
    return step.set(
        step.add("CumSum", {step.whole(0), axis}, {{"reverse", int64_t(running->isReverse)}}));
  }
  const bool isPool = join == Join::maximum || join == Join::minimum || join == Join::add;
  const auto layout = poolLayout(how, dims);
  if (isPlain && isPool && layout && !running && isFloat(elem)) {
    Shape pooledDims(layout->dims.begin(), layout->dims.begin() + 2);
    for (const int64_t extent : movingOf(*layout, result)) pooledDims.push_back(extent);
    const Name y = pooled(step, join, toPool(step, step.part(0), *layout), *layout, how);
    return step.setPart(fromPool(step, y, pooledDims, *layout, result));
  }
  Part y = joinedWindows(step, join, how);
  if (!isPlain) y.name = joined(step, join, elem, y.name, step.whole(1));
  step.setPart(y);
}

/// What each window chose gets the window's element of the source, added up.
void writeSelectAndScatter(Step& step) {
  const Windows how = readWindows(step);
  const std::vector<Region>& regions = step.op().regions;
  const auto preferred = preferenceOf(regions[0]);
  if (!preferred) refuse("its first region chooses neither the largest nor the smallest");
  if (joinOf(regions[1], 0) != Join::add) refuse("its second region is no addition");
  const Elem elem = step.type(0).elem;
  const Shape dims = step.type(0).dims, chosen = windowedDims(how, dims);
  if (step.type(1).dims != chosen || step.type(1).elem != elem)
    reject("its source is {}, but has to be {}", step.type(1).text(), typeText(elem, chosen));
  if (step.type(2).rank() != 0 || step.type(2).elem != elem)
    reject("begins with {}", step.type(2).text());
  const auto layout = poolLayout(how, dims);
  if (!layout || !isFloat(elem)) refuse("windows over {} that no pool has", step.type(0).text());
  Part x = toPool(step, step.part(0), *layout);
  if (*preferred == Join::minimum) x.name = step.add("Neg", {x.name});
  const Name places = step.addAll("MaxPool", {x.name}, 2, poolAttributes(*layout, how))[1];
  const int64_t count = *elementCount(dims), sources = *elementCount(chosen);
  const Part index = step.reshape({places, {}}, {sources});
  const Part source = step.reshape(step.transpose(step.part(1), layout->perm), {sources});
  const Name base = step.add("Expand", {step.whole(2), step.constant(Ints{count})});
  const Name y = step.add("ScatterElements", {base, index.name, source.name},
                          {{"axis", int64_t(0)}, {"reduction", std::string("add")}});
  step.setPart(fromPool(step, y, {count}, *layout, dims));
}

constexpr Operator kWindow[] = {
    {"stablehlo.reduce_window", 2, -1, 1, writeReduceWindow,
     "one operand; by add, multiply, maximum, minimum, and, or, xor"},
    {"stablehlo.select_and_scatter", 3, 3, 2, writeSelectAndScatter,
     "the gradient of a pool: the largest or smallest of a window, added up"},
};

} // namespace

std::span<const Operator> windowOperators() { return kWindow; }

} // namespace candela::import::stablehlo
