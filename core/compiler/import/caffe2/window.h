#pragma once

#include "core/compiler/import/caffe2/step.h"

namespace candela::import::caffe2 {

/// Images of an operator as ONNX has them, channels in dim 1. The argument `order` says where they
/// are in the net.
class Images {
public:
  /// Throws for an order that is none.
  explicit Images(Step& step);

  bool areLast() const { return last_; }
  /// Channels to dim 1.
  Name first(const Name& x);
  /// The real weights that an operand holds, with their inputs in dim 1 as well.
  Name weights(size_t operand);
  /// Back to where the net has them.
  Name back(const Name& y);

private:
  Step& step_;
  bool last_;
};

/// The attributes of ONNX that say windows: kernel_shape, strides, dilations, pads or auto_pad, and
/// ceil_mode of pools. Throws where arguments contradict each other.
Attributes windowOf(const Step& step);
/// Heights and widths of one argument: by `plural` for each dim, or by `name`, or by `name`_h and
/// `name`_w; `otherwise` where none is there.
Ints extentsOf(const Step& step, const std::string& name, const char* plural, int64_t otherwise);

} // namespace candela::import::caffe2
