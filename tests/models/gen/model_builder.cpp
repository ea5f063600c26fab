//===- model_builder.cpp - Builds an ONNX model node by node --------------===//
#include "tests/models/gen/model_builder.h"

#include "tests/models/gen/weights.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

static_assert(std::endian::native == std::endian::little, "ONNX's raw_data is little-endian");

namespace candela::gen {

QuantizedWeights quantizeWeights(const std::vector<float>& weights, size_t slices) {
  assert(slices > 0 && weights.size() % slices == 0);
  QuantizedWeights result{std::vector<int8_t>(weights.size()), std::vector<float>(slices)};
  const size_t length = weights.size() / slices;
  for (size_t slice = 0; slice < slices; ++slice) {
    const float* in = weights.data() + slice * length;
    float largest = 0;
    for (size_t i = 0; i < length; ++i) largest = std::max(largest, std::fabs(in[i]));
    const float scale = largest > 0 ? largest / 127.0f : 1.0f;
    result.scales[slice] = scale;
    for (size_t i = 0; i < length; ++i) {
      const float rounded = std::clamp(std::nearbyint(in[i] / scale), -127.0f, 127.0f);
      result.values[slice * length + i] = static_cast<int8_t>(rounded);
    }
  }
  return result;
}

template <typename T>
Value ModelBuilder::initRaw(onnx::TensorProto::DataType type, const Shape& shape,
                            const std::vector<T>& values) {
  onnx::TensorProto& tensor = *model_.mutable_graph()->add_initializer();
  [[maybe_unused]] int64_t count = 1;
  for (int64_t dim : shape) {
    tensor.add_dims(dim);
    count *= dim;
  }
  assert(count == static_cast<int64_t>(values.size()));
  tensor.set_data_type(type);
  tensor.set_name(nextName("w"));
  tensor.set_raw_data(values.data(), values.size() * sizeof(T));
  return {tensor.name()};
}

Value ModelBuilder::init(const Shape& shape, const std::vector<float>& values) {
  return initRaw(onnx::TensorProto::FLOAT, shape, values);
}
Value ModelBuilder::init(const Shape& shape, const std::vector<int8_t>& values) {
  return initRaw(onnx::TensorProto::INT8, shape, values);
}
Value ModelBuilder::init(const Shape& shape, const std::vector<uint8_t>& values) {
  return initRaw(onnx::TensorProto::UINT8, shape, values);
}
Value ModelBuilder::init(const Shape& shape, const std::vector<int32_t>& values) {
  return initRaw(onnx::TensorProto::INT32, shape, values);
}
Value ModelBuilder::init(const Shape& shape, const std::vector<int64_t>& values) {
  return initRaw(onnx::TensorProto::INT64, shape, values);
}

Value ModelBuilder::op(const std::string& type, const std::vector<Value>& inputs,
                       const std::vector<Attribute>& attributes) {
  onnx::NodeProto& node = *model_.mutable_graph()->add_node();
  for (const Value& input : inputs) node.add_input(input.name);
  node.add_output(nextName("t"));
  node.set_name(nextName(type));
  node.set_op_type(type);
  for (const Attribute& attribute : attributes) {
    onnx::AttributeProto& proto = *node.add_attribute();
    proto.set_name(attribute.name);
    if (const auto* i = std::get_if<int64_t>(&attribute.value)) {
      proto.set_type(onnx::AttributeProto::INT);
      proto.set_i(*i);
    } else if (const auto* f = std::get_if<float>(&attribute.value)) {
      proto.set_type(onnx::AttributeProto::FLOAT);
      proto.set_f(*f);
    } else if (const auto* s = std::get_if<std::string>(&attribute.value)) {
      proto.set_type(onnx::AttributeProto::STRING);
      proto.set_s(*s);
    } else {
      proto.set_type(onnx::AttributeProto::INTS);
      for (int64_t element : std::get<Shape>(attribute.value)) proto.add_ints(element);
    }
  }
  return {node.output(0)};
}

Value ModelBuilder::quantizeDequantize(const Value& x, float scale, uint8_t zeroPoint) {
  const Value scaleValue = scalar(scale);
  const Value zero = init({}, std::vector<uint8_t>{zeroPoint});
  const Value quantized = op("QuantizeLinear", {x, scaleValue, zero});
  Value result = op("DequantizeLinear", {quantized, scaleValue, zero});
  result.scale = scale;
  return result;
}

std::vector<float> ModelBuilder::random(size_t count, double deviation) {
  parameters_ += static_cast<int64_t>(count);
  return bellWeights(seed_, nextStream_++, count, deviation);
}

static void declare(onnx::ValueInfoProto& info, const std::string& name, const Shape& shape) {
  info.set_name(name);
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (int64_t dim : shape) {
    auto* declared = type.mutable_shape()->add_dim();
    if (dim < 0)
      declared->set_dim_param("?");
    else
      declared->set_dim_value(dim);
  }
}

onnx::ModelProto ModelBuilder::finish(const std::string& name, const Shape& inputShape,
                                      const Shape& outputShape, int64_t opset) {
  onnx::GraphProto& graph = *model_.mutable_graph();
  graph.set_name(name);
  declare(*graph.add_input(), "x", inputShape);
  declare(*graph.add_output(), "out", outputShape);
  graph.mutable_node(graph.node_size() - 1)->set_output(0, "out");
  model_.set_ir_version(8);
  model_.set_producer_name("candela-gen-models");
  model_.add_opset_import()->set_version(opset);
  return std::move(model_);
}

} // namespace candela::gen
