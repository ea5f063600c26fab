#include <algorithm>
#include <numeric>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

Status importIdentity(NodeContext& context) { return context.set(context.input(0)); }

Status importReshape(NodeContext& context) {
  const Term x = termOf(context, 0);
  const Shape wanted = need(context.neededInts("shape", 1, 5)), from = x.shape();
  const bool allowZero = context.opset >= 14 && need(context.flagAttr("allowzero", false));
  Shape shape = wanted;
  int64_t rest = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allowZero) {
      if (i >= from.size())
        return badModel("shape [{}] copies dim {} of an input of rank {}", fmt::join(wanted, ","),
                        i, from.size());
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (rest >= 0)
        return badModel("shape [{}] leaves more than one dim open", fmt::join(wanted, ","));
      rest = static_cast<int64_t>(i);
    } else if (shape[i] < 0) {
      return badModel("shape [{}] has a dim of {}", fmt::join(wanted, ","), shape[i]);
    }
  }
  const int64_t have = x.count();
  if (rest >= 0) {
    shape[rest] = 1;
    const auto others = elementCount(shape);
    if (!others || (*others == 0 ? have != 0 || allowZero : have % *others != 0))
      return badModel("{} has {} elements, which shape [{}] cannot hold", x.text(), have,
                      fmt::join(wanted, ","));
    shape[rest] = *others == 0 ? 0 : have / *others;
  }
  if (elementCount(shape) != have)
    return badModel("{} has {} elements, but shape [{}] has {}", x.text(), have,
                    fmt::join(wanted, ","), elementCount(shape).value_or(-1));
  return context.set(x.reshape(shape));
}

Status importFlatten(NodeContext& context) {
  const int64_t rank = context.input(0)->type.rank(), axis = attrOf<int64_t>(context, "axis", 1);
  return context.set(
      context.build.flatten(context.input(0), axis == rank ? rank : need(resolveAxis(axis, rank))));
}

Status importSqueeze(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto given = need(context.intsAttrOrInput("axes", 1, 13));
  const std::vector<int64_t> axes =
      need(resolveAxes(given.value_or(std::vector<int64_t>()), x.rank()));
  for (int64_t axis : axes)
    if (x.dim(axis) != 1) return badModel("dim {} of {} is {}, not 1", axis, x.text(), x.dim(axis));
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (given ? std::ranges::find(axes, i) == axes.end() : x.dim(i) != 1) shape.push_back(x.dim(i));
  return context.set(x.reshape(shape));
}

Status importUnsqueeze(NodeContext& context) {
  const Term x = termOf(context, 0);
  const auto given = need(context.neededInts("axes", 1, 13));
  std::vector<int64_t> axes =
      need(resolveAxes(given, x.rank() + static_cast<int64_t>(given.size())));
  std::ranges::sort(axes);
  Shape shape = x.shape();
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return context.set(x.reshape(shape));
}

Status importTranspose(NodeContext& context) {
  std::vector<int64_t> reversed = allAxes(context);
  std::ranges::reverse(reversed);
  return context.set(make(OpKind::Transpose, {termOf(context, 0)},
                          {{"perm", attrOf(context, "perm", std::move(reversed))}}));
}

Status importExpand(NodeContext& context) {
  const Shape shape = need(context.neededInts("shape", 1, 8));
  for (int64_t dim : shape)
    if (dim < 0) return badModel("shape [{}] has a dim of {}", fmt::join(shape, ","), dim);
  return context.set(termOf(context, 0).expand(shape));
}

struct Range {
  int64_t start, count, step;
};

/// Elements that start:end:step names in a dim of `extent`, clamped as ONNX does it.
Range clampRange(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  step = std::clamp(step, -extent - 1, extent + 1); // more than that is the same
  const int64_t lowest = step < 0 ? -1 : 0;
  const int64_t highest = step < 0 ? extent - 1 : extent;
  start = std::clamp(start, std::min<int64_t>(0, highest), highest);
  end = std::clamp(end, lowest, highest);
  const int64_t span = step < 0 ? start - end : end - start;
  const int64_t count = span <= 0 ? 0 : (span - 1) / std::abs(step) + 1;
  if (count == 0) return {0, 0, 1};
  return {start, count, count == 1 ? 1 : step};
}

Status importSlice(NodeContext& context) {
  const auto starts = need(context.neededInts("starts", 1, 10)),
             ends = need(context.neededInts("ends", 2, 10));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  const Shape from = context.input(0)->type.shape();
  axes = need(resolveAxes(need(context.intsAttrOrInput("axes", 3, 10)).value_or(axes),
                          static_cast<int64_t>(from.size())));
  if (context.opset >= 10) steps = need(context.knownInts(4, "steps")).value_or(steps);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return badModel("{} starts but {} ends, {} axes and {} steps", starts.size(), ends.size(),
                    axes.size(), steps.size());

  std::vector<int64_t> first(from.size(), 0), counts = from, strides(from.size(), 1);
  bool everything = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0) return badModel("step 0 along axis {}", axes[i]);
    const Range range = clampRange(starts[i], ends[i], steps[i], from[axes[i]]);
    first[axes[i]] = range.start;
    counts[axes[i]] = range.count;
    strides[axes[i]] = range.step;
    everything = everything && range.count == from[axes[i]] && range.step == 1;
  }
  if (everything) {
    return context.set(context.input(0));
  }
  return context.set(
      context.build.add(OpKind::Slice, {context.input(0)},
                        {{"starts", first}, {"counts", counts}, {"steps", strides}}));
}

Status importPad(NodeContext& context) {
  const auto pads = need(context.neededInts("pads", 1, 11));
  const std::string mode = attrOf<std::string>(context, "mode", "constant");
  const int64_t rank = context.input(0)->type.rank();
  if (context.opset < 18 && context.input(3))
    return badModel("input 'axes' needs opset 18, the model has {}", context.opset);
  const auto axes =
      need(resolveAxes(need(context.knownInts(3, "axes")).value_or(allAxes(context)), rank));
  if (pads.size() != 2 * axes.size())
    return badModel("{} pads for {} axes, expected two each", pads.size(), axes.size());
  if (mode == "wrap" && context.opset < 19)
    return badModel("mode 'wrap' needs opset 19, the model has {}", context.opset);

  Value* value = need(context.scalarAttrOrInput("value", 2, 11));
  if (context.opset < 11 && mode != "constant") value = nullptr;
  std::vector<int64_t> lo(rank, 0), hi(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    lo[axes[i]] = pads[i];
    hi[axes[i]] = pads[i + axes.size()];
  }
  return context.set(context.build.add(OpKind::Pad, {context.input(0), value},
                                       {{"lo", lo}, {"hi", hi}, {"mode", mode}}));
}

/// The order among the kept is free where `sorted` is 0: it is the same.
Status importTopK(NodeContext& context) {
  const auto axis = attrOf<int64_t>(context, "axis", -1);
  const bool largest = context.opset < 11 || need(context.flagAttr("largest", true));
  if (context.opset >= 11) need(context.flagAttr("sorted", true));
  std::optional<int64_t> k;
  if (context.opset < 10) {
    k = need(context.maybe<int64_t>("k"));
    if (context.input(1))
      return badModel("input 'K' needs opset 10, the model has {}", context.opset);
  } else if (const auto known = need(context.knownInts(1, "K"))) {
    if (known->size() != 1) return badModel("K has {} elements, expected 1", known->size());
    k = known->front();
  }
  if (!k) return badModel("{} is missing", context.opset < 10 ? "attribute 'k'" : "input 'K'");
  const auto sorted = need(context.build.addAll(
      OpKind::Sort, {context.input(0)}, {{"axis", axis}, {"k", *k}, {"descending", largest}}, 2));
  if (context.wants(1)) context.set(1, need(context.build.cast(sorted[1], Elem::i64_)));
  return context.set(sorted[0]);
}

constexpr Operator kMovementOperators[] = {
    {"Expand", 2, 2, 1, importExpand},       {"Flatten", 1, 1, 1, importFlatten},
    {"Identity", 1, 1, 1, importIdentity},   {"Pad", 1, 4, 1, importPad},
    {"Reshape", 2, 2, 1, importReshape},     {"Slice", 1, 5, 1, importSlice},
    {"Squeeze", 1, 2, 1, importSqueeze},     {"TopK", 1, 2, 2, importTopK},
    {"Transpose", 1, 1, 1, importTranspose}, {"Unsqueeze", 1, 2, 1, importUnsqueeze},
};

} // namespace

std::span<const Operator> movementOperators() { return kMovementOperators; }

} // namespace candela::import
