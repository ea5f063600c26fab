// GATHER, SCATTER and TABLE: positions that only the data knows. Indices are clamped or tested
// before an address is made of them, so that no data leads outside of a tensor.
#include "arithmetic.hpp"
#include "elementwise.hpp"
#include "instructions.hpp"

namespace cpu {

namespace {

bool emitTable(Lowering& lowering, const std::vector<Operand>& in, std::string& why) {
  const Operand &x = in[0], &table = in[1], &y = in[2];
  const bool isWide = x.elem == CDL_I16;
  if (!isWide && x.elem != CDL_I8 && x.elem != CDL_U8) return refuse(why, "its element type");
  if (x.elements() == 0) return true;
  if (!table.isDense() || !x.isDense() || !y.isDense()) return refuse(why, "strides");
  const int64_t count = x.elements(), chunk = 4096, units = (count + chunk - 1) / chunk;
  Key key("table");
  key << x.elem << count;
  lowering.call(key.text(), static_cast<uint64_t>(units), {x.at, table.at, y.at}, [&](Builder& b) {
    const Value from = b.mul(b.begin(), b.i64(chunk)),
                to = b.min(b.mul(b.end(), b.i64(chunk)), b.i64(count));
    b.loop(from, to, 1, [&](Value i) {
      const int64_t size = isWide ? 2 : 1;
      const Value position = b.mul(i, b.i64(size));
      const Value v = b.load(tyOf(x.elem), 1, b.at(b.arg(0), position));
      if (!isWide) {
        Value index = b.cast(v, Ty::I64, x.elem == CDL_I8);
        if (x.elem == CDL_I8) index = b.add(index, b.i64(128));
        return b.store(b.load(Ty::I8, 1, b.at(b.arg(1), index)), b.at(b.arg(2), position));
      }
      // The table has 513 entries, 128 apart; between them it rounds to nearest, halves up.
      const Value from0 = b.add(b.cast(v, Ty::I32, true), b.i32(32768));
      const Value entry =
          b.at(b.arg(1), b.shl(b.cast(b.shr(from0, b.i32(7), false), Ty::I64, false), b.i64(1)));
      const Value base = b.cast(b.load(Ty::I16, 1, entry), Ty::I32, true);
      const Value next = b.cast(b.load(Ty::I16, 1, entry, 2), Ty::I32, true);
      const Value part = b.mul(b.sub(next, base), b.bitAnd(from0, b.i32(127)));
      const Value value = b.add(base, b.shr(b.add(part, b.i32(64)), b.i32(7), true));
      b.store(b.cast(value, Ty::I16, true), b.at(b.arg(2), position));
    });
  });
  return true;
}

/// Writes the kernels of GATHER and SCATTER: both move rows between y and another view, of which
/// one is addressed by index.
class IndexedKernel {
public:
  IndexedKernel(const Isa& isa, const cdl_instr_t& instr, const std::vector<Operand>& in)
      : isGather_(instr.kind == CDL_KIND_GATHER), fn_(instr.fn), index_(isGather_ ? in[1] : in[0]),
        source_(isGather_ ? in[0] : in[1]), y_(in[2]), ty_(tyOf(y_.elem)),
        size_((isGather_ ? source_ : y_).dims[1]), outer_(y_.dims[0]), count_(index_.dims[0]),
        inner_(y_.dims[2]) {
    const bool isDense = source_.strides[2] == 1 && y_.strides[2] == 1;
    lanes_ = isDense ? isa.lanes(sizeOf(ty_)) : 1;
  }

  int64_t elements() const { return outer_ * inner_; }
  bool clampsIntoNothing() const {
    return isGather_ && fn_ == CDL_GATHER_CLAMP && size_ == 0 && count_ > 0;
  }

  Key key() const {
    Key key(isGather_ ? "gather" : "scatter");
    key << fn_ << index_.elem << index_.strides[0] << count_;
    for (const Operand* o : {&source_, &y_}) {
      key << o->elem;
      for (int d = 0; d < 3; ++d) key << o->dims[d] << o->strides[d];
    }
    return key;
  }

  /// How many units there are. A gather's is one row of y; a scatter's is all updates that may meet
  /// in one place, which keep their order.
  int64_t units() const { return isGather_ ? outer_ * count_ : outer_; }

  void write(Builder& b) {
    sourceBase_ = b.arg(isGather_ ? 0 : 1);
    indexBase_ = b.arg(isGather_ ? 1 : 0);
    yBase_ = b.arg(2);
    if (isGather_) {
      b.loop(b.begin(), b.end(), 1, [&](Value unit) { gatherRow(b, unit); });
      return;
    }
    b.loop(b.begin(), b.end(), 1, [&](Value o) {
      b.loop(b.i64(0), b.i64(count_), 1, [&](Value k) { scatterRow(b, o, k); });
    });
  }

private:
  void gatherRow(Builder& b, Value unit) const {
    const Value o = b.quotient(unit, count_), k = b.remainder(unit, count_);
    const Value position = positionOf(b, k), to = rowOf(b, y_, yBase_, o, k);
    const auto move = [&](Value which) {
      const Value from = rowOf(b, source_, sourceBase_, o, which);
      each(b, [&](Value i, int width) {
        store(b, load(b, source_, at(b, source_, from, i), width), at(b, y_, to, i));
      });
    };
    if (fn_ == CDL_GATHER_CLAMP) return move(b.max(b.min(position, b.i64(size_ - 1)), b.i64(0)));
    const Value inside = isInside(b, position);
    b.when(inside, [&] { move(position); });
    b.when(b.bitNot(inside), [&] {
      each(b, [&](Value i, int width) { store(b, b.zero(ty_, width), at(b, y_, to, i)); });
    });
  }

  void scatterRow(Builder& b, Value o, Value k) const {
    const Value position = positionOf(b, k);
    b.when(isInside(b, position), [&] {
      const Value from = rowOf(b, source_, sourceBase_, o, k);
      const Value to = rowOf(b, y_, yBase_, o, position);
      each(b, [&](Value i, int width) {
        const Value update = load(b, source_, at(b, source_, from, i), width);
        const Value there = at(b, y_, to, i);
        if (fn_ == CDL_SCATTER_SET) return store(b, update, there);
        store(b, combined(b, load(b, y_, there, width), update), there);
      });
    });
  }

  Value combined(Builder& b, Value old, Value update) const {
    const bool isSigned = isSignedElem(y_.elem);
    switch (fn_) {
    case CDL_SCATTER_ADD: // true + true is true
      return y_.elem == CDL_BOOL ? b.bitOr(old, update) : b.add(old, update);
    case CDL_SCATTER_MUL: return b.mul(old, update);
    case CDL_SCATTER_MIN: return b.min(old, update, isSigned);
    default: return b.max(old, update, isSigned);
    }
  }

  Value positionOf(Builder& b, Value k) const {
    const Value at = b.at(indexBase_, b.mul(k, b.i64(index_.bytes(index_.strides[0]))));
    return b.cast(b.load(tyOf(index_.elem), 1, at), Ty::I64, true);
  }
  Value isInside(Builder& b, Value position) const {
    return b.bitAnd(b.compare(Cmp::GE, position, b.i64(0)),
                    b.compare(Cmp::LT, position, b.i64(size_)));
  }
  static Value rowOf(Builder& b, const Operand& o, Value base, Value first, Value second) {
    return b.at(b.at(base, b.mul(first, b.i64(o.bytes(o.strides[0])))),
                b.mul(second, b.i64(o.bytes(o.strides[1]))));
  }
  static Value at(Builder& b, const Operand& o, Value row, Value i) {
    return b.at(row, b.mul(i, b.i64(o.bytes(o.strides[2]))));
  }
  Value load(Builder& b, const Operand& o, Value from, int width) const {
    return b.loadStrided(ty_, width, from, o.bytes(o.strides[2]));
  }
  void store(Builder& b, Value value, Value to) const {
    b.storeStrided(value, to, y_.bytes(y_.strides[2]));
  }
  /// Calls body(i, lanes) along a row.
  void each(Builder& b, const std::function<void(Value, int)>& body) const {
    const int64_t whole = inner_ / lanes_ * lanes_;
    if (whole) b.loop(b.i64(0), b.i64(whole), lanes_, [&](Value i) { body(i, lanes_); });
    if (whole < inner_) b.loop(b.i64(whole), b.i64(inner_), 1, [&](Value i) { body(i, 1); });
  }

  const bool isGather_;
  const uint16_t fn_;
  const Operand &index_, &source_, &y_; // source: x[O,N,I], or updates[O,K,I]
  const Ty ty_;
  const int64_t size_; // of the dim that is addressed by index
  const int64_t outer_, count_, inner_;
  int lanes_ = 1;
  Value sourceBase_, indexBase_, yBase_;
};

} // namespace

bool emitIndexed(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  if (instr.kind == CDL_KIND_TABLE) return emitTable(lowering, in, why);
  const Operand& index = in[instr.kind == CDL_KIND_GATHER ? 1 : 0];
  Ty ty;
  const bool isMoved = instr.kind == CDL_KIND_GATHER || instr.fn == CDL_SCATTER_SET;
  const bool isKnown = typeOf(in[2].elem, ty) || (isMoved && isHalf(in[2].elem));
  if (!isKnown || (index.elem != CDL_I32 && index.elem != CDL_I64))
    return refuse(why, "its element types");
  IndexedKernel kernel(lowering.isa, instr, in);
  if (kernel.elements() == 0) return true;
  if (kernel.clampsIntoNothing()) return refuse(why, "an index into an axis of nothing");
  lowering.call(kernel.key().text(), static_cast<uint64_t>(kernel.units()),
                {in[0].at, in[1].at, in[2].at}, [&](Builder& b) { kernel.write(b); });
  return true;
}

} // namespace cpu
