// Contractions of 8-bit integers and of bf16 by the tile unit (Intel AMX): 2 x 2 tiles of sums,
// each of up to 16 points by one panel, take the products of two tiles of points and two of weights
// per step. So each tile that is loaded is multiplied twice, and all eight tiles of the unit have a
// part: as many loads as products, where a single tile of sums would need two loads for each. Sums
// leave by way of memory that stays in L1.
#include "epilogue.hpp"

#include <algorithm>
#include <cstring>

namespace cpu {

namespace {

constexpr int kRows = 16;                       // of a tile
constexpr int kSums = 0, kA = 4, kB = 6;        // the numbers of the tiles
constexpr int64_t kPointBytes = 2 * kPanel * 4; // in the memory of sums: a point's two panels

/// The fours or pairs of products that one step takes: a divisor of them all, as rows of a tile
/// hold nothing else.
int64_t stepOf(const Contraction& c) {
  const int64_t count = c.axes.back().count;
  for (int64_t step = std::min<int64_t>(count, 16); step > 1; --step)
    if (count % step == 0) return step;
  return 1;
}

struct Grid {
  int64_t points, perRow, tiles; // points of a tile, tiles in a row of results, in all rows
  int64_t panelPairs, tilePairs;
};

Grid gridOf(const Contraction& c) {
  Grid g;
  g.perRow = (c.columns + kRows - 1) / kRows;
  g.points = (c.columns + g.perRow - 1) / g.perRow;
  g.tiles = g.perRow * c.rows;
  g.panelPairs = (c.panels + 1) / 2;
  g.tilePairs = (g.tiles + 1) / 2;
  return g;
}

class TileUnit {
public:
  TileUnit(Builder& b, const Lowering& lowering, const Contraction& c, const Grid& grid)
      : b(b), c(c), epilogue_(b, lowering, c), grid_(grid), step_(stepOf(c)),
        sums_(b.local(2 * kRows * kPointBytes)) {
    // Points that no other tap reads again leave the first-level cache to the weights, which come
    // back.
    for (size_t i = 0; i + 1 < c.axes.size(); ++i) isStreamed_ &= c.axes[i].count == 1;
  }

  /// Where a tile of points begins: its row, its first column, and how many of its points an
  /// earlier tile has done.
  struct Place {
    Value row, column, done;
  };
  Place place(Value tile) {
    const Value row = grid_.perRow == 1 ? tile : b.quotient(tile, grid_.perRow);
    if (grid_.perRow == 1) return {row, b.i64(0), b.i64(0)};
    const Value from = b.mul(b.remainder(tile, grid_.perRow), b.i64(grid_.points));
    const Value column = b.min(from, b.i64(c.columns - grid_.points));
    return {row, column, b.sub(from, column)};
  }

  /// Computes the tiles at `places` by `panels` panels; addresses are those of the first panel and
  /// of no row and column.
  void compute(const std::vector<Place>& places, Value a, Value weights, const Bases& bases,
               int panels, int lastLanes) {
    const int tiles = static_cast<int>(places.size());
    for (int t = 0; t < tiles; ++t)
      for (int p = 0; p < panels; ++p) b.tileZero(kSums + t * 2 + p);
    Values from;
    for (const Place& at : places)
      from.push_back(
          b.at(b.at(a, b.mul(at.row, b.i64(c.a.row))), b.mul(at.column, b.i64(c.a.column))));
    sum(0, from, weights, panels);
    for (int t = 0; t < tiles; ++t)
      for (int p = 0; p < panels; ++p)
        b.tileStore(kSums + t * 2 + p, b.at(sums_, t * kRows * kPointBytes + p * kPanel * 4),
                    b.i64(kPointBytes));
    std::vector<EpilogueWriter::Shared> shared;
    for (int p = 0; p < panels; ++p)
      shared.push_back(epilogue_.shared(bases, p, 0, p + 1 == panels ? lastLanes : kPanel));
    for (int t = 0; t < tiles; ++t) {
      const Place& at = places[static_cast<size_t>(t)];
      const Bases row = epilogue_.movedRows(bases, at.row);
      b.loop(at.done, b.i64(grid_.points), 1, [&](Value point) {
        const Bases there = epilogue_.moved(row, b.add(at.column, point));
        const Value base =
            b.at(b.at(sums_, t * kRows * kPointBytes), b.mul(point, b.i64(kPointBytes)));
        for (int p = 0; p < panels; ++p)
          epilogue_.finish(b.load(tyOf(c.accElem), kPanel, base, p * kPanel * 4), there,
                           shared[static_cast<size_t>(p)], 0, 0);
      });
    }
  }

private:
  void sum(size_t level, const Values& a, Value weights, int panels) {
    const SumAxis& axis = c.axes[level];
    const bool isLast = level + 1 == c.axes.size();
    const int64_t by = isLast ? step_ : 1;
    const auto body = [&](Value i) {
      Values there;
      for (const Value& each : a) there.push_back(b.at(each, b.mul(i, b.i64(axis.a))));
      const Value w = b.at(weights, b.mul(i, b.i64(axis.b)));
      if (isLast)
        products(there, w, panels);
      else
        sum(level + 1, there, w, panels);
    };
    if (axis.count == by)
      body(b.i64(0));
    else
      b.loop(b.i64(0), b.i64(axis.count), by, body);
  }

  void products(const Values& a, Value weights, int panels) {
    const int tiles = static_cast<int>(a.size());
    const Value rowBytes = b.i64(c.a.column), panelRow = b.i64(kPanel * 4);
    for (int p = 0; p < panels; ++p) {
      b.tileLoad(kB + p, b.at(weights, p * c.bPanel), panelRow);
      for (int t = 0; t < tiles; ++t) {
        if (p == 0) b.tileLoad(kA + t, a[static_cast<size_t>(t)], rowBytes, isStreamed_);
        multiply(kSums + t * 2 + p, kA + t, kB + p);
      }
    }
  }

  void multiply(int sums, int a, int weights) {
    if (c.isInt8())
      b.tileDot(sums, a, weights, c.aIsSigned);
    else
      b.tileDotBF16(sums, a, weights);
  }

  Builder& b;
  const Contraction& c;
  EpilogueWriter epilogue_;
  const Grid grid_;
  const int64_t step_;
  const Value sums_;
  bool isStreamed_ = true;
};

/// Writes units of work: two tiles of points by two panels.
class PairWriter {
public:
  PairWriter(Builder& b, const Lowering& lowering, const Contraction& c, const Grid& grid)
      : b(b), c(c), grid_(grid), tiles_(b, lowering, c, grid) {}

  void write(Value unit) {
    place(unit);
    const int panelRest = c.panels % 2 ? 1 : 2;
    if (panelRest == 2 && c.lastLanes == kPanel) return points(2, kPanel);
    const Value isLast = b.compare(Cmp::EQ, panelPair_, b.i64(grid_.panelPairs - 1));
    if (grid_.panelPairs > 1) b.when(b.bitNot(isLast), [&] { points(2, kPanel); });
    b.when(isLast, [&] { points(panelRest, c.lastLanes); });
  }

private:
  /// Finds the place of unit = ((batch * groups + group) * panelPairs + panelPair) * tilePairs +
  /// tilePair
  void place(Value unit) {
    Value rest = unit;
    const auto next = [&](int64_t count) {
      if (count == 1) return b.i64(0);
      const Value i = b.remainder(rest, count);
      rest = b.quotient(rest, count);
      return i;
    };
    tilePair_ = next(grid_.tilePairs);
    panelPair_ = next(grid_.panelPairs);
    const Value group = next(c.groups);
    const Value batch = c.batch == 1 ? b.i64(0) : rest;
    const Value panel = b.mul(panelPair_, b.i64(2));
    a_ = b.at(b.at(b.arg(0), batch, c.a.batch), group, c.a.group);
    weights_ = b.at(b.at(b.at(b.arg(1), batch, c.bBatch), group, c.bGroup), panel, c.bPanel);
    int arg = 3;
    bases_ = EpilogueWriter::bases(c, arg, [&](int number, const Plane& p) {
      return b.at(b.at(b.at(b.arg(number), batch, p.batch), group, p.group), panel, p.panel);
    });
    firstTile_ = b.mul(tilePair_, b.i64(2));
  }

  /// Computes the tiles of a pair, the last of which may be alone.
  void points(int panels, int lastLanes) {
    const auto run = [&](int tiles) {
      std::vector<TileUnit::Place> places = {tiles_.place(firstTile_)};
      if (tiles == 2) places.push_back(tiles_.place(b.add(firstTile_, b.i64(1))));
      tiles_.compute(places, a_, weights_, bases_, panels, lastLanes);
    };
    if (grid_.tiles % 2 == 0) return run(2);
    const Value isLast = b.compare(Cmp::EQ, tilePair_, b.i64(grid_.tilePairs - 1));
    if (grid_.tilePairs > 1) b.when(b.bitNot(isLast), [&] { run(2); });
    b.when(isLast, [&] { run(1); });
  }

  Builder& b;
  const Contraction& c;
  const Grid& grid_;
  TileUnit tiles_;
  // The place of the unit at hand, and the addresses of its first panel.
  Value tilePair_, panelPair_, firstTile_, a_, weights_;
  Bases bases_;
};

/// What tileConfig reads: palette 1; from byte 16 on the bytes of a row of each tile, from 48 on
/// its rows.
struct TileConfig {
  unsigned char bytes[64] = {1};

  void shape(int tile, int64_t rows, int64_t rowBytes) {
    bytes[16 + 2 * tile] = static_cast<unsigned char>(rowBytes);
    bytes[48 + tile] = static_cast<unsigned char>(rows);
  }
};

TileConfig configOf(const Grid& grid, int64_t step) {
  TileConfig config;
  for (int t = 0; t < 4; ++t) config.shape(kSums + t, grid.points, kPanel * 4);
  for (int t = 0; t < 2; ++t) {
    config.shape(kA + t, grid.points, step * 4);
    config.shape(kB + t, step, kPanel * 4);
  }
  return config;
}

} // namespace

bool takesTiles(const Isa& isa, const Contraction& c) {
  if (!isa.hasTiles || !c.isPacked() || c.accumulates) return false;
  const SumAxis& last = c.axes.back();
  return last.a == 4 && last.b == kPanel * 4 && stepOf(c) >= 4 && c.columns * c.rows >= 4;
}

void emitTiles(Lowering& lowering, const Contraction& c) {
  const Grid grid = gridOf(c);
  Key key("tiles");
  key << static_cast<int>(c.factors) << c.batch << c.groups << c.panels << c.rows << c.columns
      << c.lastLanes << c.aIsSigned << c.bBatch << c.bGroup << c.bPanel;
  for (const SumAxis& axis : c.axes) key << axis.count << axis.a << axis.b;
  key << c.a.batch << c.a.group << c.a.row << c.a.column;
  const TileConfig config = configOf(grid, stepOf(c));
  std::vector<Arg> args = {c.a.at, c.b, lowering.own(config.bytes, sizeof config.bytes)};
  EpilogueWriter::addArguments(lowering, c, args, key);

  UnitRows units{.outer = c.batch * c.groups * grid.panelPairs,
                 .tiles = grid.tilePairs,
                 .inner = 1,
                 .points = 2,
                 .width = grid.perRow,
                 .rows = c.rows};
  if (c.width) {
    units.points = 2 * grid.points;
    units.width = c.width;
    units.rows = c.columns / c.width;
  }
  lowering.call(key.text(), units, args, [&](Builder& b) {
    b.tileConfig(b.arg(2));
    PairWriter writer(b, lowering, c, grid);
    b.loop(b.begin(), b.end(), 1, [&](Value unit) { writer.write(unit); });
    b.tileRelease();
  });
}

} // namespace cpu
