#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compiler/import/onnx_io/model.h"

/// StableHLO programs, as JAX and others print them, as the nodes that import takes: operators of
/// ONNX.
namespace candela::import::stablehlo {

/// Domain of custom calls whose target names none. Backends may claim them.
inline constexpr const char* kDomain = "stablehlo";

/// Whether the content is a text of MLIR, or its bytecode.
bool isModel(const Bytes& content);

/// The function @main of a text, or its one public function. Nodes are named "add 12", by the
/// operation and its line, those of functions that are called with "@name 8/" in front. Inputs have
/// the names of its arguments ("arg0"), outputs those of the notes jax.result_info, or "result",
/// "result_1".
/// Failures, one line per diagnostic, each with the file, the line and, of an operation, its name:
/// bad_model; unsupported when every diagnostic is something that a file may say but that is not
/// supported.
Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path);

/// An operation that has a form, for the reference page.
struct SupportedOperation {
  std::string_view name;   ///< "stablehlo.add"
  std::string_view limits; ///< what of it is not supported, or "" where all is
};
/// All of them, sorted by name.
std::vector<SupportedOperation> supportedOperations();

} // namespace candela::import::stablehlo
