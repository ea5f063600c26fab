#include "core/compiler/import/tflite/step.h"

#include <algorithm>

namespace candela::import::tflite {
namespace {

constexpr int64_t kFarInteger = int64_t(1) << 40; // beyond any extent: sums of such ones fit

} // namespace

const TensorInfo& Step::input(size_t i) const {
  if (!has(i)) reject("input {} is missing", i);
  return writer_.subgraph().tensors[static_cast<size_t>(op_.inputs[i])];
}

const TensorInfo& Step::output(size_t i) const {
  if (!wants(i)) reject("output {} is missing", i);
  return writer_.subgraph().tensors[static_cast<size_t>(op_.outputs[i])];
}

Name Step::stored(size_t i) {
  input(i);
  return writer_.stored(op_.inputs[i]);
}

Name Step::real(size_t i) {
  input(i);
  return writer_.real(op_.inputs[i]);
}

bool Step::isAlike(size_t input, size_t output) const {
  const TensorInfo &from = this->input(input), &to = this->output(output);
  return from.elem == to.elem && from.quantization == to.quantization &&
         from.quantization.scales.size() <= 1;
}

Name Step::moved(size_t i) { return isAlike(i, 0) ? stored(i) : real(i); }

void Step::finishMoved(size_t input, size_t output, const Name& y) {
  if (isAlike(input, output))
    setStored(output, y);
  else
    set(output, y);
}

Name Step::longs(size_t i) {
  const TensorInfo& info = input(i);
  if (!isInteger(info.elem)) reject("input {} is {}, expected integers", i, elemName(info.elem));
  if (!info.content) return cast(stored(i), Elem::i64_);
  return constant(Tensor::of<int64_t>(Elem::i64_, info.dims, info.content->toInts()));
}

Ints Step::ints(size_t i, const char* what) const {
  const TensorInfo& info = input(i);
  if (!isInteger(info.elem) && info.elem != Elem::bool_)
    reject("{} are {}, expected integers", what, elemName(info.elem));
  if (!info.content) refuse("{} are no constants", what);
  if (info.content->count() > 4096) reject("{} of {} elements", what, info.content->count());
  Ints values = info.content->toInts();
  for (int64_t& value : values) value = std::clamp(value, -kFarInteger, kFarInteger);
  return values;
}

int64_t Step::integer(size_t i, const char* what) const {
  const Ints values = ints(i, what);
  if (values.size() != 1) reject("{} of {} elements, expected 1", what, values.size());
  return values[0];
}

Shape Step::shape(size_t i) const {
  const Shape& dims = input(i).dims;
  if (std::ranges::count(dims, -1) > 0)
    refuse("the shape of tensor '{}' has a free dim", input(i).name);
  return dims;
}

int64_t Step::dim(size_t input, int64_t axis) const {
  const TensorInfo& info = this->input(input);
  const int64_t dim = info.dims[static_cast<size_t>(this->axis(axis, info.rank()))];
  if (dim < 0) refuse("dim {} of tensor '{}' is free", axis, info.name);
  return dim;
}

int64_t Step::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) reject("axis {} is out of range for rank {}", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<Name> Step::addAll(const char* op, std::vector<Name> inputs, size_t outputs,
                               Attributes attributes, const char* domain) {
  onnx_io::Node node;
  node.name = name_;
  node.opType = op;
  node.domain = domain;
  node.inputs = std::move(inputs);
  for (size_t i = 0; i < outputs; ++i)
    node.outputs.push_back(writer_.model().unique(name_ + "/" + op));
  node.attributes = std::move(attributes);
  writer_.graph().nodes.push_back(std::move(node));
  return writer_.graph().nodes.back().outputs;
}

Name Step::add(const char* op, std::vector<Name> inputs, Attributes attributes) {
  return addAll(op, std::move(inputs), 1, std::move(attributes))[0];
}

Name Step::constant(Tensor tensor) {
  const std::string wanted = name_.substr(writer_.prefix().size()) + "/constant";
  return writer_.constant(wanted, std::move(tensor));
}

Name Step::constant(const Ints& values) {
  return constant(Tensor::of<int64_t>(Elem::i64_, {static_cast<int64_t>(values.size())}, values));
}

Name Step::number(double value, Elem elem) {
  if (elem == Elem::f32_) return constant(Tensor::of<float>(elem, {}, {static_cast<float>(value)}));
  if (isInteger(elem)) {
    const auto whole = static_cast<int64_t>(value);
    return cast(constant(Tensor::of<int64_t>(Elem::i64_, {}, {whole})), elem);
  }
  return cast(constant(Tensor::of<double>(Elem::f64_, {}, {value})), elem);
}

Name Step::cast(const Name& x, Elem to) {
  return add("Cast", {x}, {{"to", static_cast<int64_t>(elemToOnnx(to))}});
}

Name Step::transpose(const Name& x, const Ints& perm) {
  return add("Transpose", {x}, {{"perm", perm}});
}

Name Step::reshape(const Name& x, const Ints& shape) {
  return add("Reshape", {x, constant(shape)}, {{"allowzero", int64_t(1)}});
}

Name Step::unsqueeze(const Name& x, const Ints& axes) {
  return add("Unsqueeze", {x, constant(axes)});
}

Name Step::squeeze(const Name& x, const Ints& axes) { return add("Squeeze", {x, constant(axes)}); }

Name Step::activate(const Name& x, schema::ActivationFunctionType activation) {
  const Elem elem = output(0).isQuantized() ? Elem::f32_ : output(0).elem;
  switch (activation) {
  case schema::ActivationFunctionType_NONE: return x;
  case schema::ActivationFunctionType_RELU:
    if (isFloat(elem)) return add("Relu", {x});
    return add("Max", {x, number(0, elem)});
  case schema::ActivationFunctionType_RELU6:
    return add("Clip", {x, number(0, elem), number(6, elem)});
  case schema::ActivationFunctionType_RELU_N1_TO_1:
    return add("Clip", {x, number(-1, elem), number(1, elem)});
  case schema::ActivationFunctionType_TANH: return add("Tanh", {x});
  default: refuse("activation {} is not supported", static_cast<int>(activation));
  }
}

void Step::set(size_t output, const Name& y) {
  if (!wants(output)) return;
  const TensorInfo& info = this->output(output);
  if (!info.isQuantized()) return setStored(output, y);
  const std::vector<Name> of = writer_.quantization(op_.outputs[output]);
  Attributes attributes;
  if (info.quantization.scales.size() > 1)
    attributes["axis"] = static_cast<int64_t>(info.quantization.axis);
  setStored(output, add("QuantizeLinear", {y, of[0], of[1]}, std::move(attributes)));
}

void Step::setStored(size_t output, const Name& y) {
  if (!wants(output)) return;
  const Name name = writer_.produce(op_.outputs[output]);
  std::vector<onnx_io::Node>& nodes = writer_.graph().nodes;
  const std::span<onnx_io::Node> own(nodes.data() + first_, nodes.size() - first_);
  for (onnx_io::Node& node : own) {
    const auto made = std::ranges::find(node.outputs, y);
    if (made == node.outputs.end() || !y.starts_with(name_ + "/")) continue;
    // It gets the tensor's name, wherever the operator reads it itself.
    *made = name;
    writer_.noteName(y, name);
    for (onnx_io::Node& reader : own) std::ranges::replace(reader.inputs, y, name);
    return;
  }
  onnx_io::Node node;
  node.name = name_;
  node.opType = "Identity";
  node.inputs = {y};
  node.outputs = {name};
  nodes.push_back(std::move(node));
}

} // namespace candela::import::tflite
