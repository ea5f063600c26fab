#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compiler/import/onnx_io/model.h"

/// TensorFlow Lite models as the nodes that import takes: every builtin operator becomes operators
/// of ONNX, quantized ones between DequantizeLinear and QuantizeLinear.
namespace candela::import::tflite {

/// Domain of operators that have no such form: builtin ones by their names, custom ones by their
/// codes. Backends may claim them.
inline constexpr const char* kDomain = "tflite";

/// Whether the content has the mark of a TensorFlow Lite file.
bool isModel(const Bytes& content);

/// The main subgraph of a file's content. Nodes are named "CONV_2D 7", by the operator and its
/// index, those of other subgraphs with the way to them in front. Inputs and outputs have the names
/// of the main subgraph's signature where it has one; free dims are "batch" at axis 0, elsewhere
/// named after the input and the axis.
/// Failures, one line per diagnostic, each with the file and, of an operator, its node:
/// bad_model; unsupported when every diagnostic is something that a file may say but that is not
/// supported.
Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path);

/// A builtin operator that has a form, for the reference page.
struct SupportedOperator {
  std::string_view name;   ///< "CONV_2D"
  std::string_view limits; ///< what of it is not supported, or "" where all is
};
/// All of them, sorted by name.
std::vector<SupportedOperator> supportedOperators();
/// The builtin operators that have none, sorted.
std::vector<std::string_view> unsupportedOperators();

} // namespace candela::import::tflite
