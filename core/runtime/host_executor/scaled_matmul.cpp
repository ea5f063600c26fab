// SCALED_MATMUL y[M,N] = a[M,K] . w[N,G,S] transposed, with scales and zero points by block.
//
// A thread takes some columns. It decodes the weights of each once, into what all rows of a then
// meet: into real numbers, or, where a holds integers or is rounded to them, into integers, whose
// sums are exact within a block. Blocks of integers are added in order, each by one fma, so that
// every backend that does the same has the same bits.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/runtime/host_executor/expr.h"
#include "core/runtime/host_executor/share.h"

namespace candela::runtime::host_executor {
namespace {

/// Elements of an operand as f32, which holds all types that a scaled product has but for roundings
/// of none.
class Reals {
public:
  Reals() = default;
  explicit Reals(const Operand& from) : from_(from) {
    op_.from = from.elem;
    op_.to = CDL_F32;
    convert_ = findConvert(op_.from, op_.to);
    raw_.resize(kBlock);
  }
  /// `count` elements from `position` on.
  void read(int64_t position, int64_t stride, int64_t count, float* to) {
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t n = std::min(kBlock, count - i);
      gatherBlock(from_, position + i * stride, stride, n, raw_.data());
      const void* in[] = {raw_.data()};
      convert_(op_, in, to + i, n);
    }
  }
  const Operand& operand() const { return from_; }

private:
  Operand from_;
  BlockOp op_{};
  BlockOp::Function convert_ = nullptr;
  Scratch<uint64_t> raw_;
};

/// A row of an operand [rows, G], or `missing` everywhere.
void readBlocks(const Operand& from, int64_t row, float missing, Scratch<float>& to) {
  if (!from.present()) {
    std::fill(to.begin(), to.end(), missing);
    return;
  }
  Reals(from).read(from.start + row * from.strides[0], from.strides[1],
                   static_cast<int64_t>(to.size()), to.data());
}

/// The sum of products, in eight parts that are vectors wherever the machine has them.
float dot(const float* a, const float* b, int64_t count) {
  std::array<float, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (size_t j = 0; j < 8; ++j)
      sums[j] += a[i + static_cast<int64_t>(j)] * b[i + static_cast<int64_t>(j)];
  for (size_t j = 0; i < count; ++i, ++j) sums[j] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

int32_t dot(const int16_t* a, const int16_t* b, int64_t count) {
  int32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += int32_t{a[i]} * int32_t{b[i]};
  return sum;
}

/// The extents of a product.
struct Extents {
  int64_t rows, depth, columns, blocks, block;

  int64_t first(int64_t g) const { return g * block; }
  int64_t count(int64_t g) const { return std::min(block, depth - first(g)); }
};

/// a, decoded once for all threads.
struct Activations {
  Scratch<float> reals;   // [M,K], times their scales
  Scratch<int16_t> whole; // [M,K]
  Scratch<float> steps;   // [M,G], what one of `whole` stands for
  bool isWhole = false;
};

/// Rounds a block to i8 by its largest magnitude; returns the step.
float roundBlock(const float* x, int64_t count, int16_t* to) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = cdl_max_f32(largest, std::fabs(x[i]));
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(cdl_dynamic_i8(x[i], largest));
  return cdl_dynamic_step(largest);
}

Activations readActivations(const Call& call, const Extents& e) {
  const Operand a = call.input(0), scale = call.input(4);
  const bool isDynamic = call.instr->fn == CDL_SCALED_MATMUL_DYNAMIC;
  Activations to;
  to.isWhole = isDynamic || a.elem == CDL_I8;
  to.reals.resize(static_cast<size_t>(e.rows * e.depth));
  to.steps.resize(static_cast<size_t>(e.rows * e.blocks));
  if (to.isWhole) to.whole.resize(to.reals.size());
  Reals reader(a);
  Scratch<float> scales(static_cast<size_t>(e.blocks));
  for (int64_t m = 0; m < e.rows; ++m) {
    float* row = to.reals.data() + m * e.depth;
    reader.read(a.start + m * a.strides[0], a.strides[1], e.depth, row);
    readBlocks(scale, m, 1, scales);
    for (int64_t g = 0; g < e.blocks; ++g) {
      const int64_t at = m * e.depth + e.first(g);
      float& step = to.steps[static_cast<size_t>(m * e.blocks + g)];
      step = scales[static_cast<size_t>(g)];
      if (isDynamic)
        step = roundBlock(row + e.first(g), e.count(g), to.whole.data() + at);
      else if (to.isWhole)
        for (int64_t i = 0; i < e.count(g); ++i)
          to.whole[static_cast<size_t>(at + i)] = static_cast<int16_t>(row[e.first(g) + i]);
      else
        for (int64_t i = 0; i < e.count(g); ++i) row[e.first(g) + i] *= step;
    }
  }
  return to;
}

/// Some columns of the result. A copy is for another thread.
class Columns {
public:
  Columns(const Call& call, const Extents& extents, const Activations& a, uint8_t sumElem,
          Finisher finisher)
      : e_(extents), a_(a), scale_(call.input(2)), zero_(call.input(3)), weights_(call.input(1)),
        finisher_(std::move(finisher)) {
    toSum_.from = CDL_F32;
    toSum_.to = sumElem;
    convert_ = findConvert(toSum_.from, toSum_.to);
  }

  void operator()(int64_t first, int64_t end) {
    if (row_.empty()) makeRoom();
    for (int64_t n = first; n < end; n += kColumns) some(n, std::min(kColumns, end - n));
  }

private:
  static constexpr int64_t kColumns = 64;

  void makeRoom() {
    row_.resize(static_cast<size_t>(std::max<int64_t>(e_.depth, 1)));
    whole_.resize(row_.size());
    scales_.resize(static_cast<size_t>(e_.blocks));
    zeros_.resize(scales_.size());
    sums_.resize(static_cast<size_t>(e_.rows * kColumns));
    results_.resize(kBlock);
  }

  void some(int64_t n, int64_t count) {
    for (int64_t j = 0; j < count; ++j) {
      decode(n + j);
      for (int64_t m = 0; m < e_.rows; ++m)
        sums_[static_cast<size_t>(m * kColumns + j)] = a_.isWhole ? wholeSum(m) : realSum(m);
    }
    for (int64_t m = 0; m < e_.rows; ++m) {
      const void* in[] = {sums_.data() + m * kColumns};
      convert_(toSum_, in, results_.data(), count);
      const int64_t index[] = {m};
      finisher_.finish(index, n, results_.data(), count);
    }
  }

  /// The weights of a column, less their zero points; real ones times their scales.
  void decode(int64_t n) {
    readBlocks(scale_, n, 1, scales_);
    readBlocks(zero_, n, 0, zeros_);
    const Operand& w = weights_.operand();
    for (int64_t g = 0; g < e_.blocks; ++g) {
      float* block = row_.data() + e_.first(g);
      const float zero = zeros_[static_cast<size_t>(g)], scale = scales_[static_cast<size_t>(g)];
      weights_.read(w.start + n * w.strides[0] + g * w.strides[1], w.strides[2], e_.count(g),
                    block);
      if (a_.isWhole)
        for (int64_t i = 0; i < e_.count(g); ++i)
          whole_[static_cast<size_t>(e_.first(g) + i)] = static_cast<int16_t>(block[i] - zero);
      else
        for (int64_t i = 0; i < e_.count(g); ++i) block[i] = (block[i] - zero) * scale;
    }
  }

  float realSum(int64_t m) const {
    return dot(a_.reals.data() + m * e_.depth, row_.data(), e_.depth);
  }

  float wholeSum(int64_t m) const {
    float sum = 0;
    for (int64_t g = 0; g < e_.blocks; ++g) {
      const int32_t products = dot(a_.whole.data() + m * e_.depth + e_.first(g),
                                   whole_.data() + e_.first(g), e_.count(g));
      const float factor =
          a_.steps[static_cast<size_t>(m * e_.blocks + g)] * scales_[static_cast<size_t>(g)];
      sum = std::fma(static_cast<float>(products), factor, sum);
    }
    return sum;
  }

  const Extents e_;
  const Activations& a_;
  const Operand scale_, zero_;
  Reals weights_;
  Finisher finisher_;
  BlockOp toSum_{};
  BlockOp::Function convert_;
  Scratch<float> row_, scales_, zeros_, sums_;
  Scratch<int16_t> whole_;
  Scratch<uint64_t> results_;
};

} // namespace

cdl::Status runScaledMatmul(const Call& call) {
  const Operand a = call.input(0), w = call.input(1), y = call.output();
  const uint8_t read = accumulatorElem(call);
  const uint8_t sumElem = read == 0 ? uint8_t{CDL_F32} : read;
  if (sumElem != CDL_F32 && sumElem != CDL_F16 && sumElem != CDL_BF16) return call.failElems();
  const Extents extents{.rows = a.dims[0],
                        .depth = a.dims[1],
                        .columns = w.dims[0],
                        .blocks = w.dims[1],
                        .block = w.dims[2]};
  Finisher finisher;
  if (cdl::Status status = finisher.bind(call, sumElem); !status.isOk()) return status;
  const Activations activations = readActivations(call, extents);
  shareRange(hasOwnPlaces(y) ? call.workers : nullptr, extents.columns,
             extents.depth * std::max<int64_t>(extents.rows / 4, 1),
             Columns(call, extents, activations, sumElem, std::move(finisher)));
  return cdl::ok();
}

} // namespace candela::runtime::host_executor
