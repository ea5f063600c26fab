// ATTENTION of few queries, as in decoding: q[B,S,D], k[B,T,D], v[B,T,E], mask[B,S,T], y[B,S,E].
//
// Keys and values are read once, some places at a time, and no row of scores is kept: the softmax
// is an online one, which carries the largest score so far and the sum of exponentials under it,
// and scales what was summed when a larger score comes (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). Where the mask leaves out
// all of some places, they are not read at all, so that a cache costs what it holds and not its
// capacity.
#include "../limits.hpp"
#include "instructions.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cpu {

namespace {

constexpr int64_t kPlaces = 64; // of keys and values that are looked at together
constexpr int kRows = 4;        // of a tile of sums in registers
constexpr int kKeys = 2;        // keys that a load of queries serves
constexpr int kVectors = 2;     // of values in a tile

struct AttentionForm {
  std::vector<Operand> in; // q, k, v and perhaps a mask, then y
  int64_t batch = 0;
  int64_t rows = 0;
  int64_t places = 0;
  int64_t depth = 0;
  int64_t width = 0;
  double scale = 1;

  bool hasMask() const { return in.size() > 4; }
  const Operand& y() const { return in.back(); }
};

/// Writes the kernel; a unit is a batch.
class AttentionKernel {
public:
  AttentionKernel(Builder& b, const AttentionForm& p)
      : b_(b), p_(p), lanes_(b.isa().lanes(4)), scores_(b.local(p.rows * kPlaces * 4)),
        sums_(b.local(p.rows * p.width * 4)), largest_(b.local(p.rows * 4)),
        totals_(b.local(p.rows * 4)), shrinks_(b.local(p.rows * 4)) {}

  void write() {
    b_.loop(b_.begin(), b_.end(), 1, [&](Value unit) {
      for (size_t i = 0; i < p_.in.size(); ++i)
        at_[i] = b_.at(b_.arg(static_cast<int>(i)), unit, bytes(i, 0));
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

  /// Between neighbours in dim `d` of operand `i`.
  int64_t bytes(size_t i, int d) const { return p_.in[i].bytes(p_.in[i].strides[d]); }
  size_t result() const { return p_.in.size() - 1; }
  /// Elements `first`, first + 1, ... of a row of operand `i`.
  Value vector(size_t i, Value row, int64_t first) {
    return b_.loadStrided(Ty::F32, lanes_, b_.at(row, first * bytes(i, 2)), bytes(i, 2));
  }
  Value element(Value memory, int64_t row) { return b_.at(memory, row * 4); }
  Value scoreAt(int64_t row, Value place) {
    return b_.at(b_.at(scores_, row * kPlaces * 4), place, 4);
  }

  void begin() {
    for (int64_t r = 0; r < p_.rows; ++r) {
      b_.store(b_.f32(-INFINITY), element(largest_, r));
      b_.store(b_.f32(0), element(totals_, r));
    }
    b_.loop(b_.i64(0), b_.i64(p_.rows * p_.width), lanes_,
            [&](Value i) { b_.store(b_.zero(Ty::F32, lanes_), b_.at(sums_, i, 4)); });
  }

  /// Calls body(place, width) for the places in vectors, then one by one.
  void each(int64_t count, const std::function<void(Value, int)>& body) {
    const int64_t whole = count / lanes_ * lanes_;
    if (whole) b_.loop(b_.i64(0), b_.i64(whole), lanes_, [&](Value i) { body(i, lanes_); });
    if (whole < count) b_.loop(b_.i64(whole), b_.i64(count), 1, [&](Value i) { body(i, 1); });
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

  Value mask(int64_t row, Value first, Value place, int width) {
    const Value from = b_.at(at_[kMask], row * bytes(kMask, 1));
    return b_.loadStrided(Ty::F32, width, b_.at(from, b_.add(first, place), bytes(kMask, 2)),
                          bytes(kMask, 2));
  }

  /// Takes the places from `first` on into the sums, unless all of them are left out.
  void places(Value first, int64_t count) {
    const auto take = [&] {
      scores(first, count);
      for (int64_t r = 0; r < p_.rows; ++r) exponentials(r, first, count);
      for (int64_t r = 0; r < p_.rows; r += kRows)
        values(first, count, r, static_cast<int>(std::min<int64_t>(kRows, p_.rows - r)));
    };
    if (!p_.hasMask()) return take();
    const auto most = [this](Value v, Value w) { return b_.max(v, w); };
    Value seen = b_.f32(-INFINITY);
    for (int64_t r = 0; r < p_.rows; ++r) {
      if (r && bytes(kMask, 1) == 0) break; // one for all rows
      seen = fold(count, seen, [&](Value i, int width) { return mask(r, first, i, width); }, most);
    }
    b_.when(b_.bitNot(b_.compare(Cmp::EQ, seen, b_.f32(-INFINITY))), take);
  }

  /// Products of queries and keys, without scale and mask.
  void scores(Value first, int64_t count) {
    for (int64_t r = 0; r < p_.rows; r += kRows) {
      const int rows = static_cast<int>(std::min<int64_t>(kRows, p_.rows - r));
      const int64_t whole = count / kKeys * kKeys;
      if (whole)
        b_.loop(b_.i64(0), b_.i64(whole), kKeys,
                [&](Value place) { scoreTile(first, place, kKeys, r, rows); });
      if (whole < count) scoreTile(first, b_.i64(whole), 1, r, rows);
    }
  }

  void scoreTile(Value first, Value place, int keys, int64_t row, int rows) {
    const Value key = b_.at(at_[kK], b_.add(first, place), bytes(kK, 1));
    Values sums(static_cast<size_t>(rows * keys), b_.zero(Ty::F32, lanes_));
    for (int64_t d = 0; d < p_.depth; d += lanes_) {
      Values k;
      for (int t = 0; t < keys; ++t) k.push_back(vector(kK, b_.at(key, t * bytes(kK, 1)), d));
      for (int r = 0; r < rows; ++r) {
        const Value q = vector(kQ, b_.at(at_[kQ], (row + r) * bytes(kQ, 1)), d);
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
        b_.store(sum, scoreAt(row + r, place), int64_t(t) * 4);
      }
  }

  /// Scores become exponentials under the largest score so far; the sum of those before shrinks.
  void exponentials(int64_t row, Value first, int64_t count) {
    each(count, [&](Value i, int width) {
      Value score = b_.mul(b_.load(Ty::F32, width, scoreAt(row, i)),
                           b_.splat(b_.f32(static_cast<float>(p_.scale)), width));
      if (p_.hasMask()) score = b_.add(score, mask(row, first, i, width));
      b_.store(score, scoreAt(row, i));
    });
    const auto load = [&](Value i, int width) { return b_.load(Ty::F32, width, scoreAt(row, i)); };
    const Value before = b_.load(Ty::F32, 1, element(largest_, row));
    const Value largest =
        fold(count, before, load, [this](Value v, Value w) { return b_.max(v, w); });
    // A row of which nothing was seen yet has no largest score to subtract.
    const Value under =
        b_.select(b_.compare(Cmp::EQ, largest, b_.f32(-INFINITY)), b_.f32(0), largest);
    each(count, [&](Value i, int width) {
      b_.store(expF32(b_, b_.sub(load(i, width), b_.splat(under, width))), scoreAt(row, i));
    });
    const Value shrink = expF32(b_, b_.sub(before, under));
    const Value some =
        fold(count, b_.f32(0), load, [this](Value v, Value w) { return b_.add(v, w); });
    const Value total = b_.load(Ty::F32, 1, element(totals_, row));
    b_.store(b_.fma(total, shrink, some), element(totals_, row));
    b_.store(largest, element(largest_, row));
    b_.store(shrink, element(shrinks_, row));
  }

  /// The values of the places, times the exponentials.
  void values(Value first, int64_t count, int64_t row, int rows) {
    const int64_t step = int64_t(kVectors) * lanes_;
    for (int64_t e = 0; e < p_.width; e += step)
      valueTile(first, count, row, rows, e,
                static_cast<int>(std::min<int64_t>(kVectors, (p_.width - e) / lanes_)));
  }

  void valueTile(Value first, int64_t count, int64_t row, int rows, int64_t e, int vectors) {
    const auto place = [&](int r, int v) {
      return ((row + r) * p_.width + e + int64_t(v) * lanes_) * 4;
    };
    Values sums;
    for (int r = 0; r < rows; ++r) {
      const Value shrink = b_.splat(b_.load(Ty::F32, 1, element(shrinks_, row + r)), lanes_);
      for (int v = 0; v < vectors; ++v)
        sums.push_back(b_.mul(b_.load(Ty::F32, lanes_, sums_, place(r, v)), shrink));
    }
    const Value from = b_.at(at_[kV], first, bytes(kV, 1));
    sums = b_.loop(count, sums, [&](Value i, const Values& c) {
      const Value at = b_.at(from, i, bytes(kV, 1));
      Values loaded, next;
      for (int v = 0; v < vectors; ++v) loaded.push_back(vector(kV, at, e + int64_t(v) * lanes_));
      for (int r = 0; r < rows; ++r) {
        const Value part = b_.splat(b_.load(Ty::F32, 1, scoreAt(row + r, i)), lanes_);
        for (int v = 0; v < vectors; ++v)
          next.push_back(b_.fma(part, loaded[static_cast<size_t>(v)],
                                c[static_cast<size_t>(r * vectors + v)]));
      }
      return next;
    });
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v)
        b_.store(sums[static_cast<size_t>(r * vectors + v)], sums_, place(r, v));
  }

  void finish() {
    for (int64_t r = 0; r < p_.rows; ++r) {
      const Value total = b_.splat(b_.load(Ty::F32, 1, element(totals_, r)), lanes_);
      const Value from = b_.at(sums_, r * p_.width * 4),
                  to = b_.at(at_[result()], r * bytes(result(), 1));
      b_.loop(b_.i64(0), b_.i64(p_.width), lanes_, [&](Value i) {
        b_.store(b_.div(b_.load(Ty::F32, lanes_, b_.at(from, i, 4)), total), b_.at(to, i, 4));
      });
    }
  }

  Builder& b_;
  const AttentionForm& p_;
  const int lanes_;
  Value at_[5]; // the operands and the result in this batch
  // rows of exponentials, of sums of values, and of each row the largest score, the sum of
  // exponentials, and by what the sums before shrink
  Value scores_, sums_, largest_, totals_, shrinks_;
};

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
  const bool fits = p.rows <= kMostAttentionRows && p.places > 0 &&
                    p.depth % kAttentionLanes == 0 && p.width % kAttentionLanes == 0 &&
                    p.depth <= kMostAttentionWidth && p.width <= kMostAttentionWidth;
  if (!fits) return refuse(why, "its shape");
  for (const Operand& o : p.in)
    if (o.elem != CDL_F32) return refuse(why, "its element type");
  if (p.y().strides[2] != 1) return refuse(why, "its strides");
  if (p.y().elements() == 0) return true;
  Key key("attention");
  std::vector<Arg> args;
  for (const Operand& o : p.in) {
    for (int d = 0; d < 3; ++d) key << o.dims[d] << o.strides[d];
    args.push_back(o.at);
  }
  key << static_cast<int64_t>(p.hasMask()) << std::bit_cast<int64_t>(p.scale);
  lowering.call(key.text(), static_cast<uint64_t>(p.batch), args,
                [&](Builder& b) { AttentionKernel(b, p).write(); });
  return true;
}

} // namespace cpu
