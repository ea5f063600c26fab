// CONV2D and MATMUL on the matrix engine, in parts that fit half of the accumulators, and requant
// behind it.
#include "epilogue.hpp"

#include <algorithm>

namespace npu_sim {

namespace {

constexpr int64_t kMostRows = 4096; ///< of a tile, and its pixels
/// Terms of a sum that is exact in 40 bits with any zero points and a bias of 32 bits.
constexpr int64_t kMostTerms = 1 << 15;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A convolution of one image and group; a matrix product is one of 1 x 1 over rows of one pixel.
/// Bytes.
struct Product {
  int64_t x = 0, w = 0; ///< addresses
  int64_t height = 1, width = 1, rowStride = 0, pixelStride = 0;
  int64_t sumHeight = 1, sumWidth = 1; ///< positions that are summed
  /// of the result: fewer positions behind a pool
  int64_t outHeight = 1, outWidth = 1, cin = 1, cout = 1;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad{0, 0};
  int64_t weightPitch = 1;
  bool transposed = false, depthwise = false, accumulate = false;
  npu::Type xType{}, wType{};
  int32_t xZero = 0, wZero = 0;
  int64_t wBytes = 0;                             ///< of the weights from w on
  int64_t xUnit = 1, yUnit = 1, residualUnit = 1; ///< bytes of an element
  /// of a sum in the scratchpad: 8 of activations of 16 bits
  int64_t sumUnit = 4;

  int64_t y = 0, yRow = 0, yPixel = 0;             ///< the result: address and strides
  int64_t start = 0, startRow = 0, startPixel = 0; ///< with `accumulate`: what the sums begin with
  size_t channel = 0;                              ///< of `epilogue`, its first one
  int64_t residual = 0, residualRow = 0, residualPixel = 0;
};

struct Ending {
  const Epilogue* epilogue = nullptr;
  const Residual* residual = nullptr;
  const Pool* pool = nullptr;
  const Operand* entries = nullptr; ///< of a table
  bool addsToResult = false;        ///< sums begin with what stands in the result's place
  npu::Type type = npu::Type::kI32; ///< of the result
};

/// A part of the outputs.
struct Piece {
  int64_t row, rows, column, columns, channel, channels;
};

class Emitter {
public:
  Emitter(Lowering& l, const Product& p, const Ending& ending) : l_(l), p_(p), ending_(ending) {}

  void emit() {
    const int64_t width = l_.configuration.columns(), half = l_.configuration.accumulatorRows() / 2;
    const int64_t places = p_.sumHeight * p_.sumWidth;
    // Blocks of channels share the activations that a pass streams; a pass should be longer than
    // the weights that load behind it.
    const int64_t passes = std::min(places, 8 * static_cast<int64_t>(l_.configuration.rows()));
    int64_t blocks =
        std::clamp<int64_t>(half / std::max<int64_t>(passes, 1), 1, ceilDiv(p_.cout, width));
    // two sets
    if (ending_.epilogue) blocks = std::clamp<int64_t>(l_.recordsBytes / (16 * width), 1, blocks);
    int64_t columns = p_.outWidth, rows = p_.outHeight;
    if (ending_.pool) { // whole rows of windows
      const Pool& pool = *ending_.pool;
      const bool isApart = pool.stride[0] >= pool.kernel[0];
      const int64_t least =
          (isApart ? std::min(pool.kernel[0], p_.sumHeight) : p_.sumHeight) * p_.sumWidth;
      blocks = std::clamp<int64_t>(half / least, 1, blocks);
      const int64_t high = half / blocks / p_.sumWidth; // rows of sums
      if (isApart)
        rows = std::clamp<int64_t>((high - pool.kernel[0]) / pool.stride[0] + 1, 1, rows);
    } else {
      const int64_t room = std::max<int64_t>(half / blocks, 1);
      columns = std::min({columns, room, mostOf(1)});
      rows = std::min({std::max<int64_t>(room / columns, 1), rows, mostOf(0)});
    }
    for (int64_t c = 0; c < p_.cout; c += blocks * width)
      for (int64_t r = 0; r < p_.outHeight; r += rows)
        for (int64_t q = 0; q < p_.outWidth; q += columns)
          piece({r, std::min(rows, p_.outHeight - r), q, std::min(columns, p_.outWidth - q), c,
                 std::min(blocks * width, p_.cout - c)});
  }

private:
  /// Outputs of which a descriptor can say the windows.
  int64_t mostOf(size_t d) const {
    return std::max<int64_t>(
        (kMostRows - (p_.kernel[d] - 1) * p_.dilation[d] - 1) / p_.stride[d] + 1, 1);
  }
  /// The first row that is there, how many the piece needs from there on, and the padding before
  /// them.
  struct Span {
    int64_t begin, count, pad;
  };
  Span spanOf(size_t d, int64_t first, int64_t count, int64_t extent) const {
    const int64_t from = first * p_.stride[d] - p_.pad[d];
    const int64_t end = from + (count - 1) * p_.stride[d] + (p_.kernel[d] - 1) * p_.dilation[d] + 1;
    // Windows behind the image read padding alone: as padding before its first row, as far as that
    // goes.
    if (extent == 0 || (from >= extent && end - from > 63))
      throw Refusal{CDL_REASON_ATTRIBUTE, cdl::text("windows of ", end - from, " lie behind the ",
                                                    extent, " of the image")};
    if (from >= extent) return {0, 1, end - from};
    const int64_t begin = std::clamp<int64_t>(from, 0, extent - 1);
    return {begin, std::max<int64_t>(std::min(end, extent) - begin, 1),
            std::max<int64_t>(-from, 0)};
  }

  /// The positions that are summed for a piece, and the rows and columns of padding before them
  /// that windows begin with.
  Piece summed(const Piece& piece, int64_t& top, int64_t& left) const {
    Piece sums = piece;
    top = left = 0;
    if (!ending_.pool) return sums;
    const Pool& pool = *ending_.pool;
    const auto cut = [&](size_t d, int64_t& begin, int64_t& count, int64_t extent,
                         int64_t& before) {
      const int64_t from = begin * pool.stride[d] - pool.pad[d],
                    end = from + (count - 1) * pool.stride[d] + pool.kernel[d];
      before = std::max<int64_t>(-from, 0);
      begin = std::max<int64_t>(from, 0);
      count = std::min(end, extent) - begin;
    };
    cut(0, sums.row, sums.rows, p_.sumHeight, top);
    cut(1, sums.column, sums.columns, p_.sumWidth, left);
    return sums;
  }

  void piece(const Piece& outputs) {
    const int64_t half = l_.configuration.accumulatorRows() / 2, width = l_.configuration.columns();
    int64_t top = 0, left = 0;
    const Piece piece = summed(outputs, top, left);
    const int64_t places = piece.rows * piece.columns, acc = l_.accumulatorTurn * half;
    const int64_t accRows = ceilDiv(piece.channels, width) * places;
    l_.accumulatorTurn ^= 1;
    const Access sums{Access::kAccumulators, acc, acc + accRows, false};
    if (p_.accumulate)
      moveSums(npu::Op::kAccload, piece, acc, sums, p_.start, p_.startRow, p_.startPixel);
    if (p_.cin > 0) multiply(piece, acc, sums);
    if (ending_.epilogue)
      requantize(outputs, piece, {top, left}, acc, sums);
    else
      moveSums(npu::Op::kAccstore, piece, acc, sums, p_.y, p_.yRow, p_.yPixel);
  }

  void multiply(const Piece& piece, int64_t acc, Access sums) {
    namespace w = npu::descriptor::window;
    namespace f = npu::field::conv;
    static_assert(int{f::kAccumulate} == int{npu::field::dwconv::kAccumulate});
    const Span high = spanOf(0, piece.row, piece.rows, p_.height),
               wide = spanOf(1, piece.column, piece.columns, p_.width);
    if (high.pad > 63 || wide.pad > 63)
      throw Refusal{CDL_REASON_ATTRIBUTE,
                    cdl::text("padding of ", std::max(high.pad, wide.pad), " > 63")};
    const int64_t taps = p_.kernel[0] * p_.kernel[1], rows = l_.configuration.rows();
    npu::DescriptorValues values{};
    values[w::kInH] = high.count;
    values[w::kInW] = wide.count;
    values[w::kOutH] = piece.rows;
    values[w::kOutW] = piece.columns;
    values[w::kCin] = p_.depthwise ? piece.channels : p_.cin;
    values[w::kCout] = piece.channels;
    values[w::kKernelH] = p_.kernel[0];
    values[w::kKernelW] = p_.kernel[1];
    values[w::kStrideH] = p_.stride[0];
    values[w::kStrideW] = p_.stride[1];
    values[w::kDilationH] = p_.dilation[0];
    values[w::kDilationW] = p_.dilation[1];
    values[w::kPadTop] = high.pad;
    values[w::kPadLeft] = wide.pad;
    values[w::kTaps] = p_.depthwise ? 1 : std::clamp<int64_t>(std::min(rows / p_.cin, taps), 1, 64);
    values[w::kRowStride] = p_.rowStride;
    values[w::kPixelStride] = p_.pixelStride;
    values[w::kWeightPitch] = p_.weightPitch;
    values[w::kAccPitch] = piece.rows * piece.columns;
    values[w::kAType] = static_cast<int64_t>(p_.xType);
    values[w::kAZp] = p_.xZero;
    values[w::kWType] = static_cast<int64_t>(p_.wType);
    values[w::kWZp] = p_.wZero;
    values[w::kTransposed] = p_.transposed;
    npu::Insn insn =
        insnFor(p_.depthwise ? npu::Op::kDwconv : npu::Op::kConv, npu::Engine::kMatrix);
    const int64_t act = p_.x + high.begin * p_.rowStride + wide.begin * p_.pixelStride +
                        (p_.depthwise ? piece.channel * p_.xUnit : 0);
    const int64_t wgt = p_.w + piece.channel * (p_.transposed ? p_.weightPitch : 1);
    insn.values[f::kAcc] = acc;
    insn.values[f::kAct] = act;
    insn.values[f::kWgt] = wgt;
    insn.values[f::kD] = l_.stream.descriptor(npu::DescriptorKind::kWindow, values);
    insn.values[f::kAccumulate] = p_.accumulate;
    sums.write = true;
    l_.here().macs += static_cast<uint64_t>(taps * (p_.depthwise ? 1 : p_.cin) * piece.channels *
                                            piece.rows * piece.columns);
    const int64_t reach = (high.count - 1) * p_.rowStride + (wide.count - 1) * p_.pixelStride +
                          (p_.depthwise ? piece.channels : p_.cin) * p_.xUnit;
    l_.stream.add(insn, {{Access::kScratchpad, act, act + reach, false},
                         {Access::kScratchpad, p_.w, p_.w + p_.wBytes, false},
                         sums});
  }

  npu::DescriptorValues places(const Piece& piece, int64_t row, int64_t pixel) const {
    namespace e = npu::descriptor::epilogue;
    npu::DescriptorValues values{};
    values[e::kOutH] = values[e::kInH] = piece.rows;
    values[e::kOutW] = values[e::kInW] = piece.columns;
    values[e::kChannels] = piece.channels;
    values[e::kAccPitch] = piece.rows * piece.columns;
    values[e::kPoolH] = values[e::kPoolW] = values[e::kPoolStrideH] = values[e::kPoolStrideW] = 1;
    values[e::kRowStride] = row;
    values[e::kPixelStride] = pixel;
    values[e::kWide] = p_.sumUnit == 8;
    return values;
  }

  Access result(const Piece& piece, int64_t at, int64_t row, int64_t pixel, int64_t bytes,
                bool write) const {
    return {Access::kScratchpad, at,
            at + (piece.rows - 1) * row + (piece.columns - 1) * pixel + piece.channels * bytes,
            write};
  }

  void moveSums(npu::Op op, const Piece& piece, int64_t acc, Access sums, int64_t base, int64_t row,
                int64_t pixel) {
    namespace f = npu::field::accload;
    static_assert(int{f::kSrc} == int{npu::field::accstore::kDst} &&
                  int{f::kD} == int{npu::field::accstore::kD});
    npu::Insn insn = insnFor(op, npu::Engine::kRequant);
    const int64_t at = base + piece.row * row + piece.column * pixel + piece.channel * p_.sumUnit;
    insn.values[f::kAcc] = acc;
    insn.values[f::kSrc] = at;
    insn.values[f::kD] =
        l_.stream.descriptor(npu::DescriptorKind::kEpilogue, places(piece, row, pixel));
    sums.write = op == npu::Op::kAccload;
    l_.stream.add(insn, {sums, result(piece, at, row, pixel, p_.sumUnit, !sums.write)});
  }

  void requantize(const Piece& piece, const Piece& summed, const std::array<int64_t, 2>& before,
                  int64_t acc, const Access& sums) {
    namespace e = npu::descriptor::epilogue;
    namespace f = npu::field::requant;
    const Epilogue& epilogue = *ending_.epilogue;
    std::vector<std::byte> records;
    for (int64_t c = 0; c < piece.channels; ++c) {
      const size_t channel = p_.channel + static_cast<size_t>(piece.channel + c);
      const uint32_t words[2] = {static_cast<uint32_t>(epilogue.bias[channel]),
                                 static_cast<uint32_t>(epilogue.mult[channel]) |
                                     static_cast<uint32_t>(epilogue.shift[channel]) << 24};
      for (const uint32_t word : words)
        for (int b = 0; b < 4; ++b) records.push_back(static_cast<std::byte>(word >> (8 * b)));
    }
    const int64_t params = l_.records(records);
    npu::DescriptorValues values = places(piece, p_.yRow, p_.yPixel);
    values[e::kParams] = params;
    if (ending_.pool) {
      values[e::kInH] = summed.rows;
      values[e::kInW] = summed.columns;
      values[e::kAccPitch] = summed.rows * summed.columns;
      values[e::kPoolH] = ending_.pool->kernel[0];
      values[e::kPoolW] = ending_.pool->kernel[1];
      values[e::kPoolStrideH] = ending_.pool->stride[0];
      values[e::kPoolStrideW] = ending_.pool->stride[1];
      values[e::kPoolPadTop] = before[0];
      values[e::kPoolPadLeft] = before[1];
    }
    values[e::kOutType] = static_cast<int64_t>(epilogue.type);
    values[e::kZp] = epilogue.zero;
    values[e::kLow] = epilogue.low;
    values[e::kHigh] = epilogue.high;
    npu::Insn insn = insnFor(npu::Op::kRequant, npu::Engine::kRequant);
    const int64_t at =
        p_.y + piece.row * p_.yRow + piece.column * p_.yPixel + piece.channel * p_.yUnit;
    std::vector<Access> accesses{sums,
                                 {Access::kScratchpad, params, params + 8 * piece.channels, false},
                                 result(piece, at, p_.yRow, p_.yPixel, p_.yUnit, true)};
    insn.values[f::kAcc] = acc;
    insn.values[f::kDst] = at;
    if (ending_.residual) {
      namespace r = npu::descriptor::rescale;
      npu::DescriptorValues second = rescaleValues(ending_.residual->scale, ending_.type);
      second[r::kBType] = static_cast<int64_t>(ending_.residual->from.type());
      second[r::kRowStride] = p_.residualRow;
      second[r::kPixelStride] = p_.residualPixel;
      const int64_t from = p_.residual + piece.row * p_.residualRow +
                           piece.column * p_.residualPixel + piece.channel * p_.residualUnit;
      insn.values[f::kRes] = from;
      insn.values[f::kR] = l_.stream.descriptor(npu::DescriptorKind::kRescale, second);
      insn.values[f::kResidual] = 1;
      accesses.push_back(
          result(piece, from, p_.residualRow, p_.residualPixel, p_.residualUnit, false));
    }
    if (ending_.entries) {
      const Operand& entries = *ending_.entries;
      values[e::kTable] = entries.at;
      insn.values[f::kTable] = 1;
      accesses.push_back(
          {Access::kScratchpad, entries.at, entries.at + entries.dims[0] * entries.bytes, false});
    }
    insn.values[f::kD] = l_.stream.descriptor(npu::DescriptorKind::kEpilogue, values);
    l_.stream.add(insn, accesses);
  }

  Lowering& l_;
  const Product& p_;
  const Ending& ending_;
};

int64_t bytesFrom(const Operand& o) {
  const Access all = o.access(false);
  return all.end - o.at;
}

void needInside(const Operand& o, size_t channel, const char* what) {
  if (!o.isLocal())
    throw Refusal{CDL_REASON_MEMORY, cdl::text(what, " does not lie in the scratchpad")};
  if (o.dims[channel] > 1 && o.strides[channel] != 1)
    throw Refusal{CDL_REASON_LAYOUT, cdl::text(what, " does not have its channels side by side")};
  for (int d = 0; d < o.rank; ++d)
    if (o.dims[static_cast<size_t>(d)] > 1 && o.strides[static_cast<size_t>(d)] < 0)
      throw Refusal{CDL_REASON_OPERAND_CLASS, cdl::text(what, " runs backwards")};
}

void setTypes(Lowering& l, const cdl::Op& op, Product& p, const Operand& x, const Operand& w,
              const Operand& y, const Ending& ending) {
  p.xType = x.type();
  p.wType = w.type();
  p.xUnit = x.bytes;
  p.yUnit = y.bytes;
  p.sumUnit = sumsOf(op) == CDL_I64 ? 8 : 4;
  if (ending.residual) p.residualUnit = ending.residual->from.bytes;
  if (op.operands() > 2) p.xZero = l.image.scalar(l.image.input(op, 2), "the zero point");
  if (op.operands() > 3) p.wZero = l.image.scalar(l.image.input(op, 3), "the weights' zero point");
}

/// What the sums begin with: what stands in y, or an operand of the epilogue; null: 0.
const Operand* startOf(const cdl::Op& op, const Operand& y, const Ending& ending) {
  if (op.attr(CDL_ATTR_ACCUMULATE, 0) != 0 || ending.addsToResult) return &y;
  return ending.epilogue && ending.epilogue->start ? &*ending.epilogue->start : nullptr;
}

/// Sums of nothing begin with these, for each channel.
int64_t zeroSums(Lowering& l, const Product& p) {
  return l.records(std::vector<std::byte>(static_cast<size_t>(p.sumUnit * p.cout), std::byte{0}));
}

/// How far the rows of weights by (kh, kw, i, o) lie apart: the stride of the innermost dim beside
/// the outputs that has more than one element, as those of the others say nothing.
int64_t firstMovingStride(const Operand& w, int64_t outputs) {
  if (w.dims[2] > 1) return w.strides[2];
  if (w.dims[1] > 1) return w.strides[1];
  return w.dims[0] > 1 ? w.strides[0] : outputs;
}

/// x, y and the residual by (n, h, w, c), weights by (kh, kw, i, o).
void convolve(Lowering& l, const cdl::Op& op, const Operand& y, const Ending& ending) {
  const Operand x = l.image.input(op, 0), w = l.image.input(op, 1);
  needInside(x, 3, "x");
  needInside(w, 3, "w");
  needInside(y, 3, "y");
  const int64_t group = op.attr(CDL_ATTR_GROUP, 1), inputs = w.dims[2], outputs = y.dims[3];
  Product p;
  setTypes(l, op, p, x, w, y, ending);
  p.height = x.dims[1];
  p.width = x.dims[2];
  p.rowStride = x.strides[1] * x.bytes;
  p.pixelStride = x.strides[2] * x.bytes;
  const Operand sums = l.image.output(op);
  p.sumHeight = sums.dims[1];
  p.sumWidth = sums.dims[2];
  p.outHeight = y.dims[1];
  p.outWidth = y.dims[2];
  p.depthwise = group > 1 && inputs == 1 && outputs == group;
  p.cin = inputs;
  p.cout = p.depthwise ? outputs : outputs / group;
  for (uint32_t d = 0; d < 2; ++d) {
    p.kernel[d] = w.dims[d];
    p.stride[d] = op.attr(CDL_ATTR_STRIDES, 1, d);
    p.dilation[d] = op.attr(CDL_ATTR_DILATIONS, 1, d);
    p.pad[d] = op.attr(CDL_ATTR_PADS, 0, d);
  }
  p.weightPitch = firstMovingStride(w, outputs);
  const auto evenly = [&](int d, int64_t stride) {
    if (w.dims[static_cast<size_t>(d)] > 1 && w.strides[static_cast<size_t>(d)] != stride)
      throw Refusal{CDL_REASON_LAYOUT,
                    cdl::text("weights step by ", w.strides[static_cast<size_t>(d)], " along dim ",
                              d, " and not by ", stride)};
  };
  evenly(1, inputs * p.weightPitch);
  evenly(0, w.dims[1] * inputs * p.weightPitch);
  const int64_t bytes = y.bytes;
  const Operand* start = startOf(op, y, ending);
  p.accumulate = start || !inputs;
  p.yRow = y.strides[1] * bytes;
  p.yPixel = y.strides[2] * bytes;
  p.wBytes = bytesFrom(w);
  for (int64_t n = 0; n < y.dims[0]; ++n)
    for (int64_t g = 0; g < (p.depthwise ? 1 : group); ++g) {
      p.x = x.at + (n * x.strides[0] + g * inputs) * x.bytes;
      p.w = w.at + g * p.cout;
      p.y = y.at + (n * y.strides[0] + g * p.cout) * bytes;
      p.channel = static_cast<size_t>(g * p.cout);
      if (!inputs) p.start = zeroSums(l, p);
      if (start) {
        p.start = start->at + (n * start->strides[0] + g * p.cout) * p.sumUnit;
        p.startRow = start->strides[1] * p.sumUnit;
        p.startPixel = start->strides[2] * p.sumUnit;
      }
      if (ending.residual) {
        const Operand& r = ending.residual->from;
        p.residual = r.at + (n * r.strides[0] + g * p.cout) * r.bytes;
        p.residualRow = r.strides[1] * r.bytes;
        p.residualPixel = r.strides[2] * r.bytes;
      }
      Emitter(l, p, ending).emit();
    }
}

/// a[B,M,K], b[B,K,N], y[B,M,N].
void multiply(Lowering& l, const cdl::Op& op, const Operand& y, const Ending& ending) {
  const Operand a = l.image.input(op, 0), b = l.image.input(op, 1);
  needInside(a, 2, "a");
  needInside(y, 2, "y");
  const bool isTransposed = b.dims[2] > 1 && b.strides[2] != 1;
  needInside(b, isTransposed ? 1 : 2, "b");
  Product p;
  setTypes(l, op, p, a, b, y, ending);
  p.height = p.sumHeight = p.outHeight = y.dims[1];
  p.cin = a.dims[2];
  p.cout = y.dims[2];
  p.rowStride = a.strides[1] * a.bytes;
  p.transposed = isTransposed;
  p.weightPitch = b.dims[1] > 1 ? b.strides[1] : p.cout;
  if (isTransposed) p.weightPitch = b.strides[2];
  const Operand* start = startOf(op, y, ending);
  p.accumulate = start || !p.cin;
  p.yRow = y.strides[1] * y.bytes;
  Operand one = b;
  one.dims[0] = 1;
  p.wBytes = bytesFrom(one);
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    p.x = a.at + n * a.strides[0] * a.bytes;
    p.w = b.at + n * b.strides[0];
    p.y = y.at + n * y.strides[0] * y.bytes;
    if (!p.cin) p.start = zeroSums(l, p);
    if (start) {
      p.start = start->at + n * start->strides[0] * p.sumUnit;
      p.startRow = start->strides[1] * p.sumUnit;
    }
    if (ending.residual) {
      p.residual = ending.residual->from.at + n * ending.residual->from.strides[0] * p.residualUnit;
      p.residualRow = ending.residual->from.strides[1] * p.residualUnit;
    }
    Emitter(l, p, ending).emit();
  }
}

} // namespace

uint32_t lowerProduct(Lowering& l, const cdl::Op& op) {
  const bool isConv = op.kind() == cdl::Kind::Conv2d;
  const size_t channel = isConv ? 3 : 2;
  Operand y = l.image.output(op);
  if (y.elements() == 0) return 1;
  Ending ending;
  std::optional<Epilogue> epilogue;
  std::optional<Residual> residual;
  std::optional<Pool> pool;
  std::optional<Mapping> mapping;
  const uint32_t first = op.index();
  uint32_t taken = 1;
  const uint8_t sums = sumsOf(op);
  if (op.expr() && y.elem != sums) {
    epilogue = epilogueOf(l, op, static_cast<int>(channel));
    ending.epilogue = &*epilogue;
    // An end of the pass that is another one than the product's may lie where its operands were:
    // parts of it would be written before the last part reads those. Its channels lie side by side.
    const auto fits = [&](const Operand& end, std::initializer_list<const Operand*> others) {
      const auto overlaps = [&](const Operand& o) {
        const Access a = o.access(false), b = end.access(true);
        return a.begin < b.end && b.begin < a.end;
      };
      for (const Operand* other : others)
        if (overlaps(*other)) return false;
      return end.isLocal() && !(epilogue->start && overlaps(*epilogue->start)) &&
             !overlaps(l.image.input(op, 0)) && !overlaps(l.image.input(op, 1)) &&
             (end.dims[channel] == 1 || end.strides[channel] == 1);
    };
    if ((residual = residualOf(l, op, first + 1, *epilogue))) {
      const Operand end = l.image.output(l.image.op(first + 1));
      if (fits(end, {}) && (end.dims[channel] == 1 || residual->from.strides[channel] == 1)) {
        y = end;
        ending.residual = &*residual;
        ++taken;
      }
    } else if (isConv && (pool = poolOf(l, op, first + 1, *epilogue))) {
      const Operand end = l.image.output(l.image.op(first + 1));
      if (fits(end, {})) {
        y = end;
        ending.pool = &*pool;
        ++taken;
      }
    }
    if ((mapping = mappingOf(l, first + taken - 1, y, first + taken)))
      if (fits(mapping->to,
               {&mapping->entries, ending.residual ? &ending.residual->from : &mapping->entries})) {
        y = mapping->to;
        ending.entries = &mapping->entries;
        ++taken;
      }
    ending.type = y.type();
  } else if (y.elem != sums) {
    throw Refusal{CDL_REASON_DTYPE,
                  cdl::text("a product without an epilogue has sums of ", cdl::elemName(sums))};
  }
  std::optional<uint32_t> under;
  // step by step on the result: what is read there must not lie under it
  if (op.expr() && !ending.epilogue) {
    under = op.attr(CDL_ATTR_ACCUMULATE, 0) == 0 ? viewUnderResult(l, op) : std::nullopt;
    ending.addsToResult = under.has_value();
    for (uint32_t i = op.operands(); i < op.inputs(); ++i) {
      if (i == under) continue;
      const Access read = l.image.input(op, i).access(false), written = y.access(true);
      if (read.memory == written.memory && read.begin < written.end && written.begin < read.end)
        throw Refusal{CDL_REASON_OPERAND_CLASS,
                      "an operand of the epilogue lies where the result goes"};
    }
  }
  const Operand w = l.image.input(op, 1);
  const int64_t summed = isConv ? w.dims[2] : w.dims[1],
                terms = isConv ? w.dims[0] * w.dims[1] * summed : summed;
  if (sums == CDL_I64 && terms > kMostTerms)
    throw Refusal{CDL_REASON_DIM, cdl::text("sums of ", terms, " products of 16 bits: more than ",
                                            kMostTerms, " may leave 40 bits")};
  if (sums == CDL_I64 && op.attr(CDL_ATTR_ACCUMULATE, 0) != 0)
    throw Refusal{CDL_REASON_ATTRIBUTE, "sums of 64 bits that go on: the accumulators have 40"};
  if (summed == 0 && !ending.epilogue) { // sums of nothing
    if (op.attr(CDL_ATTR_ACCUMULATE, 0) == 0 && !under) lowerFill(l, y, 0);
  } else if (isConv) {
    convolve(l, op, y, ending);
  } else {
    multiply(l, op, y, ending);
  }
  if (op.expr() && !ending.epilogue) lowerSteps(l, op, under ? 1 : 0);
  return taken;
}

} // namespace npu_sim
