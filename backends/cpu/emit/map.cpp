#include "map.hpp"

#include <algorithm>
#include <numeric>

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
    const Values base = basesOf(b, chunks_ > 1 ? b.div(unit, b.i64(chunks_), false) : unit);
    if (chunks_ > 1) {
      const Value from = b.mul(b.rem(unit, b.i64(chunks_), false), b.i64(chunk_));
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
      const Value index = d ? b.rem(rest, b.i64(nest_.dims[d]), false) : rest;
      rest = d ? b.div(rest, b.i64(nest_.dims[d]), false) : rest;
      for (size_t k = 0; k < base.size(); ++k) base[k] = b.at(base[k], index, nest_.strides[d][k]);
    }
    return base;
  }

  void writeRow(Builder& b, const Values& base, Value from, Value to) const {
    Value done = from;
    if (lanes_ > 1 && inner_ >= lanes_) {
      done = b.sub(to, b.rem(b.sub(to, from), b.i64(lanes_), false));
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

/// The square of as many vectors as they have lanes, turned: lane k of vector i becomes lane i of
/// vector k. Each round swaps the blocks beside the diagonal.
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
/// registers, so that the lines of both are used while they are near. False where it is no such
/// copy.
bool copyTurned(Lowering& lowering, const Operand& x, const Operand& y) {
  Ty ty = Ty::I64;
  typeOf(y.elem, ty);
  const int64_t size = sizeOf(ty);
  if (size < 4 || y.elements() == 0) return false;
  const Nest nest = nestOf({x, y});
  const size_t across = nest.dims.size() - 1; // neighbours in y
  size_t along = 0;                           // neighbours in x
  while (along < across && nest.strides[along][0] != size) ++along;
  const int lanes = 32 / static_cast<int>(size);
  const int64_t columns = nest.dims[along], rows = nest.dims[across];
  if (along == across || nest.strides[across][1] != size || columns < lanes || rows < lanes)
    return false;
  const int64_t xStep = nest.strides[across][0], yStep = nest.strides[along][1];
  const int64_t strip = 64 / size, strips = (columns + strip - 1) / strip; // a line of x

  Key key("copy turned");
  key << y.elem;
  int64_t outer = 1;
  for (size_t d = 0; d < nest.dims.size(); ++d) {
    key << nest.dims[d] << nest.strides[d][0] << nest.strides[d][1];
    if (d != along && d != across) outer *= nest.dims[d];
  }
  lowering.call(key.text(), static_cast<uint64_t>(outer * strips), {x.at, y.at}, [&](Builder& b) {
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      Value from = b.arg(0), to = b.arg(1), rest = b.div(unit, b.i64(strips), false);
      for (size_t d = nest.dims.size(); d-- > 0;) {
        if (d == along || d == across) continue;
        const Value index = b.rem(rest, b.i64(nest.dims[d]), false);
        rest = b.div(rest, b.i64(nest.dims[d]), false);
        from = b.at(from, b.mul(index, b.i64(nest.strides[d][0])));
        to = b.at(to, b.mul(index, b.i64(nest.strides[d][1])));
      }
      const auto xAt = [&](Value column, Value row) {
        return b.at(b.at(from, b.mul(row, b.i64(xStep))), b.mul(column, b.i64(size)));
      };
      const auto yAt = [&](Value column, Value row) {
        return b.at(b.at(to, b.mul(column, b.i64(yStep))), b.mul(row, b.i64(size)));
      };
      const auto one = [&](Value column, Value row) {
        b.store(b.load(ty, 1, xAt(column, row)), yAt(column, row));
      };
      const Value first = b.mul(b.rem(unit, b.i64(strips), false), b.i64(strip));
      const Value last = b.min(b.add(first, b.i64(strip)), b.i64(columns));
      const Value whole = b.sub(last, b.rem(b.sub(last, first), b.i64(lanes), false));
      b.loop(b.i64(0), b.i64(rows / lanes * lanes), lanes, [&](Value row) {
        b.loop(first, whole, lanes, [&](Value column) {
          Values square;
          for (int k = 0; k < lanes; ++k)
            square.push_back(b.load(ty, lanes, xAt(column, row), k * xStep));
          square = turned(b, std::move(square));
          for (int k = 0; k < lanes; ++k) b.store(square[k], yAt(column, row), k * yStep);
        });
        b.loop(whole, last, 1, [&](Value column) {
          b.loop(row, b.add(row, b.i64(lanes)), 1, [&](Value at) { one(column, at); });
        });
      });
      b.loop(b.i64(rows / lanes * lanes), b.i64(rows), 1,
             [&](Value row) { b.loop(first, last, 1, [&](Value column) { one(column, row); }); });
    });
  });
  return true;
}

} // namespace

void copy(Lowering& lowering, const Operand& x, const Operand& y) {
  if (copyTurned(lowering, x, y)) return;
  map(lowering, "copy", {x}, y, [](Builder&, const std::vector<Typed>& in) { return in[0]; });
}

void fill(Lowering& lowering, const Operand& y, uint64_t bits) {
  map(lowering, "fill " + std::to_string(bits), {}, y, [&](Builder& b, const std::vector<Typed>&) {
    Ty ty = Ty::I64;
    typeOf(y.elem, ty);
    return Typed{b.bits(ty, bits), y.elem};
  });
}

} // namespace cpu
