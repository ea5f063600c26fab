#include <algorithm>

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

using graph::OpKind;

/// The type that ONNX reduces a type in: it has no sums of narrow integers.
Elem reducedIn(Elem elem, bool isExtreme) {
  if (elem == Elem::bool_) return Elem::i32_;
  const bool isByte = elem == Elem::i8_ || elem == Elem::u8_;
  if (!isInteger(elem) || elemBits(elem) >= 32) return elem;
  return isExtreme && isByte ? elem : Elem::i32_;
}

Shape without(const Shape& dims, const std::vector<int64_t>& axes, bool keep) {
  Shape left;
  for (size_t d = 0; d < dims.size(); ++d) {
    const bool isReduced = std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end();
    if (isReduced && keep) left.push_back(1);
    if (!isReduced) left.push_back(dims[d]);
  }
  return left;
}

Term reduced(GraphWriter& w, const std::string& opType, const Term& x,
             const std::vector<int64_t>& axes, bool keep) {
  Attributes attributes = {{"keepdims", int64_t(keep ? 1 : 0)}};
  if (axes.empty()) attributes["noop_with_empty_axes"] = int64_t(1);
  return w.make(opType, {x, w.ints(axes)}, x.elem, without(x.dims, axes, keep),
                std::move(attributes));
}

std::string reducerOf(OpKind kind) {
  switch (kind) {
  case OpKind::ReduceSum: return "ReduceSum";
  case OpKind::ReduceMax: return "ReduceMax";
  case OpKind::ReduceMin: return "ReduceMin";
  case OpKind::ReduceProd: return "ReduceProd";
  default: return "ReduceMean";
  }
}

} // namespace

void writeReduction(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  std::vector<int64_t> axes = node.intsAttr("axes");
  for (int64_t& axis : axes) axis = graph::wrapAxis(axis, static_cast<int>(x.rank()));
  const bool keep = node.intAttr("keepdims") != 0;
  if (axes.empty()) return w.bind(node.result(), x);
  const bool isExtreme = node.kind == OpKind::ReduceMax || node.kind == OpKind::ReduceMin;
  const Term wide = w.cast(x, reducedIn(x.elem, isExtreme));
  if (node.kind != OpKind::ReduceMean || isFloat(x.elem))
    return w.bind(node.result(),
                  w.cast(reduced(w, reducerOf(node.kind), wide, axes, keep), x.elem));
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x.dims[static_cast<size_t>(axis)];
  if (count == 0) refuse("a mean of no integers");
  const Term sum = reduced(w, "ReduceSum", wide, axes, keep);
  w.bind(node.result(), w.cast(w.op("Div", {sum, w.whole(count, wide.elem)}), x.elem));
}

void writeReduce(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  if (node.intAttr("prologue") != 0) refuse("what its prologue computes is no part of the graph");
  const std::string fn = node.stringAttr("fn");
  const bool isExtreme = fn == "max" || fn == "min";
  const Term wide = w.cast(x, reducedIn(x.elem, isExtreme));
  std::string opType = "ReduceSum";
  if (fn == "max") opType = "ReduceMax";
  if (fn == "min") opType = "ReduceMin";
  if (fn == "prod") opType = "ReduceProd";
  w.bind(node.result(), w.cast(reduced(w, opType, wide, {1}, false), x.elem));
}

void writeArgReduce(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const bool isWide = isFloat(x.elem) || elemBits(x.elem) == 32 || x.elem == Elem::i8_ ||
                      x.elem == Elem::u8_ || elemBits(x.elem) == 64;
  const Term wide = isWide ? x : w.cast(x, Elem::i32_);
  const std::string opType = node.stringAttr("fn") == "max" ? "ArgMax" : "ArgMin";
  const Term place = w.make(opType, {wide}, Elem::i64_, node.result()->type.dims,
                            {{"axis", node.intAttr("axis")},
                             {"keepdims", int64_t(1)},
                             {"select_last_index", node.intAttr("select_last")}});
  w.bind(node.result(), w.cast(place, Elem::i32_));
}

void writeSort(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  const bool isNarrow = !isFloat(x.elem) && elemBits(x.elem) < 32;
  const Term wide = isNarrow ? w.cast(x, Elem::i32_) : x;
  const Shape& dims = node.result()->type.dims;
  const bool isDescending = node.intAttr("descending") != 0;
  const Attributes attributes = {{"axis", node.intAttr("axis")},
                                 {"largest", int64_t(isDescending ? 1 : 0)},
                                 {"sorted", int64_t(1)}};
  const Terms results = w.makeSeveral("TopK", {wide, w.ints({node.intAttr("k")})},
                                      {{wide.elem, dims}, {Elem::i64_, dims}}, attributes);
  const Term values = w.cast(results[0], x.elem);
  w.bind(node.result(0), values);
  if (node.results().size() > 1) w.bind(node.result(1), w.cast(results[1], Elem::i32_));
}

} // namespace candela::exporter::onnx
