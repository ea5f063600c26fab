#include <algorithm>
#include <numeric>

#include "core/import/step.h"

namespace candela::import {
namespace {

Status importIdentity(Step& step) { return step.set(step.input(0)); }

Status importReshape(Step& step) {
  CDL_TRY(needExact(step));
  CDL_ASSIGN(const Shape wanted, step.neededInts("shape", 1, 5));
  bool allowZero = false;
  if (step.opset >= 14) { CDL_ASSIGN(allowZero, step.flagAttr("allowzero", false)); }
  const Shape from = step.input(0)->type.shape();
  Shape shape = wanted;
  int64_t rest = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allowZero) {
      if (i >= from.size())
        return badModel("shape [{}] copies dim {} of an input of rank {}", fmt::join(wanted, ","), i, from.size());
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (rest >= 0) return badModel("shape [{}] leaves more than one dim open", fmt::join(wanted, ","));
      rest = static_cast<int64_t>(i);
    } else if (shape[i] < 0) {
      return badModel("shape [{}] has a dim of {}", fmt::join(wanted, ","), shape[i]);
    }
  }
  const int64_t have = step.input(0)->type.count();
  if (rest >= 0) {
    shape[rest] = 1;
    const auto others = elementCount(shape);
    if (!others || (*others == 0 ? have != 0 || allowZero : have % *others != 0))
      return badModel("{} has {} elements, which shape [{}] cannot hold", step.input(0)->type.text(), have,
                      fmt::join(wanted, ","));
    shape[rest] = *others == 0 ? 0 : have / *others;
  }
  if (elementCount(shape) != have)
    return badModel("{} has {} elements, but shape [{}] has {}", step.input(0)->type.text(), have,
                    fmt::join(wanted, ","), elementCount(shape).value_or(-1));
  return step.set(step.build.reshape(step.input(0), shape));
}

Status importFlatten(Step& step) {
  CDL_TRY(needExact(step));
  const int64_t rank = step.input(0)->type.rank();
  CDL_ASSIGN(int64_t axis, step.attr<int64_t>("axis", 1));
  if (axis < -rank || axis > rank) return badModel("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank;
  return step.set(step.build.flatten(step.input(0), axis));
}

Status importSqueeze(Step& step) {
  CDL_TRY(needExact(step));
  const Shape from = step.input(0)->type.shape();
  CDL_ASSIGN(const auto given, step.intsAttrOrInput("axes", 1, 13));
  std::vector<int64_t> axes;
  if (given) {
    CDL_ASSIGN(axes, resolveAxes(*given, static_cast<int64_t>(from.size())));
    for (int64_t axis : axes)
      if (from[axis] != 1) return badModel("dim {} of {} is {}, not 1", axis, step.input(0)->type.text(), from[axis]);
  }
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool drop = given ? std::find(axes.begin(), axes.end(), i) != axes.end() : from[i] == 1;
    if (!drop) shape.push_back(from[i]);
  }
  return step.set(step.build.reshape(step.input(0), shape));
}

Status importUnsqueeze(Step& step) {
  CDL_TRY(needExact(step));
  CDL_ASSIGN(const auto given, step.neededInts("axes", 1, 13));
  const Shape from = step.input(0)->type.shape();
  const size_t rank = from.size() + given.size();
  CDL_ASSIGN(const auto axes, resolveAxes(given, static_cast<int64_t>(rank)));
  Shape shape(rank);
  for (int64_t axis : axes) shape[axis] = 1;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i)
    if (shape[i] != 1) shape[i] = from[next++];
  return step.set(step.build.reshape(step.input(0), shape));
}

Status importTranspose(Step& step) {
  std::vector<int64_t> reversed = allAxes(step);
  std::ranges::reverse(reversed);
  CDL_ASSIGN(const auto perm, step.attr("perm", std::move(reversed)));
  return step.set(step.build.add(OpKind::Transpose, {step.input(0)}, {{"perm", perm}}));
}

Status importExpand(Step& step) {
  CDL_ASSIGN(const Shape shape, step.neededInts("shape", 1, 8));
  for (int64_t dim : shape)
    if (dim < 0) return badModel("shape [{}] has a dim of {}", fmt::join(shape, ","), dim);
  return step.set(step.build.expand(step.input(0), shape));
}

struct Range {
  int64_t start, count, step;
};

/// Elements that start:end:step names in a dim of `extent`, clamped as ONNX does it.
Range clampRange(int64_t start, int64_t end, int64_t step, int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  step = std::clamp(step, -extent - 1, extent + 1); // more than that is the same
  const int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? extent - 1 : extent;
  start = std::clamp(start, std::min<int64_t>(0, highest), highest);
  end = std::clamp(end, lowest, highest);
  const int64_t span = step < 0 ? start - end : end - start;
  const int64_t count = span <= 0 ? 0 : (span - 1) / std::abs(step) + 1;
  return {count == 0 ? 0 : start, count, count <= 1 ? 1 : step};
}

Status importSlice(Step& step) {
  CDL_TRY(needExact(step));
  CDL_ASSIGN(const auto starts, step.neededInts("starts", 1, 10));
  CDL_ASSIGN(const auto ends, step.neededInts("ends", 2, 10));
  CDL_ASSIGN(const auto givenAxes, step.intsAttrOrInput("axes", 3, 10));
  std::optional<std::vector<int64_t>> givenSteps;
  if (step.opset >= 10) { CDL_ASSIGN(givenSteps, step.knownInts(4, "steps")); }
  const Shape from = step.input(0)->type.shape();
  std::vector<int64_t> axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  CDL_ASSIGN(axes, resolveAxes(givenAxes.value_or(axes), static_cast<int64_t>(from.size())));
  const std::vector<int64_t> steps = givenSteps.value_or(std::vector<int64_t>(starts.size(), 1));
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    return badModel("{} starts but {} ends, {} axes and {} steps", starts.size(), ends.size(), axes.size(),
                    steps.size());

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
  if (everything) { return step.set(step.input(0)); }
  return step.set(
      step.build.add(OpKind::Slice, {step.input(0)}, {{"starts", first}, {"counts", counts}, {"steps", strides}}));
}

Status importPad(Step& step) {
  CDL_ASSIGN(const auto pads, step.neededInts("pads", 1, 11));
  CDL_ASSIGN(const std::string mode, step.attr<std::string>("mode", "constant"));
  const int64_t rank = step.input(0)->type.rank();
  std::vector<int64_t> axes = allAxes(step);
  if (step.opset >= 18) {
    CDL_ASSIGN(const auto given, step.knownInts(3, "axes"));
    CDL_ASSIGN(axes, resolveAxes(given.value_or(axes), rank));
  } else if (step.input(3)) {
    return badModel("input 'axes' needs opset 18, the model has {}", step.opset);
  }
  if (pads.size() != 2 * axes.size())
    return badModel("{} pads for {} axes, expected two each", pads.size(), axes.size());
  if (mode == "wrap" && step.opset < 19) return badModel("mode 'wrap' needs opset 19, the model has {}", step.opset);

  Value* value = step.opset >= 11 ? step.input(2) : nullptr;
  if (step.opset < 11) {
    CDL_ASSIGN(const double number, step.attr<float>("value", 0));
    if (number != 0 && mode == "constant") { CDL_ASSIGN(value, step.build.scalar(number, step.input(0)->type.elem)); }
  }
  if (value && value->type.shape() == Shape{1}) { CDL_ASSIGN(value, step.build.reshape(value, {})); }
  std::vector<int64_t> lo(rank, 0), hi(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    lo[axes[i]] = pads[i];
    hi[axes[i]] = pads[i + axes.size()];
  }
  return step.set(step.build.add(OpKind::Pad, {step.input(0), value}, {{"lo", lo}, {"hi", hi}, {"mode", mode}}));
}

/// The order among the kept is free where `sorted` is 0: it is the same.
Status importTopK(Step& step) {
  CDL_ASSIGN(const int64_t axis, step.attr<int64_t>("axis", -1));
  bool largest = true;
  if (step.opset >= 11) {
    CDL_ASSIGN(largest, step.flagAttr("largest", true));
    CDL_TRY(step.flagAttr("sorted", true).status());
  }
  std::optional<int64_t> k;
  if (step.opset < 10) {
    CDL_ASSIGN(k, step.maybe<int64_t>("k"));
    if (step.input(1)) return badModel("input 'K' needs opset 10, the model has {}", step.opset);
  } else {
    CDL_ASSIGN(const auto known, step.knownInts(1, "K"));
    if (known && known->size() != 1) return badModel("K has {} elements, expected 1", known->size());
    if (known) k = known->front();
  }
  if (!k) return badModel("{} is missing", step.opset < 10 ? "attribute 'k'" : "input 'K'");
  CDL_ASSIGN(const auto sorted,
             step.build.addAll(OpKind::Sort, {step.input(0)}, {{"axis", axis}, {"k", *k}, {"descending", largest}}, 2));
  step.set(0, sorted[0]);
  if (!step.wants(1)) return Status::ok();
  CDL_ASSIGN(Value * places, step.build.cast(sorted[1], Elem::i64_));
  step.set(1, places);
  return Status::ok();
}

constexpr Operator kOperators[] = {
    {"Expand", 2, 2, 1, importExpand},       {"Flatten", 1, 1, 1, importFlatten},
    {"Identity", 1, 1, 1, importIdentity},   {"Pad", 1, 4, 1, importPad},
    {"Reshape", 2, 2, 1, importReshape},     {"Slice", 1, 5, 1, importSlice},
    {"Squeeze", 1, 2, 1, importSqueeze},     {"TopK", 1, 2, 2, importTopK},
    {"Transpose", 1, 1, 1, importTranspose}, {"Unsqueeze", 1, 2, 1, importUnsqueeze},
};

} // namespace

std::span<const Operator> movementOperators() { return kOperators; }

} // namespace candela::import
