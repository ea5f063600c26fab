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

/// Attributes are f32, which f64 tells from what the op has.
void checkEpsilon(const graph::Node& node) {
  const double epsilon = node.floatAttr("epsilon");
  const bool isKept = static_cast<double>(static_cast<float>(epsilon)) == epsilon;
  if (node.result()->type.elem == Elem::f64_ && !isKept)
    refuse("its epsilon of {} is no f32, as attributes of ONNX are", epsilon);
}

} // namespace

/// Where it does not train, the running mean and variance stay what they are.
void writeBatchNorm(GraphWriter& w, const graph::Node& node) {
  checkEpsilon(node);
  const Terms in = w.operandsOf(node);
  const bool isTraining = node.intAttr("training_mode") != 0;
  std::vector<graph::TensorType> types;
  for (const graph::Value* result : node.results()) types.push_back(result->type);
  if (!isTraining) types.resize(1);
  const Terms results = w.makeSeveral("BatchNormalization", in, types, attributesOf(node));
  for (size_t i = 0; i < results.size(); ++i) w.bind(node.result(i), results[i]);
  for (size_t i = results.size(); i < node.results().size(); ++i)
    w.bind(node.result(i), w.make("Identity", {in[i + 2]}, in[i + 2].elem, in[i + 2].dims));
}

void writeSoftmax(GraphWriter& w, const graph::Node& node) {
  const Term x = w.of(node.operand(0));
  w.bind(node.result(), w.make("Softmax", {x}, x.elem, x.dims, rowAttributes(w, node)));
}

void writeLayerNorm(GraphWriter& w, const graph::Node& node) {
  checkEpsilon(node);
  const Term x = w.of(node.operand(0));
  w.bind(node.result(), w.make("LayerNormalization", {x, scaleOf(w, node), w.of(node.operand(2))},
                               x.elem, x.dims, rowAttributes(w, node)));
}

void writeRmsNorm(GraphWriter& w, const graph::Node& node) {
  checkEpsilon(node);
  const Term x = w.of(node.operand(0));
  w.bind(node.result(),
         w.make("RMSNormalization", {x, scaleOf(w, node)}, x.elem, x.dims, rowAttributes(w, node)));
}

} // namespace candela::exporter::onnx
