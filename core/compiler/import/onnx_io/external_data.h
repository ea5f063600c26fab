#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/support/tensor.h"

namespace candela::import::onnx_io {

/// The files beside a model that hold its large tensors. Each is mapped once and stays mapped while
/// a tensor uses it. A model is untrusted: it reaches regular files in its own folder and below,
/// nothing else.
class ExternalData {
public:
  explicit ExternalData(const std::string& modelPath);
  /// `size` bytes from `offset` of the file; `declared` is the model's own length, which must
  /// agree. Failures name the location but not the tensor: not_found, io or bad_model.
  Result<Bytes> read(const std::string& location, uint64_t offset, std::optional<uint64_t> declared,
                     uint64_t size);

private:
  Result<Bytes> map(const std::string& location);

  std::string folder_;
  std::map<std::string, Bytes> files_;
};

} // namespace candela::import::onnx_io
