#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/compiler/graph/graph.h"

namespace candela::import {

using graph::Attrs, graph::OpKind, graph::Value;

/// What holds for all nodes of a model.
struct BuilderOptions {
  uint64_t foldLimitBytes; ///< of what folding makes, where that is more than it takes
  /// Softmax and LayerNorm between integers are meant as functions of integers.
  bool integerRows = false;
};

/// Adds nodes to the Graph on behalf of one ONNX node at a time, and folds those that shape
/// arithmetic needs: a node on constants becomes a constant unless that would make the model's
/// bytes grow.
class Builder {
public:
  Builder(graph::Graph& graph, BuilderOptions options) : graph_(graph), options_(options) {}

  graph::Graph& graph() { return graph_; }
  /// What follows comes from this ONNX node.
  void begin(const std::string& nodeName);
  /// Whether the value was made since begin().
  bool isFresh(const Value* value) const;

  /// The first `resultCount` results. Failures as Graph::addNode gives them, without the op's and
  /// the node's name.
  Result<std::vector<Value*>> addAll(OpKind kind, std::vector<Value*> operands, Attrs attrs,
                                     int resultCount);
  /// The only result. An operand may be one that is made in place: its failure is passed on.
  Result<Value*> add(OpKind kind, const std::vector<Result<Value*>>& operands, Attrs attrs = {});

  Value* constant(Tensor tensor);
  Value* constant(Payload payload, const Shape& shape);
  /// A scalar of any element type that arithmetic is defined on, rounded as `cast` rounds.
  Result<Value*> scalar(double value, Elem elem);
  /// The operand itself when it has that type.
  Result<Value*> cast(Value* value, Elem to);
  /// The operand itself when it has that shape; constants stay constants whatever their size.
  Result<Value*> reshape(Value* value, const Shape& shape);
  /// In two dims: those before the axis, and the others.
  Result<Value*> flatten(Value* value, int64_t axis);
  Result<Value*> expand(Value* value, const Shape& shape);

  /// Integer elements of a constant; nullopt when it is none, is not of integers or has more than
  /// 2^16.
  static std::optional<std::vector<int64_t>> knownInts(const Value* value);

private:
  Value* fresh(Value* value);
  bool isWorthFolding(const graph::Node& node) const;
  Result<std::vector<Value*>> fold(graph::Node* node);
  /// A movement of elements that the op does not store, such as packed ones: in a type that holds
  /// them.
  Result<std::vector<Value*>> addWidened(OpKind kind, std::vector<Value*> operands, Attrs attrs);

  graph::Graph& graph_;
  BuilderOptions options_;
  graph::Provenance provenance_;
  std::vector<const Value*> fresh_;
};

} // namespace candela::import
