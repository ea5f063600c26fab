#pragma once

#include <gmock/gmock.h>

#include "tests/unit/compiler/import/model_maker.h"
#include "tests/unit/compiler/import/tensor_check.h"

/// Models of one operator, and what the reference makes of them.
namespace candela::test {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

inline Tensor f32(Shape dims, const Floats& values) {
  return Tensor::of<float>(Elem::f32_, std::move(dims), values);
}
inline Tensor u8(Shape dims, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(Elem::u8_, std::move(dims), values);
}
inline Tensor f16(Shape dims, const std::vector<uint16_t>& bits) {
  return Tensor::of<uint16_t>(Elem::f16_, std::move(dims), bits);
}
inline Tensor i64(Shape dims, const Ints& values) {
  return Tensor::of<int64_t>(Elem::i64_, std::move(dims), values);
}
inline Tensor boolean(Shape dims, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(Elem::bool_, std::move(dims), values);
}

/// One operator on inputs x0, x1, ...; those that are `constant` are initializers.
class Op {
public:
  Op(int opset, std::string opType) : maker_(opset), opType_(std::move(opType)) {}
  /// Of another domain.
  Op(const std::string& domain, std::string opType) : Op(18, std::move(opType)) {
    maker_.setOpset(domain, 1);
    domain_ = domain;
  }
  Op& in(const Tensor& tensor) {
    const std::string name = fmt::format("x{}", names_.size());
    names_.push_back(name);
    maker_.input(name, {tensor.dims.begin(), tensor.dims.end()}, elemToOnnx(tensor.elem));
    inputs_.push_back(tensor);
    return *this;
  }
  Op& constant(const Tensor& tensor) {
    const std::string name = fmt::format("x{}", names_.size());
    names_.push_back(name);
    TensorProto& proto = *maker_.proto.mutable_graph()->add_initializer();
    proto.set_name(name);
    proto.set_data_type(elemToOnnx(tensor.elem));
    for (int64_t dim : tensor.dims) proto.add_dims(dim);
    proto.set_raw_data(tensor.bytes.data(), tensor.sizeBytes());
    return *this;
  }
  Op& absent(int count = 1) {
    while (count-- > 0) names_.emplace_back();
    return *this;
  }
  template <typename T> Op& attr(const std::string& name, const T& value) {
    setAttr(attributes_, name, value);
    return *this;
  }
  Op& outputs(int count) {
    outputs_ = count;
    return *this;
  }
  Result<graph::Graph> import() {
    ModelMaker maker = maker_;
    std::vector<std::string> outputs;
    for (int i = 0; i < outputs_; ++i) {
      outputs.push_back(fmt::format("y{}", i));
      maker.output(outputs.back());
    }
    auto& node = maker.node(opType_, names_, outputs, "op");
    node.set_domain(domain_);
    *node.mutable_attribute() = attributes_.attribute();
    return maker.import();
  }
  /// The results, or the failure without its prefix.
  Result<std::vector<Tensor>> run() {
    const auto graph = import();
    if (!graph) {
      const std::string prefix = fmt::format("m.onnx: node 'op' ({}): ", opType_),
                        message = graph.status().message();
      return Status(graph.status().code(),
                    message.starts_with(prefix) ? message.substr(prefix.size()) : message);
    }
    if (const Status status = graph::verify(*graph); !status) return status;
    return reference::run(*graph, inputs_);
  }

  std::string refusal() { return messageOf(run()); }

private:
  ModelMaker maker_;
  std::string opType_, domain_;
  std::vector<std::string> names_;
  std::vector<Tensor> inputs_;
  onnx::NodeProto attributes_;
  int outputs_ = 1;
};

inline void expect(Op op, const Tensor& want) {
  const auto results = op.run();
  ASSERT_TRUE(results) << messageOf(results);
  EXPECT_EQ(difference(results->at(0), want), "");
}
inline std::string refusal(Op op) { return op.refusal(); }
inline Code codeOf(Op op) { return op.run().status().code(); }

} // namespace candela::test
