// Sorts and the largest elements.
#include <algorithm>
#include <numeric>

#include "core/compiler/import/stablehlo/places.h"
#include "core/compiler/import/stablehlo/region_meaning.h"

namespace candela::import::stablehlo {
namespace {

struct Ordered {
  Name values, places;
};

/// All elements along a dim in order; equal ones stay as they were.
Ordered ordered(Step& step, const Name& x, Elem elem, int64_t axis, int64_t count, bool isLargest) {
  const Name key = elem == Elem::bool_ ? step.cast(x, Elem::i32_) : x;
  const std::vector<Name> found =
      step.addAll("TopK", {key, step.constant(Ints{count})}, 2,
                  {{"axis", axis}, {"largest", int64_t(isLargest)}, {"sorted", int64_t(1)}});
  return {elem == Elem::bool_ ? step.cast(found[0], elem) : found[0], found[1]};
}

Name picked(Step& step, const Name& x, const Name& places, int64_t axis) {
  return step.add("GatherElements", {x, places}, {{"axis", axis}});
}

/// By the last key first: a sort that leaves equal elements where they are keeps its order.
void writeSort(Step& step) {
  const size_t count = step.inputCount();
  const auto rank = static_cast<int64_t>(step.type(0).rank());
  int64_t axis = step.integer("dimension", -1);
  if (axis < 0) axis += rank;
  step.checkAxes({axis}, step.type(0).rank(), "dimension");
  for (size_t i = 0; i < count; ++i) {
    if (step.type(i).dims != step.type(0).dims)
      reject("operands are {} and {}", step.type(0).text(), step.type(i).text());
    step.expectElem(step.type(i).elem, i);
    step.expectDims(step.type(i).dims, i);
  }
  const Region& comparator = step.op().regions[0];
  const auto order = orderOf(comparator);
  if (!order || comparator.arguments.size() != 2 * count)
    refuse("its comparator of {} operations sorts neither up nor down by its first operands",
           comparator.operations.size());
  const int64_t extent = step.type(0).dims[static_cast<size_t>(axis)];
  if (extent < 2) {
    for (size_t i = 0; i < count; ++i) step.setValue(step.input(i), i);
    return;
  }
  Name places;
  for (size_t key = order->keys; key > 0; --key) {
    Name x = step.whole(key - 1);
    if (!places.empty()) x = picked(step, x, places, axis);
    const Ordered found = ordered(step, x, step.type(key - 1).elem, axis, extent, !order->isRising);
    places = places.empty() ? found.places : picked(step, places, found.places, axis);
    if (order->keys == 1) step.set(found.values, 0);
  }
  for (size_t i = order->keys == 1 ? 1 : 0; i < count; ++i)
    step.set(picked(step, step.whole(i), places, axis), i);
}

/// The largest along the last dim, and where they were.
void writeTopK(Step& step) {
  const int64_t count = step.integer("k");
  Shape dims = step.type(0).dims;
  if (dims.empty() || count < 0 || count > dims.back())
    reject("k is {} for {}", count, step.type(0).text());
  const auto axis = static_cast<int64_t>(dims.size()) - 1;
  dims.back() = count;
  step.expectElem(step.type(0).elem);
  const Ordered found = ordered(step, step.whole(0), step.type(0).elem, axis, count, true);
  step.setPart({found.values, dims});
  if (step.outputCount() > 1) step.setPart({step.cast(found.places, step.output(1).elem), dims}, 1);
}

constexpr Operator kOrdering[] = {
    {"chlo.top_k", 1, 1, 0, writeTopK},
    {"stablehlo.sort", 1, -1, 1, writeSort, "up or down, by up to 3 keys, which stand first"},
};

} // namespace

std::span<const Operator> orderingOperators() { return kOrdering; }

} // namespace candela::import::stablehlo
