#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/support/tensor.h"

/// An ONNX file as plain structs: the only room that sees ONNX's protobuf. Tensors share the mapped
/// file's or the external file's bytes where alignment allows.
namespace candela::import::onnx_io {

struct Graph;

/// The value of an attribute, by AttributeProto.type. Sequences, optionals and sparse tensors come
/// as Unsupported.
struct UnsupportedAttribute {
  std::string what;
};
using Attribute =
    std::variant<int64_t, float, std::string, Tensor, std::shared_ptr<Graph>, std::vector<int64_t>,
                 std::vector<float>, std::vector<std::string>, UnsupportedAttribute>;

struct Node {
  std::string name, opType, domain, overload; ///< domain "" is ai.onnx
  std::vector<std::string> inputs, outputs;   ///< "" is absent
  std::map<std::string, Attribute> attributes;
  /// in function bodies: attribute -> the function's attribute
  std::map<std::string, std::string> attributeRefs;
};

/// dims: a value, or a name, or neither (unknown).
struct Dim {
  int64_t value = -1;
  std::string name;
};
struct ValueInfo {
  std::string name;
  Elem elem = Elem::none; ///< none: not a tensor of ours; `what` says what it is
  std::string what;
  bool hasShape = false;
  std::vector<Dim> dims;
};

struct Initializer {
  std::string name;
  Tensor tensor;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<Initializer> initializers;
  std::vector<ValueInfo> inputs, outputs, values;
};

struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::map<std::string, Attribute> attributeDefaults;
  std::map<std::string, int64_t> opsets;
  std::vector<Node> nodes;
};

/// Key of a model's metadata_props.
inline constexpr const char* kIntegerRows = "candela.integer_rows";

struct Model {
  std::string path;   ///< for messages
  bool isOnnx = true; ///< the file there is one of ONNX, else of a format that was written as nodes
  int64_t irVersion = 0;
  std::string producer;
  /// Softmax and LayerNorm between QuantizeLinear and DequantizeLinear are meant as functions of
  /// integers: the metadata property kIntegerRows is "1".
  bool integerRows = false;
  std::map<std::string, int64_t> opsets; ///< domain -> version
  Graph graph;
  std::vector<Function> functions;
};

/// Failures name the file and the tensor or node: malformed protobuf, external data that is absent,
/// absolute, with "..", behind a symlink that leaves the folder, or shorter than its tensor;
/// strings and other types that we do not have.
Result<Model> readModel(const std::string& path);
/// The same of a file's content; external data lies beside `path`, which need not exist.
Result<Model> parseModel(const Bytes& content, const std::string& path);

/// A TensorProto file (.pb), as the node tests hold them. Failure: `unsupported` for sequences,
/// optionals and strings.
Result<Tensor> readTensor(const std::string& path);

} // namespace candela::import::onnx_io
