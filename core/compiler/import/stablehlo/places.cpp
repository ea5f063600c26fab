#include "core/compiler/import/stablehlo/places.h"

#include <algorithm>

namespace candela::import::stablehlo {

Name inside(Step& step, const Name& place, int64_t most) {
  const Name lowest = step.constant(Tensor::scalarI64(0));
  const Name highest = step.constant(Tensor::scalarI64(most));
  return step.add("Min", {step.add("Max", {place, lowest}), highest});
}

Name insideDim(Step& step, size_t input, int64_t most) {
  const Value& value = step.input(input);
  if (value.isSplat()) return step.constant(Tensor::scalarI64(knownInside(*value.constant, most)));
  Name place = step.whole(input);
  // An i64 has not all of them.
  if (value.type.elem == Elem::u64_)
    place = step.add("Min", {place, step.number(double{kMostExtent}, Elem::u64_)});
  return inside(step, step.cast(place, Elem::i64_), most);
}

int64_t knownInside(const Tensor& place, int64_t most) {
  const __int128 value = integerOf(place.elem, loadElement(place.elem, place.bytes.data(), 0));
  return static_cast<int64_t>(std::clamp<__int128>(value, 0, most));
}

Part countAlong(Step& step, const Shape& dims, size_t axis) {
  Shape shape(dims.size(), 1);
  shape[axis] = dims[axis];
  const Tensor counted = countTo(step, dims[axis]);
  return {step.constant(Tensor{Elem::i64_, shape, counted.bytes}), shape};
}

Name joinColumns(Step& step, const std::vector<Name>& columns, const Shape& dims) {
  Shape one = dims;
  one.push_back(1);
  std::vector<Name> wide;
  for (const Name& column : columns) {
    const Name spread = step.add("Expand", {column, step.constant(dims)});
    wide.push_back(step.reshape({spread, dims}, one).name);
  }
  return wide.size() == 1 ? wide[0] : step.add("Concat", wide, {{"axis", int64_t(-1)}});
}

} // namespace candela::import::stablehlo
