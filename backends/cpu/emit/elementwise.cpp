#include "elementwise.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace cpu {

namespace {

constexpr int64_t kChunk = 4096; // elements of a long row that are one unit of work

/// The dims of all operands at once, the result's last: dims of 1 dropped, neighbours joined where
/// all step evenly, the result's densest dim innermost. Strides in bytes.
struct Nest {
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> strides; // [dim][operand]
};

Nest nestOf(const std::vector<Operand>& operands) {
  const Operand& y = operands.back();
  std::vector<int> order;
  for (int d = 0; d < y.rank; ++d)
    if (y.dims[d] != 1) order.push_back(d);
  // Elements are independent: any order of the dims is right, and the result's own is the fastest.
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::abs(y.strides[a]) > std::abs(y.strides[b]); });
  Nest nest;
  for (int d : order) {
    std::vector<int64_t> strides;
    for (const Operand& o : operands) strides.push_back(o.bytes(o.strides[d]));
    bool joins = !nest.dims.empty();
    for (size_t i = 0; joins && i < strides.size(); ++i)
      joins = nest.strides.back()[i] == strides[i] * y.dims[d];
    if (joins) {
      nest.dims.back() *= y.dims[d];
      nest.strides.back() = strides;
    } else {
      nest.dims.push_back(y.dims[d]);
      nest.strides.push_back(strides);
    }
  }
  if (nest.dims.empty()) {
    nest.dims.push_back(1);
    nest.strides.emplace_back();
    for (const Operand& o : operands) nest.strides.back().push_back(o.bytes(1));
  }
  return nest;
}

Typed loaded(Builder& b, uint8_t elem, int lanes, Value at, int64_t stride) {
  return {b.loadStrided(tyOf(elem), lanes, at, stride), elem};
}

} // namespace

Operand view(uint8_t elem, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides,
             Arg at) {
  Operand o;
  o.elem = elem;
  o.rank = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), o.dims);
  std::copy(strides.begin(), strides.end(), o.strides);
  o.at = at;
  return o;
}

Operand restrided(const Operand& base, const std::vector<int64_t>& dims,
                  const std::vector<int64_t>& strides, int64_t offset) {
  Operand o = view(base.elem, dims, strides, base.at);
  o.at.offset += base.bytes(offset);
  return o;
}

namespace {

/// Writes the kernel of a map: rows of the innermost dim, in vectors, then what is left over.
class MapKernel {
public:
  MapKernel(const Isa& isa, const std::vector<Operand>& operands, const Element& element)
      : operands_(operands), element_(element), nest_(nestOf(operands)),
        last_(nest_.dims.size() - 1), y_(operands.size() - 1), inner_(nest_.dims[last_]),
        step_(nest_.strides[last_]) {
    int widest = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int size = sizeOf(tyOf(operands[i].elem));
      widest = std::max(widest, size);
      isContiguous_ &= step_[i] == size || (step_[i] == 0 && i != y_);
    }
    lanes_ = static_cast<int>(std::min<int64_t>(isa.lanes(widest), 64));
    chunk_ = inner_ > 2 * kChunk ? kChunk : inner_;
    chunks_ = (inner_ + chunk_ - 1) / chunk_;
    for (size_t d = 0; d < last_; ++d) outer_ *= nest_.dims[d];
    hasRows_ = last_ >= 1 && chunks_ == 1 && outer_ / nest_.dims[last_ - 1] >= 16;
    rows_ = hasRows_ ? nest_.dims[last_ - 1] : 1;
  }

  int64_t units() const { return outer_ / rows_ * chunks_; }

  void addTo(Key& key) const {
    for (const Operand& o : operands_) key << o.elem;
    for (size_t d = 0; d <= last_; ++d) {
      key << nest_.dims[d];
      for (int64_t stride : nest_.strides[d]) key << stride;
    }
  }

  void write(Builder& b) const {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) { writeUnit(b, unit); });
  }

private:
  /// A unit is one row; long rows are cut, and of many rows that are short some go together.
  void writeUnit(Builder& b, Value unit) const {
    const Values base = basesOf(b, chunks_ > 1 ? b.quotient(unit, chunks_) : unit);
    if (chunks_ > 1) {
      const Value from = b.mul(b.remainder(unit, chunks_), b.i64(chunk_));
      writeRow(b, base, from, b.min(b.add(from, b.i64(chunk_)), b.i64(inner_)));
    } else if (hasRows_) {
      b.loop(b.i64(0), b.i64(rows_), 1, [&](Value row) {
        Values at = base;
        for (size_t k = 0; k < at.size(); ++k)
          at[k] = b.at(at[k], b.mul(row, b.i64(nest_.strides[last_ - 1][k])));
        writeRow(b, at, b.i64(0), b.i64(inner_));
      });
    } else {
      writeRow(b, base, b.i64(0), b.i64(inner_));
    }
  }

  /// Where each operand is at the outer dims of a unit.
  Values basesOf(Builder& b, Value rest) const {
    Values base;
    for (size_t k = 0; k < operands_.size(); ++k) base.push_back(b.arg(static_cast<int>(k)));
    for (size_t d = hasRows_ ? last_ - 1 : last_; d-- > 0;) {
      const Value index = d ? b.remainder(rest, nest_.dims[d]) : rest;
      rest = d ? b.quotient(rest, nest_.dims[d]) : rest;
      for (size_t k = 0; k < base.size(); ++k) base[k] = b.at(base[k], index, nest_.strides[d][k]);
    }
    return base;
  }

  void writeRow(Builder& b, const Values& base, Value from, Value to) const {
    Value done = from;
    if (lanes_ > 1 && inner_ >= lanes_) {
      done = b.sub(to, b.remainder(b.sub(to, from), lanes_));
      b.loop(from, done, lanes_, [&](Value i) {
        const Value v = computed(b, base, lanes_, i, [&](size_t k, Value at) {
          return loaded(b, operands_[k].elem, lanes_, at, step_[k]);
        });
        b.storeStrided(v, resultAt(b, base, i), step_[y_]);
      });
      if (inner_ % lanes_ == 0 && chunk_ % lanes_ == 0) return;
    }
    if (isContiguous_ && b.isa().hasMasks)
      b.loop(done, to, lanes_, [&](Value i) { writeFirst(b, base, i, b.sub(to, i)); });
    else
      b.loop(done, to, 1, [&](Value i) {
        const Value v = computed(b, base, 1, i, [&](size_t k, Value at) {
          return loaded(b, operands_[k].elem, 1, at, step_[k]);
        });
        b.store(v, resultAt(b, base, i));
      });
  }

  /// A vector of which `left` lanes exist, or all.
  void writeFirst(Builder& b, const Values& base, Value i, Value left) const {
    const Value v = computed(b, base, lanes_, i, [&](size_t k, Value at) {
      if (step_[k] == 0) return loaded(b, operands_[k].elem, lanes_, at, 0);
      return Typed{b.loadFirst(tyOf(operands_[k].elem), lanes_, at, left), operands_[k].elem};
    });
    b.storeFirst(v, resultAt(b, base, i), left);
  }

  Value computed(Builder& b, const Values& base, int width, Value i,
                 const std::function<Typed(size_t, Value)>& load) const {
    std::vector<Typed> in;
    for (size_t k = 0; k < y_; ++k) in.push_back(load(k, b.at(base[k], b.mul(i, b.i64(step_[k])))));
    return b.splat(element_(b, in).value, width);
  }
  Value resultAt(Builder& b, const Values& base, Value i) const {
    return b.at(base[y_], b.mul(i, b.i64(step_[y_])));
  }

  const std::vector<Operand>& operands_; // the result last
  const Element& element_;
  const Nest nest_;
  const size_t last_, y_; // the innermost dim; the result
  const int64_t inner_;
  const std::vector<int64_t>& step_; // along the innermost dim
  bool isContiguous_ = true;         // every operand is a row or one element: a tail can be masked
  int lanes_ = 1;
  int64_t chunk_ = 1, chunks_ = 1; // of a row
  int64_t outer_ = 1;              // rows
  bool hasRows_ = false;           // a unit has several
  int64_t rows_ = 1;
};

} // namespace

void map(Lowering& lowering, const std::string& what, const std::vector<Operand>& inputs,
         const Operand& y, const Element& element) {
  if (y.elements() == 0) return;
  std::vector<Operand> operands = inputs;
  operands.push_back(y);
  const MapKernel kernel(lowering.isa, operands, element);
  Key key("map " + what);
  kernel.addTo(key);
  std::vector<Arg> args;
  for (const Operand& o : operands) args.push_back(o.at);
  lowering.call(key.text(), static_cast<uint64_t>(kernel.units()), args,
                [&](Builder& b) { kernel.write(b); });
}

namespace {

/// Transposes the square of as many vectors as they have lanes: lane k of vector i becomes lane i
/// of vector k. Each of the log2(lanes) rounds swaps the blocks beside the diagonal, of twice the
/// size.
Values turned(Builder& b, Values rows) {
  const int lanes = static_cast<int>(rows.size());
  for (int step = 1; step < lanes; step *= 2) {
    std::vector<int> low, high; // of two vectors, one behind the other
    for (int k = 0; k < lanes; ++k) {
      const bool isFirst = (k & step) == 0;
      low.push_back(isFirst ? k : lanes + k - step);
      high.push_back(isFirst ? k + step : lanes + k);
    }
    for (int i = 0; i < lanes; ++i) {
      if (i & step) continue;
      const Value first = rows[i], second = rows[i + step];
      rows[i] = b.shuffle(first, second, low);
      rows[i + step] = b.shuffle(first, second, high);
    }
  }
  return rows;
}

/// A copy where neighbours of x lie apart in y and the other way: by squares that are turned in
/// registers, so that the lines of both are used while they are near.
class TurnedCopy {
public:
  /// The copy of x to y; nullopt where it is no such one.
  static std::optional<TurnedCopy> of(const Operand& x, const Operand& y) {
    TurnedCopy copy;
    copy.ty_ = tyOf(y.elem);
    copy.size_ = sizeOf(copy.ty_);
    if (copy.size_ < 4 || y.elements() == 0) return std::nullopt;
    copy.nest_ = nestOf({x, y});
    const Nest& nest = copy.nest_;
    copy.across_ = nest.dims.size() - 1;
    while (copy.along_ < copy.across_ && nest.strides[copy.along_][0] != copy.size_) ++copy.along_;
    copy.lanes_ = 32 / static_cast<int>(copy.size_);
    if (copy.along_ == copy.across_ || nest.strides[copy.across_][1] != copy.size_ ||
        copy.columns() < copy.lanes_ || copy.rows() < copy.lanes_)
      return std::nullopt;
    return copy;
  }

  void addTo(Key& key) const {
    for (size_t d = 0; d < nest_.dims.size(); ++d)
      key << nest_.dims[d] << nest_.strides[d][0] << nest_.strides[d][1];
  }

  /// How many units there are: each is a strip of columns, one square after the other.
  int64_t units() const {
    int64_t outer = 1;
    for (size_t d = 0; d < nest_.dims.size(); ++d)
      if (isOuter(d)) outer *= nest_.dims[d];
    return outer * strips();
  }

  void write(Builder& b) const {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      const Strip strip = stripOf(b, unit);
      const int64_t whole = rows() / lanes_ * lanes_;
      b.loop(b.i64(0), b.i64(whole), lanes_, [&](Value row) { writeSquares(b, strip, row); });
      b.loop(b.i64(whole), b.i64(rows()), 1, [&](Value row) {
        b.loop(strip.first, strip.last, 1,
               [&](Value column) { writeElement(b, strip, column, row); });
      });
    });
  }

private:
  /// The columns of a unit: addresses of column 0 and row 0, and from `whole` on no more squares.
  struct Strip {
    Value from, to, first, last, whole;
  };

  int64_t columns() const { return nest_.dims[along_]; }
  int64_t rows() const { return nest_.dims[across_]; }
  int64_t xStep() const { return nest_.strides[across_][0]; }
  int64_t yStep() const { return nest_.strides[along_][1]; }
  int64_t strip() const { return 64 / size_; } // a line of x
  int64_t strips() const { return (columns() + strip() - 1) / strip(); }
  bool isOuter(size_t d) const { return d != along_ && d != across_; }

  Strip stripOf(Builder& b, Value unit) const {
    Strip s;
    s.from = b.arg(0);
    s.to = b.arg(1);
    Value rest = b.quotient(unit, strips());
    for (size_t d = nest_.dims.size(); d-- > 0;) {
      if (!isOuter(d)) continue;
      const Value index = b.remainder(rest, nest_.dims[d]);
      rest = b.quotient(rest, nest_.dims[d]);
      s.from = b.at(s.from, b.mul(index, b.i64(nest_.strides[d][0])));
      s.to = b.at(s.to, b.mul(index, b.i64(nest_.strides[d][1])));
    }
    s.first = b.mul(b.remainder(unit, strips()), b.i64(strip()));
    s.last = b.min(b.add(s.first, b.i64(strip())), b.i64(columns()));
    s.whole = b.sub(s.last, b.remainder(b.sub(s.last, s.first), lanes_));
    return s;
  }

  Value xAt(Builder& b, const Strip& s, Value column, Value row) const {
    return b.at(b.at(s.from, b.mul(row, b.i64(xStep()))), b.mul(column, b.i64(size_)));
  }
  Value yAt(Builder& b, const Strip& s, Value column, Value row) const {
    return b.at(b.at(s.to, b.mul(column, b.i64(yStep()))), b.mul(row, b.i64(size_)));
  }

  void writeElement(Builder& b, const Strip& s, Value column, Value row) const {
    b.store(b.load(ty_, 1, xAt(b, s, column, row)), yAt(b, s, column, row));
  }

  /// Copies the squares of a strip from `row` on, and the columns beside them element by element.
  void writeSquares(Builder& b, const Strip& s, Value row) const {
    b.loop(s.first, s.whole, lanes_, [&](Value column) {
      Values square;
      for (int k = 0; k < lanes_; ++k)
        square.push_back(b.load(ty_, lanes_, xAt(b, s, column, row), k * xStep()));
      square = turned(b, std::move(square));
      for (int k = 0; k < lanes_; ++k) b.store(square[k], yAt(b, s, column, row), k * yStep());
    });
    b.loop(s.whole, s.last, 1, [&](Value column) {
      b.loop(row, b.add(row, b.i64(lanes_)), 1, [&](Value at) { writeElement(b, s, column, at); });
    });
  }

  Ty ty_ = Ty::I64;
  int64_t size_ = 0; // of an element
  Nest nest_;
  size_t along_ = 0;  // the dim of neighbours in x
  size_t across_ = 0; // and in y
  int lanes_ = 1;
};

bool copyTurned(Lowering& lowering, const Operand& x, const Operand& y) {
  const std::optional<TurnedCopy> copy = TurnedCopy::of(x, y);
  if (!copy) return false;
  Key key("copy turned");
  key << y.elem;
  copy->addTo(key);
  lowering.call(key.text(), static_cast<uint64_t>(copy->units()), {x.at, y.at},
                [&](Builder& b) { copy->write(b); });
  return true;
}

} // namespace

void copy(Lowering& lowering, const Operand& x, const Operand& y) {
  if (copyTurned(lowering, x, y)) return;
  map(lowering, "copy", {x}, y, [](Builder&, const std::vector<Typed>& in) { return in[0]; });
}

void fill(Lowering& lowering, const Operand& y, uint64_t bits) {
  map(lowering, "fill " + std::to_string(bits), {}, y, [&](Builder& b, const std::vector<Typed>&) {
    return Typed{b.bits(tyOf(y.elem), bits), y.elem};
  });
}

} // namespace cpu
