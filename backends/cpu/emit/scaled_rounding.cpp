// The rows of a dynamic SCALED_MATMUL, rounded to i8 block by block as numerics.h says.
#include "scaled_product.hpp"

namespace cpu {

namespace {

/// Writes the kernel that rounds rows.
class RoundingKernel {
public:
  RoundingKernel(Builder& b, const ScaledProduct& p, float zero)
      : b_(b), p_(p), lanes_(p.block % b.isa().lanes(4) == 0 ? b.isa().lanes(4)
                                                             : static_cast<int>(kScaledBlockLanes)),
        zero_(zero) {}

  void write() {
    b_.loop(b_.begin(), b_.end(), 1, [&](Value m) {
      const Value x = b_.at(b_.arg(0), m, p_.in[0].bytes(p_.in[0].strides[0]));
      const Value q = b_.at(b_.arg(1), m, p_.held());
      const Value record = b_.at(b_.arg(2), m, p_.blocks * kBlockRecord);
      const bool isWhole = p_.held() == p_.depth;
      if (const int64_t whole = isWhole ? p_.blocks : p_.blocks - 1)
        b_.loop(b_.i64(0), b_.i64(whole), 1, [&](Value g) { block(x, q, record, g, p_.block); });
      if (!isWhole)
        block(x, q, record, b_.i64(p_.blocks - 1), p_.depth - (p_.blocks - 1) * p_.block);
    });
  }

private:
  int64_t stride() const { return p_.in[0].bytes(p_.in[0].strides[1]); }

  /// The elements from i on.
  Value load(Value block, Value i) {
    return b_.loadStrided(Ty::F32, lanes_, b_.at(block, i, stride()), stride());
  }
  /// The first `live` lanes of them; the others are 0.
  Value loadSome(Value block, int64_t i, int live) {
    const Value at = b_.at(block, i * stride());
    if (stride() == 4) return b_.loadFirst(Ty::F32, lanes_, at, b_.i64(live));
    Value some = b_.loadStrided(Ty::F32, live, at, stride());
    if (live == 1) some = b_.splat(some, 2);
    std::vector<int> which;
    for (int k = 0; k < lanes_; ++k) which.push_back(k < live ? k : some.lanes);
    return b_.shuffle(some, b_.zero(Ty::F32, some.lanes), which);
  }

  /// Folds `count` elements of a block: body(vector, where it begins, carried).
  Value fold(Value block, int64_t count, Value start,
             const std::function<Value(Value, Value, Value)>& body) {
    const int64_t whole = count / lanes_ * lanes_;
    Value carried = start;
    if (whole)
      carried = b_.loop(b_.i64(0), b_.i64(whole), lanes_, {start}, [&](Value i, const Values& c) {
        return Values{body(load(block, i), i, c[0])};
      })[0];
    if (whole == count) return carried;
    const Value rest = loadSome(block, whole, static_cast<int>(count - whole));
    return body(rest, b_.i64(whole), carried);
  }

  void block(Value x, Value q, Value record, Value g, int64_t count) {
    const Value from = b_.at(x, g, p_.block * stride());
    const Value to = b_.at(q, g, p_.block);
    const Value at = b_.at(record, g, kBlockRecord);
    Value largest = fold(from, count, b_.zero(Ty::F32, lanes_),
                         [&](Value v, Value, Value most) { return b_.max(most, b_.abs(v)); });
    largest = b_.reduce(largest, [&](Value v, Value w) { return b_.max(v, w); });
    const Value isSmall = b_.compare(Cmp::LT, largest, b_.f32(0x1p-100F));
    const Value isFinite = b_.compare(Cmp::LE, largest, b_.f32(0x1.fffffep127F));
    const Value most = b_.f32(127);
    const Value none = b_.f32(0);
    const Value step = b_.select(isFinite, b_.div(largest, most), b_.bits(Ty::F32, 0x7fc00000));
    b_.store(b_.select(isSmall, none, step), at);
    const Value perStep = b_.splat(
        b_.select(isSmall, none, b_.select(isFinite, b_.div(most, largest), none)), lanes_);
    for (int64_t i = count / lanes_ * lanes_; i < p_.block; i += lanes_)
      b_.store(b_.zero(Ty::I8, lanes_), to, i);
    Value sum = fold(from, count, b_.zero(Ty::I32, lanes_), [&](Value v, Value i, Value total) {
      const Value steps = b_.round(b_.mul(v, perStep), Round::EVEN);
      const Value whole = b_.toInteger(steps, Ty::I32, true);
      b_.store(b_.cast(whole, Ty::I8, true), b_.at(to, i));
      return b_.add(total, whole);
    });
    sum = b_.reduce(sum, [&](Value v, Value w) { return b_.add(v, w); });
    b_.store(b_.mul(b_.cast(sum, Ty::F32, true), b_.f32(zero_)), at, 4);
  }

  Builder& b_;
  const ScaledProduct& p_;
  const int lanes_;
  const float zero_; // by which sums of blocks are multiplied
};

} // namespace

RoundedRows emitRounding(Lowering& lowering, const ScaledProduct& p) {
  RoundedRows rounded;
  rounded.rowBytes = p.held();
  rounded.blockRowBytes = p.blocks * kBlockRecord;
  rounded.numbers = lowering.scratch(static_cast<uint64_t>(p.rows * rounded.rowBytes));
  rounded.blocks = lowering.scratch(static_cast<uint64_t>(p.rows * rounded.blockRowBytes));
  // Zero points of one value come off by one subtraction, those of blocks by a product each.
  const float zero = p.hasZeros() ? -1.0F : static_cast<float>(p.offset());
  Key key("round blocks");
  key << p.depth << p.blocks << p.block << p.in[0].strides[0] << p.in[0].strides[1]
      << static_cast<int64_t>(zero);
  lowering.call(key.text(), static_cast<uint64_t>(p.rows),
                {p.in[0].at, rounded.numbers, rounded.blocks},
                [&](Builder& b) { RoundingKernel(b, p, zero).write(); });
  return rounded;
}

} // namespace cpu
