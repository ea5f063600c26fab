// CONV2D and MATMUL on the matrix engine, and requant behind it. Results are cut into pieces whose
// sums fit half of the accumulators, so that the array fills one half while requant empties the
// other. A piece takes as many blocks of output channels as share one stream of activations without
// making that shorter than the weights that load behind it, then as many columns and rows as fit;
// behind a pool it takes whole windows. Of images that fit whole it takes several, whose positions
// then go by one load of each block of weights. What follows the product joins its pass where the
// device has it and where no part of the result would lie over what a later part still reads.
#include "fusion.hpp"
#include "passes.hpp"

#include <algorithm>
#include <bit>

#include "simulator/timing/compute.h"

namespace npu_sim {

namespace {

constexpr int64_t kMostRows = 4096; ///< of a tile, and its pixels
constexpr int64_t kMostPlanes = 64; ///< of an instruction
constexpr int64_t kMostRowStride = (1 << 24) - 1;
/// The most terms of a sum that is exact in 40 bits with any zero points and a bias of 32 bits.
constexpr int64_t kMostTerms = 1 << 15;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Elements by (image, row, pixel, channel) in the scratchpad: where they begin, how far images,
/// rows and pixels lie apart, and the bytes of a channel. All in bytes.
struct Tile {
  int64_t at = 0, image = 0, row = 0, pixel = 0, unit = 1;
};

/// A convolution of the images of one group; a matrix product is one of 1 x 1 over rows of one
/// pixel.
struct Product {
  Tile x;
  /// several where x.image is `planeRows` times x.row, as descriptors say it
  int64_t images = 1, planeRows = 1;
  int64_t height = 1, width = 1;       ///< of x
  int64_t sumHeight = 1, sumWidth = 1; ///< positions that are summed
  /// of the result: fewer positions behind a pool
  int64_t outHeight = 1, outWidth = 1, cin = 1, cout = 1;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad{0, 0};
  int64_t weights = 0, weightBytes = 0;    ///< their address, and bytes from there on
  int64_t weightPitch = 1, weightUnit = 1; ///< bytes from row to row, and of a weight
  bool transposed = false, depthwise = false, accumulate = false;
  npu::Type xType{}, wType{};
  int32_t xZero = 0, wZero = 0;
  /// bytes of a sum in the scratchpad: 8 of activations of 16 bits
  int64_t sumUnit = 4;

  Tile y;             ///< the result
  Tile start;         ///< with `accumulate`: what the sums begin with
  Tile residual;      ///< what is added to the result
  size_t channel = 0; ///< of `epilogue`, its first one
};

/// A part of the outputs, as large as half of the accumulators lets it be. Several images are
/// whole.
struct Piece {
  int64_t image, images, row, rows, column, columns, channel, channels;
};

/// Writes the instructions of a product, piece by piece.
class ProductEmitter {
public:
  ProductEmitter(LoweringState& l, const Product& p, const Fusion& fusion)
      : l_(l), p_(p), fusion_(fusion) {}

  void emit() {
    const Cut cut = chooseCut();
    const int64_t channels = cut.blocks * l_.configuration.columns();
    for (int64_t n = 0; n < p_.images; n += cut.images)
      for (int64_t c = 0; c < p_.cout; c += channels)
        for (int64_t r = 0; r < p_.outHeight; r += cut.rows)
          for (int64_t q = 0; q < p_.outWidth; q += cut.columns)
            emit({n, std::min(cut.images, p_.images - n), r, std::min(cut.rows, p_.outHeight - r),
                  q, std::min(cut.columns, p_.outWidth - q), c, std::min(channels, p_.cout - c)});
  }

private:
  /// How large pieces are: blocks of columns, rows and columns of the result, images.
  struct Cut {
    int64_t blocks, rows, columns, images;
  };

  /// The accumulator rows of a piece, at most: half of all. Of a long product no more than half of
  /// its own, so that requant begins before all is summed. Sums that stay in the array leave it
  /// fold by fold anyway.
  int64_t mostRows() const {
    const int64_t half = l_.configuration.accumulatorRows() / 2;
    if (l_.configuration.isOutputStationary()) return half;
    const int64_t all =
        p_.images * p_.sumHeight * p_.sumWidth * ceilDiv(p_.cout, l_.configuration.columns());
    const int64_t enough = 16 * static_cast<int64_t>(l_.configuration.rows());
    return std::min(half, std::max(ceilDiv(all, 2), enough));
  }

  /// Positions of a piece that make its stream long enough.
  int64_t wantedPositions() const { return 8 * static_cast<int64_t>(l_.configuration.rows()); }

  Cut chooseCut() const {
    const int64_t width = l_.configuration.columns();
    const int64_t half = mostRows();
    // Blocks of channels share the activations that a pass streams; a pass should be longer than
    // the weights that load behind it.
    const int64_t passes = std::min(p_.images * p_.sumHeight * p_.sumWidth, wantedPositions());
    const int64_t all = ceilDiv(p_.cout, width);
    // Two sets of records fit: the next ones come while a piece reads its own.
    const auto withRecords = [&](int64_t blocks) {
      // Behind records of floats lie their bounds, 16 bytes with what they are rounded up to.
      const int64_t bounds = fusion_.epilogue && fusion_.epilogue->floats ? 32 : 0;
      return fusion_.epilogue
                 ? std::clamp<int64_t>((l_.recordsBytes - bounds) / (16 * width), 1, blocks)
                 : blocks;
    };
    Cut best = cutOf(withRecords(std::clamp<int64_t>(half / std::max<int64_t>(passes, 1), 1, all)));
    if (!l_.configuration.isOutputStationary() || fusion_.pool || p_.depthwise || p_.cin == 0)
      return best;
    // Sums that stay in the array load no weights ahead: what is lost are folds of few positions,
    // and the ends of pieces.
    int64_t least = cyclesOf(best);
    for (int64_t blocks = 1; blocks <= withRecords(std::min(all, half)); ++blocks) {
      const Cut cut = cutOf(blocks);
      const int64_t cycles = cyclesOf(cut);
      if (cycles >= least) continue;
      least = cycles;
      best = cut;
    }
    return best;
  }

  /// The largest pieces of so many blocks of columns; behind a pool they may be fewer.
  Cut cutOf(int64_t blocks) const {
    const int64_t half = mostRows();
    const int64_t places = p_.sumHeight * p_.sumWidth;
    int64_t columns = p_.outWidth, rows = p_.outHeight;
    if (fusion_.pool) { // whole rows of windows
      const PoolWindow& pool = *fusion_.pool;
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
    int64_t images = 1;
    if (rows == p_.outHeight && columns == p_.outWidth)
      images = std::clamp<int64_t>(
          std::min(half / (blocks * places), ceilDiv(wantedPositions(), places)), 1, kMostPlanes);
    return {blocks, rows, columns, images};
  }

  /// Cycles of the array for all pieces, one after the other.
  int64_t cyclesOf(const Cut& cut) const {
    struct Size {
      int64_t each, times;
    };
    const auto sizes = [](int64_t all, int64_t part) {
      return std::array<Size, 2>{{{part, all / part}, {all % part, all % part ? 1 : 0}}};
    };
    int64_t cycles = 0;
    for (const Size& n : sizes(p_.images, std::min(cut.images, p_.images)))
      for (const Size& c :
           sizes(p_.cout, std::min(cut.blocks * l_.configuration.columns(), p_.cout)))
        for (const Size& r : sizes(p_.outHeight, cut.rows))
          for (const Size& q : sizes(p_.outWidth, cut.columns))
            if (const int64_t times = n.times * c.times * r.times * q.times)
              cycles += times * cyclesOf({0, n.each, 0, r.each, 0, q.each, 0, c.each});
    return cycles;
  }

  /// Cycles of the array for one piece, wherever it lies.
  int64_t cyclesOf(const Piece& piece) const {
    npu::Operation conv{.insn = {}, .d = shapeOf(piece)};
    conv.insn.op = npu::Op::kConv;
    return npu::computeCost(l_.configuration, conv).cycles();
  }

  /// The fields of a window that do not hang on where the piece lies.
  npu::DescriptorValues shapeOf(const Piece& piece) const {
    namespace w = npu::descriptor::window;
    npu::DescriptorValues values{};
    values[w::kOutH] = piece.rows;
    values[w::kOutW] = piece.columns;
    values[w::kPlanes] = piece.images;
    values[w::kPlaneRows] = p_.planeRows;
    values[w::kCin] = p_.depthwise ? piece.channels : p_.cin;
    values[w::kCout] = piece.channels;
    values[w::kKernelH] = p_.kernel[0];
    values[w::kKernelW] = p_.kernel[1];
    values[w::kStrideH] = p_.stride[0];
    values[w::kStrideW] = p_.stride[1];
    values[w::kDilationH] = p_.dilation[0];
    values[w::kDilationW] = p_.dilation[1];
    values[w::kTaps] = 1;
    values[w::kRowStride] = p_.x.row;
    values[w::kPixelStride] = p_.x.pixel;
    values[w::kWeightPitch] = p_.weightPitch;
    values[w::kAccPitch] = pitchOf(piece);
    values[w::kAType] = static_cast<int64_t>(p_.xType);
    values[w::kAZp] = p_.xZero;
    values[w::kWType] = static_cast<int64_t>(p_.wType);
    values[w::kWZp] = p_.wZero;
    values[w::kTransposed] = p_.transposed;
    return values;
  }

  /// The most outputs of which a descriptor can say the windows.
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
    // Windows behind the image read padding alone; a descriptor says that as padding before its
    // first row, as far as that goes.
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
  struct Summed {
    Piece piece;
    int64_t top = 0, left = 0;
  };
  Summed summed(const Piece& outputs) const {
    Summed sums{outputs};
    if (!fusion_.pool) return sums;
    const PoolWindow& pool = *fusion_.pool;
    const auto cut = [&](size_t d, int64_t& begin, int64_t& count, int64_t extent,
                         int64_t& before) {
      const int64_t from = begin * pool.stride[d] - pool.pad[d],
                    end = from + (count - 1) * pool.stride[d] + pool.kernel[d];
      before = std::max<int64_t>(-from, 0);
      begin = std::max<int64_t>(from, 0);
      count = std::min(end, extent) - begin;
    };
    cut(0, sums.piece.row, sums.piece.rows, p_.sumHeight, sums.top);
    cut(1, sums.piece.column, sums.piece.columns, p_.sumWidth, sums.left);
    return sums;
  }

  void emit(const Piece& outputs) {
    const int64_t half = l_.configuration.accumulatorRows() / 2, width = l_.configuration.columns();
    const Summed summed = this->summed(outputs);
    const Piece& piece = summed.piece;
    const int64_t acc = l_.own().accumulatorTurn * half;
    const int64_t accRows = ceilDiv(piece.channels, width) * pitchOf(piece);
    l_.own().accumulatorTurn ^= 1;
    const Access sums{Access::kAccumulators, acc, acc + accRows, false};
    if (p_.accumulate) moveSums(npu::Op::kAccload, piece, sums, p_.start);
    if (p_.cin > 0) multiply(piece, sums);
    if (fusion_.epilogue)
      requantize(outputs, summed, sums);
    else
      moveSums(npu::Op::kAccstore, piece, sums, p_.y);
  }

  /// Accumulator rows of a block of columns of a piece.
  static int64_t pitchOf(const Piece& piece) { return piece.images * piece.rows * piece.columns; }

  /// Calls visit(part, row) for the parts of a piece that a descriptor of requant can say, and the
  /// accumulator row at which each begins: images one by one, unless they follow one another in
  /// the tiles as their rows do.
  template <typename Visit>
  void eachPart(const Piece& piece, int64_t sumsOfImage, std::initializer_list<const Tile*> tiles,
                Visit visit) const {
    const bool isOne =
        piece.images * piece.rows <= kMostRows && std::ranges::all_of(tiles, [&](const Tile* tile) {
          return tile->image == piece.rows * tile->row;
        });
    if (piece.images == 1 || isOne) {
      Piece part = piece;
      part.rows *= piece.images;
      part.images = 1;
      return visit(part, int64_t{0});
    }
    for (int64_t i = 0; i < piece.images; ++i) {
      Piece part = piece;
      part.image += i;
      part.images = 1;
      visit(part, i * sumsOfImage);
    }
  }

  void multiply(const Piece& piece, Access sums) {
    namespace w = npu::descriptor::window;
    namespace f = npu::field::conv;
    static_assert(int{f::kAccumulate} == int{npu::field::dwconv::kAccumulate});
    const Span high = spanOf(0, piece.row, piece.rows, p_.height),
               wide = spanOf(1, piece.column, piece.columns, p_.width);
    if (high.pad > 63 || wide.pad > 63)
      throw Refusal{CDL_REASON_ATTRIBUTE,
                    cdl::text("padding of ", std::max(high.pad, wide.pad), " > 63")};
    const int64_t taps = p_.kernel[0] * p_.kernel[1];
    npu::DescriptorValues values = shapeOf(piece);
    values[w::kInH] = high.count;
    values[w::kInW] = wide.count;
    values[w::kPadTop] = high.pad;
    values[w::kPadLeft] = wide.pad;
    if (!p_.depthwise) choosePasses(l_.configuration, values);
    npu::Insn insn =
        insnFor(p_.depthwise ? npu::Op::kDwconv : npu::Op::kConv, npu::Engine::kMatrix);
    const int64_t act = p_.x.at + piece.image * p_.x.image + high.begin * p_.x.row +
                        wide.begin * p_.x.pixel + (p_.depthwise ? piece.channel * p_.x.unit : 0);
    const int64_t wgt =
        p_.weights + piece.channel * (p_.transposed ? p_.weightPitch : p_.weightUnit);
    insn.values[f::kAcc] = sums.begin;
    insn.values[f::kAct] = act;
    insn.values[f::kWgt] = wgt;
    insn.values[f::kD] = l_.stream.descriptor(npu::DescriptorKind::kWindow, values);
    insn.values[f::kAccumulate] = p_.accumulate;
    sums.write = true;
    const auto macs =
        static_cast<uint64_t>(taps * (p_.depthwise ? 1 : p_.cin) * piece.channels * pitchOf(piece));
    l_.here().macs += macs;
    if (npu::isFloat(p_.xType)) l_.here().floatMacs += macs;
    const int64_t reach = (piece.images - 1) * p_.x.image + (high.count - 1) * p_.x.row +
                          (wide.count - 1) * p_.x.pixel +
                          (p_.depthwise ? piece.channels : p_.cin) * p_.x.unit;
    l_.stream.add(insn, {{Access::kScratchpad, act, act + reach, false},
                         {Access::kScratchpad, p_.weights, p_.weights + p_.weightBytes, false},
                         sums});
  }

  npu::DescriptorValues places(const Piece& piece, const Tile& tile, int64_t pitch) const {
    namespace e = npu::descriptor::epilogue;
    npu::DescriptorValues values{};
    values[e::kOutH] = values[e::kInH] = piece.rows;
    values[e::kOutW] = values[e::kInW] = piece.columns;
    values[e::kChannels] = piece.channels;
    values[e::kAccPitch] = pitch;
    values[e::kPoolH] = values[e::kPoolW] = values[e::kPoolStrideH] = values[e::kPoolStrideW] = 1;
    values[e::kRowStride] = tile.row;
    values[e::kPixelStride] = tile.pixel;
    values[e::kWide] = p_.sumUnit == 8;
    return values;
  }

  /// The first element of a piece, and the bytes from there to its last one.
  static int64_t addressOf(const Piece& piece, const Tile& tile) {
    return tile.at + piece.image * tile.image + piece.row * tile.row + piece.column * tile.pixel +
           piece.channel * tile.unit;
  }
  static Access accessOf(const Piece& piece, const Tile& tile, bool write) {
    const int64_t at = addressOf(piece, tile);
    return {Access::kScratchpad, at,
            at + (piece.rows - 1) * tile.row + (piece.columns - 1) * tile.pixel +
                piece.channels * tile.unit,
            write};
  }

  /// Moves sums between accumulators and scratchpad.
  void moveSums(npu::Op op, const Piece& piece, Access sums, const Tile& tile) {
    namespace f = npu::field::accload;
    static_assert(int{f::kSrc} == int{npu::field::accstore::kDst} &&
                  int{f::kD} == int{npu::field::accstore::kD});
    sums.write = op == npu::Op::kAccload;
    eachPart(piece, piece.rows * piece.columns, {&tile}, [&](const Piece& part, int64_t row) {
      npu::Insn insn = insnFor(op, npu::Engine::kRequant);
      insn.values[f::kAcc] = sums.begin + row;
      insn.values[f::kSrc] = addressOf(part, tile);
      insn.values[f::kD] =
          l_.stream.descriptor(npu::DescriptorKind::kEpilogue, places(part, tile, pitchOf(piece)));
      l_.stream.add(insn, {sums, accessOf(part, tile, !sums.write)});
    });
  }

  void requantize(const Piece& outputs, const Summed& summed, const Access& sums) {
    const Piece& piece = summed.piece;
    const int64_t params = l_.records(recordsOf(outputs));
    if (fusion_.pool) { // windows do not go on from image to image
      for (int64_t i = 0; i < outputs.images; ++i) {
        Piece part = outputs;
        part.image += i;
        part.images = 1;
        requantize(part, summed, sums, sums.begin + i * piece.rows * piece.columns, params);
      }
      return;
    }
    const Tile& residual = fusion_.residual ? p_.residual : p_.y;
    eachPart(outputs, piece.rows * piece.columns, {&p_.y, &residual},
             [&](const Piece& part, int64_t row) {
               requantize(part, summed, sums, sums.begin + row, params);
             });
  }

  /// One instruction: a part of the piece whose sums begin at `row`.
  void requantize(const Piece& piece, const Summed& summed, const Access& sums, int64_t row,
                  int64_t params) {
    namespace e = npu::descriptor::epilogue;
    namespace f = npu::field::requant;
    const Epilogue& epilogue = *fusion_.epilogue;
    npu::DescriptorValues values = places(piece, p_.y, pitchOf(summed.piece));
    values[e::kParams] = params;
    if (fusion_.pool) setWindows(summed, values);
    values[e::kOutType] = static_cast<int64_t>(epilogue.type);
    values[e::kZp] = epilogue.zero;
    values[e::kLow] = epilogue.low;
    values[e::kHigh] = epilogue.high;
    npu::Insn insn = insnFor(npu::Op::kRequant, npu::Engine::kRequant);
    const int64_t records = piece.channels + (epilogue.floats ? 1 : 0);
    std::vector<Access> accesses{sums,
                                 {Access::kScratchpad, params, params + 8 * records, false},
                                 accessOf(piece, p_.y, true)};
    insn.values[f::kAcc] = row;
    insn.values[f::kDst] = addressOf(piece, p_.y);
    if (fusion_.residual) {
      addResidual(piece, insn);
      accesses.push_back(accessOf(piece, p_.residual, false));
    }
    if (fusion_.entries) {
      const DeviceView& entries = *fusion_.entries;
      values[e::kTable] = entries.at;
      insn.values[f::kTable] = 1;
      accesses.push_back(
          {Access::kScratchpad, entries.at, entries.at + entries.dims[0] * entries.bytes, false});
    }
    insn.values[f::kD] = l_.stream.descriptor(npu::DescriptorKind::kEpilogue, values);
    l_.stream.add(insn, accesses);
  }

  /// The bias, multiplier and shift of each channel of a piece, as the device reads them.
  std::vector<std::byte> recordsOf(const Piece& piece) const {
    const Epilogue& epilogue = *fusion_.epilogue;
    std::vector<std::byte> records;
    const auto add = [&](uint32_t first, uint32_t second) {
      for (const uint32_t word : {first, second})
        for (int b = 0; b < 4; ++b) records.push_back(static_cast<std::byte>(word >> (8 * b)));
    };
    const auto bits = [](float number) { return std::bit_cast<uint32_t>(number); };
    for (int64_t c = 0; c < piece.channels; ++c) {
      const size_t channel = p_.channel + static_cast<size_t>(piece.channel + c);
      if (epilogue.floats)
        add(bits(epilogue.floats->scale[channel]), bits(epilogue.floats->bias[channel]));
      else
        add(static_cast<uint32_t>(epilogue.bias[channel]),
            static_cast<uint32_t>(epilogue.mult[channel]) |
                static_cast<uint32_t>(epilogue.shift[channel]) << 24);
    }
    if (epilogue.floats) add(bits(epilogue.floats->low), bits(epilogue.floats->high));
    return records;
  }

  /// The windows of the pool over the sums.
  void setWindows(const Summed& summed, npu::DescriptorValues& values) const {
    namespace e = npu::descriptor::epilogue;
    const PoolWindow& pool = *fusion_.pool;
    values[e::kInH] = summed.piece.rows;
    values[e::kInW] = summed.piece.columns;
    values[e::kPoolH] = pool.kernel[0];
    values[e::kPoolW] = pool.kernel[1];
    values[e::kPoolStrideH] = pool.stride[0];
    values[e::kPoolStrideW] = pool.stride[1];
    values[e::kPoolPadTop] = summed.top;
    values[e::kPoolPadLeft] = summed.left;
  }

  void addResidual(const Piece& piece, npu::Insn& insn) {
    namespace f = npu::field::requant;
    namespace r = npu::descriptor::rescale;
    const Residual& residual = *fusion_.residual;
    npu::DescriptorValues values = rescaleValues(residual.scale, fusion_.type);
    values[r::kBType] = static_cast<int64_t>(residual.from.type());
    values[r::kRowStride] = p_.residual.row;
    values[r::kPixelStride] = p_.residual.pixel;
    insn.values[f::kRes] = addressOf(piece, p_.residual);
    insn.values[f::kR] = l_.stream.descriptor(npu::DescriptorKind::kRescale, values);
    insn.values[f::kResidual] = 1;
  }

  LoweringState& l_;
  const Product& p_;
  const Fusion& fusion_;
};

int64_t bytesFrom(const DeviceView& o) {
  const Access all = o.access(false);
  return all.end - o.at;
}

void needInside(const DeviceView& o, size_t channel, const char* what) {
  if (!o.isLocal())
    throw Refusal{CDL_REASON_MEMORY, cdl::text(what, " does not lie in the scratchpad")};
  if (o.dims[channel] > 1 && o.strides[channel] != 1)
    throw Refusal{CDL_REASON_LAYOUT, cdl::text(what, " does not have its channels side by side")};
  for (int d = 0; d < o.rank; ++d)
    if (o.dims[static_cast<size_t>(d)] > 1 && o.strides[static_cast<size_t>(d)] < 0)
      throw Refusal{CDL_REASON_OPERAND_CLASS, cdl::text(what, " runs backwards")};
}

/// Sets types, zero points, and how large sums are.
void setTypes(LoweringState& l, const cdl::Op& op, Product& p) {
  const DeviceView x = l.image.input(op, 0), w = l.image.input(op, 1);
  p.xType = x.type();
  p.wType = w.type();
  p.weightUnit = w.bytes;
  p.sumUnit = sumsOf(op) == CDL_I64 ? 8 : 4;
  if (op.operands() > 2) p.xZero = l.image.scalar(l.image.input(op, 2), "the zero point");
  if (op.operands() > 3) p.wZero = l.image.scalar(l.image.input(op, 3), "the weights' zero point");
}

/// What the sums begin with: what stands in y, or an operand of the epilogue; null: 0.
const DeviceView* startOf(const cdl::Op& op, const DeviceView& y, const Fusion& fusion) {
  if (op.attr(CDL_ATTR_ACCUMULATE, 0) != 0 || fusion.addsToResult) return &y;
  return fusion.epilogue && fusion.epilogue->start ? &*fusion.epilogue->start : nullptr;
}

/// The address of a zero for each channel, with which sums of nothing begin.
int64_t zeroSums(LoweringState& l, const Product& p) {
  return l.records(std::vector<std::byte>(static_cast<size_t>(p.sumUnit * p.cout), std::byte{0}));
}

/// How far the rows of weights by (kh, kw, i, o) lie apart: the stride of the innermost dim beside
/// the outputs that has more than one element, as those of the others say nothing.
int64_t firstMovingStride(const DeviceView& w, int64_t outputs) {
  if (w.dims[2] > 1) return w.strides[2];
  if (w.dims[1] > 1) return w.strides[1];
  return w.dims[0] > 1 ? w.strides[0] : outputs;
}

/// The tile of the images from n on of a view by (n, h, w, c), from a channel on, of elements of so
/// many bytes.
Tile imageTile(const DeviceView& o, int64_t n, int64_t channel, int64_t unit) {
  return {.at = o.at + (n * o.strides[0] + channel) * unit,
          .image = o.strides[0] * unit,
          .row = o.strides[1] * unit,
          .pixel = o.strides[2] * unit,
          .unit = unit};
}
/// The tile of matrix n of a view by (n, row, column).
Tile matrixTile(const DeviceView& o, int64_t n, int64_t unit) {
  return {.at = o.at + n * o.strides[0] * unit, .row = o.strides[1] * unit, .unit = unit};
}

/// Refuses weights by (kh, kw, i, o) whose rows do not lie evenly apart: a descriptor has one
/// pitch.
void needEvenRows(const DeviceView& w, int64_t pitch) {
  const auto need = [&](size_t dim, int64_t stride) {
    if (w.dims[dim] > 1 && w.strides[dim] != stride)
      throw Refusal{CDL_REASON_LAYOUT, cdl::text("weights step by ", w.strides[dim], " along dim ",
                                                 dim, " and not by ", stride)};
  };
  need(1, w.dims[2] * pitch);
  need(0, w.dims[1] * w.dims[2] * pitch);
}

/// What all images and groups of a convolution share.
Product convolutionOf(LoweringState& l, const cdl::Op& op, const DeviceView& y) {
  const DeviceView x = l.image.input(op, 0), w = l.image.input(op, 1), sums = l.image.output(op);
  const int64_t group = op.attr(CDL_ATTR_GROUP, 1), inputs = w.dims[2], outputs = y.dims[3];
  Product p;
  setTypes(l, op, p);
  p.height = x.dims[1];
  p.width = x.dims[2];
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
  p.weightPitch = firstMovingStride(w, outputs) * w.bytes;
  p.weightBytes = bytesFrom(w);
  return p;
}

/// Has an instruction take several images where a descriptor can say where each begins: so many
/// rows behind the one before it.
void joinImages(const DeviceView& x, Product& p) {
  const int64_t image = x.strides[0] * x.bytes;
  int64_t row = x.strides[1] * x.bytes;
  if (p.height == 1) row = image; // of one row, which is then as far from the next one
  if (x.dims[0] == 1 || (row == 0 && image != 0) || row > kMostRowStride) return;
  const int64_t rows = row == 0 ? 1 : image / row;
  if (rows < 1 || rows > kMostRows || rows * row != image) return;
  p.images = x.dims[0];
  p.planeRows = rows;
}

/// Lowers a CONV2D: x, y and the residual by (n, h, w, c), weights by (kh, kw, i, o).
void convolve(LoweringState& l, const cdl::Op& op, const DeviceView& y, const Fusion& fusion) {
  const DeviceView x = l.image.input(op, 0), w = l.image.input(op, 1);
  needInside(x, 3, "x");
  needInside(w, 3, "w");
  needInside(y, 3, "y");
  Product p = convolutionOf(l, op, y);
  needEvenRows(w, p.weightPitch / w.bytes);
  const DeviceView* start = startOf(op, y, fusion);
  p.accumulate = start || !p.cin;
  const int64_t groups = p.depthwise ? 1 : op.attr(CDL_ATTR_GROUP, 1);
  joinImages(x, p);
  for (int64_t n = 0; n < y.dims[0]; n += p.images)
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t channel = g * p.cout;
      p.x = imageTile(x, n, g * p.cin, x.bytes);
      if (p.images > 1 && p.height == 1) p.x.row = p.x.image;
      p.y = imageTile(y, n, channel, y.bytes);
      p.weights = w.at + channel * w.bytes;
      p.channel = static_cast<size_t>(channel);
      if (!p.cin) p.start.at = zeroSums(l, p);
      if (start) p.start = imageTile(*start, n, channel, p.sumUnit);
      if (fusion.residual) {
        const DeviceView& from = fusion.residual->from;
        p.residual = imageTile(from, n, channel, from.bytes);
      }
      ProductEmitter(l, p, fusion).emit();
    }
}

/// Lowers a MATMUL: a[B,M,K], b[B,K,N], y[B,M,N].
void multiply(LoweringState& l, const cdl::Op& op, const DeviceView& y, const Fusion& fusion) {
  const DeviceView a = l.image.input(op, 0), b = l.image.input(op, 1);
  needInside(a, 2, "a");
  needInside(y, 2, "y");
  const bool isTransposed = b.dims[2] > 1 && b.strides[2] != 1;
  needInside(b, isTransposed ? 1 : 2, "b");
  Product p;
  setTypes(l, op, p);
  p.height = p.sumHeight = p.outHeight = y.dims[1];
  p.cin = a.dims[2];
  p.cout = y.dims[2];
  p.transposed = isTransposed;
  p.weightPitch = b.dims[1] > 1 ? b.strides[1] : p.cout;
  if (isTransposed) p.weightPitch = b.strides[2];
  p.weightPitch *= b.bytes;
  const DeviceView* start = startOf(op, y, fusion);
  p.accumulate = start || !p.cin;
  DeviceView one = b;
  one.dims[0] = 1;
  p.weightBytes = bytesFrom(one);
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    p.x = matrixTile(a, n, a.bytes);
    p.y = matrixTile(y, n, y.bytes);
    p.weights = b.at + n * b.strides[0] * b.bytes;
    if (!p.cin) p.start.at = zeroSums(l, p);
    if (start) p.start = matrixTile(*start, n, p.sumUnit);
    if (fusion.residual) {
      const DeviceView& from = fusion.residual->from;
      p.residual = matrixTile(from, n, from.bytes);
    }
    ProductEmitter(l, p, fusion).emit();
  }
}

/// Refuses an epilogue that is done step by step on the result and reads where the result goes;
/// `under` may lie there, as sums begin with it.
void needApart(LoweringState& l, const cdl::Op& op, const DeviceView& y,
               std::optional<uint32_t> under) {
  for (uint32_t i = op.operands(); i < op.inputs(); ++i) {
    if (i == under) continue;
    const Access read = l.image.input(op, i).access(false), written = y.access(true);
    if (read.memory == written.memory && read.begin < written.end && written.begin < read.end)
      throw Refusal{CDL_REASON_OPERAND_CLASS,
                    "an operand of the epilogue lies where the result goes"};
  }
}

/// Refuses sums of activations of 16 bits that an accumulator might not hold exactly.
void needExactSums(const cdl::Op& op, int64_t terms) {
  if (terms > kMostTerms)
    throw Refusal{CDL_REASON_DIM, cdl::text("sums of ", terms, " products of 16 bits: more than ",
                                            kMostTerms, " may leave 40 bits")};
  if (op.attr(CDL_ATTR_ACCUMULATE, 0) != 0)
    throw Refusal{CDL_REASON_ATTRIBUTE, "sums of 64 bits that go on: the accumulators have 40"};
}

/// The pass of a product of floats; false where its expression is left to the vector engine.
bool findFloatPass(LoweringState& l, const cdl::Op& op, Pass& pass) {
  try {
    pass = passOf(l, op);
    return true;
  } catch (const Refusal&) {
    if (!op.expr() || !npu::isFloat(pass.y.type())) throw;
  }
  needApart(l, op, pass.y, std::nullopt);
  pass.fusion.epilogue = sumsAlone(l, op, pass.y.rank - 1);
  pass.fusion.type = pass.y.type();
  return false;
}

} // namespace

uint32_t lowerProduct(LoweringState& l, const cdl::Op& op) {
  const bool isConv = op.kind() == cdl::Kind::Conv2d;
  const bool accumulates = op.attr(CDL_ATTR_ACCUMULATE, 0) != 0;
  const uint8_t sums = sumsOf(op);
  Pass pass{.y = l.image.output(op), .fusion = {}};
  if (pass.y.elements() == 0) return 1;
  bool hasFloatSteps = false;
  if (sums == CDL_F32)
    hasFloatSteps = !findFloatPass(l, op, pass);
  else if (op.expr() && pass.y.elem != sums)
    pass = passOf(l, op);
  else if (pass.y.elem != sums)
    throw Refusal{CDL_REASON_DTYPE,
                  cdl::text("a product without an epilogue has sums of ", cdl::elemName(sums))};
  const bool hasSteps = op.expr() && !pass.fusion.epilogue;
  std::optional<uint32_t> under;
  if (hasSteps) {
    if (!accumulates) under = viewUnderResult(l, op);
    pass.fusion.addsToResult = under.has_value();
    needApart(l, op, pass.y, under);
  }
  const DeviceView w = l.image.input(op, 1);
  const int64_t summed = isConv ? w.dims[2] : w.dims[1],
                terms = isConv ? w.dims[0] * w.dims[1] * summed : summed;
  if (sums == CDL_I64) needExactSums(op, terms);
  if (summed == 0 && !pass.fusion.epilogue) { // sums of nothing
    if (!accumulates && !under) lowerFill(l, pass.y, 0);
  } else if (isConv) {
    convolve(l, op, pass.y, pass.fusion);
  } else {
    multiply(l, op, pass.y, pass.fusion);
  }
  if (hasSteps) lowerSteps(l, op, under ? 1 : 0);
  if (hasFloatSteps) lowerFloatSteps(l, op);
  return pass.taken;
}

} // namespace npu_sim
