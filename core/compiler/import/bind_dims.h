#pragma once

#include <map>
#include <string>

#include "core/compiler/import/import.h"
#include "core/compiler/import/import_diagnostics.h"

namespace candela::import {

/// The model's inputs that stay inputs, with every dim bound: by the model, by name (options.dims)
/// or by input (options.shapes), which binds the names that it covers. Inputs that could not be
/// bound are left out and reported, as are options that fit nothing and options that
/// contradict the model or each other.
std::map<std::string, Shape> bindInputs(const onnx_io::Graph& graph, const ImportOptions& options,
                                        ImportDiagnostics& diagnostics);

/// Whether a type is what the model declares; dims without a value are free.
bool isDeclared(const onnx_io::ValueInfo& declared, const graph::TensorType& type);
/// The same, but for the values of dims.
bool isDeclaredRank(const onnx_io::ValueInfo& declared, const graph::TensorType& type);
/// "f32[N,3]"
std::string declaredText(const onnx_io::ValueInfo& declared);

/// What a declared output says against the inferred type; `named` are the dims that the caller
/// bound by name.
Status checkDeclared(const onnx_io::ValueInfo& declared, const graph::TensorType& inferred,
                     const std::map<std::string, int64_t>& named);

} // namespace candela::import
