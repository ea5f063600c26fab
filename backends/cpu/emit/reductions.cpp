// Kernels along one axis: REDUCE, ARG_REDUCE, SOFTMAX and NORM over x[O,R,I]. Lanes are
// neighbouring i where there are any, else neighbouring r with one tree at the end: an order that
// no number of threads changes.
#include "arithmetic.hpp"
#include "elementwise.hpp"
#include "instructions.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace cpu {

namespace {

struct Axes {
  int64_t outer, along, inner;
};

void addKey(Key& key, const Operand& o) {
  key << o.elem;
  for (int d = 0; d < o.rank; ++d) key << o.dims[d] << o.strides[d];
}

Value combine(Builder& b, uint16_t fn, uint8_t elem, Value x, Value y) {
  switch (fn) {
  case CDL_REDUCE_SUM: return elem == CDL_BOOL ? b.bitOr(x, y) : b.add(x, y); // true + true is true
  case CDL_REDUCE_PROD: return b.mul(x, y);
  case CDL_REDUCE_MAX: return b.max(x, y, isSignedElem(elem));
  default: return b.min(x, y, isSignedElem(elem));
  }
}

/// What a reduction of nothing gives.
Value identity(Builder& b, uint16_t fn, uint8_t elem, int lanes) {
  const Ty ty = tyOf(elem);
  const int bits = elem == CDL_BOOL ? 1 : static_cast<int>(cdl_elem_bits(elem)); // of its numbers
  Value value = b.zero(ty);
  if (fn == CDL_REDUCE_PROD) value = isFloat(ty) ? b.real(ty, 1) : b.integer(ty, 1);
  if (fn == CDL_REDUCE_MAX || fn == CDL_REDUCE_MIN) {
    const bool isMax = fn == CDL_REDUCE_MAX;
    if (isFloat(ty))
      value = b.real(ty, isMax ? -__builtin_inf() : __builtin_inf());
    else if (isSignedElem(elem))
      value = b.integer(ty, isMax ? -(int64_t(1) << (bits - 1)) : (int64_t(1) << (bits - 1)) - 1);
    else if (isMax)
      value = b.integer(ty, 0);
    else
      value = b.integer(ty, bits == 64 ? -1 : (int64_t(1) << bits) - 1);
  }
  return b.splat(value, lanes);
}

/// The fold of element(i, lanes) for i = 0 .. count - 1 into one value: four vectors at a time,
/// then the rest.
Value foldRow(Builder& b, int64_t count, int lanes, Value start,
              const std::function<Value(Value, int)>& element,
              const std::function<Value(Value, Value)>& fn) {
  Value total = start;
  const int64_t block = int64_t(lanes) * 4, whole = count / block * block,
                vectors = count / lanes * lanes;
  if (vectors) {
    Values acc;
    for (int k = 0; k < (whole ? 4 : 1); ++k)
      acc.push_back(element(b.i64(int64_t(k) * lanes), lanes));
    Value first = acc[0];
    if (whole) {
      acc = b.loop(b.i64(block), b.i64(whole), block, acc, [&](Value i, const Values& carried) {
        Values next;
        for (int k = 0; k < 4; ++k)
          next.push_back(fn(carried[k], element(b.add(i, b.i64(int64_t(k) * lanes)), lanes)));
        return next;
      });
      first = fn(fn(acc[0], acc[1]), fn(acc[2], acc[3]));
    }
    first = b.loop(b.i64(whole ? whole : lanes), b.i64(vectors), lanes, {first},
                   [&](Value i, const Values& carried) {
                     return Values{fn(carried[0], element(i, lanes))};
                   })[0];
    total = fn(total, b.reduce(first, fn));
  }
  return b.loop(b.i64(vectors), b.i64(count), 1, {total}, [&](Value i, const Values& carried) {
    return Values{fn(carried[0], element(i, 1))};
  })[0];
}

/// Calls body(i, lanes) over 0 .. count - 1 in vectors, then one by one.
void eachOf(Builder& b, int64_t count, int lanes, const std::function<void(Value, int)>& body) {
  const int64_t whole = count / lanes * lanes;
  if (whole) b.loop(b.i64(0), b.i64(whole), lanes, [&](Value i) { body(i, lanes); });
  if (whole < count) b.loop(b.i64(whole), b.i64(count), 1, [&](Value i) { body(i, 1); });
}

/// The address of element i of dim d of a view, from `base` on.
Value at(Builder& b, const Operand& o, Value base, int d, Value i) {
  return b.at(base, b.mul(i, b.i64(o.bytes(o.strides[d]))));
}

/// The position of the extreme along the axis.
class ArgReduce {
public:
  ArgReduce(const Operand& x, const Operand& y, uint16_t fn, bool takesLast)
      : x_(x), y_(y), fn_(fn), takesLast_(takesLast) {}

  void write(Builder& b, const Axes& n) const {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Value o = b.quotient(unit, n.inner);
      const Value i = b.remainder(unit, n.inner);
      const Value row = at(b, x_, at(b, x_, b.arg(0), 0, o), 2, i);
      const Ty own = tyOf(x_.elem);
      const Value first = b.load(own, 1, row);
      const Values best =
          b.loop(b.i64(1), b.i64(n.along), 1, {first, b.i64(0)}, [&](Value r, const Values& c) {
            const Value v = b.load(own, 1, at(b, x_, row, 1, r));
            const Value isBetter = wins(b, v, c[0]);
            return Values{b.select(isBetter, v, c[0]), b.select(isBetter, r, c[1])};
          });
      b.store(b.cast(best[1], tyOf(y_.elem), true), at(b, y_, at(b, y_, b.arg(1), 0, o), 1, i));
    });
  }

private:
  Cmp better() const {
    const bool isSigned = isSignedElem(x_.elem);
    if (fn_ == CDL_ARG_REDUCE_MAX) return isSigned ? Cmp::GT : Cmp::UGT;
    return isSigned ? Cmp::LT : Cmp::ULT;
  }

  /// Whether v takes the place of `best`, which came before it.
  Value wins(Builder& b, Value v, Value best) const {
    Value wins = b.compare(better(), v, best);
    if (takesLast_) wins = b.bitOr(wins, b.compare(Cmp::EQ, v, best));
    if (!isFloat(tyOf(x_.elem))) return wins;
    // NaN is the extreme, the first one unless the last is asked for.
    const Value isNan = b.compare(Cmp::UNORDERED, v, v);
    const Value wasNan = b.compare(Cmp::UNORDERED, best, best);
    return takesLast_ ? b.bitOr(b.bitAnd(wins, b.bitNot(wasNan)), isNan)
                      : b.bitAnd(b.bitOr(wins, isNan), b.bitNot(wasNan));
  }

  const Operand &x_, &y_;
  const uint16_t fn_;
  const bool takesLast_;
};

/// A REDUCE with what its expression makes of the operands before the fold, and of the folded value
/// after it.
class Reduction {
public:
  Reduction(const Lowering& lowering, const cdl_instr_t& instr, const std::vector<Operand>& in)
      : image_(lowering.image), in_(in),
        expr_(instr.expr ? cdl_get_expr(lowering.image, instr.expr) : nullptr),
        prologue_(instr.prologue), operands_(cdl_operand_count(lowering.image, &instr)),
        fn_(instr.fn), elem_(in[0].elem), n_{in[0].dims[0], in[0].dims[1], in[0].dims[2]} {
    if (prologue_) elem_ = cdl_get_step(image_, expr_->first_step + prologue_ - 1)->elem;
  }

  /// Checks types and steps: false where one is beyond the kernels. Finds the widest type that one
  /// turn of the fold has in registers.
  bool check(bool isFold, std::string& why) {
    Ty ty;
    for (size_t i = 0; i < in_.size(); ++i) {
      const bool isRead = typeOf(in_[i].elem, ty) || isHalf(in_[i].elem); // by a step that widens
      if (!isRead) return refuse(why, "its element type");
      if (i < operands_) widest_ = std::max(widest_, sizeOf(tyOf(in_[i].elem)));
    }
    if (!typeOf(elem_, ty)) return refuse(why, "its element type");
    if (expr_ && !canComputeExpr(image_, *expr_)) return refuse(why, "a step of its expression");
    for (uint32_t s = 0; s < prologue_; ++s)
      if (typeOf(cdl_get_step(image_, expr_->first_step + s)->elem, ty))
        widest_ = std::max(widest_, sizeOf(ty));
    if (isFold && !hasEpilogue() && elem_ != in_.back().elem)
      return refuse(why, "its element types");
    return true;
  }

  const Axes& axes() const { return n_; }

  void emit(Lowering& lowering, Key key) {
    std::vector<Arg> args = {in_[0].at, in_.back().at};
    if (expr_) {
      key << exprKey(lowering, *expr_) << prologue_;
      for (size_t i = 1; i + 1 < in_.size(); ++i) {
        addKey(key, in_[i]);
        args.push_back(in_[i].at);
      }
    }
    lanes_ = lowering.isa.lanes(widest_);
    if (!isAlongInner()) {
      lowering.call(key.text(), static_cast<uint64_t>(n_.outer), args,
                    [&](Builder& b) { foldRows(b); });
      return;
    }
    // Several vectors go side by side, so that whole lines are used of every row that is met.
    side_ = prologue_ ? 1 : static_cast<int>(std::clamp<int64_t>(n_.inner / lanes_, 1, 8));
    const int64_t block = int64_t(side_) * lanes_, tiles = (n_.inner + block - 1) / block;
    lowering.call(key.text(), static_cast<uint64_t>(n_.outer * tiles), args,
                  [&](Builder& b) { foldStrips(b, block, tiles); });
  }

private:
  bool hasEpilogue() const { return expr_ && expr_->steps > prologue_; }
  /// Whether lanes are neighbouring i; else they are neighbouring r.
  bool isAlongInner() const { return n_.inner > 1; }
  /// The kernel's argument of an operand: x and y come first.
  int argOf(size_t i) const {
    if (i == 0) return 0;
    return i + 1 == in_.size() ? 1 : static_cast<int>(i) + 1;
  }
  Value combined(Builder& b, Value p, Value q) const { return combine(b, fn_, elem_, p, q); }

  /// Where each operand is at some o and i.
  Values basesAt(Builder& b, Value o, const Value* i) const {
    Values bases;
    for (size_t k = 0; k < operands_; ++k) {
      bases.push_back(at(b, in_[k], b.arg(argOf(k)), 0, o));
      if (i) bases[k] = at(b, in_[k], bases[k], 2, *i);
    }
    return bases;
  }

  /// What is folded at r of these, and its neighbours.
  Value element(Builder& b, const Values& bases, Value r, int width) const {
    const int axis = isAlongInner() ? 2 : 1; // of neighbouring lanes
    std::vector<Typed> views;
    for (size_t k = 0; k < operands_; ++k)
      views.push_back({b.loadStrided(tyOf(in_[k].elem), width, at(b, in_[k], bases[k], 1, r),
                                     in_[k].bytes(in_[k].strides[axis])),
                       in_[k].elem});
    if (!prologue_) return views[0].value;
    return b.splat(computeSteps(b, image_, *expr_, 0, prologue_, views, nullptr).value, width);
  }

  /// Writes y[o, i] and its neighbours, from what was folded.
  void write(Builder& b, Value o, Value i, Value folded, int width) const {
    const Operand& y = in_.back();
    const auto placed = [&](int arg, const Operand& view) {
      return at(b, view, at(b, view, b.arg(arg), 0, o), 1, i);
    };
    Typed result{folded, elem_};
    if (hasEpilogue()) {
      std::vector<Typed> views(in_.size());
      for (size_t k = operands_; k + 1 < in_.size(); ++k)
        views[k] = {b.loadStrided(tyOf(in_[k].elem), width, placed(argOf(k), in_[k]),
                                  in_[k].bytes(in_[k].strides[1])),
                    in_[k].elem};
      result = computeSteps(b, image_, *expr_, prologue_, expr_->steps, views, &result);
    }
    b.storeStrided(b.splat(result.value, width), placed(1, y), y.bytes(y.strides[1]));
  }

  /// Folds rows: units are rows, of which one result is left.
  void foldRows(Builder& b) const {
    b.loop(b.begin(), b.end(), 1, [&](Value o) {
      const Values bases = basesAt(b, o, nullptr);
      const int width = prologue_ || in_[0].strides[1] == 1 ? lanes_ : 1;
      const Value sum = foldRow(
          b, n_.along, width, identity(b, fn_, elem_, 1),
          [&](Value r, int w) { return element(b, bases, r, w); },
          [&](Value p, Value q) { return combined(b, p, q); });
      write(b, o, b.i64(0), sum, 1);
    });
  }

  /// Folds strips: units are strips of `block` neighbouring results.
  void foldStrips(Builder& b, int64_t block, int64_t tiles) const {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Value o = b.quotient(unit, tiles);
      const Value first = b.mul(b.remainder(unit, tiles), b.i64(block));
      const Value left = b.sub(b.i64(n_.inner), first);
      const Value isWhole = b.compare(Cmp::GE, left, b.i64(block));
      if (n_.inner >= block) b.when(isWhole, [&] { foldStrip(b, o, first, lanes_, side_); });
      if (n_.inner % block == 0) return;
      b.when(b.bitNot(isWhole), [&] {
        const Value end = b.i64(n_.inner);
        const Value whole = b.sub(end, b.remainder(left, lanes_));
        b.loop(first, whole, lanes_, [&](Value i) { foldStrip(b, o, i, lanes_, 1); });
        b.loop(whole, end, 1, [&](Value i) { foldStrip(b, o, i, 1, 1); });
      });
    });
  }

  /// Folds `vectors` vectors of `width` results from i on.
  void foldStrip(Builder& b, Value o, Value i, int width, int vectors) const {
    Values places, start;
    std::vector<Values> bases;
    for (int k = 0; k < vectors; ++k) {
      places.push_back(b.add(i, b.i64(int64_t(k) * width)));
      bases.push_back(basesAt(b, o, &places[k]));
      start.push_back(identity(b, fn_, elem_, width));
    }
    const Values sums = b.loop(b.i64(0), b.i64(n_.along), 1, start, [&](Value r, const Values& c) {
      Values next;
      for (int k = 0; k < vectors; ++k)
        next.push_back(combined(b, c[k], element(b, bases[k], r, width)));
      return next;
    });
    for (int k = 0; k < vectors; ++k) write(b, o, places[k], sums[k], width);
  }

  const cdl_image_t* image_;
  const std::vector<Operand>& in_; // x and the other operands, what the epilogue reads, y
  const cdl_expr_t* expr_;
  const uint32_t prologue_; // steps before the fold
  const size_t operands_;
  const uint16_t fn_;
  uint8_t elem_; // of what is folded: x, or what the prologue makes of the operands
  const Axes n_;
  int widest_ = 1, lanes_ = 1, side_ = 1;
};

} // namespace

bool emitReduce(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  const Operand &x = in[0], &y = in.back();
  const bool isFold = instr.kind == CDL_KIND_REDUCE;
  Reduction reduction(lowering, instr, in);
  if (!reduction.check(isFold, why)) return false;
  const Axes n = reduction.axes();
  const bool takesLast = attrOf(lowering, instr, CDL_ATTR_SELECT_LAST, 0) != 0;
  Key key(isFold ? "reduce" : "arg reduce");
  key << instr.fn << takesLast;
  addKey(key, x);
  addKey(key, y);
  if (n.outer == 0 || n.inner == 0) return true;
  if (isFold) {
    reduction.emit(lowering, key);
    return true;
  }
  if (n.along == 0) return refuse(why, "an axis of nothing");
  const ArgReduce argReduce(x, y, instr.fn, takesLast);
  lowering.call(key.text(), static_cast<uint64_t>(n.outer * n.inner), {x.at, y.at},
                [&](Builder& b) { argReduce.write(b, n); });
  return true;
}

namespace {

/// A row of SOFTMAX or NORM while its kernel is written: x[o, ., i], and where its results go.
struct Row {
  Builder& b;
  /// x, then what the elements are multiplied by and what is added, then y
  const std::vector<Operand>& operands;
  int64_t count; ///< elements
  int lanes;
  Value from, to;

  Value load(size_t operand, Value row, int dim, Value i, int width) const {
    const Operand& o = operands[operand];
    const int64_t stride = o.bytes(o.strides[dim]);
    return b.loadStrided(Ty::F32, width, b.at(row, b.mul(i, b.i64(stride))), stride);
  }
  Value element(Value i, int width) const { return load(0, from, 1, i, width); }
  Value result(Value i, int width) const { return load(operands.size() - 1, to, 1, i, width); }
  void write(Value v, Value i) const {
    const int64_t stride = operands.back().bytes(operands.back().strides[1]);
    b.storeStrided(v, b.at(to, b.mul(i, b.i64(stride))), stride);
  }
  Value sum(const std::function<Value(Value, int)>& term) const {
    return foldRow(b, count, lanes, b.f32(0), term,
                   [this](Value p, Value q) { return b.add(p, q); });
  }
  void each(const std::function<void(Value, int)>& body) const { eachOf(b, count, lanes, body); }
};

/// Writes the NORM of u = x * unit: (u - mean) / sqrt(mean of (u - mean)^2 + epsilon * unit^2) *
/// scale + bias, in which the unit divides out. A power of two changes no digit of x, and a small
/// one keeps the squares of large elements finite.
class NormOfRow {
public:
  NormOfRow(const Row& row, uint16_t fn, double epsilon, double unit)
      : row_(row), b_(row.b), centres_(fn == CDL_NORM_LAYER), epsilon_(epsilon), unit_(unit) {
    const Value count = b_.f32(static_cast<float>(row.count));
    if (centres_)
      mean_ = b_.div(row.sum([this](Value i, int width) { return scaled(i, width); }), count);
    squares_ = row.sum([this](Value i, int width) {
      const Value v = centred(i, width);
      return b_.mul(v, v);
    });
  }
  Value squares() const { return squares_; }

  void write() const {
    const Value count = b_.f32(static_cast<float>(row_.count));
    const Value spread = b_.sqrt(
        b_.add(b_.div(squares_, count), b_.f32(static_cast<float>(epsilon_ * unit_ * unit_))));
    const Value factor = b_.div(b_.f32(1), spread);
    row_.each([&](Value i, int width) {
      Value v = b_.mul(centred(i, width), factor);
      if (row_.operands.size() > 2) v = b_.mul(v, row_.load(1, b_.arg(1), 0, i, width));
      if (row_.operands.size() > 3) v = b_.add(v, row_.load(2, b_.arg(2), 0, i, width));
      row_.write(v, i);
    });
  }

private:
  Value scaled(Value i, int width) const {
    const Value v = row_.element(i, width);
    return unit_ == 1 ? v : b_.mul(v, b_.f32(static_cast<float>(unit_)));
  }
  Value centred(Value i, int width) const {
    const Value v = scaled(i, width);
    return centres_ ? b_.sub(v, mean_) : v;
  }

  const Row& row_;
  Builder& b_;
  bool centres_;
  double epsilon_, unit_;
  Value mean_, squares_;
};

void emitNorm(const Row& row, uint16_t fn, double epsilon) {
  // 2^31 elements of 2^128 each: (2 * 2^128 * 2^-90)^2 * 2^31 is below 2^127.
  constexpr double kSmallUnit = 0x1p-90;
  Builder& b = row.b;
  const NormOfRow norm(row, fn, epsilon, 1);
  const Value isFinite =
      b.compare(Cmp::LE, norm.squares(), b.f32(std::numeric_limits<float>::max()));
  b.when(isFinite, [&] { norm.write(); });
  b.when(b.bitNot(isFinite), [&] { NormOfRow(row, fn, epsilon, kSmallUnit).write(); });
}

void emitSoftmax(const Row& row, uint16_t fn) {
  Builder& b = row.b;
  const Value top = foldRow(
      b, row.count, row.lanes, b.f32(-__builtin_inff()),
      [&](Value i, int width) { return row.element(i, width); },
      [&](Value p, Value q) { return b.max(p, q); });
  const auto power = [&](Value i, int width) {
    return expF32(b, b.sub(row.element(i, width), top));
  };
  if (fn == CDL_SOFTMAX_LOG_SOFTMAX) {
    const Value shift = logF32(b, row.sum(power));
    row.each(
        [&](Value i, int width) { row.write(b.sub(b.sub(row.element(i, width), top), shift), i); });
    return;
  }
  const Value sum = row.sum([&](Value i, int width) {
    const Value v = power(i, width);
    row.write(v, i);
    return v;
  });
  row.each([&](Value i, int width) { row.write(b.div(row.result(i, width), sum), i); });
}

} // namespace

bool emitRowwise(Lowering& lowering, const cdl_instr_t& instr, std::string& why) {
  const std::vector<Operand> in = operandsOf(lowering, instr);
  const Operand &x = in[0], &y = in.back();
  if (x.elem != CDL_F32 || y.elem != CDL_F32) return refuse(why, "its element type");
  const bool isNorm = instr.kind == CDL_KIND_NORM;
  const int64_t inner = isNorm ? 1 : x.dims[2], along = x.dims[1];
  const double epsilon = realAttrOf(lowering, instr, CDL_ATTR_EPSILON, 1e-5);
  Key key(isNorm ? "norm" : "softmax");
  key << instr.fn << std::bit_cast<int64_t>(epsilon);
  std::vector<Arg> args;
  for (const Operand& o : in) {
    addKey(key, o);
    args.push_back(o.at);
  }
  if (x.elements() == 0) return true;
  const uint16_t fn = instr.fn;
  const int resultArg = static_cast<int>(in.size()) - 1;

  lowering.call(key.text(), static_cast<uint64_t>(x.dims[0] * inner), args, [&](Builder& b) {
    const bool isDense = x.strides[1] == 1 && y.strides[1] == 1;
    const int lanes = isDense ? b.isa().lanes(4) : 1;
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const auto rowOf = [&](int arg, const Operand& o) {
        Value row = b.at(b.arg(arg), b.mul(b.quotient(unit, inner), b.i64(o.bytes(o.strides[0]))));
        if (inner > 1)
          row = b.at(row, b.mul(b.remainder(unit, inner), b.i64(o.bytes(o.strides[2]))));
        return row;
      };
      const Row row{b, in, along, lanes, rowOf(0, x), rowOf(resultArg, y)};
      if (isNorm)
        emitNorm(row, fn, epsilon);
      else
        emitSoftmax(row, fn);
    });
  });
  return true;
}

} // namespace cpu
