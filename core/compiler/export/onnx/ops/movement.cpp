#include <algorithm>
#include <limits>

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {

void writeReshape(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const Term y = w.reshape(x, node.intsAttr("shape"));
  w.bind(node.result(), y);
}

void writeTranspose(GraphWriter& w, const graph::Node& node) {
  w.bind(node.result(), w.transpose(w.of(node.operand(0)), node.intsAttr("perm")));
}

void writeExpand(GraphWriter& w, const graph::Node& node) {
  w.bind(node.result(), w.expand(w.of(node.operand(0)), node.result()->type.dims));
}

void writeSlice(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const std::vector<int64_t> starts = node.intsAttr("starts"), counts = node.intsAttr("counts"),
                             steps = node.intsAttr("steps", starts.size(), 1);
  std::vector<int64_t> ends, axes;
  for (size_t d = 0; d < starts.size(); ++d) {
    const int64_t end = starts[d] + counts[d] * steps[d];
    const int64_t first = std::numeric_limits<int64_t>::min();
    ends.push_back(end < 0 ? first : end);
    axes.push_back(static_cast<int64_t>(d));
  }
  const Shape& dims = node.result()->type.dims;
  w.bind(node.result(),
         w.make("Slice", {x, w.ints(starts), w.ints(ends), w.ints(axes), w.ints(steps)}, x.elem,
                dims));
}

void writePad(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0)), value = w.of(node.operand(1));
  std::vector<int64_t> pads = node.intsAttr("lo");
  const std::vector<int64_t> after = node.intsAttr("hi");
  pads.insert(pads.end(), after.begin(), after.end());
  w.bind(node.result(), w.make("Pad", {x, w.ints(pads), value}, x.elem, node.result()->type.dims,
                               {{"mode", node.stringAttr("mode")}}));
}

namespace {

/// Places that count from 0 or from the end, as ONNX has them; those outside are clamped.
Term clampedIndex(GraphWriter& w, const Term& index, int64_t lowest, int64_t extent) {
  const std::vector<int64_t>* known = w.knownInts(index);
  const auto isInside = [&](int64_t k) { return k >= lowest && k < extent; };
  if (known && std::ranges::all_of(*known, isInside)) return index;
  return w.limit(index, lowest, extent - 1);
}

Term gathered(GraphWriter& w, const Term& x, const Term& index, int64_t axis) {
  Shape dims(x.dims.begin(), x.dims.begin() + axis);
  dims.insert(dims.end(), index.dims.begin(), index.dims.end());
  dims.insert(dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  return w.make("Gather", {x, index}, x.elem, dims, {{"axis", axis}});
}

} // namespace

void writeGather(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const int64_t axis = graph::wrapAxis(node.intAttr("axis"), static_cast<int>(x.rank()));
  const int64_t extent = x.dims[static_cast<size_t>(axis)];
  const Term index = w.of(node.operand(1));
  if (extent == 0) return w.bind(node.result(), gathered(w, x, index, axis));
  w.bind(node.result(), gathered(w, x, clampedIndex(w, index, -extent, extent), axis));
}

void writeTake(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0)), index = w.of(node.operand(1));
  const int64_t extent = x.dims[1];
  const bool isZero = node.stringAttr("mode") == "zero";
  if (extent == 0) {
    if (isZero && node.result()->type.count() > 0)
      refuse("of an axis without elements there is nothing to take");
    return w.bind(node.result(), gathered(w, x, index, 1));
  }
  const Term place = clampedIndex(w, index, 0, extent);
  if (!isZero || place.name == index.name) return w.bind(node.result(), gathered(w, x, place, 1));
  // What lies outside is taken of a row of zeros behind the last one.
  Shape longer = x.dims;
  ++longer[1];
  const Term room = w.make("Pad", {x, w.ints({0, 0, 0, 0, 1, 0})}, x.elem, longer);
  const Term last = w.whole(extent, index.elem);
  const Term inside = w.where(w.test("Equal", index, place), index, last);
  w.bind(node.result(), gathered(w, room, inside, 1));
}

void writePut(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0)), index = w.cast(w.of(node.operand(1)), Elem::i64_);
  const Term updates = w.of(node.operand(2));
  const int64_t extent = x.dims[1];
  if (updates.dims[0] * updates.dims[1] * updates.dims[2] == 0) return w.bind(node.result(), x);
  const std::string fn = node.stringAttr("fn");
  Attributes attributes = {{"axis", int64_t(1)}};
  if (fn != "set") attributes["reduction"] = fn;
  const std::vector<int64_t>* known = w.knownInts(w.of(node.operand(1)));
  const auto isPlace = [&](int64_t k) { return k >= 0 && k < extent; };
  if (known && std::ranges::all_of(*known, isPlace)) {
    const Term places = w.expand(w.along(index, 1, 3), updates.dims);
    return w.bind(node.result(), w.make("ScatterElements", {x, places, updates}, x.elem, x.dims,
                                        std::move(attributes)));
  }
  // What lies outside goes to a row behind the last one, which is cut off again.
  const Term last = w.whole(extent, Elem::i64_);
  const Term isOut =
      w.op("Or", {w.test("Less", index, w.whole(0, Elem::i64_)), w.test("Greater", index, last)});
  const Term places = w.expand(w.along(w.where(isOut, last, index), 1, 3), updates.dims);
  Shape longer = x.dims;
  ++longer[1];
  const Term room = w.make("Pad", {x, w.ints({0, 0, 0, 0, 1, 0})}, x.elem, longer);
  const Term all =
      w.make("ScatterElements", {room, places, updates}, x.elem, longer, std::move(attributes));
  w.bind(node.result(), w.slice(all, 1, 0, extent));
}

namespace {

/// offset + sum(i[d] * strides[d]) for every i of dims.
constexpr int64_t kMostSteps = int64_t(1) << 24; // along a dim, which are written out

Term affinePlaces(GraphWriter& w, int64_t offset, const Shape& dims,
                  const std::vector<int64_t>& strides) {
  const auto rank = static_cast<int64_t>(dims.size());
  Term places = w.whole(offset, Elem::i64_);
  for (int64_t d = 0; d < rank; ++d) {
    const auto at = static_cast<size_t>(d);
    if (dims[at] == 1 || strides[at] == 0) continue; // all of it is one place
    if (dims[at] > kMostSteps) refuse("dim {} has more than {} elements", d, kMostSteps);
    std::vector<int64_t> steps;
    for (int64_t i = 0; i < dims[at]; ++i) steps.push_back(i * strides[at]);
    const Term along = w.along(w.ints(steps), d, rank);
    places = w.op("Add", {places, along});
  }
  return w.expand(places, dims);
}

Term flat(GraphWriter& w, const Term& x) {
  return w.reshape(x, {elementCount(x.dims).value_or(0)});
}

} // namespace

Term takeAffine(GraphWriter& w, const Term& x, int64_t offset, const Shape& dims,
                const std::vector<int64_t>& strides) {
  if (elementCount(dims) == 0) return w.reshape(w.slice(flat(w, x), 0, 0, 0), dims);
  return gathered(w, flat(w, x), affinePlaces(w, offset, dims, strides), 0);
}

void writeAffine(GraphWriter& w, const graph::Node& node) {
  w.bind(node.result(), takeAffine(w, w.of(node.operand(0)), node.intAttr("offset"),
                                   node.intsAttr("dims"), node.intsAttr("strides")));
}

void writePlace(GraphWriter& w, const graph::Node& node) {
  const Shape dims = node.intsAttr("dims");
  const size_t rank = dims.size();
  const std::vector<int64_t> offsets = node.intsAttr("offsets"),
                             steps = node.intsAttr("steps", rank, 1), strides = denseStrides(dims);
  const Terms operands = w.operandsOf(node);
  const Elem elem = node.result()->type.elem;
  const int64_t count = elementCount(dims).value_or(0);
  Tensor element = need(Tensor::zeros(elem, {1}));
  storeElement(elem, element.bytes.mutableData(), 0, static_cast<uint64_t>(node.intAttr("value")));
  Term all = w.make("ConstantOfShape", {w.ints({count})}, elem, {count}, {{"value", element}});
  for (size_t n = 0; n < operands.size(); ++n) {
    const Term updates = flat(w, operands[n]);
    if (updates.dims[0] == 0) continue;
    int64_t offset = 0;
    std::vector<int64_t> moves;
    for (size_t d = 0; d < rank; ++d) {
      offset += offsets[n * rank + d] * strides[d];
      moves.push_back(steps[d] * strides[d]);
    }
    const Term places = flat(w, affinePlaces(w, offset, operands[n].dims, moves));
    all = w.make("ScatterElements", {all, places, updates}, elem, {count}, {{"axis", int64_t(0)}});
  }
  w.bind(node.result(), w.reshape(all, dims));
}

} // namespace candela::exporter::onnx
