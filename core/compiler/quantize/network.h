#pragma once

#include <map>
#include <set>
#include <string>

#include "core/compiler/graph/types.h"
#include "core/compiler/import/onnx_io/model.h"
#include "core/compiler/quantize/data.h"

namespace candela::quantize {

/// The main graph of an ONNX model in a form that can be rewritten: nodes in order, constants by
/// name, batch norms folded. Names stay those of the file.
class Network {
public:
  /// Failure: invalid_argument where the model is quantized already.
  static Result<Network> read(const std::string& path);

  import::onnx_io::Model model;
  /// Of values that the model computes or is given, where they are tensors; see setTypes.
  std::map<std::string, graph::TensorType> types;

  /// Inputs that no initializer has a value for.
  std::vector<Port> ports() const;
  /// Null where the value is no constant.
  const Tensor* constant(const std::string& name) const;
  /// The node that gives the value; -1: none.
  int producer(const std::string& value) const;
  /// The nodes that read it, once for each use.
  const std::vector<int>& users(const std::string& value) const;
  bool isOutput(const std::string& value) const { return outputs_.count(value) > 0; }
  /// Whether it is computed or given, and f32.
  bool isReal(const std::string& value) const;

  const import::onnx_io::Node& node(int index) const {
    return model.graph.nodes[static_cast<size_t>(index)];
  }
  /// The name that a person knows the node by.
  std::string nodeName(int index) const;
  int64_t opset() const;

  /// Adds a constant of a new name that begins like this one; returns it.
  std::string addConstant(const std::string& hint, Tensor tensor);
  /// A name that nothing has yet, and that nothing else gets.
  std::string takeName(const std::string& hint);
  /// After nodes or initializers changed.
  void index();
  /// Takes these nodes out, by their index.
  void removeNodes(const std::set<int>& gone);
  /// Drops constants that nothing reads.
  void dropUnused();

private:
  void writeSumsAsAdditions();
  void foldBatchNorms();
  bool foldBatchNorm(import::onnx_io::Node& conv, const import::onnx_io::Node& norm);
  std::map<std::string, size_t> initializers_;
  std::map<std::string, int> producers_;
  std::map<std::string, std::vector<int>> users_;
  std::set<std::string> outputs_, names_;
};

/// Of structure and weights: a profile is of one such.
std::string modelFingerprint(const Network& network);
/// The attribute, or what is there without it.
template <typename T>
T attributeOf(const import::onnx_io::Node& node, const std::string& name, T otherwise) {
  const auto at = node.attributes.find(name);
  if (at == node.attributes.end()) return otherwise;
  const T* value = std::get_if<T>(&at->second);
  return value ? *value : otherwise;
}
/// Raises the model's opset where what is written needs it. Failure: unsupported, with the node
/// whose meaning would change.
Status raiseOpset(Network& network, int64_t opset);

} // namespace candela::quantize
