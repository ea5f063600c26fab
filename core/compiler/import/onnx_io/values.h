#pragma once

#include "core/compiler/import/onnx_io/model.h"

/// The files of values that are no tensors (.pb), as the node tests hold them.
namespace candela::import::onnx_io {

/// An optional: nothing, a tensor, or a list of tensors.
struct Optional {
  enum class Kind : uint8_t { nothing, tensor, list };
  Kind kind = Kind::nothing;
  std::vector<Tensor> tensors; ///< one of a tensor
};

/// A SequenceProto file. Failure: `unsupported` for sequences of anything but tensors of ours.
Result<std::vector<Tensor>> readSequence(const std::string& path);
/// An OptionalProto file. Failure: as above.
Result<Optional> readOptional(const std::string& path);

} // namespace candela::import::onnx_io
