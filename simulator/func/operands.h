#pragma once

#include "simulator/isa/codec.h"

namespace candela::npu {

// Descriptors as structs, named as in docs/reference/npu_isa.md. The functions raise a FaultSignal for a descriptor
// that is none or that the hardware has not. All extents are at least 1.

struct Transfer {
  int64_t run, len[3], far[3], near[3]; ///< len[0] is len1
  int64_t padLeft, padRight, padTop, padBottom;
  /// Lengths of the box with its padding.
  int64_t padded(int dimension) const {
    return len[dimension] + (dimension == 0 ? padLeft + padRight : dimension == 1 ? padTop + padBottom : 0);
  }
};
struct Window {
  int64_t inH, inW, outH, outW, cin, cout, kernelH, kernelW, strideH, strideW, dilationH, dilationW, padTop, padLeft,
      taps;
  int64_t rowStride, pixelStride, weightPitch, accPitch;
  Type aType, wType;
  int32_t aZero, wZero;
  bool transposed;
};
struct Epilogue {
  int64_t outH, outW, channels, inH, inW, accPitch, poolH, poolW, poolStrideH, poolStrideW, poolPadTop, poolPadLeft;
  int64_t rowStride, pixelStride, params, table;
  Type outType;
  int32_t zero, low, high;
};
struct Rescale {
  int32_t aMult, bMult, aShift, bShift, shift, aZero, bZero, zero, low, high;
  Type bType, outType;
  int64_t rowStride, pixelStride;
};
struct Lanes {
  int64_t run, len1, len2, a1, a2, b1, b2, out1, out2;
  Type aType, bType, outType;
  bool bScalar;
};
struct Pooling {
  int64_t inH, inW, outH, outW, channels, kernelH, kernelW, strideH, strideW, padTop, padLeft;
  int64_t inRow, inPixel, outRow, outPixel;
  Type aType, outType;
};

Transfer transferOf(const DescriptorBits& bits);
/// `rows`: those of the array.
Window windowOf(const DescriptorBits& bits, int rows);
Epilogue epilogueOf(const DescriptorBits& bits);
Rescale rescaleOf(const DescriptorBits& bits);
Lanes lanesOf(const DescriptorBits& bits);
Pooling poolingOf(const DescriptorBits& bits);

inline int bytesOf(Type type) { return type == Type::kI32 ? 4 : 1; }

/// Raises when a box of runs would write a byte twice: each dimension must step over what lies within it.
/// `lengths` and `strides` of the dimensions above the run, which is `run` bytes.
void needDisjoint(std::string_view what, int64_t run,
                  std::initializer_list<std::pair<int64_t, int64_t>> lengthAndStride);

} // namespace candela::npu
