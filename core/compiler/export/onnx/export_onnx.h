#pragma once

#include "core/compiler/graph/graph.h"
#include "core/compiler/import/onnx_io/model.h"

/// A Graph as a model of ONNX: what import made of one, the other way.
namespace candela::exporter::onnx {

/// The versions that are declared: what every operator is used in the meaning of.
inline constexpr int64_t kOpset = 26;
inline constexpr int64_t kIrVersion = 13;

/// The model, which shares the elements of constants with the Graph. Inputs and outputs have the
/// Graph's names, nodes those of the nodes that they came from. Layouts are dropped: ONNX has
/// logical dims alone. Failure: unsupported, with a line for each node that has no form.
Result<import::onnx_io::Model> toOnnx(const graph::Graph& graph);

/// How an op is said: an operator, "formula", "refused", with its limits.
std::string_view formOf(graph::OpKind kind);

} // namespace candela::exporter::onnx
