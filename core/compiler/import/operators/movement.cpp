#include <algorithm>
#include <numeric>

#include "core/compiler/import/term.h"

namespace candela::import {
namespace {

Status importIdentity(Step& step) { return step.set(step.input(0)); }

Status importReshape(Step& step) {
  const Term x = termOf(step, 0);
  const Shape wanted = need(step.neededInts("shape", 1, 5)), from = x.shape();
  const bool allowZero = step.opset >= 14 && need(step.flagAttr("allowzero", false));
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
  return step.set(x.reshape(shape));
}

Status importFlatten(Step& step) {
  const int64_t rank = step.input(0)->type.rank(), axis = attrOf<int64_t>(step, "axis", 1);
  return step.set(
      step.build.flatten(step.input(0), axis == rank ? rank : need(resolveAxis(axis, rank))));
}

Status importSqueeze(Step& step) {
  const Term x = termOf(step, 0);
  const auto given = need(step.intsAttrOrInput("axes", 1, 13));
  const std::vector<int64_t> axes =
      need(resolveAxes(given.value_or(std::vector<int64_t>()), x.rank()));
  for (int64_t axis : axes)
    if (x.dim(axis) != 1) return badModel("dim {} of {} is {}, not 1", axis, x.text(), x.dim(axis));
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (given ? std::ranges::find(axes, i) == axes.end() : x.dim(i) != 1) shape.push_back(x.dim(i));
  return step.set(x.reshape(shape));
}

Status importUnsqueeze(Step& step) {
  const Term x = termOf(step, 0);
  const auto given = need(step.neededInts("axes", 1, 13));
  std::vector<int64_t> axes =
      need(resolveAxes(given, x.rank() + static_cast<int64_t>(given.size())));
  std::ranges::sort(axes);
  Shape shape = x.shape();
  for (int64_t axis : axes) shape.insert(shape.begin() + axis, 1);
  return step.set(x.reshape(shape));
}

Status importTranspose(Step& step) {
  std::vector<int64_t> reversed = allAxes(step);
  std::ranges::reverse(reversed);
  return step.set(make(OpKind::Transpose, {termOf(step, 0)},
                       {{"perm", attrOf(step, "perm", std::move(reversed))}}));
}

Status importExpand(Step& step) {
  const Shape shape = need(step.neededInts("shape", 1, 8));
  for (int64_t dim : shape)
    if (dim < 0) return badModel("shape [{}] has a dim of {}", fmt::join(shape, ","), dim);
  return step.set(termOf(step, 0).expand(shape));
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

Status importSlice(Step& step) {
  const auto starts = need(step.neededInts("starts", 1, 10)),
             ends = need(step.neededInts("ends", 2, 10));
  std::vector<int64_t> axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  const Shape from = step.input(0)->type.shape();
  axes = need(resolveAxes(need(step.intsAttrOrInput("axes", 3, 10)).value_or(axes),
                          static_cast<int64_t>(from.size())));
  if (step.opset >= 10) steps = need(step.knownInts(4, "steps")).value_or(steps);
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
    return step.set(step.input(0));
  }
  return step.set(step.build.add(OpKind::Slice, {step.input(0)},
                                 {{"starts", first}, {"counts", counts}, {"steps", strides}}));
}

Status importPad(Step& step) {
  const auto pads = need(step.neededInts("pads", 1, 11));
  const std::string mode = attrOf<std::string>(step, "mode", "constant");
  const int64_t rank = step.input(0)->type.rank();
  if (step.opset < 18 && step.input(3))
    return badModel("input 'axes' needs opset 18, the model has {}", step.opset);
  const auto axes =
      need(resolveAxes(need(step.knownInts(3, "axes")).value_or(allAxes(step)), rank));
  if (pads.size() != 2 * axes.size())
    return badModel("{} pads for {} axes, expected two each", pads.size(), axes.size());
  if (mode == "wrap" && step.opset < 19)
    return badModel("mode 'wrap' needs opset 19, the model has {}", step.opset);

  Value* value = need(step.scalarAttrOrInput("value", 2, 11));
  if (step.opset < 11 && mode != "constant") value = nullptr;
  std::vector<int64_t> lo(rank, 0), hi(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    lo[axes[i]] = pads[i];
    hi[axes[i]] = pads[i + axes.size()];
  }
  return step.set(step.build.add(OpKind::Pad, {step.input(0), value},
                                 {{"lo", lo}, {"hi", hi}, {"mode", mode}}));
}

/// The order among the kept is free where `sorted` is 0: it is the same.
Status importTopK(Step& step) {
  const auto axis = attrOf<int64_t>(step, "axis", -1);
  const bool largest = step.opset < 11 || need(step.flagAttr("largest", true));
  if (step.opset >= 11) need(step.flagAttr("sorted", true));
  std::optional<int64_t> k;
  if (step.opset < 10) {
    k = need(step.maybe<int64_t>("k"));
    if (step.input(1)) return badModel("input 'K' needs opset 10, the model has {}", step.opset);
  } else if (const auto known = need(step.knownInts(1, "K"))) {
    if (known->size() != 1) return badModel("K has {} elements, expected 1", known->size());
    k = known->front();
  }
  if (!k) return badModel("{} is missing", step.opset < 10 ? "attribute 'k'" : "input 'K'");
  const auto sorted = need(step.build.addAll(
      OpKind::Sort, {step.input(0)}, {{"axis", axis}, {"k", *k}, {"descending", largest}}, 2));
  if (step.wants(1)) step.set(1, need(step.build.cast(sorted[1], Elem::i64_)));
  return step.set(sorted[0]);
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
