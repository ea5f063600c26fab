#pragma once

#include <span>

#include "core/compiler/program/passes/tile/tiling.h"

/// The tiles that there are for a chain, and what each of them loads and computes.
namespace candela::program::passes::tile {

/// Whether the view only repeats along that dim.
bool repeats(const View& view, size_t d);

/// Whether a result lies in the memory for sums while it is computed.
bool isSum(const Instr& instr);

/// How long one dim is under one extent of its axis: the most and the least elements of a tile, and
/// those of all tiles together, which may overlap.
struct Length {
  int64_t most = 1;
  int64_t least = 1;
  int64_t sum = 1;
};

/// How large the tiles of one view are, whatever the extents of its axes.
struct Measure {
  std::vector<std::vector<Length>>
      lengths; ///< by dim that does not repeat, in order, and by the place of its axis' extent
  std::vector<size_t> axis;  ///< of each dim; none: SIZE_MAX
  std::vector<bool> depends; ///< by axis
  uint64_t bits = 8;
  uint64_t wholeBytes = 0;
};

/// What one view's tiles of one size take, whatever the order of loops.
struct TileOfView {
  uint64_t tileBytes = 0; ///< of the largest one
  uint64_t allBits = 0;   ///< of all of them together
  uint64_t copies = 1;    ///< at least: one for each tile that differs
};

/// Tiles of one size. Its lists lie in the TileSpace.
struct TileSize {
  std::span<const size_t> at;     ///< by axis: which of its extents
  std::span<const int64_t> trips; ///< by axis
  uint64_t boxes = 1;
  double computing = 0;              ///< cycles of all boxes
  std::span<const TileOfView> views; ///< ports, then what is between
};

/// All that does not hang on the room and the surroundings that a chain has: so it is worked out
/// once for all of them. Keeps references to the chain and its ports.
class TileSpace {
public:
  /// Of the costs it takes those of computing alone.
  TileSpace(const Chain& chain, const std::vector<Port>& ports, const TileCosts& costs);

  const Chain& chain() const { return chain_; }
  const std::vector<Axis>& axes() const { return chain_.work.axes; }
  const std::vector<Port>& ports() const { return ports_; }
  /// Tile extents by axis, the largest first.
  const std::vector<std::vector<int64_t>>& extents() const { return extents_; }
  const Measure& view(size_t v) const { return views_[v]; }
  /// Axes along which products are summed.
  const std::vector<size_t>& sums() const { return sums_; }
  /// Whether a port is operand 0, or 1, of the first link.
  bool isOperand(size_t operand, size_t port) const { return isOperand_[operand][port]; }

  /// Every size with this place of the first sum's extent (0: sums are whole), larger ones first.
  const std::vector<TileSize>& sizes(size_t sumsAt);
  /// Whether the device takes each tile of a port where it lies among the others.
  bool isTakenInPlace(size_t port, const TileSize& size) const;

private:
  /// `order`: of the dims in memory, the outermost first.
  Measure measure(const View& view, const ViewMap& map, const std::vector<size_t>& order) const;
  std::vector<std::vector<size_t>> choicesOf(const std::vector<size_t>& family) const;
  /// All sizes, and what their lists refer to.
  struct Sizes {
    std::vector<TileSize> all;
    std::vector<size_t> at;
    std::vector<int64_t> trips;
    std::vector<TileOfView> views;
  };
  void addSize(const std::vector<size_t>& at, Sizes& sizes) const;
  TileOfView tileOf(const Measure& view, const TileSize& size) const;
  bool hasRows(size_t port, const TileSize& size) const;
  bool hasDenseParts(const Port& port, const TileSize& size) const;

  double computeCycles(const TileSize& size) const;
  double followerCycles(const Link& link, double elements, uint64_t boxes) const;
  double headCycles(const Instr& instr, double elements, const TileSize& size) const;
  double passCycles(double positions, uint64_t tiles) const;

  const Chain& chain_;
  const std::vector<Port>& ports_;
  TileCosts costs_;
  std::vector<std::vector<int64_t>> extents_;
  std::vector<Measure> views_;     ///< ports, then what is between
  std::vector<double> elements_;   ///< by link
  std::vector<bool> isOperand_[2]; ///< by port
  std::vector<size_t> sums_;
  std::vector<Sizes> sizes_; ///< by the place of the first sum's extent
};

} // namespace candela::program::passes::tile
