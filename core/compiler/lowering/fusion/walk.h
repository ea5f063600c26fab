#pragma once

#include <map>

#include "core/compiler/capabilities/target.h"
#include "core/compiler/graph/graph.h"
#include "core/compiler/lowering/fusion/expression.h"

namespace candela::lowering::fusion {

using Nodes = std::set<const graph::Node*>;

/// What the steps of fusion share: one graph, walked from its end. Nodes that fusion made itself
/// have no position, and are never taken again.
class FuseWalk {
public:
  FuseWalk(graph::Graph& graph, const capabilities::Target& target);

protected:
  bool takes(const graph::Node& node) const;
  /// Somebody reads it, and everybody who does is inside.
  bool isReadOnlyIn(const graph::Value& value, const Nodes& inside) const;
  /// A reshape before `at`.
  Result<graph::Value*> alias(graph::Value* value, const Shape& shape,
                              const graph::Provenance& provenance, graph::Node& at);
  /// The node of an expression, before `root`.
  Result<graph::Node*> add(graph::Node& root, const Expression& expression,
                           const graph::Provenance& provenance);
  /// A node that was made for a question, and the reshapes before it.
  void eraseNew(graph::Node& expr);
  void eraseAll(const Nodes& inside);
  graph::Provenance provenanceOf(const Nodes& inside) const;
  /// Rising. Nodes that fusion made itself are in no such set.
  std::vector<size_t> positionsOf(const Nodes& inside) const;

  static constexpr size_t kMaxInside = 64;

  graph::Graph& graph_;
  const capabilities::Target& target_;
  std::vector<graph::Node*> order_;
  /// in the graph as it was, of the nodes of then that are left
  std::map<const graph::Node*, size_t> position_;
};

/// The trees that only a REDUCE reads become prologues, where the target takes them with the
/// epilogue that is there. Returns how many nodes others took in.
Result<int> fusePrologues(graph::Graph& graph, const capabilities::Target& target);

} // namespace candela::lowering::fusion
