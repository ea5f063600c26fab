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
  Ty ty = Ty::I64;
  typeOf(elem, ty);
  return {b.loadStrided(ty, lanes, at, stride), elem};
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

void map(Lowering& lowering, const std::string& what, const std::vector<Operand>& inputs,
         const Operand& y, const Element& element) {
  if (y.elements() == 0) return;
  std::vector<Operand> operands = inputs;
  operands.push_back(y);
  const Nest nest = nestOf(operands);
  const size_t count = operands.size(), last = nest.dims.size() - 1;
  const int64_t inner = nest.dims[last];
  const std::vector<int64_t>& step = nest.strides[last];

  int widest = 1;
  Key key("map " + what);
  for (size_t i = 0; i < count; ++i) {
    Ty ty = Ty::I64;
    typeOf(operands[i].elem, ty);
    widest = std::max(widest, sizeOf(ty));
    key << operands[i].elem;
  }
  for (size_t d = 0; d <= last; ++d) {
    key << nest.dims[d];
    for (int64_t stride : nest.strides[d]) key << stride;
  }
  const int lanes = static_cast<int>(std::min<int64_t>(lowering.isa.lanes(widest), 64));
  bool isContiguous = true; // every operand is a row or one element: a tail can be masked
  for (size_t i = 0; i < count; ++i) {
    Ty ty = Ty::I64;
    typeOf(operands[i].elem, ty);
    isContiguous &= step[i] == sizeOf(ty) || (step[i] == 0 && i + 1 < count);
  }

  // A unit is one row; long rows are cut, and of many rows that are short some go together.
  const int64_t chunk = inner > 2 * kChunk ? kChunk : inner;
  const int64_t chunks = (inner + chunk - 1) / chunk;
  int64_t outer = 1;
  for (size_t d = 0; d + 1 < nest.dims.size(); ++d) outer *= nest.dims[d];
  const bool hasRows = last >= 1 && chunks == 1 && outer / nest.dims[last - 1] >= 16;
  const int64_t rows = hasRows ? nest.dims[last - 1] : 1;

  std::vector<Arg> args;
  for (const Operand& o : operands) args.push_back(o.at);
  const auto units = static_cast<uint64_t>(outer / rows * chunks);
  lowering.call(key.text(), units, args, [&](Builder& b) {
    const auto rowAt = [&](const Values& base, Value from, Value to) {
      const auto apply = [&](int width, Value i, const std::function<Typed(size_t, Value)>& load) {
        std::vector<Typed> in;
        for (size_t k = 0; k + 1 < count; ++k)
          in.push_back(load(k, b.at(base[k], b.mul(i, b.i64(step[k])))));
        Typed result = element(b, in);
        result.value = b.splat(result.value, width);
        return result.value;
      };
      const auto yAt = [&](Value i) {
        return b.at(base[count - 1], b.mul(i, b.i64(step[count - 1])));
      };
      Value done = from;
      if (lanes > 1 && inner >= lanes) {
        const Value whole = b.sub(to, b.rem(b.sub(to, from), b.i64(lanes), false));
        b.loop(from, whole, lanes, [&](Value i) {
          const Value v = apply(lanes, i, [&](size_t k, Value at) {
            return loaded(b, operands[k].elem, lanes, at, step[k]);
          });
          b.storeStrided(v, yAt(i), step[count - 1]);
        });
        done = whole;
        if (inner % lanes == 0 && chunk % lanes == 0) return;
      }
      if (isContiguous && b.isa().hasMasks) {
        // What is left over, of every lane that exists.
        b.loop(done, to, lanes, [&](Value i) {
          const Value left = b.sub(to, i);
          const Value v = apply(lanes, i, [&](size_t k, Value at) {
            if (step[k] == 0) return loaded(b, operands[k].elem, lanes, at, 0);
            Ty ty = Ty::I64;
            typeOf(operands[k].elem, ty);
            return Typed{b.loadFirst(ty, lanes, at, left), operands[k].elem};
          });
          b.storeFirst(v, yAt(i), left);
        });
        return;
      }
      b.loop(done, to, 1, [&](Value i) {
        const Value v = apply(
            1, i, [&](size_t k, Value at) { return loaded(b, operands[k].elem, 1, at, step[k]); });
        b.store(v, yAt(i));
      });
    };
    b.loop(b.begin(), b.end(), 1, [&](Value unit) {
      Value rest = chunks > 1 ? b.div(unit, b.i64(chunks), false) : unit;
      Values base;
      for (size_t k = 0; k < count; ++k) base.push_back(b.arg(static_cast<int>(k)));
      for (size_t d = hasRows ? last - 1 : last; d-- > 0;) {
        const Value index = d ? b.rem(rest, b.i64(nest.dims[d]), false) : rest;
        rest = d ? b.div(rest, b.i64(nest.dims[d]), false) : rest;
        for (size_t k = 0; k < count; ++k)
          if (nest.strides[d][k]) base[k] = b.at(base[k], b.mul(index, b.i64(nest.strides[d][k])));
      }
      if (chunks > 1) {
        const Value from = b.mul(b.rem(unit, b.i64(chunks), false), b.i64(chunk));
        rowAt(base, from, b.min(b.add(from, b.i64(chunk)), b.i64(inner)));
      } else if (hasRows) {
        b.loop(b.i64(0), b.i64(rows), 1, [&](Value row) {
          Values at = base;
          for (size_t k = 0; k < count; ++k)
            at[k] = b.at(at[k], b.mul(row, b.i64(nest.strides[last - 1][k])));
          rowAt(at, b.i64(0), b.i64(inner));
        });
      } else {
        rowAt(base, b.i64(0), b.i64(inner));
      }
    });
  });
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
