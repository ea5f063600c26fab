#include "core/compiler/export/onnx/ops.h"

namespace candela::exporter::onnx {
namespace {

/// Whether the op means a function of integers is said once for a whole model.
Attributes rowAttributes(GraphWriter& w, const graph::Node& node) {
  Attributes attributes = attributesOf(node);
  attributes.erase("integers");
  const bool isInteger = node.intAttr("integers") != 0;
  (isInteger ? w.model().hasIntegerRows : w.model().hasFloatRows) = true;
  return attributes;
}

/// The operand, or ones in its place, which ONNX asks for.
Term scaleOf(GraphWriter& w, const graph::Node& node) {
  if (node.operand(1)) return w.of(node.operand(1));
  const Term x = w.of(node.operand(0));
  const int axis = graph::wrapAxis(node.intAttr("axis"), static_cast<int>(x.rank()));
  return w.expand(w.number(1, x.elem), {x.dims.begin() + axis, x.dims.end()});
}

} // namespace

void writeSoftmax(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  w.bind(node.result(), w.make("Softmax", {x}, x.elem, x.dims, rowAttributes(w, node)));
}

void writeLayerNorm(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  w.bind(node.result(), w.make("LayerNormalization", {x, scaleOf(w, node), w.of(node.operand(2))},
                               x.elem, x.dims, rowAttributes(w, node)));
}

void writeRmsNorm(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  w.bind(node.result(),
         w.make("RMSNormalization", {x, scaleOf(w, node)}, x.elem, x.dims, rowAttributes(w, node)));
}

} // namespace candela::exporter::onnx
