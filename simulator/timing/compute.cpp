#include "simulator/timing/compute.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace candela::npu {
namespace {

namespace win = descriptor::window;
namespace epi = descriptor::epilogue;
namespace lan = descriptor::lanes;
namespace poo = descriptor::pooling;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The numbers of a configuration that the forms name.
struct Shape {
  explicit Shape(const Configuration& c)
      : rows(c.rows()), columns(c.columns()), width(c[key::kScratchpadBankWidth]),
        isOutputStationary(c.isOutputStationary()) {}
  int64_t rows, columns, width;
  bool isOutputStationary;

  /// Whether the hardware description has such an array.
  bool isBuildable() const {
    return !isOutputStationary && std::has_single_bit(static_cast<uint64_t>(rows)) &&
           std::has_single_bit(static_cast<uint64_t>(columns));
  }
  int64_t words(int64_t bytes) const { return ceilDiv(bytes, width); }
  /// Calls visit(channels, times) for the blocks of columns that channels take.
  template <typename Visit> void eachBlock(int64_t channels, Visit visit) const {
    if (const int64_t whole = channels / columns) visit(columns, whole);
    if (const int64_t rest = channels % columns) visit(rest, int64_t{1});
  }
  int64_t load(const DescriptorValues& d) const { return d[win::kTransposed] ? columns : rows; }
};

ComputeCost costOf(int64_t beats, Timing beat, int64_t fixed, Timing pipeline) {
  ComputeCost cost;
  cost.stream = beats * valueOf(beat);
  cost.fixed = fixed + valueOf(pipeline);
  cost.streamTag = timingConstant(beat).tag;
  cost.fixedTag = timingConstant(pipeline).tag;
  return cost;
}

/// Terms that follow one another in the scratchpad: those of a row of the kernel, or of a tap.
int64_t stretchOf(const DescriptorValues& d) {
  const int64_t cin = d[win::kCin];
  if (d[win::kDilationW] > 1 || d[win::kPixelStride] != cin * bytesOf(d[win::kAType])) return cin;
  return d[win::kKernelW] * cin;
}

ComputeCost convCost(const Shape& s, const DescriptorValues& d) {
  const int64_t rows = d[win::kPlanes] * d[win::kOutH] * d[win::kOutW], load = s.load(d),
                taps = d[win::kKernelH] * d[win::kKernelW];
  const int64_t blocks = ceilDiv(d[win::kCout], s.columns);
  int64_t perBlock = 0, passes = 0, last = 0, lastPeriod = 0, read = 0;
  const auto pass = [&](int64_t each, int64_t times) {
    last = rows * each;
    lastPeriod = std::max(last, load + each - 1);
    perBlock += times * lastPeriod;
    read += times * last;
    passes += times;
  };
  if (d[win::kTaps] > 1 || d[win::kFlat]) {
    const int64_t stretch = stretchOf(d), terms = taps * d[win::kCin],
                  most = d[win::kFlat] ? s.rows : d[win::kTaps] * d[win::kCin];
    for (int64_t first = 0; first < terms; first += most)
      pass((std::min(first + most, terms) - 1) / stretch - first / stretch + 1, 1);
  } else {
    pass(1, taps * ceilDiv(d[win::kCin], s.rows));
  }
  ComputeCost cost = costOf(load + blocks * perBlock - lastPeriod + last, Timing::kMatrixBeat,
                            s.rows + s.columns - 1, Timing::kMatrixPipeline);
  cost.words = blocks * (read + passes * load);
  cost.step = std::max<int64_t>(1, d[win::kStrideW] * d[win::kPixelStride] / s.width);
  return cost;
}

/// The folds of a convolution on an array that keeps sums: those of full height in a block of
/// columns, and the positions of one of less, or none.
struct Folds {
  int64_t full, rest;
  Folds(const Shape& s, const DescriptorValues& d) {
    const int64_t positions = d[win::kPlanes] * d[win::kOutH] * d[win::kOutW];
    full = positions / s.rows;
    rest = positions % s.rows;
  }
};

ComputeCost outputConvCost(const Shape& s, const DescriptorValues& d) {
  const int64_t terms = d[win::kKernelH] * d[win::kKernelW] * d[win::kCin];
  const int64_t stretch = stretchOf(d);
  const int64_t reads = terms / stretch * ceilDiv(stretch, s.rows); // of a position
  const Folds folds(s, d);
  int64_t stream = 0;
  int64_t words = 0;
  int64_t left = 0; // rows of sums that are still on their way out
  const auto fold = [&](int64_t positions, int64_t weights) {
    stream += std::max({terms, positions * reads, weights, left});
    words += positions * reads + weights;
    left = positions;
  };
  s.eachBlock(d[win::kCout], [&](int64_t n, int64_t times) {
    const int64_t weights = d[win::kTransposed] ? n * ceilDiv(terms, s.rows) : terms;
    for (int64_t block = 0; block < times; ++block) {
      for (int64_t each = 0; each < folds.full; ++each) fold(s.rows, weights);
      if (folds.rest) fold(folds.rest, weights);
    }
  });
  ComputeCost cost =
      costOf(stream + left, Timing::kOutputBeat, s.rows + s.columns - 1, Timing::kOutputPipeline);
  cost.words = words;
  cost.step = std::max<int64_t>(1, d[win::kStrideW] * d[win::kPixelStride] / s.width);
  return cost;
}

ComputeCost dwconvCost(const Shape& s, const DescriptorValues& d) {
  const int64_t rows = d[win::kPlanes] * d[win::kOutH] * d[win::kOutW],
                taps = d[win::kKernelH] * d[win::kKernelW];
  ComputeCost cost = costOf(ceilDiv(d[win::kCin], s.columns) * rows * taps, Timing::kMatrixBeat, 0,
                            Timing::kDwconvPipeline);
  cost.words = 2 * cost.stream;
  cost.step = std::max<int64_t>(1, d[win::kStrideW] * d[win::kPixelStride] / s.width);
  return cost;
}

/// Positions of the window of output `out` that lie inside.
int64_t inside(int64_t out, int64_t stride, int64_t size, int64_t pad, int64_t in) {
  const int64_t from = out * stride - pad;
  return std::max<int64_t>(0, std::min(from + size, in) - std::max<int64_t>(from, 0));
}
/// How many outputs have so many positions inside, by number; of the others there are none.
std::vector<std::pair<int64_t, int64_t>> histogram(int64_t outs, int64_t stride, int64_t size,
                                                   int64_t pad, int64_t in) {
  std::vector<std::pair<int64_t, int64_t>> counts;
  for (int64_t out = 0; out < outs; ++out) {
    const int64_t positions = inside(out, stride, size, pad, in);
    const auto known = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& c) { return c.first == positions; });
    if (known == counts.end())
      counts.push_back({positions, 1});
    else
      ++known->second;
  }
  return counts;
}

ComputeCost requantCost(const Shape& s, const Configuration& c, const Operation& o) {
  namespace f = field::requant;
  const DescriptorValues& d = o.d;
  const bool hasResidual = o.insn.values[f::kResidual] != 0;
  const int64_t outBytes = bytesOf(d[epi::kOutType]),
                resBytes = bytesOf(o.second[descriptor::rescale::kBType]);
  const int64_t outs = d[epi::kOutH] * d[epi::kOutW];
  const bool hasTable = o.insn.values[f::kTable] != 0;
  int64_t beats = hasTable ? s.words(tableBytes(d[epi::kOutType])) : 0, words = beats;
  const int64_t positions = outs * d[epi::kPoolH] * d[epi::kPoolW];
  const auto group = [&](int64_t n, int64_t times) {
    beats += times * (s.words(8 * n) + positions);
    words += times * (s.words(8 * n) +
                      outs * (s.words(n * outBytes) + (hasResidual ? s.words(n * resBytes) : 0)));
  };
  const int64_t lanes = c[key::kRequantLanes];
  s.eachBlock(d[epi::kChannels], [&](int64_t n, int64_t times) {
    if (const int64_t whole = n / lanes) group(lanes, times * whole);
    if (const int64_t rest = n % lanes) group(rest, times);
  });
  const bool interpolates = hasTable && static_cast<Type>(d[epi::kOutType]) == Type::kI16;
  ComputeCost cost =
      costOf(beats, Timing::kRequantBeat, interpolates ? valueOf(Timing::kRequantInterpolation) : 0,
             Timing::kRequantPipeline);
  cost.words = words;
  cost.step = std::max<int64_t>(1, d[epi::kPixelStride] / s.width);
  return cost;
}

ComputeCost moveCost(const Shape& s, const DescriptorValues& d) {
  int64_t beats = 0;
  s.eachBlock(d[epi::kChannels], [&](int64_t n, int64_t times) {
    beats += times * d[epi::kOutH] * d[epi::kOutW] * s.words(n * (d[epi::kWide] ? 8 : 4));
  });
  ComputeCost cost = costOf(beats, Timing::kRequantBeat, 0, Timing::kMovePipeline);
  cost.words = beats;
  cost.step = std::max<int64_t>(1, d[epi::kPixelStride] / s.width);
  return cost;
}

ComputeCost poolCost(const Shape& s, int64_t lanes, const DescriptorValues& d) {
  const int64_t channels = d[poo::kChannels], inWords = s.words(channels * bytesOf(d[poo::kAType]));
  const int64_t outWords = s.words(channels * bytesOf(d[poo::kOutType]));
  const int64_t each = std::max({ceilDiv(channels, lanes), inWords, outWords});
  int64_t beats = 0, positions = 0;
  for (const auto& [h, rows] :
       histogram(d[poo::kOutH], d[poo::kStrideH], d[poo::kKernelH], d[poo::kPadTop], d[poo::kInH]))
    for (const auto& [w, columns] : histogram(d[poo::kOutW], d[poo::kStrideW], d[poo::kKernelW],
                                              d[poo::kPadLeft], d[poo::kInW])) {
      beats += rows * columns * h * w * each;
      positions += rows * columns * h * w;
    }
  ComputeCost cost = costOf(beats, Timing::kVectorBeat, 0, Timing::kVectorPipeline);
  cost.words = positions * inWords + d[poo::kOutH] * d[poo::kOutW] * outWords;
  return cost;
}

ComputeCost lanesCost(const Shape& s, int64_t lanes, const Operation& o) {
  const DescriptorValues& d = o.d;
  const int64_t run = d[lan::kRun], runs = d[lan::kLen1] * d[lan::kLen2],
                outBytes = bytesOf(d[lan::kOutType]);
  const bool isReduce = o.insn.op == Op::kVreduce;
  const bool hasB = o.insn.op == Op::kVbinary || o.insn.op == Op::kVselect;
  const bool hasTable = o.insn.op == Op::kVunary &&
                        static_cast<UnaryFn>(o.insn.values[field::vunary::kFn]) == UnaryFn::kTable;
  const int64_t a = s.words(run * bytesOf(d[lan::kAType]));
  const int64_t bRun = d[lan::kBScalar] ? 1 : run;
  const int64_t b = hasB ? s.words(bRun * bytesOf(d[lan::kBType])) : 0;
  const int64_t out = s.words((isReduce ? 1 : run) * outBytes);
  const int64_t table = hasTable ? s.words(tableBytes(d[lan::kAType])) : 0;
  ComputeCost cost =
      costOf(table + runs * std::max({ceilDiv(run, lanes), a, b, out}), Timing::kVectorBeat,
             isReduce ? std::countr_zero(static_cast<uint64_t>(std::min(lanes, s.width))) : 0,
             Timing::kVectorPipeline);
  cost.words = table + runs * (a + b + out);
  return cost;
}

ComputeCost matrixCost(const Shape& s, const Operation& o) {
  ComputeCost cost;
  switch (o.insn.op) {
  case Op::kLdw:
    cost = costOf(s.load(o.d), Timing::kMatrixBeat, 0, Timing::kLdwPipeline);
    cost.words = cost.stream;
    break;
  case Op::kMm: {
    const int64_t rows = o.d[win::kOutH] * o.d[win::kOutW];
    cost = costOf(rows, Timing::kMatrixBeat, s.rows + s.columns - 1, Timing::kMatrixPipeline);
    cost.words = cost.stream;
    break;
  }
  case Op::kConv: cost = s.isOutputStationary ? outputConvCost(s, o.d) : convCost(s, o.d); break;
  default: cost = dwconvCost(s, o.d); break;
  }
  // No hardware has such an array, so that none confirms the forms.
  if (!s.isBuildable()) cost.streamTag = cost.fixedTag = Tag::kAssumed;
  return cost;
}

/// Whether an instruction works on floats: lanes and multipliers take one in a cycle as they take
/// an integer, which no hardware confirms.
bool hasFloats(const Operation& o) {
  const auto isIt = [&](int field) { return isFloat(static_cast<Type>(o.d[field])); };
  switch (o.insn.op) {
  case Op::kLdw:
  case Op::kMm:
  case Op::kConv:
  case Op::kDwconv: return isIt(win::kAType) || isIt(win::kWType);
  case Op::kRequant: return isIt(epi::kOutType);
  case Op::kVpool: return isIt(poo::kAType);
  case Op::kVbinary:
  case Op::kVunary:
  case Op::kVselect:
  case Op::kVreduce: return isIt(lan::kAType) || isIt(lan::kOutType);
  default: return false;
  }
}

ComputeCost costByEngine(const Configuration& configuration, const Operation& o) {
  const Shape s(configuration);
  const int64_t lanes = configuration[key::kVectorLanes];
  ComputeCost cost;
  switch (o.insn.op) {
  case Op::kLdw:
  case Op::kMm:
  case Op::kConv:
  case Op::kDwconv: return matrixCost(s, o);
  case Op::kRequant: return requantCost(s, configuration, o);
  case Op::kAccload:
  case Op::kAccstore: return moveCost(s, o.d);
  case Op::kVpool: return poolCost(s, lanes, o.d);
  case Op::kVbinary:
  case Op::kVunary:
  case Op::kVselect:
  case Op::kVreduce: return lanesCost(s, lanes, o);
  default:
    cost.fixed = valueOf(Timing::kNop);
    cost.fixedTag = timingConstant(Timing::kNop).tag;
    return cost;
  }
}

} // namespace

ComputeCost computeCost(const Configuration& configuration, const Operation& o) {
  ComputeCost cost = costByEngine(configuration, o);
  if (hasFloats(o)) cost.streamTag = cost.fixedTag = Tag::kAssumed;
  return cost;
}

} // namespace candela::npu
