#include <algorithm>

#include "core/compiler/export/tosa/ops.h"

namespace candela::exporter::tosa {

void writeReshape(FunctionWriter& w, const graph::Node& node) {
  w.bind(node.result(), w.reshape(w.of(node.operand(0)), node.intsAttr("shape")));
}

void writeTranspose(FunctionWriter& w, const graph::Node& node) {
  w.bind(node.result(), w.transpose(w.of(node.operand(0)), node.intsAttr("perm")));
}

void writeExpand(FunctionWriter& w, const graph::Node& node) {
  w.bind(node.result(), w.expand(w.of(node.operand(0)), node.result()->type.dims));
}

void writeConcat(FunctionWriter& w, const graph::Node& node) {
  const Values pieces = w.operandsOf(node);
  const int64_t axis = graph::wrapAxis(node.intAttr("axis"), static_cast<int>(pieces[0].rank()));
  w.bind(node.result(), w.concat(pieces, axis));
}

void writeSlice(FunctionWriter& w, const graph::Node& node) {
  Value x = w.of(node.operand(0));
  std::vector<int64_t> starts = node.intsAttr("starts");
  const std::vector<int64_t> counts = node.intsAttr("counts"),
                             steps = node.intsAttr("steps", starts.size(), 1);
  Shape size = counts;
  for (size_t d = 0; d < starts.size(); ++d) {
    if (steps[d] == 1 || counts[d] == 0) continue;
    std::vector<int64_t> places;
    for (int64_t i = 0; i < counts[d]; ++i) places.push_back(starts[d] + i * steps[d]);
    x = w.takeAlong(x, static_cast<int64_t>(d), w.ints(places, {counts[d]}));
    starts[d] = 0;
  }
  w.bind(node.result(), w.slice(x, starts, size));
}

namespace {

/// The place in 0..extent-1 that stands at i of a border in this mode.
int64_t mirrored(const std::string& mode, int64_t i, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, extent - 1);
  if (mode == "wrap") return (i % extent + extent) % extent;
  if (extent == 1) return 0;
  const int64_t period = 2 * (extent - 1), at = (i % period + period) % period;
  return at < extent ? at : period - at;
}

} // namespace

void writePad(FunctionWriter& w, const graph::Node& node) {
  Value x = w.of(node.operand(0));
  const std::vector<int64_t> lo = node.intsAttr("lo"), hi = node.intsAttr("hi");
  const std::string mode = node.stringAttr("mode");
  const Shape& dims = node.result()->type.dims;
  if (mode != "constant") {
    for (size_t d = 0; d < lo.size(); ++d) {
      if (lo[d] == 0 && hi[d] == 0) continue;
      std::vector<int64_t> places;
      for (int64_t i = 0; i < dims[d]; ++i) places.push_back(mirrored(mode, i - lo[d], x.dims[d]));
      x = w.takeAlong(x, static_cast<int64_t>(d), w.ints(places, {dims[d]}));
    }
    return w.bind(node.result(), x);
  }
  std::vector<int64_t> start, before, behind;
  Shape size;
  for (size_t d = 0; d < lo.size(); ++d) {
    start.push_back(std::max<int64_t>(0, -lo[d]));
    size.push_back(x.dims[d] - start[d] - std::max<int64_t>(0, -hi[d]));
    before.push_back(std::max<int64_t>(0, lo[d]));
    behind.push_back(std::max<int64_t>(0, hi[d]));
  }
  const Value value = node.operand(1) ? w.of(node.operand(1)) : w.number(0, x.elem);
  w.bind(node.result(), w.pad(w.slice(x, start, size), before, behind, value));
}

namespace {

Value clampedPlaces(FunctionWriter& w, const Value& index, int64_t extent) {
  const Value low = w.op("maximum", {w.number(0, index.elem), index});
  return w.op("minimum", {w.number(static_cast<double>(extent - 1), index.elem), low});
}

} // namespace

void writeGather(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0)), index = w.of(node.operand(1));
  const int64_t axis = graph::wrapAxis(node.intAttr("axis"), static_cast<int>(x.rank()));
  const int64_t extent = x.dim(axis);
  if (extent == 0) refuse("TOSA gathers no empty tensors");
  const Value zero = w.number(0, index.elem);
  const Value fromEnd = w.op("add", {w.number(static_cast<double>(extent), index.elem), index});
  const Value counted = w.op("select", {w.test("greater", zero, index), fromEnd, index});
  w.bind(node.result(), w.takeAlong(x, axis, clampedPlaces(w, counted, extent)));
}

void writeTake(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0)), index = w.of(node.operand(1));
  if (x.dim(1) == 0) refuse("TOSA gathers no empty tensors");
  const Value place = clampedPlaces(w, index, x.dim(1));
  const Value taken = w.takeAlong(x, 1, place);
  if (node.stringAttr("mode") == "clamp") return w.bind(node.result(), taken);
  const Value isInside = w.reshape(w.test("equal", index, place), {1, index.dim(0), 1});
  w.bind(node.result(), w.op("select", {isInside, taken, w.number(0, x.elem)}));
}

void writeAffine(FunctionWriter& w, const graph::Node& node) {
  const Value x = w.of(node.operand(0));
  const std::vector<int64_t> dims = node.intsAttr("dims"), strides = node.intsAttr("strides");
  constexpr int64_t kMostPlaces = int64_t(1) << 24; // which are written out, one by one
  if (elementCount(dims).value_or(kMostPlaces + 1) > kMostPlaces)
    refuse("it has more than {} elements", kMostPlaces);
  std::vector<int64_t> places = {node.intAttr("offset")};
  for (size_t d = 0; d < dims.size(); ++d) {
    std::vector<int64_t> next;
    for (const int64_t place : places)
      for (int64_t i = 0; i < dims[d]; ++i) next.push_back(place + i * strides[d]);
    places = std::move(next);
  }
  const int64_t count = elementCount(x.dims).value_or(0);
  w.bind(node.result(), w.takeAlong(w.reshape(x, {count}), 0, w.ints(places, dims)));
}

} // namespace candela::exporter::tosa
