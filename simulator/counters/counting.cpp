#include "simulator/counters/counting.h"

#include <algorithm>

namespace candela::npu {
namespace {

namespace win = descriptor::window;
namespace epi = descriptor::epilogue;
namespace lan = descriptor::lanes;
namespace poo = descriptor::pooling;
namespace tra = descriptor::transfer;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
bool hasSecond(Op op) { return op == Op::kVbinary || op == Op::kVselect; }

/// How many pairs of an output and a tap lie within the tile, along one axis.
struct Axis {
  int64_t in, out, kernel, stride, dilation, pad;

  int64_t inside() const {
    int64_t pairs = 0;
    for (int64_t k = 0; k < kernel; ++k) {
      const int64_t offset = k * dilation - pad; // of the first output
      const int64_t first = offset < 0 ? ceilDiv(-offset, stride) : 0;
      const int64_t behind = offset < in ? std::min(out, (in - 1 - offset) / stride + 1) : 0;
      pairs += std::max<int64_t>(0, behind - first);
    }
    return pairs;
  }
};

struct Sums {
  Counters& counters;
  void add(Counter counter, int64_t by) {
    counters[static_cast<size_t>(counter)] += static_cast<uint64_t>(by);
  }
};

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
  case Op::kStore: s.add(Counter::kScratchpadRead, moved); return s.add(classCounter(true), moved);
  case Op::kCopy: s.add(Counter::kScratchpadRead, moved); break;
  case Op::kLoad: s.add(classCounter(false), moved); break;
  default: break;
  }
  s.add(Counter::kScratchpadWritten, padded);
}

/// Passes of a convolution by one block of columns.
int64_t passesOf(const Configuration& c, const DescriptorValues& d) {
  const int64_t taps = d[win::kKernelH] * d[win::kKernelW], cin = d[win::kCin];
  if (d[win::kFlat]) return ceilDiv(taps * cin, c.rows());
  return d[win::kTaps] > 1 ? ceilDiv(taps, d[win::kTaps]) : taps * ceilDiv(cin, c.rows());
}

/// What a block of columns does in the array.
struct ArrayUse {
  int64_t tiles;  ///< of weights; where sums stay: folds, past each of which all weights stream
  int64_t cycles; ///< in which it multiplies
  int64_t weightReads; ///< how often each weight is read, channel by channel aside
};

/// Weights stay: each tile of them is loaded once, and each position passes it.
ArrayUse weightUse(const Configuration& c, const DescriptorValues& d, int64_t rows,
                   bool isDepthwise) {
  if (isDepthwise) return {1, d[win::kKernelH] * d[win::kKernelW] * rows, 1};
  const int64_t passes = passesOf(c, d);
  return {passes, passes * rows, 1};
}

/// Sums stay: `rows` positions in folds of as many as the array has rows, past which all terms
/// stream. Channel by channel positions come one by one.
ArrayUse outputUse(const Configuration& c, int64_t terms, int64_t rows, bool isDepthwise) {
  const int64_t folds = ceilDiv(rows, c.rows());
  return {folds, isDepthwise ? terms * rows : terms * folds, folds};
}

void countWindow(Sums& s, const Configuration& c, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t taps = d[win::kKernelH] * d[win::kKernelW], planes = d[win::kPlanes],
                rows = planes * d[win::kOutH] * d[win::kOutW], cin = d[win::kCin];
  const bool isDepthwise = o.insn.op == Op::kDwconv;
  const int64_t k = isDepthwise ? taps : taps * cin;
  const int64_t n = isDepthwise ? cin : d[win::kCout];
  const int64_t blocks = ceilDiv(n, c.columns());
  s.add(Counter::kMacs, k * n * rows);
  const ArrayUse use = c.isOutputStationary() ? outputUse(c, k, rows, isDepthwise)
                                              : weightUse(c, d, rows, isDepthwise);
  s.add(Counter::kWeightTiles, use.tiles * blocks);
  s.add(Counter::kArrayPasses, use.cycles * blocks);
  const Axis vertical{d[win::kInH],     d[win::kOutH],      d[win::kKernelH],
                      d[win::kStrideH], d[win::kDilationH], d[win::kPadTop]};
  const Axis horizontal{d[win::kInW],     d[win::kOutW],      d[win::kKernelW],
                        d[win::kStrideW], d[win::kDilationW], d[win::kPadLeft]};
  const int64_t activations =
      planes * vertical.inside() * horizontal.inside() * cin * bytesOf(d[win::kAType]);
  const int64_t weights = k * n * bytesOf(d[win::kWType]); // bytes
  // Dense, each block of columns streams the activations anew; depthwise, each output the weights.
  s.add(Counter::kScratchpadRead, isDepthwise ? activations + weights * rows
                                              : activations * blocks + use.weightReads * weights);
}

void countEpilogue(Sums& s, const Operation& o) {
  namespace f = field::requant;
  const DescriptorValues& d = o.d;
  const int64_t values = d[epi::kOutH] * d[epi::kOutW] * d[epi::kChannels];
  s.add(Counter::kRequantValues, values);
  const int64_t unit = d[epi::kWide] ? 8 : 4;
  if (o.insn.op == Op::kAccload) return s.add(Counter::kScratchpadRead, values * unit);
  if (o.insn.op == Op::kAccstore) return s.add(Counter::kScratchpadWritten, values * unit);
  // behind the records of floats lie the bounds
  int64_t read = 8 * (d[epi::kChannels] + (isFloat(static_cast<Type>(d[epi::kOutType])) ? 1 : 0));
  if (o.insn.values[f::kResidual]) read += values * bytesOf(o.second[descriptor::rescale::kBType]);
  if (o.insn.values[f::kTable]) read += tableBytes(d[epi::kOutType]);
  s.add(Counter::kScratchpadRead, read);
  s.add(Counter::kScratchpadWritten, values * bytesOf(d[epi::kOutType]));
}

/// Elements of a step of the vector engine (rtl/vector/cdl_npu_vector.sv): as many as there are
/// lanes, and as a word holds of the widest of a, b and the result.
int64_t elementsOfStep(const Configuration& c, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t width = c[key::kScratchpadBankWidth];
  int64_t widest = bytesOf(d[lan::kAType]);
  if (hasSecond(o.insn.op) && !d[lan::kBScalar]) widest = std::max(widest, bytesOf(d[lan::kBType]));
  if (o.insn.op != Op::kVreduce) widest = std::max(widest, bytesOf(d[lan::kOutType]));
  return std::min({c[key::kVectorLanes], width, width / widest});
}

void countLanes(Sums& s, const Configuration& c, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t run = d[lan::kRun], runs = d[lan::kLen1] * d[lan::kLen2];
  const int64_t outs = o.insn.op == Op::kVreduce ? runs : runs * run;
  int64_t read = runs * run * bytesOf(d[lan::kAType]);
  if (hasSecond(o.insn.op)) {
    const int64_t elements = d[lan::kBScalar] ? ceilDiv(run, elementsOfStep(c, o)) : run;
    read += runs * elements * bytesOf(d[lan::kBType]);
  }
  if (o.insn.op == Op::kVunary &&
      static_cast<UnaryFn>(o.insn.values[field::vunary::kFn]) == UnaryFn::kTable)
    read += tableBytes(d[lan::kAType]);
  s.add(Counter::kVectorValues, outs);
  s.add(Counter::kScratchpadRead, read);
  s.add(Counter::kScratchpadWritten, outs * bytesOf(d[lan::kOutType]));
}

void countPool(Sums& s, const DescriptorValues& d) {
  const int64_t outs = d[poo::kOutH] * d[poo::kOutW] * d[poo::kChannels];
  const Axis vertical{d[poo::kInH],   d[poo::kOutH], d[poo::kKernelH], d[poo::kStrideH], 1,
                      d[poo::kPadTop]};
  const Axis horizontal{d[poo::kInW],    d[poo::kOutW], d[poo::kKernelW], d[poo::kStrideW], 1,
                        d[poo::kPadLeft]};
  s.add(Counter::kVectorValues, outs);
  s.add(Counter::kScratchpadWritten, outs * bytesOf(d[poo::kOutType]));
  s.add(Counter::kScratchpadRead,
        vertical.inside() * horizontal.inside() * d[poo::kChannels] * bytesOf(d[poo::kAType]));
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
    s.add(Counter::kScratchpadRead, shadow_.k * shadow_.n * bytesOf(o.d[win::kWType]));
    break;
  case Op::kMm: {
    if (o.insn.values[field::mm::kSwap]) std::swap(active_, shadow_);
    const DescriptorValues& d = o.d;
    const int64_t rows = d[win::kOutH] * d[win::kOutW];
    s.add(Counter::kMacs, active_.k * active_.n * rows);
    s.add(Counter::kArrayPasses, rows);
    s.add(Counter::kScratchpadRead, rows * active_.k * bytesOf(d[win::kAType]));
    break;
  }
  case Op::kRequant:
  case Op::kAccload:
  case Op::kAccstore: countEpilogue(s, o); break;
  case Op::kVbinary:
  case Op::kVunary:
  case Op::kVreduce:
  case Op::kVselect: countLanes(s, configuration_, o); break;
  case Op::kVpool: countPool(s, o.d); break;
  default: break;
  }
  return counters;
}

} // namespace candela::npu
