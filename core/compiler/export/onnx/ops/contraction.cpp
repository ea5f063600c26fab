#include <algorithm>

#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

Shape productDims(const Shape& a, const Shape& b) {
  const Shape aBatch(a.begin(), a.end() - std::min<long>(2, static_cast<long>(a.size())));
  const Shape bBatch(b.begin(), b.end() - std::min<long>(2, static_cast<long>(b.size())));
  Shape dims = graph::broadcastShapes(aBatch, bBatch).value_or(Shape{});
  if (a.size() > 1) dims.push_back(a[a.size() - 2]);
  if (b.size() > 1) dims.push_back(b.back());
  return dims;
}

Term product(GraphWriter& w, const Term& a, const Term& b) {
  return w.make("MatMul", {a, b}, a.elem, productDims(a.dims, b.dims));
}

/// The last two dims change places.
Term transposed(GraphWriter& w, const Term& x) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < x.rank(); ++d) perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return w.transpose(x, perm);
}

Elem multipliedIn(Elem elem) { return isInteger(elem) && elemBits(elem) < 32 ? Elem::i32_ : elem; }

} // namespace

void writeMatmul(GraphWriter& w, const graph::Node& node) {
  const Term a = w.of(node.operand(0)), b = w.of(node.operand(1));
  const Elem wide = multipliedIn(a.elem);
  w.bind(node.result(), w.cast(product(w, w.cast(a, wide), w.cast(b, wide)), a.elem));
}

void writeGemm(GraphWriter& w, const graph::Node& node) {
  const Terms operands = w.operandsOf(node);
  const Elem elem = operands[0].elem, wide = multipliedIn(elem);
  for (const char* name : {"alpha", "beta"}) {
    const double factor = node.floatAttr(name);
    const bool isKept = static_cast<double>(static_cast<float>(factor)) == factor;
    if (elem == Elem::f64_ && !isKept)
      refuse("its {} of {} is no f32, as attributes of ONNX are", name, factor);
  }
  Terms wider;
  for (const Term& operand : operands)
    wider.push_back(operand.isAbsent() ? operand : w.cast(operand, wide));
  const Term y = w.make("Gemm", wider, wide, node.result()->type.dims, attributesOf(node));
  w.bind(node.result(), w.cast(y, elem));
}

/// Halves are computed in f32, where scores do not overflow.
void writeAttention(GraphWriter& w, const graph::Node& node) {
  Terms in = w.operandsOf(node);
  const Elem elem = in[0].elem;
  const Elem wide = elem == Elem::f64_ ? elem : Elem::f32_;
  for (Term& operand : in)
    if (!operand.isAbsent()) operand = w.cast(operand, wide);
  Term scores = product(w, in[0], transposed(w, in[1]));
  const double scale = node.floatAttr("scale");
  if (scale != 1) scores = w.op("Mul", {scores, w.number(scale, wide)});
  if (in.size() > 3 && !in[3].isAbsent()) scores = w.op("Add", {scores, in[3]});
  const Term weights = w.make("Softmax", {scores}, wide, scores.dims, {{"axis", int64_t(-1)}});
  w.bind(node.result(), w.cast(product(w, weights, in[2]), elem));
}

namespace {

/// Of one value per block, or fewer that broadcast: beside [rows, blocks, block].
Term perBlock(GraphWriter& w, const Term& x) {
  const Term wide = w.cast(x, Elem::f32_);
  Shape dims = x.dims;
  dims.push_back(1);
  return w.reshape(wide, dims);
}

} // namespace

void writeScaledMatmul(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Term& a = in[0];
  const Term& weight = in[1];
  if (node.stringAttr("fn") == "dynamic") refuse("its activations are quantized at run, by block");
  const int64_t rows = a.dims[0], depth = a.dims[1];
  const int64_t columns = weight.dims[0], blocks = weight.dims[1], block = weight.dims[2];
  const auto has = [&](size_t i) { return i < in.size() && !in[i].isAbsent(); };
  Term real = w.cast(weight, Elem::f32_);
  if (has(3)) real = w.op("Sub", {real, perBlock(w, in[3])});
  real = w.op("Mul", {real, perBlock(w, in[2])});
  Term matrix = w.reshape(real, {columns, blocks * block});
  if (blocks * block != depth) matrix = w.slice(matrix, 1, 0, depth);
  Term left = w.cast(a, Elem::f32_);
  if (has(4)) {
    const Term scale = w.expand(perBlock(w, in[4]), {rows, blocks, block});
    Term each = w.reshape(scale, {rows, blocks * block});
    if (blocks * block != depth) each = w.slice(each, 1, 0, depth);
    left = w.op("Mul", {left, each});
  }
  const Term y = product(w, left, transposed(w, matrix));
  w.bind(node.result(), w.cast(y, node.elemAttr("to")));
}

void writeConvTranspose(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Term& x = in[0];
  const Shape& dims = node.result()->type.dims;
  const size_t spatial = dims.size() - 2;
  const std::vector<int64_t> pads = node.intsAttr("pads", 2 * spatial, 0);
  Attributes attributes = attributesOf(node);
  if (std::ranges::all_of(pads, [](int64_t pad) { return pad >= 0; }))
    return w.bind(node.result(), w.make("ConvTranspose", in, x.elem, dims, std::move(attributes)));
  // A pad below 0 is room that nothing is added to but the bias.
  std::vector<int64_t> crops(pads.size()), room(2 * dims.size(), 0);
  Shape inner = dims;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t before = std::max<int64_t>(0, -pads[d]);
    const int64_t behind = std::max<int64_t>(0, -pads[d + spatial]);
    room[d + 2] = before;
    room[dims.size() + d + 2] = behind;
    crops[d] = std::max<int64_t>(0, pads[d]);
    crops[d + spatial] = std::max<int64_t>(0, pads[d + spatial]);
    inner[d + 2] -= before + behind;
  }
  attributes["pads"] = crops;
  const Term y = w.make("ConvTranspose", {x, in[1]}, x.elem, inner, std::move(attributes));
  const Term roomy = w.make("Pad", {y, w.ints(room)}, x.elem, dims);
  if (in.size() < 3 || in[2].isAbsent()) return w.bind(node.result(), roomy);
  w.bind(node.result(), w.op("Add", {roomy, w.along(in[2], 1, static_cast<int64_t>(dims.size()))}));
}

void writeBatchMatmul(GraphWriter& w, const graph::Node& node) {
  const Terms in = w.operandsOf(node);
  const Elem to = node.elemAttr("to"), wide = multipliedIn(to);
  const auto shifted = [&](size_t i) {
    const Term x = w.cast(in[i], wide);
    if (i + 2 >= in.size() || in[i + 2].isAbsent()) return x;
    return w.op("Sub", {x, w.cast(in[i + 2], wide)});
  };
  w.bind(node.result(), w.cast(product(w, shifted(0), shifted(1)), to));
}

} // namespace candela::exporter::onnx
