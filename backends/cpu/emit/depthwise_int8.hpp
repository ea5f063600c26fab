#pragma once

#include "contraction.hpp"

namespace cpu {

/// A depthwise convolution. Of the contraction it has a (its border included), b, panels of
/// channels, rows, columns, lastLanes, aIsSigned, and what becomes of the sums; `a.row` is between
/// rows of results. b: [panel][kernel column][four kernel rows][channel of the panel] [kernel row],
/// the rows rounded up with zeros.
struct DepthwiseInt8 {
  Contraction contraction;
  int64_t kernel[2] = {1, 1};
  int64_t stride = 1, dilation = 1; // along the columns
  // of x: bytes between the rows of the kernel, and between neighbouring columns
  int64_t row = 0, column = 0;
};

void emitDepthwiseInt8(Lowering& lowering, const DepthwiseInt8& depthwise);

} // namespace cpu
