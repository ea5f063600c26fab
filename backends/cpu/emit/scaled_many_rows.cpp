// Exact SCALED_MATMUL of many rows. Decoding a weight costs as much as a few products, so that each
// is decoded once for all rows of a band: some panels of weights by as many columns of a as the
// first cache holds become f32 in the kernel's own memory, scaled, and then it is the product of
// any matrices: tiles of rows by panels in registers, whose sums wait in memory until the next part
// of the depth (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008).
#include "scaled_product.hpp"

#include <algorithm>

namespace cpu {

namespace {

constexpr int64_t kLeastRows = 16;
constexpr int64_t kRowsOfBand = 96; // a multiple of the rows of tiles
constexpr int64_t kMostDepth = 256; // of a part
constexpr int64_t kLeastDepth = 32;
constexpr int kUnrolled = 4;

/// How the depth is divided: whole blocks, or pieces of a large one.
struct DepthPart {
  int64_t blocks; // 1 where it is a piece
  int64_t words;  // of each block

  int64_t depth(int64_t perWord) const { return blocks * words * perWord; }
};

DepthPart depthPartOf(const PanelForm& form, int64_t perWord) {
  const int64_t most = kMostDepth / perWord;
  if (form.words <= most) return {std::min(form.blocks, most / form.words), form.words};
  int64_t words = most;
  while (form.words % words != 0) --words;
  return {1, words};
}

class ManyRowsKernel : ScaledKernel {
public:
  ManyRowsKernel(Builder& b, const Lowering& lowering, const ScaledProduct& p,
                 const PanelForm& form, const PanelGroup& group)
      : ScaledKernel(b, lowering, p, form, group), panels_(group.together),
        tileRows_(b.isa().registers > 16 ? 12 : 6), part_(depthPartOf(form, perWord_)),
        partDepth_(part_.depth(perWord_)) {}

  void write() {
    weights_ = b_.local(partDepth_ * panels_ * form_.vectorBytes());
    sums_ = b_.local(std::min(p_.rows, kRowsOfBand) * panels_ * form_.vectorBytes());
    b_.loop(b_.begin(), b_.end(), 1, [&](Value unit) {
      const Value panel = b_.add(b_.mul(unit, b_.i64(panels_)), b_.i64(group_.first));
      const int64_t whole = p_.rows / kRowsOfBand * kRowsOfBand;
      b_.loop(b_.i64(0), b_.i64(whole), kRowsOfBand, [&](Value m) { band(panel, m, kRowsOfBand); });
      if (whole < p_.rows) band(panel, b_.i64(whole), p_.rows - whole);
    });
  }

private:
  int64_t rowBytes() const { return p_.in[0].bytes(p_.in[0].strides[0]); }
  int64_t vectorsBytes() const { return panels_ * form_.vectorBytes(); }

  /// All of the depth for `rows` rows from m on.
  void band(Value panel, Value m, int64_t rows) {
    const Value zero = b_.zero(Ty::F32, lanes_);
    b_.loop(b_.i64(0), b_.i64(rows * panels_), 1,
            [&](Value i) { b_.store(zero, b_.at(sums_, i, form_.vectorBytes())); });
    const int64_t whole = p_.depth / partDepth_;
    const Value a = b_.at(b_.arg(0), m, rowBytes());
    b_.loop(b_.i64(0), b_.i64(whole), 1, [&](Value part) {
      decodePart(panel, part, part_.blocks);
      products(b_.at(a, part, partDepth_ * 4), rows, partDepth_);
    });
    if (const int64_t rest = p_.depth - whole * partDepth_) {
      const int64_t blocks = std::min(part_.blocks, p_.blocks - whole * part_.blocks);
      decodePart(panel, b_.i64(whole), part_.words == form_.words ? blocks : 1);
      products(b_.at(a, whole * partDepth_ * 4), rows, rest);
    }
    b_.loop(b_.i64(0), b_.i64(rows), 1, [&](Value row) {
      for (int v = 0; v < panels_; ++v) {
        const Value sum =
            b_.load(Ty::F32, lanes_, b_.at(sums_, row, vectorsBytes()), v * form_.vectorBytes());
        finish(sum, b_.add(m, row), b_.add(panel, b_.i64(v)));
      }
    });
  }

  /// The weights of a part of the depth in memory: [depth, panels, lanes].
  void decodePart(Value panel, Value part, int64_t blocks) {
    const int64_t pieces = form_.words / part_.words;
    const Value first =
        pieces == 1 ? b_.mul(part, b_.i64(part_.blocks)) : b_.quotient(part, pieces);
    const Value word =
        pieces == 1 ? b_.i64(0) : b_.mul(b_.remainder(part, pieces), b_.i64(part_.words));
    b_.loop(b_.i64(0), b_.i64(blocks), 1, [&](Value i) {
      for (int v = 0; v < panels_; ++v) {
        const Value from = b_.at(b_.arg(2), b_.add(panel, b_.i64(v)), form_.panelBytes());
        const Value block = b_.at(from, b_.add(first, i), form_.blockBytes());
        const Value to = b_.at(b_.at(weights_, v * form_.vectorBytes()), i,
                               part_.words * perWord_ * vectorsBytes());
        decodeBlock(block, word, to);
      }
    });
  }

  void decodeBlock(Value block, Value word, Value to) {
    const Value scale = b_.load(Ty::F32, lanes_, block);
    const Value zero = form_.hasZeros ? b_.load(Ty::F32, lanes_, block, form_.vectorBytes())
                                      : b_.zero(Ty::F32, lanes_);
    const Value words = b_.at(b_.at(block, form_.wordsAt()), word, form_.vectorBytes());
    b_.loop(b_.i64(0), b_.i64(part_.words), 1, [&](Value i) {
      const Values weights = weightsAt(b_.at(words, i, form_.vectorBytes()));
      const Value at = b_.at(to, i, perWord_ * vectorsBytes());
      for (int k = 0; k < perWord_; ++k) {
        Value weight = weights[k];
        if (form_.hasZeros) weight = b_.sub(weight, zero);
        b_.store(b_.mul(weight, scale), at, k * vectorsBytes());
      }
    });
  }

  /// Adds the products of rows of a with the decoded weights to their sums.
  void products(Value a, int64_t rows, int64_t depth) {
    const int64_t whole = rows / tileRows_ * tileRows_;
    b_.loop(b_.i64(0), b_.i64(whole), tileRows_,
            [&](Value row) { tile(a, row, tileRows_, depth); });
    if (whole < rows) tile(a, b_.i64(whole), static_cast<int>(rows - whole), depth);
  }

  void tile(Value a, Value row, int rows, int64_t depth) {
    const Value sumsAt = b_.at(sums_, row, vectorsBytes());
    Values rowAt;
    Values sums;
    for (int r = 0; r < rows; ++r) {
      rowAt.push_back(b_.at(a, b_.add(row, b_.i64(r)), rowBytes()));
      for (int v = 0; v < panels_; ++v)
        sums.push_back(
            b_.load(Ty::F32, lanes_, sumsAt, r * vectorsBytes() + v * form_.vectorBytes()));
    }
    const int64_t unrolled = depth / kUnrolled;
    if (unrolled)
      sums = b_.loop(unrolled, sums, [&](Value i, const Values& carried) {
        return step(rowAt, b_.mul(i, b_.i64(kUnrolled)), kUnrolled, carried);
      });
    const int rest = static_cast<int>(depth % kUnrolled);
    if (rest) sums = step(rowAt, b_.i64(depth - rest), rest, sums);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < panels_; ++v)
        b_.store(sums[static_cast<size_t>(r * panels_ + v)], sumsAt,
                 r * vectorsBytes() + v * form_.vectorBytes());
  }

  /// Columns k to k + count of a.
  Values step(const Values& rowAt, Value k, int count, const Values& carried) {
    Values sums = carried;
    const Value weights = b_.at(weights_, k, vectorsBytes());
    const Value offset = b_.mul(k, b_.i64(4));
    for (int i = 0; i < count; ++i) {
      Values w;
      for (int v = 0; v < panels_; ++v)
        w.push_back(
            b_.load(Ty::F32, lanes_, weights, i * vectorsBytes() + v * form_.vectorBytes()));
      for (size_t r = 0; r < rowAt.size(); ++r) {
        const Value x = b_.splat(b_.load(Ty::F32, 1, b_.at(rowAt[r], offset), i * 4), lanes_);
        for (size_t v = 0; v < w.size(); ++v) {
          Value& sum = sums[r * w.size() + v];
          sum = b_.fma(x, w[v], sum);
        }
      }
    }
    return sums;
  }

  const int panels_;
  const int tileRows_;
  const DepthPart part_;
  const int64_t partDepth_;
  Value weights_; // of a part of the depth, decoded
  Value sums_;    // of the rows of a band
};

} // namespace

bool hasManyRows(const ScaledProduct& p, const PanelForm& form) {
  const int64_t perWord = weightsOfWord(p.bits());
  const int64_t depth = depthPartOf(form, perWord).depth(perWord);
  return p.rows >= kLeastRows && depth >= std::min(kLeastDepth, p.depth);
}

void writeManyRows(Builder& b, const Lowering& lowering, const ScaledProduct& p,
                   const PanelForm& form, const PanelGroup& group) {
  ManyRowsKernel(b, lowering, p, form, group).write();
}

} // namespace cpu
