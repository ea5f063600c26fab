#pragma once

#include <span>

#include "core/compiler/graph/graph.h"

/// Reverse mode on the Graph: gradients are nodes like any others.
namespace candela::differentiate {

/// What a value counts in the sum that is differentiated: sum(of * weight).
struct Cotangent {
  graph::Value* of = nullptr;     ///< of a float type
  graph::Value* weight = nullptr; ///< of the same type; null: 1, of one element
};

/// Of one of the values that were asked for.
struct Gradient {
  graph::Value* value = nullptr; ///< of its type
  bool isReached = false;        ///< false: nothing depends on it, and the value is zero
};

/// Appends to the graph what computes the gradient of sum(of * weight), over all cotangents, with
/// respect to each value of `wrt`: inputs, constants or results, of float types. What integers and
/// truth values depend on gets nothing through them. A gradient may be a value that was there
/// before, such as a weight. Where a rule needs more results of a node (a maximum's place), another
/// node takes its place and uses; the old one stays, for dead-code to drop.
/// Failure: invalid_argument for types that do not fit; unsupported, with node, op and reason,
/// where an op has no gradient.
Result<std::vector<Gradient>> differentiate(graph::Graph& graph, std::span<const Cotangent> of,
                                            std::span<graph::Value* const> wrt);

/// The graph with its gradients, by names: for each float input x an output d_x. What is
/// differentiated is the only float output where that has one element, else the sum of all float
/// outputs y, each times an input d_y that is added.
/// Failures: those of differentiate(); invalid_argument without float inputs or outputs.
Status differentiateGraph(graph::Graph& graph);

/// Why the op has no gradient, for messages and tables; empty: it has a rule.
std::string_view reasonWithout(graph::OpKind kind);

} // namespace candela::differentiate
