#pragma once

#include "core/compiler/import/dynamic/control_flow_importer.h"
#include "core/compiler/import/dynamic/sequence_importer.h"
#include "core/compiler/import/import_context.h"

namespace candela::import {

struct TopologicalOrder;

/// Imports the nodes of a graph, and of the functions and graphs that they hold.
class GraphImporter {
public:
  explicit GraphImporter(ImportContext& context);
  GraphImporter(const GraphImporter&) = delete;
  GraphImporter& operator=(const GraphImporter&) = delete;

  /// Reports an opset that no operator is known of.
  bool checkOpset(const Opsets& opsets, const std::string& who);
  void addNodes(const Place& place, const std::vector<onnx_io::Node>& nodes);
  /// `known`: what NodeContext::contents() gives.
  void addNode(const Place& place, const onnx_io::Node& node, const std::string& name,
               NodeContext::Contents known = {});
  /// Adds nodes and initializers of a nested graph. Gives what its outputs stand for.
  std::vector<Slot> addGraph(const Place& place, const onnx_io::Graph& graph);
  /// The graph that an attribute of the node holds.
  Result<const onnx_io::Graph*> graphOf(const onnx_io::Node& node, const char* attribute) const;

  void define(Scope& scope, const std::string& name, Slot slot, const std::string& who);
  void addConstant(Frame& frame, Scope& scope, const std::string& name, const Tensor& tensor,
                   const char* role);
  /// Compares an output with what the model declares of it, unless that may be another writer's
  /// count.
  Status checkOutput(const onnx_io::ValueInfo& declared, const graph::TensorType& inferred,
                     const std::map<std::string, int64_t>& named) const;

  /// Adds a node of the default domain that the model does not have. Gives its only output.
  Slot addOwnNode(const Place& place, const std::string& name, const char* opType,
                  std::vector<Slot> inputs,
                  std::map<std::string, onnx_io::Attribute> attributes = {});
  /// The items along a new dim 0.
  Slot addStack(const Place& place, const std::string& name, std::vector<Slot> items);

private:
  /// Reports a cycle and defines what hangs on it, which has no types, but may have more to report.
  void addStuck(const Place& place, const std::vector<onnx_io::Node>& nodes,
                const TopologicalOrder& order);
  Slot standIn(const std::string& name);
  Status inlineCall(const onnx_io::Node& node, const std::string& name,
                    const onnx_io::Function& function, const std::vector<Slot>& inputs,
                    std::vector<Slot>& outputs, Frame& frame);
  Status addOperator(const Place& place, const onnx_io::Node& node, const std::string& name,
                     const std::vector<Slot>& inputs, std::vector<Slot>& outputs,
                     NodeContext::Contents known = {});
  /// Adds an operator whose inputs are all typed.
  Status addTyped(const Place& place, const OperatorImporter& importer, const onnx_io::Node& node,
                  const std::string& name, const std::vector<Slot>& inputs,
                  std::vector<Slot>& outputs, NodeContext::Contents known);
  /// Reports what is wrong with the types that a node got, whose outputs stay poisoned; success.
  Status reportTypes(const Status& status, const std::string& name, const onnx_io::Node& node);

  ImportContext& context_;
  ControlFlowImporter controlFlow_;
  SequenceImporter sequences_;
  bool disputed_ = false; ///< NodeContext::disputeExtents()
  /// the graph's inner values
  std::unordered_map<std::string_view, const onnx_io::ValueInfo*> declared_;
};

} // namespace candela::import
