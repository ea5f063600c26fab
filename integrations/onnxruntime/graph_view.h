/// A graph of ONNX Runtime, read once: names, types and edges without further calls.
#ifndef CANDELA_INTEGRATIONS_ONNXRUNTIME_GRAPH_VIEW_H
#define CANDELA_INTEGRATIONS_ONNXRUNTIME_GRAPH_VIEW_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "integrations/onnxruntime/api.h"

namespace candela::ort {

/// A dim of a declared shape.
struct Dim {
  int64_t size = -1; ///< -1: only a run knows
  std::string name;  ///< of an open dim; empty where it has none
};

struct Value {
  bool isTensor = false;
  abi::ElementType type = abi::ElementType::Undefined;
  bool isRanked = false;
  std::vector<Dim> dims;
  const abi::OrtValue* constant = nullptr; ///< of a constant initializer; owned by the graph
  bool isOuter = false;                    ///< of a graph around the one that was read

  bool isStatic() const;
};

struct NodeView {
  const abi::OrtNode* node = nullptr;
  std::string name; ///< unique in its graph
  std::string op;
  std::string domain;
  std::vector<std::string> inputs;   ///< by position; empty: absent
  std::vector<std::string> outputs;  ///< by position; empty: absent
  std::vector<std::string> captured; ///< what its subgraphs read of this graph
};

/// Valid as long as the graph that it was read from.
struct GraphView {
  std::string modelPath; ///< empty: the model came from memory
  int64_t irVersion = 0;
  std::map<std::string, int64_t> opsets; ///< by domain
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> initializers;
  std::vector<NodeView> nodes; ///< in an order in which producers come first
  std::map<std::string, Value> values;

  const Value& value(const std::string& name) const;
};

/// Throws Failure where ONNX Runtime refuses to answer.
GraphView readGraph(const Api& api, const abi::OrtGraph* graph);
NodeView readNode(const Api& api, const abi::OrtNode* node, std::map<std::string, Value>& values);

/// "Conv 'stem'", for messages.
std::string textOf(const NodeView& node);
/// A tensor's shape. Throws Failure.
std::vector<int64_t> shapeOf(const Api& api, const abi::OrtValue* value);

} // namespace candela::ort

#endif
