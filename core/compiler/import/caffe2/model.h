#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/compiler/import/onnx_io/model.h"

/// Nets of Caffe2 as the nodes that import takes: every operator becomes operators of ONNX.
namespace candela::import::caffe2 {

/// Domain of operators that have no such form, by their types. Backends may claim them.
inline constexpr const char* kDomain = "caffe2";

/// Whether the content is a net: it has no mark, but fields and an operator as a NetDef has them.
bool isModel(const Bytes& content);

/// The predict net of a content, with the weights of its init net (nets.h). Nodes are named
/// "Conv 7", by the operator and its index. Inputs are the net's external ones that no init net
/// fills, f32 and of any shape where value_info.json does not say it; outputs are its external
/// ones, or what nothing reads where it declares none.
/// Failures, one line per diagnostic, each with the file and, of an operator, its node:
/// bad_model; unsupported when every diagnostic is something that a net may say but that is not
/// supported; not_found for an init net that is not there.
Result<onnx_io::Model> parseModel(const Bytes& content, const std::string& path);

/// An operator that has a form, for the reference page.
struct SupportedOperator {
  std::string_view type;   ///< "Conv"
  std::string_view limits; ///< what of it is not supported, or "" where all is
};
/// All of them, sorted by type.
std::vector<SupportedOperator> supportedOperators();

} // namespace candela::import::caffe2
