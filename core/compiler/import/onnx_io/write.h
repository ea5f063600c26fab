#pragma once

#include "core/compiler/import/onnx_io/model.h"

namespace candela::import::onnx_io {

/// Writes a model that was read and then changed. Of one whose file is not of ONNX everything is
/// written anew. Else the file model.path is what changes: nodes, initializers and
/// inputs of its main graph, the shapes of its outputs, its opsets and its version are as they
/// stand in `model`; all else, such as functions, documentation and metadata, is as the file has
/// it. Tensors stand in the new file itself. An old file at `path` survives a failure.
/// Failures: io; unsupported for more than 2 GB, protobuf's limit.
Status writeModel(const Model& model, const std::string& path);
/// The same where the content of the file model.path is at hand: that file is not read, and need
/// not be there any more.
Status writeModel(const Model& model, const Bytes& content, const std::string& path);

} // namespace candela::import::onnx_io
