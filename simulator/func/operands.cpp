#include "simulator/func/operands.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/func/memory.h"

namespace candela::npu {
namespace {

DescriptorValues decoded(DescriptorKind kind, const DescriptorBits& bits) {
  Result<DescriptorValues> values = decodeDescriptor(kind, bits);
  if (!values) raise(FaultKind::kInstruction, "descriptor {}", values.message());
  return *values;
}

/// Of what the matrix engine multiplies and requant writes.
Type byteType(std::string_view what, int64_t value) {
  const auto type = static_cast<Type>(value);
  if (type == Type::kI32) raise(FaultKind::kInstruction, "{} is i32, there are i8 and u8", what);
  return type;
}

int32_t within(std::string_view what, int64_t value, Type type) {
  const int low = type == Type::kI8 ? -128 : 0, high = type == Type::kI8 ? 127 : 255;
  if (type != Type::kI32 && (value < low || value > high))
    raise(FaultKind::kInstruction, "{} is {}, outside of {}..{}", what, value, low, high);
  return static_cast<int32_t>(value);
}

void needOrdered(int32_t low, int32_t high) {
  if (low > high) raise(FaultKind::kInstruction, "low is {}, above high {}", low, high);
}

} // namespace

Transfer transferOf(const DescriptorBits& bits) {
  namespace f = descriptor::transfer;
  const DescriptorValues v = decoded(DescriptorKind::kTransfer, bits);
  return {v[f::kRun],
          {v[f::kLen1], v[f::kLen2], v[f::kLen3]},
          {v[f::kFarStride1], v[f::kFarStride2], v[f::kFarStride3]},
          {v[f::kNearStride1], v[f::kNearStride2], v[f::kNearStride3]},
          v[f::kPadLeft],
          v[f::kPadRight],
          v[f::kPadTop],
          v[f::kPadBottom]};
}

Window windowOf(const DescriptorBits& bits, int rows) {
  namespace f = descriptor::window;
  const DescriptorValues v = decoded(DescriptorKind::kWindow, bits);
  Window w{v[f::kInH],
           v[f::kInW],
           v[f::kOutH],
           v[f::kOutW],
           v[f::kCin],
           v[f::kCout],
           v[f::kKernelH],
           v[f::kKernelW],
           v[f::kStrideH],
           v[f::kStrideW],
           v[f::kDilationH],
           v[f::kDilationW],
           v[f::kPadTop],
           v[f::kPadLeft],
           v[f::kTaps],
           v[f::kRowStride],
           v[f::kPixelStride],
           v[f::kWeightPitch],
           v[f::kAccPitch],
           byteType("a_type", v[f::kAType]),
           byteType("w_type", v[f::kWType]),
           0,
           0,
           v[f::kTransposed] != 0};
  w.aZero = within("a_zp", v[f::kAZp], w.aType);
  w.wZero = within("w_zp", v[f::kWZp], w.wType);
  if (w.taps > 1 && w.taps * w.cin > rows)
    raise(FaultKind::kInstruction, "{} taps of {} channels do not fit the {} rows of the array", w.taps, w.cin, rows);
  return w;
}

Epilogue epilogueOf(const DescriptorBits& bits) {
  namespace f = descriptor::epilogue;
  const DescriptorValues v = decoded(DescriptorKind::kEpilogue, bits);
  Epilogue e{v[f::kOutH],
             v[f::kOutW],
             v[f::kChannels],
             v[f::kInH],
             v[f::kInW],
             v[f::kAccPitch],
             v[f::kPoolH],
             v[f::kPoolW],
             v[f::kPoolStrideH],
             v[f::kPoolStrideW],
             v[f::kPoolPadTop],
             v[f::kPoolPadLeft],
             v[f::kRowStride],
             v[f::kPixelStride],
             v[f::kParams],
             v[f::kTable],
             byteType("out_type", v[f::kOutType]),
             0,
             0,
             0};
  e.zero = within("zp", v[f::kZp], e.outType);
  e.low = within("low", v[f::kLow], e.outType);
  e.high = within("high", v[f::kHigh], e.outType);
  needOrdered(e.low, e.high);
  return e;
}

Rescale rescaleOf(const DescriptorBits& bits) {
  namespace f = descriptor::rescale;
  const DescriptorValues v = decoded(DescriptorKind::kRescale, bits);
  const auto i = [&](int field) { return static_cast<int32_t>(v[field]); };
  Rescale r{i(f::kAMult),
            i(f::kBMult),
            i(f::kAShift),
            i(f::kBShift),
            i(f::kShift),
            i(f::kAZp),
            i(f::kBZp),
            i(f::kZp),
            i(f::kLow),
            i(f::kHigh),
            static_cast<Type>(v[f::kBType]),
            static_cast<Type>(v[f::kOutType]),
            v[f::kRowStride],
            v[f::kPixelStride]};
  if (r.aShift > 30 || r.bShift > 30)
    raise(FaultKind::kInstruction, "a_shift {} and b_shift {}: up to 30", r.aShift, r.bShift);
  needOrdered(r.low, r.high);
  return r;
}

Lanes lanesOf(const DescriptorBits& bits) {
  namespace f = descriptor::lanes;
  const DescriptorValues v = decoded(DescriptorKind::kLanes, bits);
  return {v[f::kRun],
          v[f::kLen1],
          v[f::kLen2],
          v[f::kAStride1],
          v[f::kAStride2],
          v[f::kBStride1],
          v[f::kBStride2],
          v[f::kOutStride1],
          v[f::kOutStride2],
          static_cast<Type>(v[f::kAType]),
          static_cast<Type>(v[f::kBType]),
          static_cast<Type>(v[f::kOutType]),
          v[f::kBScalar] != 0};
}

Pooling poolingOf(const DescriptorBits& bits) {
  namespace f = descriptor::pooling;
  const DescriptorValues v = decoded(DescriptorKind::kPooling, bits);
  Pooling p{v[f::kInH],
            v[f::kInW],
            v[f::kOutH],
            v[f::kOutW],
            v[f::kChannels],
            v[f::kKernelH],
            v[f::kKernelW],
            v[f::kStrideH],
            v[f::kStrideW],
            v[f::kPadTop],
            v[f::kPadLeft],
            v[f::kInRowStride],
            v[f::kInPixelStride],
            v[f::kOutRowStride],
            v[f::kOutPixelStride],
            static_cast<Type>(v[f::kAType]),
            static_cast<Type>(v[f::kOutType])};
  const auto reaches = [](int64_t out, int64_t stride, int64_t kernel, int64_t pad, int64_t in) {
    return pad < kernel && (out - 1) * stride - pad < in;
  };
  if (!reaches(p.outH, p.strideH, p.kernelH, p.padTop, p.inH) ||
      !reaches(p.outW, p.strideW, p.kernelW, p.padLeft, p.inW))
    raise(FaultKind::kInstruction, "a window lies wholly outside of the tile of {} x {}", p.inH, p.inW);
  return p;
}

void needDisjoint(std::string_view what, int64_t run,
                  std::initializer_list<std::pair<int64_t, int64_t>> lengthAndStride) {
  std::vector<std::pair<int64_t, int64_t>> byStride;
  for (const auto& [length, stride] : lengthAndStride)
    if (length > 1) byStride.push_back({stride, length});
  std::sort(byStride.begin(), byStride.end());
  int64_t extent = run;
  for (const auto& [stride, length] : byStride) {
    if (stride < extent)
      raise(FaultKind::kInstruction, "{}: a stride of {} steps into the {} bytes before it", what, stride, extent);
    extent = stride * (length - 1) + extent;
  }
}

} // namespace candela::npu
