#include "contraction.hpp"

#include "elementwise.hpp"
#include "epilogue.hpp"

#include <algorithm>
#include <cstring>

namespace cpu {

void addKey(Key& key, const Plane& p) {
  key << p.elem << p.batch << p.group << p.panel << p.row << p.column << p.lane;
}

std::vector<PanelRun> panelRuns(int64_t channels, int64_t held) {
  std::vector<PanelRun> runs;
  const int64_t whole = channels / held;
  const int64_t rest = channels % held;
  if (whole) runs.push_back({.first = 0, .count = whole, .lanes = held});
  if (rest) runs.push_back({.first = whole, .count = 1, .lanes = rest});
  return runs;
}

namespace {

constexpr int kUnroll = 4;           // steps of the innermost axis in one basic block
constexpr int64_t kTilesPerUnit = 8; // along a row that is longer
// The bytes that stay in the second-level cache beside what streams through it.
constexpr int64_t kNear = 1 << 20;

/// The results of a tile: rows x columns of points, each of so many panels.
struct TileShape {
  int rows, columns, panels;
};

/// The shapes, points x panels, that stay in registers with the weights and one broadcast beside
/// them. More accumulators than these are spilled.
std::vector<TileShape> shapesOf(const Isa& isa) {
  if (isa.lanes(4) == 2) return {{1, 2, 1}, {2, 1, 1}}; // no vectors: a part of a panel at a time
  if (isa.registers >= 32)
    return {{1, 14, 2}, {1, 12, 2}, {1, 8, 3}, {1, 6, 4},
            {1, 3, 8},  {2, 7, 2},  {2, 6, 2}, {1, 24, 1}};
  return {{1, 6, 1}, {2, 3, 1}, {1, 2, 3}, {1, 1, 6}};
}

/// The cycles of all tiles per step of the sum: two multiply-adds and two loads a cycle, four
/// cycles until a sum can be added to again.
double costOf(const TileShape& s, const Contraction& c, const Isa& isa) {
  const int vectors = kPanel / isa.lanes(4);
  double cost = 0;
  const int64_t rowTiles = c.rows / s.rows, rowRest = c.rows % s.rows;
  const int64_t columnTiles = c.columns / s.columns, columnRest = c.columns % s.columns;
  const int64_t groups = c.panels / s.panels, panelRest = c.panels % s.panels;
  const auto one = [&](int64_t rows, int64_t columns, int64_t panels) {
    const auto points = static_cast<double>(rows * columns),
               width = static_cast<double>(panels * vectors);
    // Of two shapes that are as good the one wins that reads weights less often: they may come from
    // farther away.
    return points && width ? std::max({points * width / 2, 4.0, (points + width) / 2}) + width / 10
                           : 0;
  };
  for (const auto& [rows, rowCount] : {std::pair<int64_t, int64_t>{s.rows, rowTiles}, {rowRest, 1}})
    for (const auto& [columns, columnCount] :
         {std::pair<int64_t, int64_t>{s.columns, columnTiles}, {columnRest, 1}})
      for (const auto& [panels, panelCount] :
           {std::pair<int64_t, int64_t>{s.panels, groups}, {panelRest, 1}})
        cost +=
            one(rows, columns, panels) * static_cast<double>(rowCount * columnCount * panelCount);
  return cost;
}

/// The vectors of a panel that are summed at a time, so that the sums of two points and what they
/// are made of stay in registers: 13 for integers on a Cortex-M, where products take bytes apart
/// first.
int vectorsTogether(const Contraction& c, const Isa& isa) {
  const int all = kPanel / isa.lanes(4);
  if (isa.lanes(4) > 2) return all;
  return isa.arch == Arch::THUMB && c.isPacked() ? 1 : all / 2;
}

TileShape chooseShape(const Contraction& c, const Isa& isa) {
  TileShape best{};
  double least = 0;
  for (TileShape shape : shapesOf(isa)) {
    shape.panels = static_cast<int>(std::min<int64_t>(shape.panels, c.panels));
    shape.rows = static_cast<int>(std::min<int64_t>(shape.rows, c.rows));
    shape.columns = static_cast<int>(std::min<int64_t>(shape.columns, c.columns));
    const double cost = costOf(shape, c, isa);
    if (best.rows == 0 || cost < least * 0.999) {
      best = shape;
      least = cost;
    }
  }
  return best;
}

/// Writes the tiles of one contraction.
class TileWriter {
public:
  TileWriter(Builder& b, const Lowering& lowering, const Contraction& c)
      : b(b), c(c), epilogue_(b, lowering, c), lanes_(b.isa().lanes(4)), vectors_(kPanel / lanes_),
        together_(vectorsTogether(c, b.isa())),
        isLong_(c.epilogue && isLongExpr(lowering.image, *c.epilogue)) {}

  EpilogueWriter& epilogue() { return epilogue_; }

  /// Writes a tile, the last panel of which has `lastLanes` results. Addresses are those of its
  /// first result.
  void tile(Value a, Value weights, const Bases& at, const TileShape& shape, int lastLanes) {
    for (int v = 0; v < vectors_; v += together_)
      if (shape.panels > 1 || v * lanes_ < lastLanes)
        part(a, b.at(weights, int64_t{4} * v * lanes_), at, shape, lastLanes, v);
  }

private:
  /// The results of the vectors of each panel from `firstVector` on, whose weights these are.
  void part(Value a, Value weights, const Bases& at, const TileShape& shape, int lastLanes,
            int firstVector) {
    const Ty ty = isFloat(tyOf(c.accElem)) ? Ty::F32 : Ty::I32;
    const int points = shape.rows * shape.columns, width = shape.panels * together_;
    Values acc(static_cast<size_t>(points * width), b.zero(ty, lanes_));
    acc = axis(0, a, weights, std::move(acc), shape);
    std::vector<EpilogueWriter::Shared> shared;
    for (int k = 0; k < width; ++k) {
      const int panel = k / together_, first = (firstVector + k % together_) * lanes_;
      const int live =
          panel + 1 == shape.panels ? std::clamp(lastLanes - first, 0, lanes_) : lanes_;
      shared.push_back(live ? epilogue_.shared(at, panel, first, live) : EpilogueWriter::Shared{});
    }
    const auto finishPoint = [&](const Bases& bases, int r, int x,
                                 const std::function<Value(int)>& sum) {
      for (int k = 0; k < width; ++k)
        if (const EpilogueWriter::Shared& each = shared[static_cast<size_t>(k)]; each.live)
          epilogue_.finish(sum(k), bases, each, r, x);
    };
    if (!isLong_) {
      for (int r = 0; r < shape.rows; ++r)
        for (int x = 0; x < shape.columns; ++x)
          finishPoint(at, r, x, [&](int k) {
            return acc[static_cast<size_t>((r * shape.columns + x) * width + k)];
          });
      return;
    }
    // A long epilogue is written once, and finds the sums in memory.
    const int64_t bytes = int64_t(lanes_) * 4;
    const Value sums = b.local(points * width * bytes);
    for (size_t i = 0; i < acc.size(); ++i) b.store(acc[i], sums, static_cast<int64_t>(i) * bytes);
    for (int r = 0; r < shape.rows; ++r)
      b.loop(b.i64(0), b.i64(shape.columns), 1, [&](Value x) {
        const Value from =
            b.at(sums, b.mul(b.add(x, b.i64(int64_t(r) * shape.columns)), b.i64(width * bytes)));
        finishPoint(epilogue_.moved(at, x), r, 0,
                    [&](int k) { return b.load(ty, lanes_, from, k * bytes); });
      });
  }

  Values axis(size_t level, Value a, Value weights, Values acc, const TileShape& shape) {
    const SumAxis& axis = c.axes[level];
    if (level + 1 < c.axes.size())
      return b.loop(axis.count, std::move(acc), [&](Value i, const Values& carried) {
        return this->axis(level + 1, b.at(a, b.mul(i, b.i64(axis.a))),
                          b.at(weights, b.mul(i, b.i64(axis.b))), carried, shape);
      });
    const int64_t whole = axis.count / kUnroll * kUnroll;
    if (whole)
      acc = b.loop(whole / kUnroll, std::move(acc), [&](Value i, const Values& carried) {
        return steps(kUnroll, b.at(a, b.mul(i, b.i64(axis.a * kUnroll))),
                     b.at(weights, b.mul(i, b.i64(axis.b * kUnroll))), carried, shape);
      });
    if (whole < axis.count)
      acc = steps(static_cast<int>(axis.count - whole), b.at(a, whole * axis.a),
                  b.at(weights, whole * axis.b), std::move(acc), shape);
    return acc;
  }

  Values steps(int count, Value a, Value weights, Values acc, const TileShape& shape) {
    const SumAxis& axis = c.axes.back();
    const int width = shape.panels * together_;
    const Ty factor = c.isPacked() ? Ty::I32 : Ty::F32;
    const int align = c.isPacked() ? 1 : 4;
    // Without this the optimizer keeps an address per point alive across the loops, and spills
    // them.
    a = b.launder(a);
    const Value signs = b.splat(b.i32(static_cast<int32_t>(0x80808080u)), lanes_);
    for (int s = 0; s < count; ++s) {
      Values w;
      for (int panel = 0; panel < shape.panels; ++panel)
        for (int v = 0; v < together_; ++v)
          w.push_back(
              b.load(factor, lanes_, weights, s * axis.b + panel * c.bPanel + v * lanes_ * 4, 4));
      for (int r = 0; r < shape.rows; ++r)
        for (int x = 0; x < shape.columns; ++x) {
          Value one = b.splat(
              b.load(factor, 1, a, r * c.a.row + x * c.a.column + s * axis.a, align), lanes_);
          // Of the vector: a load broadcasts by itself, a number from a register takes the port of
          // shuffles twice.
          if (c.isInt8() && takesOtherSign(b.isa(), c.aIsSigned)) one = b.bitXor(one, signs);
          for (int k = 0; k < width; ++k) {
            Value& sum = acc[static_cast<size_t>((r * shape.columns + x) * width + k)];
            sum = multiplied(one, w[static_cast<size_t>(k)], sum);
          }
        }
    }
    return acc;
  }

  Value multiplied(Value a, Value w, Value sum) {
    switch (c.factors) {
    case Factors::BYTES: return b.dotBytes(sum, a, w);
    case Factors::HALVES: return b.dotBF16(sum, a, w);
    default: return b.fma(a, w, sum);
    }
  }

  Builder& b;
  const Contraction& c;
  EpilogueWriter epilogue_;
  const int lanes_, vectors_;
  const int together_; // vectors of a panel
  const bool isLong_;  // the epilogue
};

/// How a contraction is cut into units of work: a unit is a row of tiles, or a part of one, of a
/// group of panels.
struct TileGrid {
  TileShape shape;
  int64_t panelGroups, rowTiles, columnTiles, columnRest;
  int64_t parts; // of a row of tiles
  // All units of some panels follow each other, and find their weights near; unless a is what has
  // to stay near.
  bool isPanelInner;

  TileGrid(const Contraction& c, const Isa& isa) : shape(chooseShape(c, isa)) {
    panelGroups = (c.panels + shape.panels - 1) / shape.panels;
    rowTiles = (c.rows + shape.rows - 1) / shape.rows;
    columnTiles = c.columns / shape.columns;
    columnRest = c.columns % shape.columns;
    parts = std::max<int64_t>(1, (columnTiles + kTilesPerUnit - 1) / kTilesPerUnit);
    int64_t steps = 1;
    for (const SumAxis& axis : c.axes) steps *= axis.count;
    const int64_t panelBytes = steps * kPanel * 4;
    const int64_t aBytes =
        std::max({c.rows * c.a.row, c.columns * c.a.column, c.axes[0].count * c.axes[0].a});
    isPanelInner = c.panels * panelBytes <= kNear && aBytes > kNear;
  }

  UnitRows units(const Contraction& c) const {
    const int64_t inner = isPanelInner ? panelGroups : 1;
    UnitRows units{.outer = c.batch * c.groups * (isPanelInner ? 1 : panelGroups),
                   .tiles = rowTiles,
                   .inner = parts * inner,
                   .points = shape.rows,
                   .width = 1,
                   .rows = c.rows};
    if (c.width == 0) return units;
    units.tiles = parts; // of the one row
    units.inner = inner;
    units.points = kTilesPerUnit * shape.columns;
    units.width = c.width;
    units.rows = c.columns / c.width;
    return units;
  }
};

/// Writes the units of a contraction.
class UnitWriter {
public:
  UnitWriter(Builder& b, const Lowering& lowering, const Contraction& c, const TileGrid& grid)
      : b(b), c(c), grid_(grid), tiles_(b, lowering, c) {}

  void write(Value unit) {
    place(unit);
    const TileShape& shape = grid_.shape;
    const int panelRest = static_cast<int>(c.panels % shape.panels);
    if (!panelRest && c.lastLanes == kPanel) return rows(shape.panels, kPanel);
    const Value isLast = b.compare(Cmp::EQ, panelGroup_, b.i64(grid_.panelGroups - 1));
    if (grid_.panelGroups > 1) b.when(b.bitNot(isLast), [&] { rows(shape.panels, kPanel); });
    b.when(isLast, [&] { rows(panelRest ? panelRest : shape.panels, c.lastLanes); });
  }

private:
  /// Finds the place of unit = (((batch * groups + group) * panelGroups + panelGroup) * rowTiles +
  /// rowTile) * parts + part, or with the group of panels last.
  void place(Value unit) {
    Value rest = unit;
    const auto next = [&](int64_t count) {
      if (count == 1) return b.i64(0);
      const Value index = b.remainder(rest, count);
      rest = b.quotient(rest, count);
      return index;
    };
    panelGroup_ = grid_.isPanelInner ? next(grid_.panelGroups) : b.i64(0);
    part_ = next(grid_.parts);
    rowTile_ = next(grid_.rowTiles);
    if (!grid_.isPanelInner) panelGroup_ = next(grid_.panelGroups);
    const Value group = next(c.groups);
    const Value batch = c.batch == 1 ? b.i64(0) : rest;
    const Value firstPanel = b.mul(panelGroup_, b.i64(grid_.shape.panels));
    const Value firstRow = b.mul(rowTile_, b.i64(grid_.shape.rows));
    const auto placed = [&](int arg, const Plane& p) {
      const Value at = b.at(b.at(b.arg(arg), batch, p.batch), group, p.group);
      return b.at(b.at(at, firstPanel, p.panel), firstRow, p.row);
    };
    int arg = 0;
    a_ = placed(arg++, c.a);
    weights_ =
        b.at(b.at(b.at(b.arg(arg++), batch, c.bBatch), group, c.bGroup), firstPanel, c.bPanel);
    bases_ = EpilogueWriter::bases(c, arg, placed);
  }

  /// The tiles of a row, the last of which may be lower.
  void rows(int panels, int lastLanes) {
    const TileShape& shape = grid_.shape;
    const int rest = static_cast<int>(c.rows % shape.rows);
    if (!rest) return columns(shape.rows, panels, lastLanes);
    const Value isLast = b.compare(Cmp::EQ, rowTile_, b.i64(grid_.rowTiles - 1));
    if (grid_.rowTiles > 1)
      b.when(b.bitNot(isLast), [&] { columns(shape.rows, panels, lastLanes); });
    b.when(isLast, [&] { columns(rest, panels, lastLanes); });
  }

  /// The tiles of a part of a row, the last of which may be narrower.
  void columns(int rows, int panels, int lastLanes) {
    const TileShape& shape = grid_.shape;
    const auto at = [&](Value tile, int width) {
      const Value column = b.mul(tile, b.i64(shape.columns));
      const Bases bases = tiles_.epilogue().moved(bases_, column);
      tiles_.tile(b.at(a_, column, c.a.column), weights_, bases, {rows, width, panels}, lastLanes);
    };
    const Value from = b.mul(part_, b.i64(kTilesPerUnit));
    const Value end = b.i64(grid_.columnTiles);
    const bool isOnly = grid_.parts == 1;
    const Value to = isOnly ? end : b.min(b.add(from, b.i64(kTilesPerUnit)), end);
    if (grid_.columnTiles)
      b.loop(isOnly ? b.i64(0) : from, to, 1, [&](Value t) { at(t, shape.columns); });
    if (!grid_.columnRest) return;
    const auto last = [&] { at(end, static_cast<int>(grid_.columnRest)); };
    if (isOnly) return last();
    b.when(b.compare(Cmp::EQ, part_, b.i64(grid_.parts - 1)), last);
  }

  Builder& b;
  const Contraction& c;
  const TileGrid& grid_;
  TileWriter tiles_;
  // The place of the unit at hand, and the addresses of its first tile.
  Value panelGroup_, part_, rowTile_, a_, weights_;
  Bases bases_;
};

} // namespace

void emitContraction(Lowering& lowering, const Contraction& c) {
  if (takesTiles(lowering.isa, c)) return emitTiles(lowering, c);
  const TileGrid grid(c, lowering.isa);
  Key key("contraction");
  key << grid.shape.rows << grid.shape.columns << grid.shape.panels << c.batch << c.groups
      << c.panels << c.rows << c.columns << c.lastLanes << grid.isPanelInner
      << static_cast<int>(c.factors) << c.aIsSigned << c.accumulates << c.bBatch << c.bGroup
      << c.bPanel << c.accElem;
  for (const SumAxis& axis : c.axes) key << axis.count << axis.a << axis.b;
  addKey(key, c.a);
  std::vector<Arg> args = {c.a.at, c.b};
  EpilogueWriter::addArguments(lowering, c, args, key);
  lowering.call(key.text(), grid.units(c), args, [&](Builder& b) {
    UnitWriter writer(b, lowering, c, grid);
    b.loop(b.begin(), b.end(), 1, [&](Value unit) { writer.write(unit); });
  });
}

const char* payloadOf(const Lowering& lowering, const Operand& operand) {
  if (operand.at.buffer == Arg::kScratch || operand.at.buffer == Arg::kOwn) return nullptr;
  const cdl_buffer_t* buffer = cdl_get_buffer(lowering.image, operand.at.buffer);
  if (buffer->role != CDL_ROLE_CONSTANT || !lowering.constants) return nullptr;
  if (operand.at.perLoop[0] || operand.at.perLoop[1]) return nullptr;
  const auto* payload = static_cast<const char*>(lowering.constants[buffer->constant]);
  return payload ? payload + operand.at.offset : nullptr;
}

bool knownInteger(const Lowering& lowering, const Operand& operand, int64_t& value) {
  const cdl_buffer_t* buffer = cdl_get_buffer(lowering.image, operand.at.buffer);
  if (buffer->role != CDL_ROLE_CONSTANT) return false;
  const cdl_constant_t* constant = cdl_get_constant(lowering.image, buffer->constant);
  const char* payload = payloadOf(lowering, operand);
  uint8_t bits;
  if (payload)
    bits = static_cast<uint8_t>(*payload);
  else if (constant->form == 1)
    bits = static_cast<uint8_t>(constant->bits);
  else
    return false;
  value = operand.elem == CDL_U8 ? static_cast<int64_t>(bits)
                                 : static_cast<int64_t>(static_cast<int8_t>(bits));
  return true;
}

Arg packed(Lowering& lowering, const Operand& from, int64_t elements,
           const std::vector<PackedPiece>& pieces) {
  const auto size = static_cast<size_t>(cdl_elem_bits(from.elem) / 8);
  const auto bytes = static_cast<uint64_t>(elements) * size;
  if (const char* source = payloadOf(lowering, from)) {
    std::vector<char> made(bytes, 0);
    for (const PackedPiece& piece : pieces) {
      std::vector<int64_t> index(piece.dims.size(), 0);
      if (std::find(piece.dims.begin(), piece.dims.end(), 0) != piece.dims.end()) continue;
      int64_t src = piece.src, dst = piece.dst;
      for (size_t d = 0; d != SIZE_MAX;) {
        std::memcpy(made.data() + dst * static_cast<int64_t>(size),
                    source + src * static_cast<int64_t>(size), size);
        for (d = piece.dims.size(); d-- > 0;) {
          src += piece.srcStrides[d];
          dst += piece.dstStrides[d];
          if (++index[d] < piece.dims[d]) break;
          src -= piece.srcStrides[d] * piece.dims[d];
          dst -= piece.dstStrides[d] * piece.dims[d];
          index[d] = 0;
        }
      }
    }
    return lowering.own(made.data(), bytes);
  }
  const Arg to = lowering.scratch(bytes);
  int64_t moved = 0;
  for (const PackedPiece& piece : pieces) {
    int64_t count = 1;
    for (int64_t dim : piece.dims) count *= dim;
    moved += count;
  }
  if (moved < elements) fill(lowering, view(from.elem, {elements}, {1}, to), 0);
  for (const PackedPiece& piece : pieces) {
    if (std::find(piece.dims.begin(), piece.dims.end(), 0) != piece.dims.end()) continue;
    const Operand y = view(from.elem, piece.dims, piece.dstStrides, to);
    copy(lowering, restrided(from, piece.dims, piece.srcStrides, piece.src),
         restrided(y, piece.dims, piece.dstStrides, piece.dst));
  }
  return to;
}

} // namespace cpu
