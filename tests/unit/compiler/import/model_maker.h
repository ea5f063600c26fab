#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/compiler/import/import.h"

/// Small ONNX models for tests, written with ONNX's own protobuf.
namespace candela::test {

using onnx::TensorProto;

/// A folder of its own for the running test, empty at first.
inline std::string scratchFolder() {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const auto folder =
      std::filesystem::path(testing::TempDir()) /
      fmt::format("candela_{}_{}_{}", info->test_suite_name(), info->name(), getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

inline void writeBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline void setAttr(onnx::NodeProto& node, const std::string& name, int64_t value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INT);
  attr->set_i(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name, int value) {
  setAttr(node, name, int64_t(value));
}
inline void setAttr(onnx::NodeProto& node, const std::string& name, float value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::FLOAT);
  attr->set_f(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name, const std::string& value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::STRING);
  attr->set_s(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name,
                    const std::vector<int64_t>& values) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attr->add_ints(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name,
                    const std::vector<float>& values) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::FLOATS);
  for (float value : values) attr->add_floats(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name,
                    const std::vector<std::string>& values) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attr->add_strings(value);
}
inline void setAttr(onnx::NodeProto& node, const std::string& name, const TensorProto& value) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(onnx::AttributeProto::TENSOR);
  *attr->mutable_t() = value;
}
/// In a function's body: the function's attribute `reference`.
inline void setAttrRef(onnx::NodeProto& node, const std::string& name, const std::string& reference,
                       onnx::AttributeProto::AttributeType type) {
  auto* attr = node.add_attribute();
  attr->set_name(name);
  attr->set_type(type);
  attr->set_ref_attr_name(reference);
}

inline TensorProto tensorProto(const std::string& name, std::vector<int64_t> dims,
                               const std::vector<float>& values) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(TensorProto::FLOAT);
  for (int64_t dim : dims) proto.add_dims(dim);
  for (float value : values) proto.add_float_data(value);
  return proto;
}
inline TensorProto tensorProto(const std::string& name, std::vector<int64_t> dims,
                               const std::vector<int64_t>& values) {
  TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(TensorProto::INT64);
  for (int64_t dim : dims) proto.add_dims(dim);
  for (int64_t value : values) proto.add_int64_data(value);
  return proto;
}

/// A dim as the model declares it: a value, a name, or neither ("").
struct DimSpec {
  DimSpec(int64_t value) : value(value) {}
  DimSpec(int value) : value(value) {}
  DimSpec(const char* name) : name(name) {}
  int64_t value = -1;
  std::string name;
};

inline void fillValueInfo(onnx::ValueInfoProto& info, const std::string& name,
                          const std::vector<DimSpec>& dims, int type) {
  info.set_name(name);
  auto* tensor = info.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(type);
  tensor->mutable_shape();
  for (const DimSpec& dim : dims) {
    auto* target = tensor->mutable_shape()->add_dim();
    if (dim.value >= 0)
      target->set_dim_value(dim.value);
    else if (!dim.name.empty())
      target->set_dim_param(dim.name);
  }
}

template <typename Container>
onnx::NodeProto& addNode(Container& container, const std::string& opType,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, const std::string& name = "") {
  onnx::NodeProto* node = container.add_node();
  node->set_op_type(opType);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return *node;
}

class ModelMaker {
public:
  explicit ModelMaker(int opset = 17) {
    proto.set_ir_version(8);
    proto.mutable_graph()->set_name("g");
    setOpset("", opset);
  }
  void setOpset(const std::string& domain, int version) {
    auto* import = proto.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
  }
  ModelMaker& input(const std::string& name, const std::vector<DimSpec>& dims,
                    int type = TensorProto::FLOAT) {
    fillValueInfo(*proto.mutable_graph()->add_input(), name, dims, type);
    return *this;
  }
  ModelMaker& output(const std::string& name, const std::vector<DimSpec>& dims,
                     int type = TensorProto::FLOAT) {
    fillValueInfo(*proto.mutable_graph()->add_output(), name, dims, type);
    return *this;
  }
  /// An output of which the model says nothing but the name.
  ModelMaker& output(const std::string& name) {
    proto.mutable_graph()->add_output()->set_name(name);
    return *this;
  }
  onnx::NodeProto& node(const std::string& opType, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, const std::string& name = "") {
    return addNode(*proto.mutable_graph(), opType, inputs, outputs, name);
  }
  template <typename T>
  ModelMaker& initializer(const std::string& name, std::vector<int64_t> dims,
                          const std::vector<T>& values) {
    *proto.mutable_graph()->add_initializer() = tensorProto(name, std::move(dims), values);
    return *this;
  }
  std::string write(const std::string& path) const {
    writeBytes(path, proto.SerializeAsString());
    return path;
  }
  /// Through a file, as a user does it. Messages begin with "m.onnx" instead of the scratch path.
  Result<graph::Graph> import(const import::ImportOptions& options = {}) const {
    const std::string folder = scratchFolder();
    auto model = import::onnx_io::readModel(write(folder + "/m.onnx"));
    std::filesystem::remove_all(folder);
    if (!model) return model.status();
    model->path = "m.onnx";
    return import::importModel(*model, options);
  }

  onnx::ModelProto proto;
};

/// The message of a failure, or "ok".
template <typename T> std::string messageOf(const Result<T>& result) {
  return result ? "ok" : result.status().message();
}

} // namespace candela::test
