#pragma once

#include "core/compiler/train/parameters.h"

/// The file of a model that is trained.
namespace candela::train {

/// Read once: what is written in the end is this content with other initializers, whatever has
/// become of the file meanwhile.
struct ModelFile {
  Bytes content; ///< as the file's, or a copy
  import::onnx_io::Model model;
};

/// The model with those Constant nodes of its main graph as initializers that layers read as
/// parameters; some exporters write weights so. Others stay.
import::onnx_io::Model withConstantsAsInitializers(const import::onnx_io::Model& model);

/// Weights that are Constant nodes are initializers of the model. Failures: io; bad_model;
/// unsupported where the file is none of ONNX.
Result<ModelFile> readModelFile(const std::string& path);
/// The same of a file's content; `path` is for messages and for files beside it.
Result<ModelFile> parseModelFile(Bytes content, const std::string& path);

/// Writes the model with the parameters' values in place of its initializers, and nothing else
/// changed. An old file at `path` survives a failure. Failures: io; unsupported above 2 GB.
Status writeTrained(const ModelFile& file, const std::vector<Parameter>& parameters,
                    const std::string& path);

} // namespace candela::train
