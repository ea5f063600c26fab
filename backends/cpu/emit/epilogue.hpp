// What becomes of a sum in registers before it is stored: bias, epilogue, requantization, a second
// operand. The same for every way of summing.
#pragma once

#include "contraction.hpp"

namespace cpu {

/// The addresses of what belongs to the first result of a tile.
struct Bases {
  Value y, bias, scale, shift, zero, other;
  Values views; // by index of the instruction's inputs; those that are not read have no raw value
};

/// A sum of products of bf16, which is f32, as an epilogue reads it: rounded, unless all that it
/// does first is to widen it again. `epilogue` null: there is none.
Typed sumOfHalves(Builder& b, const cdl_image_t* image, const cdl_expr_t* epilogue, Value sum);

/// Writes the epilogue of sums, one vector of results after the other.
class EpilogueWriter {
public:
  EpilogueWriter(Builder& b, const Lowering& lowering, const Contraction& c)
      : b(b), lowering_(lowering), c(c), lanes_(b.isa().lanes(4)) {}

  /// What all results of `lanes` neighbours in a panel share, loaded once. Lanes from `live` on do
  /// not exist.
  struct Shared {
    Value bias, scale;
    int panel = 0, first = 0, live = 0;
  };
  Shared shared(const Bases& at, int panel, int first, int live);

  /// Ends `sum`, which lies so many rows and columns from the first result of the tile, and stores
  /// it.
  void finish(Value sum, const Bases& at, const Shared& shared, int64_t row, int64_t column);

  /// The arguments of a kernel behind the ones of the sums themselves, and their part of its key.
  static void addArguments(Lowering& lowering, const Contraction& c, std::vector<Arg>& args,
                           Key& key);
  /// The addresses, of which `placed` moves the kernel's argument of that number to the tile;
  /// counts `arg` on.
  static Bases bases(const Contraction& c, int& arg,
                     const std::function<Value(int, const Plane&)>& placed);
  /// The addresses moved by so many columns or rows.
  Bases moved(const Bases& at, Value columns) { return stepped(at, columns, &Plane::column); }
  Bases movedRows(const Bases& at, Value rows) { return stepped(at, rows, &Plane::row); }

private:
  Bases stepped(const Bases& at, Value steps, int64_t Plane::* step);
  Value load(const Plane& plane, Value base, int64_t offset, int live);
  Value requantized(Value sum, const Bases& at, const Shared& shared, int64_t row, int64_t column);
  int64_t offsetOf(const Plane& p, const Shared& shared, int64_t row, int64_t column) const {
    return row * p.row + column * p.column + shared.panel * p.panel + shared.first * p.lane;
  }

  Builder& b;
  const Lowering& lowering_;
  const Contraction& c;
  const int lanes_;
};

} // namespace cpu
