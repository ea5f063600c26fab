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

Type typeOf(std::string_view what, int64_t value, const Configuration& configuration) {
  const auto type = static_cast<Type>(value);
  if (type == Type::kI16 && !configuration.hasInt16())
    raise(FaultKind::kInstruction, "{} is i16, '{}' has no features.int16", what,
          configuration.name);
  if (isFloat(type) && !configuration.hasBf16())
    raise(FaultKind::kInstruction, "{} is {}, '{}' has no features.bf16", what,
          type == Type::kF32 ? "f32" : "bf16", configuration.name);
  return type;
}

/// Of what the matrix engine multiplies and requant writes.
Type narrowType(std::string_view what, int64_t value, const Configuration& configuration) {
  const Type type = typeOf(what, value, configuration);
  if (type == Type::kI32)
    raise(FaultKind::kInstruction, "{} is i32, there are i8{}", what,
          configuration.hasInt16() ? ", u8 and i16" : " and u8");
  return type;
}

int32_t within(std::string_view what, int64_t value, int32_t low, int32_t high) {
  if (value < low || value > high)
    raise(FaultKind::kInstruction, "{} is {}, outside of {}..{}", what, value, low, high);
  return static_cast<int32_t>(value);
}
int32_t within(std::string_view what, int64_t value, Type type) {
  if (isFloat(type)) return within(what, value, 0, 0); // floats have no such number
  return within(what, value, lowestOf(type), highestOf(type));
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

Window windowOf(const DescriptorBits& bits, const Configuration& configuration) {
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
           v[f::kPlanes],
           v[f::kPlaneRows],
           v[f::kRowStride],
           v[f::kPixelStride],
           v[f::kWeightPitch],
           v[f::kAccPitch],
           narrowType("a_type", v[f::kAType], configuration),
           narrowType("w_type", v[f::kWType], configuration),
           0,
           0,
           v[f::kTransposed] != 0,
           v[f::kFlat] != 0};
  if (isFloat(w.aType) || isFloat(w.wType)) {
    if (w.aType != Type::kBf16 || w.wType != Type::kBf16)
      raise(FaultKind::kInstruction, "of a_type and w_type one is a float: bf16 goes by bf16");
  }
  if (w.wType == Type::kI16) raise(FaultKind::kInstruction, "w_type is i16, weights are i8 or u8");
  w.aZero = within("a_zp", v[f::kAZp], w.aType);
  w.wZero = within("w_zp", v[f::kWZp], w.wType);
  if (w.taps > 1 && w.taps * w.cin > configuration.rows())
    raise(FaultKind::kInstruction, "{} taps of {} channels do not fit the {} rows of the array",
          w.taps, w.cin, configuration.rows());
  if (w.taps > 1 && w.flat)
    raise(FaultKind::kInstruction, "passes of {} taps each, and flat is 1", w.taps);
  return w;
}

Epilogue epilogueOf(const DescriptorBits& bits, const Configuration& configuration) {
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
             narrowType("out_type", v[f::kOutType], configuration),
             0,
             0,
             0,
             v[f::kWide] != 0};
  if (e.wide && !configuration.hasInt16())
    raise(FaultKind::kInstruction, "wide is 1, '{}' has no features.int16", configuration.name);
  if (e.wide && isFloat(e.outType))
    raise(FaultKind::kInstruction, "wide is 1, sums of floats have 32 bits");
  e.zero = within("zp", v[f::kZp], e.outType);
  e.low = within("low", v[f::kLow], e.outType);
  e.high = within("high", v[f::kHigh], e.outType);
  needOrdered(e.low, e.high);
  return e;
}

Rescale rescaleOf(const DescriptorBits& bits, const Configuration& configuration) {
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
            typeOf("b_type", v[f::kBType], configuration),
            typeOf("out_type", v[f::kOutType], configuration),
            v[f::kRowStride],
            v[f::kPixelStride]};
  if (r.aShift > 30 || r.bShift > 30)
    raise(FaultKind::kInstruction, "a_shift {} and b_shift {}: up to 30", r.aShift, r.bShift);
  needOrdered(r.low, r.high);
  return r;
}

Lanes lanesOf(const DescriptorBits& bits, const Configuration& configuration) {
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
          typeOf("a_type", v[f::kAType], configuration),
          typeOf("b_type", v[f::kBType], configuration),
          typeOf("out_type", v[f::kOutType], configuration),
          v[f::kBScalar] != 0};
}

Pooling poolingOf(const DescriptorBits& bits, const Configuration& configuration) {
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
            typeOf("a_type", v[f::kAType], configuration),
            typeOf("out_type", v[f::kOutType], configuration)};
  const auto reaches = [](int64_t out, int64_t stride, int64_t kernel, int64_t pad, int64_t in) {
    return pad < kernel && (out - 1) * stride - pad < in;
  };
  if (!reaches(p.outH, p.strideH, p.kernelH, p.padTop, p.inH) ||
      !reaches(p.outW, p.strideW, p.kernelW, p.padLeft, p.inW))
    raise(FaultKind::kInstruction, "a window lies wholly outside of the tile of {} x {}", p.inH,
          p.inW);
  return p;
}

void needAligned(std::string_view what, Type type, int64_t at, int64_t stride1, int64_t stride2) {
  const int bytes = bytesOf(type);
  if (at % bytes || stride1 % bytes || stride2 % bytes)
    raise(FaultKind::kPort, "{} {:#x} with strides {} and {} is not aligned to {} bytes", what, at,
          stride1, stride2, bytes);
}

void needZero(std::string_view what, int32_t zero, Type type) {
  if (type == Type::kI16)
    within(what, zero, type);
  else
    within(what, zero, -256, 255);
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
      raise(FaultKind::kInstruction, "{}: a stride of {} steps into the {} bytes before it", what,
            stride, extent);
    extent = stride * (length - 1) + extent;
  }
}

} // namespace candela::npu
