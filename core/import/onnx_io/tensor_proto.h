#pragma once

#include "core/import/onnx_io/external_data.h"

namespace onnx {
class TensorProto;
}

namespace candela::onnx_io {

/// A TensorProto in any of its storage forms. Takes raw bytes out of the proto instead of copying
/// them. Failures do not name the tensor: `unsupported` for element types that we do not have, else
/// bad_model or what the external file gave.
Result<Tensor> takeTensor(onnx::TensorProto& proto, ExternalData& external);

} // namespace candela::onnx_io
