#pragma once

#include <optional>

#include "core/graph/graph.h"

/// What several passes need to look at constants and to replace nodes.
namespace candela::passes {

#define PASS(name, function, summary) Result<int> function(graph::Graph& graph);
#include "core/passes/passes.inc"
#undef PASS

using graph::isPlain;
bool isPlainConstant(const graph::Value* value);

/// The bits that every element of a constant has, zero-extended; nullopt when they differ, or there
/// is no element.
std::optional<uint64_t> splatBits(const graph::Value* value);
/// The number that every element of a float constant has.
std::optional<double> splatReal(const graph::Value* value);
/// Zero-extended bits of `value`, for the few numbers that every element type represents exactly:
/// 0, 1 and -0.
enum class Exact : uint8_t { zero, negativeZero, one };
bool isSplatOf(const graph::Value* value, Exact number);

/// The elements of a plain constant; nullopt for what is none, or is too large for the oracle.
std::optional<std::vector<double>> numbersOf(const graph::Value* value);
/// Rounded to the element type once.
Result<Tensor> tensorOf(Elem elem, Shape dims, const std::vector<double>& values);

/// The producer when it is of this kind, its result and its operands plain; else null.
const graph::Node* plainProducer(const graph::Value* value, graph::OpKind kind);

/// A splat when all elements have the same bits, else the data.
Payload compactPayload(const Tensor& tensor);

/// Whether `with` may stand wherever `value` stands: the same type, and an output of the graph
/// stays a value of its own (never an input, a constant or another output), so that each output
/// keeps memory of its own.
bool canReplace(const graph::Graph& graph, const graph::Value* value, const graph::Value* with);
/// Replaces the only result of `node` and erases it. What computes `with` takes over the node's
/// provenance, constants do not.
void replaceWith(graph::Graph& graph, graph::Node* node, graph::Value* with);
/// Replaces the only result of `node` by a value that was made for it, which takes over the name
/// too, and erases the node.
void replaceWithNew(graph::Graph& graph, graph::Node* node, graph::Value* fresh);

} // namespace candela::passes
