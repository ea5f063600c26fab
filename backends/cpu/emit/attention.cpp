// ATTENTION: q[B,S,D], k[B,T,D], v[B,T,E], mask[B,S,T], y[B,S,E].
//
// Keys and values are read once for a block of queries, some places at a time, and no row of scores
// is kept: the softmax is an online one, which carries the largest score so far and the sum of
// exponentials under it, and scales what was summed when a larger score comes (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
// 2022). Where the mask leaves out all of some places, they are not read at all, so that a cache
// costs what it holds and not its capacity, and a causal mask half of what none costs.
#include "../limits.hpp"
#include "instructions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cpu {

namespace {

constexpr int64_t kPlaces = 64; // of keys and values that are looked at together
constexpr int kMostRows = 6;    // of a tile of sums in registers
constexpr int kKeys = 2;        // keys that a load of queries serves
constexpr int kVectors = 2;     // of values in a tile

constexpr int64_t kManyRows = 12;        // for which keys are worth transposing
constexpr int64_t kMostTransposed = 128; // elements of a key

/// The rows of a tile: of all blocks the same where that is possible.
int tileRows(int64_t rows) {
  for (int tile = kMostRows; tile > 2; --tile)
    if (rows % tile == 0) return tile;
  return static_cast<int>(std::min<int64_t>(rows, 4));
}

struct AttentionForm {
  std::vector<Operand> in; // q, k, v and perhaps a mask, then y
  int64_t batch = 0;
  int64_t blocks = 1; // of queries, each of `rows`
  int64_t rows = 0;
  int64_t places = 0;
  int64_t depth = 0;
  int64_t width = 0;
  double scale = 1;

  bool hasMask() const { return in.size() > 4; }
  const Operand& y() const { return in.back(); }
};

/// Writes the kernel; a unit is a block of queries of a batch.
class AttentionKernel {
public:
  AttentionKernel(Builder& b, const AttentionForm& p)
      : b_(b), p_(p), lanes_(b.isa().lanes(4)), scores_(b.local(p.rows * kPlaces * 4)),
        sums_(b.local(p.rows * p.width * 4)), largest_(b.local(p.rows * 4)),
        totals_(b.local(p.rows * 4)), shrinks_(b.local(p.rows * 4)),
        keys_(transposes() ? b.local(p.depth * kPlaces * 4) : Value()) {}

  void write() {
    b_.loop(b_.begin(), b_.end(), 1, [&](Value unit) {
      const Value block = p_.blocks == 1 ? b_.i64(0) : b_.remainder(unit, p_.blocks);
      const Value batch = p_.blocks == 1 ? unit : b_.quotient(unit, p_.blocks);
      for (size_t i = 0; i < p_.in.size(); ++i) {
        at_[i] = b_.at(b_.arg(static_cast<int>(i)), batch, bytes(i, 0));
        if (hasQueries(i)) at_[i] = b_.at(at_[i], block, p_.rows * bytes(i, 1));
      }
      begin();
      const int64_t whole = p_.places / kPlaces;
      if (whole)
        b_.loop(b_.i64(0), b_.i64(whole * kPlaces), kPlaces,
                [&](Value first) { places(first, kPlaces); });
      if (const int64_t rest = p_.places % kPlaces) places(b_.i64(whole * kPlaces), rest);
      finish();
    });
  }

private:
  static constexpr int kQ = 0;
  static constexpr int kK = 1;
  static constexpr int kV = 2;
  static constexpr int kMask = 3;

  /// Whether whole blocks of keys are transposed first, so that sums are lanes and need no folding.
  bool transposes() const { return p_.rows >= kManyRows && p_.depth <= kMostTransposed; }
  /// Whether dim 1 of operand `i` counts queries.
  bool hasQueries(size_t i) const { return i == kQ || i >= kMask; }
  /// Between neighbours in dim `d` of operand `i`.
  int64_t bytes(size_t i, int d) const { return p_.in[i].bytes(p_.in[i].strides[d]); }
  size_t result() const { return p_.in.size() - 1; }
  /// Elements `first`, first + 1, ... of a row of operand `i`.
  Value vector(size_t i, Value row, int64_t first) {
    return b_.loadStrided(Ty::F32, lanes_, b_.at(row, first * bytes(i, 2)), bytes(i, 2));
  }
  Value element(Value memory, Value row) { return b_.at(memory, row, 4); }
  Value scoreAt(Value row, Value place) {
    return b_.at(b_.at(scores_, row, kPlaces * 4), place, 4);
  }

  /// Calls body(row, rows) for tiles of rows, the last of which may have fewer.
  void eachTile(const std::function<void(Value, int)>& body) {
    const int tile = tileRows(p_.rows);
    const int64_t whole = p_.rows / tile * tile;
    b_.loop(b_.i64(0), b_.i64(whole), tile, [&](Value row) { body(row, tile); });
    if (whole < p_.rows) body(b_.i64(whole), static_cast<int>(p_.rows - whole));
  }
  void eachRow(const std::function<void(Value)>& body) {
    b_.loop(b_.i64(0), b_.i64(p_.rows), 1, body);
  }

  void begin() {
    eachRow([&](Value r) {
      b_.store(b_.f32(-INFINITY), element(largest_, r));
      b_.store(b_.f32(0), element(totals_, r));
    });
    b_.loop(b_.i64(0), b_.i64(p_.rows * p_.width), lanes_,
            [&](Value i) { b_.store(b_.zero(Ty::F32, lanes_), b_.at(sums_, i, 4)); });
  }

  /// Folds term(place, width) over the places.
  Value fold(int64_t count, Value start, const std::function<Value(Value, int)>& term,
             const std::function<Value(Value, Value)>& fn) {
    const int64_t whole = count / lanes_ * lanes_;
    Value total = start;
    if (whole) {
      const Value vector =
          b_.loop(b_.i64(0), b_.i64(whole), lanes_, {b_.splat(start, lanes_)},
                  [&](Value i, const Values& c) { return Values{fn(c[0], term(i, lanes_))}; })[0];
      total = b_.reduce(vector, fn);
    }
    return b_.loop(b_.i64(whole), b_.i64(count), 1, {total},
                   [&](Value i, const Values& c) { return Values{fn(c[0], term(i, 1))}; })[0];
  }

  Value mask(Value row, Value first, Value place, int width) {
    const Value from = b_.at(at_[kMask], row, bytes(kMask, 1));
    return b_.loadStrided(Ty::F32, width, b_.at(from, b_.add(first, place), bytes(kMask, 2)),
                          bytes(kMask, 2));
  }

  /// Takes the places from `first` on into the sums, unless all of them are left out.
  void places(Value first, int64_t count) {
    const bool isTransposed = transposes() && count == kPlaces;
    const auto take = [&] {
      if (isTransposed) transposeKeys(first);
      eachTile([&](Value row, int rows) {
        if (isTransposed)
          transposedScores(row, rows);
        else
          scores(first, count, row, rows);
      });
      eachRow([&](Value row) { exponentials(row, first, count); });
      eachTile([&](Value row, int rows) { values(first, count, row, rows); });
    };
    if (!p_.hasMask()) return take();
    b_.when(b_.bitNot(b_.compare(Cmp::EQ, largestMask(first, count), b_.f32(-INFINITY))), take);
  }

  /// The largest number that the mask has for some places.
  Value largestMask(Value first, int64_t count) {
    const int64_t masks = bytes(kMask, 1) == 0 ? 1 : p_.rows; // one for all rows, or one each
    const int64_t whole = count / lanes_ * lanes_;
    const auto folded = [&](Value start, int64_t from, int64_t to, int width) {
      return b_.loop(masks, {start}, [&](Value row, const Values& rows) {
        return b_.loop(b_.i64(from), b_.i64(to), width, rows, [&](Value i, const Values& c) {
          return Values{b_.max(c[0], mask(row, first, i, width))};
        });
      })[0];
    };
    Value largest = b_.f32(-INFINITY);
    const auto most = [this](Value v, Value w) { return b_.max(v, w); };
    if (whole) largest = b_.reduce(folded(b_.splat(largest, lanes_), 0, whole, lanes_), most);
    return whole < count ? folded(largest, whole, count, 1) : largest;
  }

  /// Products of queries and keys, without scale and mask.
  void scores(Value first, int64_t count, Value row, int rows) {
    const int64_t whole = count / kKeys * kKeys;
    if (whole)
      b_.loop(b_.i64(0), b_.i64(whole), kKeys,
              [&](Value place) { scoreTile(first, place, kKeys, row, rows); });
    if (whole < count) scoreTile(first, b_.i64(whole), 1, row, rows);
  }

  void scoreTile(Value first, Value place, int keys, Value row, int rows) {
    const Value query = b_.at(at_[kQ], row, bytes(kQ, 1));
    const Value key = b_.at(at_[kK], b_.add(first, place), bytes(kK, 1));
    Values sums(static_cast<size_t>(rows * keys), b_.zero(Ty::F32, lanes_));
    for (int64_t d = 0; d < p_.depth; d += lanes_) {
      Values k;
      for (int t = 0; t < keys; ++t) k.push_back(vector(kK, b_.at(key, t * bytes(kK, 1)), d));
      for (int r = 0; r < rows; ++r) {
        const Value q = vector(kQ, b_.at(query, r * bytes(kQ, 1)), d);
        for (int t = 0; t < keys; ++t) {
          Value& sum = sums[static_cast<size_t>(r * keys + t)];
          sum = b_.fma(q, k[static_cast<size_t>(t)], sum);
        }
      }
    }
    for (int r = 0; r < rows; ++r)
      for (int t = 0; t < keys; ++t) {
        const Value sum = b_.reduce(sums[static_cast<size_t>(r * keys + t)],
                                    [&](Value v, Value w) { return b_.add(v, w); });
        b_.store(sum, scoreAt(row, place), (r * kPlaces + t) * 4);
      }
  }

  /// Keys of a block as keys_[depth][kPlaces], by squares of vectors.
  void transposeKeys(Value first) {
    const Value from = b_.at(at_[kK], first, bytes(kK, 1));
    b_.loop(b_.i64(0), b_.i64(kPlaces), lanes_, [&](Value place) {
      const Value key = b_.at(from, place, bytes(kK, 1));
      b_.loop(b_.i64(0), b_.i64(p_.depth), lanes_, [&](Value d) {
        const Value corner = b_.at(key, d, bytes(kK, 2));
        Values square;
        for (int k = 0; k < lanes_; ++k)
          square.push_back(vector(kK, b_.at(corner, k * bytes(kK, 1)), 0));
        transpose(square);
        const Value to = b_.at(b_.at(keys_, d, kPlaces * 4), place, 4);
        for (int k = 0; k < lanes_; ++k)
          b_.store(square[static_cast<size_t>(k)], to, k * kPlaces * 4);
      });
    });
  }

  /// Exchanges the blocks beside the diagonal, of half the size each time.
  void transpose(Values& square) {
    for (int half = lanes_ / 2; half > 0; half /= 2) {
      std::vector<int> low, high;
      for (int k = 0; k < lanes_; ++k) {
        const bool isUpper = (k & half) != 0;
        low.push_back(isUpper ? lanes_ + k - half : k);
        high.push_back(isUpper ? lanes_ + k : k + half);
      }
      for (int k = 0; k < lanes_; ++k) {
        if (k & half) continue;
        Value& a = square[static_cast<size_t>(k)];
        Value& b = square[static_cast<size_t>(k + half)];
        const Value upper = b_.shuffle(a, b, low);
        b = b_.shuffle(a, b, high);
        a = upper;
      }
    }
  }

  /// The scores of some rows, by transposed keys.
  void transposedScores(Value row, int rows) {
    const Value query = b_.at(at_[kQ], row, bytes(kQ, 1));
    const int64_t step = int64_t(kVectors) * lanes_;
    b_.loop(b_.i64(0), b_.i64(kPlaces), step, [&](Value place) {
      const Value keys = b_.at(keys_, place, 4);
      const Values zeros(static_cast<size_t>(rows * kVectors), b_.zero(Ty::F32, lanes_));
      const Values sums = b_.loop(p_.depth, zeros, [&](Value d, const Values& c) {
        const Value at = b_.at(keys, d, kPlaces * 4);
        Values k, next;
        for (int v = 0; v < kVectors; ++v)
          k.push_back(b_.load(Ty::F32, lanes_, at, v * lanes_ * 4));
        for (int r = 0; r < rows; ++r) {
          const Value q =
              b_.load(Ty::F32, 1, b_.at(b_.at(query, r * bytes(kQ, 1)), d, bytes(kQ, 2)));
          for (int v = 0; v < kVectors; ++v)
            next.push_back(b_.fma(b_.splat(q, lanes_), k[static_cast<size_t>(v)],
                                  c[static_cast<size_t>(r * kVectors + v)]));
        }
        return next;
      });
      for (int r = 0; r < rows; ++r)
        for (int v = 0; v < kVectors; ++v)
          b_.store(sums[static_cast<size_t>(r * kVectors + v)], scoreAt(row, place),
                   (r * kPlaces + int64_t(v) * lanes_) * 4);
    });
  }

  /// Scores become exponentials under the largest score so far; the sum of those before shrinks.
  void exponentials(Value row, Value first, int64_t count) {
    const auto scaled = [&](Value i, int width) {
      Value score = b_.mul(b_.load(Ty::F32, width, scoreAt(row, i)),
                           b_.splat(b_.f32(static_cast<float>(p_.scale)), width));
      if (p_.hasMask()) score = b_.add(score, mask(row, first, i, width));
      b_.store(score, scoreAt(row, i));
      return score;
    };
    const auto load = [&](Value i, int width) { return b_.load(Ty::F32, width, scoreAt(row, i)); };
    const Value before = b_.load(Ty::F32, 1, element(largest_, row));
    const Value largest =
        fold(count, before, scaled, [this](Value v, Value w) { return b_.max(v, w); });
    // A row of which nothing was seen yet has no largest score to subtract.
    const Value under =
        b_.select(b_.compare(Cmp::EQ, largest, b_.f32(-INFINITY)), b_.f32(0), largest);
    const auto exponential = [&](Value i, int width) {
      const Value e = expF32(b_, b_.sub(load(i, width), b_.splat(under, width)));
      b_.store(e, scoreAt(row, i));
      return e;
    };
    const Value some =
        fold(count, b_.f32(0), exponential, [this](Value v, Value w) { return b_.add(v, w); });
    const Value shrink = expF32(b_, b_.sub(before, under));
    const Value total = b_.load(Ty::F32, 1, element(totals_, row));
    b_.store(b_.fma(total, shrink, some), element(totals_, row));
    b_.store(largest, element(largest_, row));
    b_.store(shrink, element(shrinks_, row));
  }

  /// The values of the places, times the exponentials.
  void values(Value first, int64_t count, Value row, int rows) {
    const int64_t step = int64_t(kVectors) * lanes_;
    for (int64_t e = 0; e < p_.width; e += step)
      valueTile(first, count, row, rows, e,
                static_cast<int>(std::min<int64_t>(kVectors, (p_.width - e) / lanes_)));
  }

  void valueTile(Value first, int64_t count, Value row, int rows, int64_t e, int vectors) {
    const Value held = b_.at(sums_, row, p_.width * 4);
    const Value shrinks = element(shrinks_, row);
    const auto place = [&](int r, int v) { return (r * p_.width + e + int64_t(v) * lanes_) * 4; };
    Values sums;
    for (int r = 0; r < rows; ++r) {
      const Value shrink = b_.splat(b_.load(Ty::F32, 1, shrinks, r * 4), lanes_);
      for (int v = 0; v < vectors; ++v)
        sums.push_back(b_.mul(b_.load(Ty::F32, lanes_, held, place(r, v)), shrink));
    }
    const Value from = b_.at(at_[kV], first, bytes(kV, 1));
    sums = b_.loop(count, sums, [&](Value i, const Values& c) {
      const Value at = b_.at(from, i, bytes(kV, 1));
      Values loaded, next;
      for (int v = 0; v < vectors; ++v) loaded.push_back(vector(kV, at, e + int64_t(v) * lanes_));
      for (int r = 0; r < rows; ++r) {
        const Value part = b_.splat(b_.load(Ty::F32, 1, scoreAt(row, i), r * kPlaces * 4), lanes_);
        for (int v = 0; v < vectors; ++v)
          next.push_back(b_.fma(part, loaded[static_cast<size_t>(v)],
                                c[static_cast<size_t>(r * vectors + v)]));
      }
      return next;
    });
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        b_.store(sums[static_cast<size_t>(r * vectors + v)], held, place(r, v));
  }

  void finish() {
    eachRow([&](Value r) {
      const Value total = b_.splat(b_.load(Ty::F32, 1, element(totals_, r)), lanes_);
      const Value from = b_.at(sums_, r, p_.width * 4);
      const Value to = b_.at(at_[result()], r, bytes(result(), 1));
      b_.loop(b_.i64(0), b_.i64(p_.width), lanes_, [&](Value i) {
        b_.store(b_.div(b_.load(Ty::F32, lanes_, b_.at(from, i, 4)), total), b_.at(to, i, 4));
      });
    });
  }

  Builder& b_;
  const AttentionForm& p_;
  const int lanes_;
  Value at_[5]; // the operands and the result in this batch
  // rows of exponentials, of sums of values, and of each row the largest score, the sum of
  // exponentials, and by what the sums before shrink
  Value scores_, sums_, largest_, totals_, shrinks_;
  const Value keys_; // of a block, transposed
};

void callAttention(Lowering& lowering, const AttentionForm& p) {
  Key key("attention");
  std::vector<Arg> args;
  for (const Operand& o : p.in) {
    for (int d = 0; d < 3; ++d) key << o.dims[d] << o.strides[d];
    args.push_back(o.at);
  }
  key << p.rows << p.blocks << static_cast<int64_t>(p.hasMask()) << std::bit_cast<int64_t>(p.scale);
  lowering.call(key.text(), static_cast<uint64_t>(p.batch * p.blocks), args,
                [&](Builder& b) { AttentionKernel(b, p).write(); });
}

} // namespace

bool emitAttention(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  AttentionForm p;
  p.in = operandsOf(lowering, instr);
  const Operand &q = p.in[0], &k = p.in[1], &v = p.in[2];
  p.batch = q.dims[0];
  p.rows = q.dims[1];
  p.depth = q.dims[2];
  p.places = k.dims[1];
  p.width = v.dims[2];
  p.scale = realAttrOf(lowering, instr, CDL_ATTR_SCALE,
                       1 / std::sqrt(static_cast<double>(std::max<int64_t>(p.depth, 1))));
  const bool fits = p.places > 0 && p.depth % kAttentionLanes == 0 &&
                    p.width % kAttentionLanes == 0 && p.depth <= kMostAttentionWidth &&
                    p.width <= kMostAttentionWidth;
  if (!fits) return refuse(why, "its shape");
  for (const Operand& o : p.in)
    if (o.elem != CDL_F32) return refuse(why, "its element type");
  if (p.y().strides[2] != 1) return refuse(why, "its strides");
  if (p.y().elements() == 0) return true;
  const int64_t rows = p.rows;
  p.rows = std::min(rows, kMostAttentionRows);
  p.blocks = rows / p.rows;
  callAttention(lowering, p);
  const int64_t rest = rows % p.rows;
  if (rest == 0) return true;
  for (size_t i = 0; i < p.in.size(); ++i)
    if (i == 0 || i > 2) p.in[i].at.offset += p.in[i].bytes(p.in[i].strides[1] * (rows - rest));
  p.rows = rest;
  p.blocks = 1;
  callAttention(lowering, p);
  return true;
}

} // namespace cpu
