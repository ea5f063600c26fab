// Movement: elements go back where they came from.
#include <algorithm>

#include "core/compiler/differentiate/rules.h"

namespace candela::differentiate {
namespace {

/// Along one dim: adds the slices of `dy` back at the places that each was read from.
Term addedBack(const Term& dy, size_t dim, const std::vector<int64_t>& places, int64_t extent) {
  Shape shape = dy.shape();
  const std::span<const int64_t> dims(shape);
  const int64_t outer = elementCount(dims.first(dim)).value_or(0),
                inner = elementCount(dims.subspan(dim + 1)).value_or(0), count = dims[dim];
  const Term zeros = full(dy.writer(), 0, {outer, extent, inner}, dy.elem());
  const Term index = constant(dy.writer(), places, {count});
  shape[dim] = extent;
  return putAdd(zeros, index, dy.reshape({outer, count, inner})).reshape(shape);
}

/// Where pad reads along one dim, which is inside of it.
int64_t placeOf(int64_t at, int64_t extent, const std::string& mode) {
  if (at >= 0 && at < extent) return at;
  if (mode == "edge") return at < 0 ? 0 : extent - 1;
  if (mode == "wrap") return ((at % extent) + extent) % extent;
  return at < 0 ? -at : 2 * (extent - 1) - at; // reflect
}

Term unrepeated(const Term& dy, const Step& step) {
  const std::string mode = step.node.stringAttr("mode");
  const std::vector<int64_t> lo = step.node.intsAttr("lo");
  const std::vector<int64_t> hi = step.node.intsAttr("hi");
  const Shape extents = step.x(0).shape();
  Term back = dy;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (lo[d] == 0 && hi[d] == 0) continue;
    std::vector<int64_t> places;
    for (int64_t at = -lo[d]; at < extents[d] + hi[d]; ++at)
      places.push_back(placeOf(at, extents[d], mode));
    back = addedBack(back, d, places, extents[d]);
  }
  return back;
}

std::vector<int64_t> negated(std::vector<int64_t> values) {
  for (int64_t& value : values) value = -value;
  return values;
}

/// Whether two operands of a place share an element.
bool overlap(const Step& step, size_t a, size_t b, const std::vector<int64_t>& offsets,
             const std::vector<int64_t>& steps) {
  const Shape first = step.x(a).shape();
  const Shape second = step.x(b).shape();
  const size_t rank = first.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t from = offsets[a * rank + d];
    const int64_t to = offsets[b * rank + d];
    if ((from - to) % steps[d] != 0) return false;
    const bool isApart = from + (first[d] - 1) * steps[d] < to ||
                         to + (second[d] - 1) * steps[d] < from || first[d] == 0 || second[d] == 0;
    if (isApart) return false;
  }
  return true;
}

} // namespace

void reshapeRule(const Step& step) {
  step.give(0, [&] { return step.dy().reshape(step.x(0).shape()); });
}

void transposeRule(const Step& step) {
  step.give(0, [&] {
    const std::vector<int64_t> perm = step.node.intsAttr("perm");
    std::vector<int64_t> back(perm.size());
    for (size_t d = 0; d < perm.size(); ++d)
      back[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    return step.dy().transpose(back);
  });
}

/// What is repeated is summed, as give() does.
void expandRule(const Step& step) {
  step.give(0, [&] { return step.dy(); });
}

void concatRule(const Step& step) {
  const int64_t axis =
      graph::wrapAxis(step.node.intAttr("axis"), static_cast<int>(step.y().rank()));
  int64_t first = 0;
  for (size_t i = 0; i < step.node.operands().size(); ++i) {
    const int64_t count = step.x(i).dim(axis);
    step.give(i, [&] { return step.dy().slice(axis, first, count); });
    first += count;
  }
}

/// Elements that were stepped over get 0. What ran backward is turned round first.
void sliceRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    std::vector<int64_t> starts = step.node.intsAttr("starts");
    std::vector<int64_t> steps = step.node.intsAttr("steps");
    const Shape counts = step.y().shape();
    if (step.y().count() == 0) return zerosLike(x);
    Term dy = step.dy();
    for (size_t d = 0; d < steps.size(); ++d) {
      if (counts[d] == 1) steps[d] = 1;
      if (steps[d] >= 0) continue;
      const auto axis = static_cast<int64_t>(d);
      dy = dy.slice(axis, counts[d] - 1, counts[d], -1);
      starts[d] += (counts[d] - 1) * steps[d];
      steps[d] = -steps[d];
    }
    const bool isDense = std::ranges::all_of(steps, [](int64_t by) { return by == 1; });
    if (!isDense)
      return make(OpKind::Place, {dy},
                  {{"dims", x.shape()}, {"offsets", starts}, {"steps", steps}});
    Shape behind = x.shape();
    for (size_t d = 0; d < behind.size(); ++d) behind[d] -= starts[d] + counts[d];
    return dy.pad(starts, behind);
  });
}

void padRule(const Step& step) {
  if (step.y().count() == 0) return;
  if (step.node.stringAttr("mode") != "constant")
    return step.give(0, [&] { return unrepeated(step.dy(), step); });
  const std::vector<int64_t> lo = step.node.intsAttr("lo");
  const std::vector<int64_t> hi = step.node.intsAttr("hi");
  step.give(0, [&] { return step.dy().pad(negated(lo), negated(hi)); });
  step.give(1, [&] {
    const Term x = step.x(0);
    const Term inside = full(step.writer(), 1, x.shape(), x.elem()).pad(lo, hi);
    return sumOfAll(step.dy() * (1 - inside));
  });
}

/// The lowered form of any movement of one tensor: the places that strides walk.
void affineRule(const Step& step) {
  step.give(0, [&] {
    const Term x = step.x(0);
    const Term dy = step.dy();
    const Shape dims = step.node.intsAttr("dims");
    const std::vector<int64_t> strides = step.node.intsAttr("strides");
    std::vector<int64_t> places{step.node.intAttr("offset")};
    for (size_t d = 0; d < dims.size(); ++d) {
      std::vector<int64_t> finer;
      for (const int64_t place : places)
        for (int64_t i = 0; i < dims[d]; ++i) finer.push_back(place + i * strides[d]);
      places = std::move(finer);
    }
    return addedBack(dy.reshape({dy.count()}), 0, places, x.count()).reshape(x.shape());
  });
}

void placeRule(const Step& step) {
  const Shape dims = step.node.intsAttr("dims");
  const size_t rank = dims.size();
  const size_t count = step.node.operands().size();
  const std::vector<int64_t> offsets = step.node.intsAttr("offsets"),
                             steps = step.node.intsAttr("steps", rank, 1);
  for (size_t i = 0; i < count; ++i)
    for (size_t other = i + 1; other < count; ++other)
      if (overlap(step, i, other, offsets, steps))
        step.refuse(fmt::format("operands {} and {} overlap", i, other));
  for (size_t i = 0; i < count; ++i) {
    step.give(i, [&] {
      const auto first = offsets.begin() + static_cast<int64_t>(i * rank);
      const std::vector<int64_t> starts(first, first + static_cast<int64_t>(rank));
      return make(OpKind::Slice, {step.dy()},
                  {{"starts", starts}, {"counts", step.x(i).shape()}, {"steps", steps}});
    });
  }
}

} // namespace candela::differentiate
