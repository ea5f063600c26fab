#pragma once

#include "candela/cdl.h"
#include "core/compiler/graph/graph.h"

/// The op `loop`: a Graph of its own, its body, that runs several times.
///
/// Operands are what is carried, as the first run gets it; what is scanned, with the trips along
/// dim 0; and what the body reads of the values around it (captured). The body's inputs are the
/// same in this order: carried, one slice of each scanned operand (without dim 0), captured. Its
/// outputs are what goes on to the next run, of the carried types, then one slice of each scanned
/// result. The node's results are what the last run carries on, then the scanned results with the
/// trips along dim 0.
///
///   %h, %ys = loop %h0, %xs, %w {trips = 5, carried = 1, scanned = 1} : f32[4], f32[5,4]
///     body(%h: f32[4], %x: f32[4], %w: f32[4]) -> (%next: f32[4], %next: f32[4]) {
///       %wx = mul %w, %x : f32[4]
///       %next = add %wx, %h : f32[4]
///     }
namespace candela::graph {

/// How deep loops may stand in each other: as deep as in a Program.
inline constexpr int kMaxNesting = CDL_MAX_LOOP_NESTING;

struct LoopForm {
  int64_t trips = 1;
  size_t carried = 0, scanned = 0;
  /// per scanned operand, then per scanned result; empty: all run forward
  std::vector<int64_t> backward;

  /// Of scanned operand or result i, counted over both.
  bool runsBackward(size_t i) const { return i < backward.size() && backward[i] != 0; }
};
/// Of a loop that was verified.
LoopForm loopForm(const Node& node);

/// Appends a loop (or inserts it before `before`) around a body, which it takes over. Failure: what
/// verify() would say of it; the graph is unchanged then.
Result<Node*> addLoop(Graph& graph, const LoopForm& form, std::vector<Value*> operands, Graph body,
                      Provenance provenance = {}, Node* before = nullptr);

/// A copy under the same names, bodies copied too, payloads shared.
Graph clone(const Graph& graph);
/// The bodies of all nodes, inner ones first, then the graph itself.
std::vector<Graph*> nestedGraphs(Graph& graph);
std::vector<const Graph*> nestedGraphs(const Graph& graph);

/// How many bodies of loops stand in each other in a node: 0 when it has none.
int nestingDepth(const Node& node);
/// What verify() asks of a node's body beside what inference sees.
Status verifyBody(const Node& node);

} // namespace candela::graph
