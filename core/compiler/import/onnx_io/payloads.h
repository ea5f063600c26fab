#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/support/tensor.h"

namespace onnx {
class TensorProto;
}

namespace candela::import::onnx_io {

/// The elements of a model's tensors, kept out of what protobuf parses: it would hold all of them
/// at once beside the file and the tensors that are made of them. Each tensor gets its own back for
/// as long as it is read.
class Payloads {
public:
  explicit Payloads(Bytes file);

  /// What protobuf is to parse: the file without the elements, or the file where nothing can be
  /// left out.
  const Bytes& rest() const { return rest_; }
  /// Merges a tensor's elements into what was parsed of it. Failure: bad_model.
  Status restore(onnx::TensorProto& proto) const;

private:
  struct Span {
    uint64_t offset, size;
  };
  Bytes file_, rest_;
  std::vector<Span> spans_; ///< whole fields of the file, by the number that stands in their place
};

} // namespace candela::import::onnx_io
