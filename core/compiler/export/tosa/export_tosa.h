#pragma once

#include "core/compiler/graph/graph.h"

/// A Graph as a module of MLIR with one function of ops of TOSA, in the generic form that MLIR 19
/// reads.
namespace candela::exporter::tosa {

/// The text. Inputs are the arguments of the function `main`, outputs its
/// results; their names are attributes of both. Failure: unsupported, with a line for each node
/// that has no form.
Result<std::string> toTosa(const graph::Graph& graph);

/// How an op is said: an operator, "formula", "refused", with its limits.
std::string_view formOf(graph::OpKind kind);

} // namespace candela::exporter::tosa
