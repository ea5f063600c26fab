// MATMUL y[B,M,N] = a[B,M,K] . b[B,K,N]: packed blocks, one register tile, rows finished through
// the epilogue.
//
// Every result is the sum over k in order, whatever the blocks, so that the bits do not depend on
// the shape of the tiles. 8-bit products go through the f32 tile: 256 of at most 255 * 255 stay
// below 2^24, where f32 counts exactly; 16-bit ones through the f64 tile. Other integers, and zero
// points outside of their type, go through wrapping 64-bit integers.
#include <algorithm>

#include "core/runtime/host_executor/expr.h"
#include "core/runtime/host_executor/gemm.h"
#include "core/runtime/host_executor/share.h"

namespace candela::runtime::host_executor {
namespace {

struct Problem {
  Operand a, b, y;
  Scratch<int64_t> aZero, bZero; // empty, one, or (b only) N values
  bool accumulate = false;
  const Workers* workers = nullptr;
};

// A row of sums as the accumulator's element type, added to what y holds when accumulating.
template <class T, class Sum>
void storeRow(const Sum* sums, const void* old, int64_t n, void* out) {
  T* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (isFloating<T>) {
      Compute<T> value = static_cast<Compute<T>>(sums[i]);
      if (old) value = load(static_cast<const T*>(old)[i]) + value;
      y[i] = store<T>(value);
    } else {
      const T value = static_cast<T>(sums[i]);
      y[i] = old ? semantics::add(static_cast<const T*>(old)[i], value) : value;
    }
  }
}

template <class Sum> using StoreRow = void (*)(const Sum*, const void*, int64_t, void*);

// TA, TB: storage of the operands; S: what the tile computes in; Sum: what is kept between blocks
// of depth. A copy is for another thread.
template <class TA, class TB, class S, class Sum> class Gemm {
public:
  Gemm(const Problem& problem, Finisher finisher, StoreRow<Sum> storeRow)
      : p_(problem), finisher_(std::move(finisher)), storeRow_(storeRow) {
    const int64_t wholeDepth = p_.a.dims[2];
    depth_ = std::clamp<int64_t>(wholeDepth, 1, std::is_same_v<S, Sum> ? 4096 : 256);
    columns_ = roundUp(std::clamp<int64_t>(std::min((1 << 17) / depth_, p_.y.dims[2]), 1, kBlock),
                       kColumns);
    rows_ =
        roundUp(std::clamp<int64_t>(std::min((1 << 15) / depth_, p_.y.dims[1]), 1, 128), kTileRows);
    partRows_ = std::max<int64_t>(p_.y.dims[1], 1);
    const double products = static_cast<double>(p_.y.dims[0]) * static_cast<double>(p_.y.dims[1]) *
                            static_cast<double>(p_.y.dims[2]) * static_cast<double>(wholeDepth);
    if (threadsOf(workers_) < 2) return;
    if (products < static_cast<double>(2 * kTileSteps * workers_->partSteps))
      workers_ = nullptr;
    else
      cutFor(workers_->threads);
  }

  /// Parts of the result: of one batch, a block of columns and some of the rows.
  int64_t parts() const { return p_.y.dims[0] * columnParts() * rowParts(); }
  const Workers* workers() const { return workers_; }

  void operator()(int64_t part) {
    if (sums_.empty()) makeRoom();
    const int64_t rowPart = part % rowParts(), rest = part / rowParts();
    const int64_t n0 = rest % columnParts() * columns_, batch = rest / columnParts();
    const int64_t columns = std::min(columns_, p_.y.dims[2] - n0);
    const int64_t first = rowPart * partRows_;
    const int64_t end = std::min(first + partRows_, p_.y.dims[1]);
    isPacked_ = false;
    for (int64_t m0 = first; m0 < end; m0 += rows_)
      block(batch, m0, std::min(rows_, end - m0), n0, columns);
  }

private:
  static constexpr int64_t kTileSteps = 8; // products that take the time of a step elsewhere
  /// What packing an operand for a part costs is made up for by so many rows or columns.
  static constexpr int64_t kFewest = 48;

  int64_t columnParts() const { return ceilDiv(p_.y.dims[2], columns_); }
  int64_t rowParts() const { return ceilDiv(p_.y.dims[1], partRows_); }

  /// Even parts, a multiple of the threads where they are few: first of columns, for each packs its
  /// own, then of rows.
  void cutFor(int64_t threads) {
    const int64_t fewest = std::min(kFewest, workers_->partSteps);
    const int64_t batches = std::max<int64_t>(p_.y.dims[0], 1);
    const int64_t m = p_.y.dims[1], n = std::max<int64_t>(p_.y.dims[2], 1);
    int64_t blocks = ceilDiv(n, columns_);
    if (blocks * batches < 8 * threads)
      blocks = std::min(roundUp(blocks, threads), std::max(blocks, n / fewest));
    columns_ = roundUp(ceilDiv(n, blocks), kColumns);
    const int64_t few = ceilDiv(n, columns_) * batches;
    if (few >= 2 * threads) return;
    const int64_t wanted = ceilDiv(4 * threads, few);
    const int64_t rowParts = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(m / fewest, 1));
    partRows_ = roundUp(ceilDiv(m, rowParts), kTileRows);
  }

  void makeRoom() {
    packedA_.resize(static_cast<size_t>(rows_ * depth_));
    packedB_.resize(static_cast<size_t>(columns_ * depth_));
    sums_.resize(static_cast<size_t>(rows_ * columns_));
    row_.resize(kBlock);
    old_.resize(p_.accumulate ? kBlock : 0);
  }

  static constexpr int kColumns = tileColumns<S>;
  static int64_t roundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
  static const int64_t* zeros(const Scratch<int64_t>& values) {
    return values.empty() ? nullptr : values.data();
  }

  void block(int64_t batch, int64_t m0, int64_t rows, int64_t n0, int64_t columns) {
    const Matrix a{&p_.a, p_.a.start + batch * p_.a.strides[0], p_.a.strides[1], p_.a.strides[2]};
    // columns as rows
    const Matrix b{&p_.b, p_.b.start + batch * p_.b.strides[0], p_.b.strides[2], p_.b.strides[1]};
    std::fill(sums_.begin(), sums_.end(), Sum(0));
    const int64_t wholeDepth = p_.a.dims[2];
    for (int64_t k0 = 0; k0 < wholeDepth; k0 += depth_) {
      const int64_t depth = std::min(depth_, wholeDepth - k0);
      if (!isPacked_ || depth_ < wholeDepth) // else packed by the first block of rows
        packPanels<TB, S>(b, n0, columns, k0, depth, kColumns, zeros(p_.bZero), p_.bZero.size() > 1,
                          packedB_.data());
      isPacked_ = true;
      packPanels<TA, S>(a, m0, rows, k0, depth, kTileRows, zeros(p_.aZero), 0, packedA_.data());
      for (int64_t j = 0; j < columns; j += kColumns)
        for (int64_t i = 0; i < rows; i += kTileRows)
          tile(depth, packedA_.data() + i * depth, packedB_.data() + j * depth,
               sums_.data() + i * columns_ + j);
    }
    for (int64_t i = 0; i < rows; ++i)
      finishRow(batch, m0 + i, n0, columns, sums_.data() + i * columns_);
  }

  void tile(int64_t depth, const S* a, const S* b, Sum* sums) {
    alignas(16) S c[kTileRows * kColumns] = {};
    if constexpr (std::is_same_v<S, Sum>)
      for (int i = 0; i < kTileRows; ++i)
        std::memcpy(c + i * kColumns, sums + i * columns_, kColumns * sizeof(S));
    multiplyTile<S>(depth, a, b, c);
    for (int i = 0; i < kTileRows; ++i)
      for (int j = 0; j < kColumns; ++j) {
        Sum& sum = sums[i * columns_ + j];
        if constexpr (std::is_same_v<S, Sum>)
          sum = c[i * kColumns + j];
        else
          sum = semantics::add(sum, static_cast<Sum>(c[i * kColumns + j]));
      }
  }

  void finishRow(int64_t batch, int64_t m, int64_t n0, int64_t columns, const Sum* sums) {
    const Operand& y = p_.y;
    if (p_.accumulate)
      gatherBlock(y, y.start + batch * y.strides[0] + m * y.strides[1] + n0 * y.strides[2],
                  y.strides[2], columns, old_.data());
    storeRow_(sums, p_.accumulate ? old_.data() : nullptr, columns, row_.data());
    const int64_t index[] = {batch, m};
    finisher_.finish(index, n0, row_.data(), columns);
  }

  const Problem& p_;
  Finisher finisher_;
  StoreRow<Sum> storeRow_;
  const Workers* workers_ = p_.workers;
  int64_t depth_, columns_, rows_; // of a block
  int64_t partRows_;               // of a part, which is some blocks
  bool isPacked_ = false;          // the part's columns of b, in one block of depth
  Scratch<S> packedA_, packedB_;
  Scratch<Sum> sums_;
  Scratch<uint64_t> row_, old_;
};

template <class TA, class TB, class S, class TAcc, class Sum = S>
void gemm(const Problem& problem, Finisher finisher) {
  Gemm<TA, TB, S, Sum> product(problem, std::move(finisher), storeRow<TAcc, Sum>);
  const Workers* workers = product.workers();
  const int64_t parts = product.parts();
  shareUnits(workers, parts, std::move(product));
}

/// Operands whose product soft has. The accumulator's type follows from them, whatever an epilogue
/// makes of it.
struct Product {
  uint8_t a, b, acc;
  void (*usual)(const Problem&, Finisher);
  void (*wide)(const Problem&, Finisher); // when a zero point lies outside of its operand's type
};

// Small integers: exactly in floats of S, else in 64-bit integers.
template <class TA, class TB, class S, class TAcc>
constexpr Product small(uint8_t a, uint8_t b, uint8_t acc) {
  return {a, b, acc, gemm<TA, TB, S, TAcc, TAcc>, gemm<TA, TB, uint64_t, TAcc>};
}
template <class T> constexpr Product half(uint8_t elem) { // the sum as it is
  return {elem, elem, CDL_F32, gemm<T, T, float, float>, gemm<T, T, float, float>};
}
template <class T, class S> constexpr Product alike(uint8_t elem) {
  return {elem, elem, elem, gemm<T, T, S, T>, gemm<T, T, S, T>};
}

constexpr Product kProducts[] = {
    alike<float, float>(CDL_F32),
    alike<double, double>(CDL_F64),
    alike<F16, float>(CDL_F16),
    alike<Bf16, float>(CDL_BF16),
    half<F16>(CDL_F16),
    half<Bf16>(CDL_BF16),
    alike<int32_t, uint64_t>(CDL_I32),
    alike<uint32_t, uint64_t>(CDL_U32),
    alike<int64_t, uint64_t>(CDL_I64),
    alike<uint64_t, uint64_t>(CDL_U64),
    small<int8_t, int8_t, float, int32_t>(CDL_I8, CDL_I8, CDL_I32),
    small<uint8_t, int8_t, float, int32_t>(CDL_U8, CDL_I8, CDL_I32),
    small<int8_t, uint8_t, float, int32_t>(CDL_I8, CDL_U8, CDL_I32),
    small<uint8_t, uint8_t, float, int32_t>(CDL_U8, CDL_U8, CDL_I32),
    small<int16_t, int8_t, double, int64_t>(CDL_I16, CDL_I8, CDL_I64),
    small<int16_t, int16_t, double, int64_t>(CDL_I16, CDL_I16, CDL_I64),
};

/// acc 0: what is usual.
const Product* find(uint8_t a, uint8_t b, uint8_t acc) {
  for (const Product& product : kProducts)
    if (product.a == a && product.b == b && (acc == 0 || product.acc == acc)) return &product;
  return nullptr;
}

bool isZero(const Operand& zero, uint8_t elem) {
  return !zero.present() || (isIntegerElem(elem) && cdl_elem_bits(elem) <= 16 &&
                             (zero.elem == elem || zero.elem == CDL_I32));
}

// The zero points as numbers; false in `usual` when one lies outside of `elem`.
Scratch<int64_t> readZeros(const Operand& zero, uint8_t elem, bool& usual) {
  Scratch<int64_t> values;
  if (!zero.present()) return values;
  const IntegerRange range(elem);
  for (int64_t i = 0; i < zero.elements(); ++i) {
    const int64_t at = zero.start + i * zero.strides[0];
    values.push_back(withInteger(
        zero.elem, [&]<class T>(Tag<T>) { return static_cast<int64_t>(*zero.at<T>(at)); }));
    usual = usual && values.back() >= range.lowest && values.back() <= range.highest;
  }
  return values;
}

} // namespace

bool hasProduct(uint8_t a, uint8_t b, uint8_t acc) { return find(a, b, acc) != nullptr; }

cdl::Status runMatmul(const Call& call) {
  Problem p{
      call.input(0), call.input(1), call.output(), {}, {}, call.attr(CDL_ATTR_ACCUMULATE, 0) != 0,
      nullptr};
  const Operand aZero = call.input(2), bZero = call.input(3);
  const Product* product = find(p.a.elem, p.b.elem, accumulatorElem(call));
  if (!product || !isZero(aZero, p.a.elem) || !isZero(bZero, p.b.elem)) return call.failElems();
  Finisher finisher;
  if (cdl::Status status = finisher.bind(call, product->acc); !status.isOk()) return status;
  bool usual = true;
  p.aZero = readZeros(aZero, p.a.elem, usual);
  p.bZero = readZeros(bZero, p.b.elem, usual);
  p.workers = hasOwnPlaces(p.y) ? call.workers : nullptr;
  (usual ? product->usual : product->wide)(p, std::move(finisher));
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
