#include "simulator/timing/counts.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace candela::npu {
namespace {

namespace win = descriptor::window;
namespace epi = descriptor::epilogue;
namespace lan = descriptor::lanes;
namespace poo = descriptor::pooling;
namespace tra = descriptor::transfer;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t bytesOf(int64_t type) {
  switch (static_cast<Type>(type)) {
  case Type::kI32: return 4;
  case Type::kI16: return 2;
  default: return 1;
  }
}
int64_t tableBytes(int64_t type) { return static_cast<Type>(type) == Type::kI16 ? 2 * 513 : 256; }

/// The rows or pixels of a tile that some output reads at some tap.
std::vector<bool> touched(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                          int64_t pad) {
  std::vector<bool> is(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o)
    for (int64_t k = 0; k < kernel; ++k)
      if (const int64_t at = o * stride + k * dilation - pad; at >= 0 && at < in)
        is[static_cast<size_t>(at)] = true;
  return is;
}

/// Bytes of activations of a tile that the walk reads, each once; neighbours may overlap.
int64_t activationBytes(const std::vector<bool>& rows, const std::vector<bool>& pixels,
                        int64_t stride, int64_t each) {
  int64_t bytes = 0, end = INT64_MIN;
  for (size_t x = 0; x < pixels.size(); ++x) {
    if (!pixels[x]) continue;
    const int64_t at = static_cast<int64_t>(x) * stride;
    bytes += at + each - std::max(at, std::min(end, at + each));
    end = std::max(end, at + each);
  }
  return bytes * std::count(rows.begin(), rows.end(), true);
}

struct Sums {
  Counters& counters;
  void add(Counter counter, int64_t by) {
    counters[static_cast<size_t>(counter)] += static_cast<uint64_t>(by);
  }
};

/// Bytes of a box of runs, a repeated run once.
int64_t once(int64_t run, std::initializer_list<std::pair<int64_t, int64_t>> lengthAndStride) {
  for (const auto& [length, stride] : lengthAndStride)
    if (stride) run *= length;
  return run;
}

void countTransfer(Sums& s, const Operation& o, const Binary& binary) {
  const DescriptorValues& d = o.d;
  const int64_t moved = d[tra::kRun] * d[tra::kLen1] * d[tra::kLen2] * d[tra::kLen3];
  const int64_t padded = d[tra::kRun] * (d[tra::kLen1] + d[tra::kPadLeft] + d[tra::kPadRight]) *
                         (d[tra::kLen2] + d[tra::kPadTop] + d[tra::kPadBottom]) * d[tra::kLen3];
  const auto classCounter = [&](bool isWrite) {
    const auto region = static_cast<size_t>(o.insn.values[field::load::kRegion]);
    const RegionClass kind =
        region < binary.regions.size() ? binary.regions[region].kind : RegionClass::kSpill;
    return static_cast<Counter>(
        static_cast<int>(isWrite ? Counter::kDramWrittenInput : Counter::kDramReadConstants) +
        static_cast<int>(kind) - (isWrite ? 1 : 0));
  };
  switch (o.insn.op) {
  case Op::kStore:
    s.add(Counter::kScratchpadRead, once(d[tra::kRun], {{d[tra::kLen1], d[tra::kNearStride1]},
                                                        {d[tra::kLen2], d[tra::kNearStride2]},
                                                        {d[tra::kLen3], d[tra::kNearStride3]}}));
    return s.add(classCounter(true), moved);
  case Op::kCopy:
    s.add(Counter::kScratchpadRead, once(d[tra::kRun], {{d[tra::kLen1], d[tra::kFarStride1]},
                                                        {d[tra::kLen2], d[tra::kFarStride2]},
                                                        {d[tra::kLen3], d[tra::kFarStride3]}}));
    break;
  case Op::kLoad: s.add(classCounter(false), moved); break;
  default: break;
  }
  s.add(Counter::kScratchpadWritten, padded);
}

void countWindow(Sums& s, const Configuration& c, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t taps = d[win::kKernelH] * d[win::kKernelW], rows = d[win::kOutH] * d[win::kOutW],
                cin = d[win::kCin];
  const bool isDepthwise = o.insn.op == Op::kDwconv;
  const int64_t k = isDepthwise ? taps : taps * cin;
  const int64_t n = isDepthwise ? cin : d[win::kCout];
  const int64_t blocks = ceilDiv(n, c.columns());
  int64_t passes = taps;
  if (!isDepthwise)
    passes = d[win::kTaps] > 1 ? ceilDiv(taps, d[win::kTaps]) : taps * ceilDiv(cin, c.rows());
  s.add(Counter::kMacs, k * n * rows);
  s.add(Counter::kWeightTiles, isDepthwise ? blocks : passes * blocks);
  s.add(Counter::kArrayPasses, passes * blocks * rows);
  s.add(Counter::kScratchpadRead,
        k * n + activationBytes(touched(d[win::kInH], d[win::kOutH], d[win::kKernelH],
                                        d[win::kStrideH], d[win::kDilationH], d[win::kPadTop]),
                                touched(d[win::kInW], d[win::kOutW], d[win::kKernelW],
                                        d[win::kStrideW], d[win::kDilationW], d[win::kPadLeft]),
                                d[win::kPixelStride], cin * bytesOf(d[win::kAType])));
}

void countEpilogue(Sums& s, const Operation& o) {
  namespace f = field::requant;
  const DescriptorValues& d = o.d;
  const int64_t values = d[epi::kOutH] * d[epi::kOutW] * d[epi::kChannels];
  s.add(Counter::kRequantValues, values);
  const int64_t unit = d[epi::kWide] ? 8 : 4;
  if (o.insn.op == Op::kAccload) return s.add(Counter::kScratchpadRead, values * unit);
  if (o.insn.op == Op::kAccstore) return s.add(Counter::kScratchpadWritten, values * unit);
  int64_t read = 8 * d[epi::kChannels];
  if (o.insn.values[f::kResidual]) read += values * bytesOf(o.second[descriptor::rescale::kBType]);
  if (o.insn.values[f::kTable]) read += tableBytes(d[epi::kOutType]);
  s.add(Counter::kScratchpadRead, read);
  s.add(Counter::kScratchpadWritten, values * bytesOf(d[epi::kOutType]));
}

void countLanes(Sums& s, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t run = d[lan::kRun], runs = d[lan::kLen1] * d[lan::kLen2];
  const int64_t outs = o.insn.op == Op::kVreduce ? runs : runs * run,
                written = outs * bytesOf(d[lan::kOutType]);
  const auto operand = [&](int64_t bytes, int64_t stride1, int64_t stride2) {
    return once(bytes, {{d[lan::kLen1], stride1}, {d[lan::kLen2], stride2}});
  };
  int64_t read = operand(run * bytesOf(d[lan::kAType]), d[lan::kAStride1], d[lan::kAStride2]);
  if (o.insn.op == Op::kVbinary || o.insn.op == Op::kVselect)
    read += operand((d[lan::kBScalar] ? 1 : run) * bytesOf(d[lan::kBType]), d[lan::kBStride1],
                    d[lan::kBStride2]);
  if (o.insn.op == Op::kVselect) read += written;
  if (o.insn.op == Op::kVunary &&
      static_cast<UnaryFn>(o.insn.values[field::vunary::kFn]) == UnaryFn::kTable)
    read += tableBytes(d[lan::kAType]);
  s.add(Counter::kVectorValues, outs);
  s.add(Counter::kScratchpadRead, read);
  s.add(Counter::kScratchpadWritten, written);
}

void countPool(Sums& s, const DescriptorValues& d) {
  const int64_t outs = d[poo::kOutH] * d[poo::kOutW] * d[poo::kChannels];
  const auto count = [](const std::vector<bool>& is) {
    return std::count(is.begin(), is.end(), true);
  };
  s.add(Counter::kVectorValues, outs);
  s.add(Counter::kScratchpadWritten, outs * bytesOf(d[poo::kOutType]));
  s.add(Counter::kScratchpadRead, count(touched(d[poo::kInH], d[poo::kOutH], d[poo::kKernelH],
                                                d[poo::kStrideH], 1, d[poo::kPadTop])) *
                                      count(touched(d[poo::kInW], d[poo::kOutW], d[poo::kKernelW],
                                                    d[poo::kStrideW], 1, d[poo::kPadLeft])) *
                                      d[poo::kChannels] * bytesOf(d[poo::kAType]));
}

} // namespace

Counters Counting::of(const Operation& o) {
  Counters counters{};
  Sums s{counters};
  switch (o.insn.op) {
  case Op::kLoad:
  case Op::kStore:
  case Op::kCopy:
  case Op::kFill: countTransfer(s, o, binary_); break;
  case Op::kConv:
  case Op::kDwconv: countWindow(s, configuration_, o); break;
  case Op::kLdw:
    shadow_ = {o.insn.values[field::ldw::kK], o.insn.values[field::ldw::kN]};
    s.add(Counter::kWeightTiles, 1);
    s.add(Counter::kScratchpadRead, shadow_.k * shadow_.n);
    break;
  case Op::kMm: {
    if (o.insn.values[field::mm::kSwap]) std::swap(active_, shadow_);
    const DescriptorValues& d = o.d;
    const int64_t rows = d[win::kOutH] * d[win::kOutW];
    s.add(Counter::kMacs, active_.k * active_.n * rows);
    s.add(Counter::kArrayPasses, rows);
    s.add(Counter::kScratchpadRead,
          activationBytes(touched((d[win::kOutH] - 1) * d[win::kStrideH] + 1, d[win::kOutH], 1,
                                  d[win::kStrideH], 1, 0),
                          touched((d[win::kOutW] - 1) * d[win::kStrideW] + 1, d[win::kOutW], 1,
                                  d[win::kStrideW], 1, 0),
                          d[win::kPixelStride], active_.k * bytesOf(d[win::kAType])));
    break;
  }
  case Op::kRequant:
  case Op::kAccload:
  case Op::kAccstore: countEpilogue(s, o); break;
  case Op::kVbinary:
  case Op::kVunary:
  case Op::kVreduce:
  case Op::kVselect: countLanes(s, o); break;
  case Op::kVpool: countPool(s, o.d); break;
  default: break;
  }
  return counters;
}

} // namespace candela::npu
