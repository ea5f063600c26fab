#pragma once

#include "core/compiler/graph/graph.h"

/// What several passes need to look at constants and to replace nodes.
namespace candela::graph::passes {

#define PASS(name, function, effect, summary, values) Result<int> function(graph::Graph& graph);
#include "core/compiler/graph/passes/passes.inc"
#include "core/compiler/graph/passes/requested_passes.inc"
#undef PASS

bool isPlainConstant(const Value* value);

/// The bits that every element of a constant has, zero-extended; nullopt when they differ, or there
/// is no element.
std::optional<uint64_t> splatBits(const Value* value);
/// The number that every element of a float constant has.
std::optional<double> splatReal(const Value* value);
/// Whether every element of a constant is this number, which its type represents exactly; 0 and -0
/// differ.
bool isSplatOf(const Value* value, double number);

/// The elements of a plain constant; nullopt for what is none, or is too large for the oracle.
std::optional<std::vector<double>> numbersOf(const Value* value);
/// Rounded to the element type once.
Result<Tensor> tensorOf(Elem elem, Shape dims, const std::vector<double>& values);

/// Half of this, relative to a number, is the most that rounding to the float type changes it:
/// 2^-10 for f16.
double precisionOf(Elem elem);
/// Whether the float type has the number with all its digits: exactly, or rounded to one that is
/// neither infinite nor below the normal numbers, where digits are lost one by one.
bool holdsWell(Elem elem, double number);
/// The same of all of them.
bool holdsAllWell(Elem elem, const std::vector<double>& numbers);

/// The producer when it is of this kind, its result and its operands plain; else null.
const Node* plainProducer(const Value* value, OpKind kind);

/// Of all that computes `value` from `stop` (null: from anything) and constants.
Provenance provenanceOf(const Value* value, const Value* stop);

/// A splat when all elements have the same bits, else the data.
Payload compactPayload(const Tensor& tensor);

/// Calls rewrite(graph, node) for every node of now, which says how often it changed something
/// (bool: once) and erases no other one of them; then drops what is dead. Returns the sum.
template <typename Rewrite> Result<int> onEachNode(Graph& graph, Rewrite rewrite) {
  int count = 0;
  for (Node* node : graph.snapshot()) {
    CDL_ASSIGN(const int changes, rewrite(graph, node));
    count += changes;
  }
  graph.eraseDead();
  return count;
}

/// Whether `with` may stand wherever `value` stands: the same type, and an output of the graph
/// stays a value of its own (never an input, a constant or another output), so that each output
/// keeps memory of its own.
bool canReplace(const Graph& graph, const Value* value, const Value* with);
/// Replaces the only result of `node` and erases it. What computes `with` takes over the node's
/// provenance, constants do not.
void replaceWith(Graph& graph, Node* node, Value* with);
/// Replaces the only result of `node` by a value that was made for it, which takes over the name
/// too, and erases the node.
void replaceWithNew(Graph& graph, Node* node, Value* fresh);

} // namespace candela::graph::passes
