#pragma once

#include "simulator/config/configuration.h"
#include "simulator/isa/codec.h"

namespace candela::npu {

// Descriptors as structs, named as in docs/reference/npu_isa.md. The functions raise a FaultSignal
// for a descriptor that is none or that a configuration has not. All extents are at least 1.

struct Transfer {
  int64_t run, len[3], far[3], near[3]; ///< len[0] is len1
  int64_t padLeft, padRight, padTop, padBottom;
  /// Lengths of the box with its padding.
  int64_t padded(int dimension) const {
    const int64_t padding[] = {padLeft + padRight, padTop + padBottom, 0};
    return len[dimension] + padding[dimension];
  }
};
struct Window {
  int64_t inH, inW, outH, outW, cin, cout, kernelH, kernelW, strideH, strideW, dilationH, dilationW,
      padTop, padLeft, taps, planes, planeRows;
  int64_t rowStride, pixelStride, weightPitch, accPitch;
  Type aType, wType;
  int32_t aZero, wZero;
  bool transposed, flat;
  int64_t planeStride() const { return planeRows * rowStride; }
  int64_t pixels() const { return planes * outH * outW; }
};
struct Epilogue {
  int64_t outH, outW, channels, inH, inW, accPitch, poolH, poolW, poolStrideH, poolStrideW,
      poolPadTop, poolPadLeft;
  int64_t rowStride, pixelStride, params, table;
  Type outType;
  int32_t zero, low, high;
  bool wide;
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
Window windowOf(const DescriptorBits& bits, const Configuration& configuration);
Epilogue epilogueOf(const DescriptorBits& bits, const Configuration& configuration);
Rescale rescaleOf(const DescriptorBits& bits, const Configuration& configuration);
Lanes lanesOf(const DescriptorBits& bits, const Configuration& configuration);
Pooling poolingOf(const DescriptorBits& bits, const Configuration& configuration);

/// The lowest and the highest value of a type of 8 or 16 bits.
inline int32_t lowestOf(Type type) {
  if (type == Type::kI8) return -128;
  return type == Type::kI16 ? -32768 : 0;
}
inline int32_t highestOf(Type type) {
  if (type == Type::kI8) return 127;
  return type == Type::kI16 ? 32767 : 255;
}

/// Raises unless all numbers, addresses and strides, are multiples of the type's size.
void needAligned(std::string_view what, Type type, int64_t at, int64_t stride1, int64_t stride2);
/// Raises unless the zero point of an operand of a RESCALE is one of its type.
void needZero(std::string_view what, int32_t zero, Type type);

/// Raises when a box of runs would write a byte twice: each dimension must step over what lies
/// within it. `lengths` and `strides` of the dimensions above the run, which is `run` bytes.
void needDisjoint(std::string_view what, int64_t run,
                  std::initializer_list<std::pair<int64_t, int64_t>> lengthAndStride);

} // namespace candela::npu
