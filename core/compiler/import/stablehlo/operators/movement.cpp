// Elements that are cut out, put together, moved.
#include <algorithm>

#include "core/compiler/import/stablehlo/places.h"

namespace candela::import::stablehlo {
namespace {

void writeSlice(Step& step) {
  Value& x = step.input(0);
  step.expectElem(x.type.elem);
  const Shape& dims = x.type.dims;
  const Ints begins = step.ints("start_indices"), ends = step.ints("limit_indices");
  const Ints strides = step.ints("strides", Ints(dims.size(), 1));
  if (begins.size() != dims.size() || ends.size() != dims.size() || strides.size() != dims.size())
    reject("ranges of {} dims for an operand of rank {}", begins.size(), dims.size());
  Shape wanted;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (begins[i] < 0 || ends[i] < begins[i] || ends[i] > dims[i] || strides[i] < 1)
      reject("range {}:{}:{} of dim {}, which is {}", begins[i], ends[i], strides[i], i, dims[i]);
    const int64_t length = ends[i] - begins[i];
    wanted.push_back(length == 0 ? 0 : (length - 1) / strides[i] + 1);
  }
  step.expectDims(wanted);
  if (x.kept.empty() && x.constant) return step.setConstant(*x.constant);
  if (x.kept.empty()) return step.setKept(step.kept(0), {});
  step.setPart(step.slice(step.part(0), begins, ends, strides));
}

/// From where the operands behind the first `skipped` say, moved so that a window lies inside.
std::vector<Name> startsOf(Step& step, size_t skipped, const Shape& whole, const Shape& window) {
  if (step.inputCount() != whole.size() + skipped)
    reject("{} begins for {} dims", step.inputCount() - skipped, whole.size());
  std::vector<Name> starts;
  for (size_t i = 0; i < whole.size(); ++i) {
    const Type& type = step.type(i + skipped);
    if (window[i] < 0 || window[i] > whole[i])
      reject("a window of {} in dim {}, which is {}", window[i], i, whole[i]);
    if (type.rank() != 0 || !isInteger(type.elem))
      reject("begin {} is {}, expected one integer", i, type.text());
    starts.push_back(window[i] == whole[i] ? ""
                                           : insideDim(step, i + skipped, whole[i] - window[i]));
  }
  return starts;
}

/// Known begins are a slice; others choose elements one dim after the other.
void writeDynamicSlice(Step& step) {
  const Shape whole = step.type(0).dims;
  const Ints window = step.ints(step.find("sizes") ? "sizes" : "slice_sizes");
  if (window.size() != whole.size())
    reject("{} sizes for an operand of rank {}", window.size(), whole.size());
  step.expectElem(step.type(0).elem);
  const std::vector<Name> starts = startsOf(step, 1, whole, window);
  step.expectDims(window);
  Part y = step.part(0);
  for (size_t i = 0; i < whole.size(); ++i) {
    if (starts[i].empty()) continue;
    const auto axis = static_cast<int64_t>(i);
    const Value& start = step.input(i + 1);
    if (start.isSplat()) {
      Ints begins(whole.size(), 0), ends = y.dims;
      begins[i] = knownInside(*start.constant, whole[i] - window[i]);
      ends[i] = begins[i] + window[i];
      y = step.slice(y, begins, ends, Ints(whole.size(), 1));
      continue;
    }
    const Name places = step.add("Add", {step.constant(countTo(step, window[i])), starts[i]});
    y.name = step.add("Gather", {y.name, places}, {{"axis", axis}});
    y.dims[i] = window[i];
  }
  step.setPart(y);
}

void writeDynamicUpdateSlice(Step& step) {
  const Shape whole = step.type(0).dims, window = step.type(1).dims;
  step.expectDims(whole);
  step.expectElem(step.type(0).elem);
  if (window.size() != whole.size() || step.type(1).elem != step.type(0).elem)
    reject("an update of {} in {}", step.type(1).text(), step.type(0).text());
  const std::vector<Name> starts = startsOf(step, 2, whole, window);
  // All up to the last dim that is not updated whole are counted out; the others move as they are.
  size_t counted = whole.size();
  while (counted > 0 && window[counted - 1] == whole[counted - 1]) --counted;
  if (counted == 0) return step.setValue(step.input(1));
  const Shape places(window.begin(), window.begin() + static_cast<ptrdiff_t>(counted));
  std::vector<Name> columns;
  for (size_t i = 0; i < counted; ++i) {
    const Name along = countAlong(step, places, i).name;
    columns.push_back(starts[i].empty() ? along : step.add("Add", {along, starts[i]}));
  }
  const Name index = joinColumns(step, columns, places);
  step.set(step.add("ScatterND", {step.whole(0), index, step.whole(1)}));
}

void writeConcatenate(Step& step) {
  const int64_t axis = step.integer(step.find("dim") ? "dim" : "dimension");
  Shape dims = step.type(0).dims;
  step.checkAxes({axis}, dims.size(), "dim");
  int64_t& length = dims[static_cast<size_t>(axis)];
  length = 0;
  std::vector<Name> parts;
  for (size_t i = 0; i < step.inputCount(); ++i) {
    const Type& type = step.type(i);
    step.expectElem(type.elem);
    Shape other = type.dims;
    if (other.size() != dims.size())
      reject("operand {} is {}, operand 0 {}", i, type.text(), step.type(0).text());
    length += other[static_cast<size_t>(axis)];
    other[static_cast<size_t>(axis)] = length;
    if (other != dims)
      reject("operand {} is {}, operand 0 {}", i, type.text(), step.type(0).text());
    // One without elements adds none.
    if (elementCount(type.dims) != 0) parts.push_back(step.whole(i));
  }
  step.expectDims(dims);
  if (parts.empty()) return step.setValue(step.input(0));
  if (parts.size() == 1) return step.set(parts[0]);
  step.set(step.add("Concat", parts, {{"axis", axis}}));
}

void writePad(Step& step) {
  const size_t rank = step.type(0).rank();
  const auto counts = [&](const char* pretty, const char* generic) {
    Ints all = step.ints(step.find(pretty) ? pretty : generic);
    if (all.size() != rank)
      reject("{} of {} dims for an operand of rank {}", pretty, all.size(), rank);
    for (const int64_t count : all)
      if (count < -kMostExtent || count > kMostExtent) reject("{} is {}", pretty, count);
    return all;
  };
  const Ints low = counts("low", "edge_padding_low"), high = counts("high", "edge_padding_high");
  const Ints interior = counts("interior", "interior_padding");
  if (step.type(1).rank() != 0 || step.type(1).elem != step.type(0).elem)
    reject("pads {} with {}", step.type(0).text(), step.type(1).text());
  step.expectElem(step.type(0).elem);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = step.type(0).dims[i];
    if (interior[i] < 0) reject("interior is {}", interior[i]);
    const int64_t apart = extent + std::max<int64_t>(0, extent - 1) * interior[i];
    if (apart > kMostExtent || low[i] < -apart || high[i] < -apart || apart + low[i] + high[i] < 0)
      refuse("pads {} and {} of dim {}, which is {}", low[i], high[i], i, apart);
  }
  step.setPart(step.pad(step.part(0), step.whole(1), low, high, interior));
}

void writeReverse(Step& step) {
  const Ints axes = step.ints(step.find("dims") ? "dims" : "dimensions");
  step.checkAxes(axes, step.type(0).rank(), "dim");
  step.expectElem(step.type(0).elem);
  step.setPart(step.reverse(step.part(0), axes));
}

constexpr Operator kMovement[] = {
    {"stablehlo.concatenate", 1, -1, 0, writeConcatenate},
    {"stablehlo.dynamic_slice", 1, -1, 0, writeDynamicSlice},
    {"stablehlo.dynamic_update_slice", 2, -1, 0, writeDynamicUpdateSlice},
    {"stablehlo.pad", 2, 2, 0, writePad, "no negative pads beyond what is padded"},
    {"stablehlo.reverse", 1, 1, 0, writeReverse},
    {"stablehlo.slice", 1, 1, 0, writeSlice},
};

} // namespace

std::span<const Operator> movementOperators() { return kMovement; }

} // namespace candela::import::stablehlo
