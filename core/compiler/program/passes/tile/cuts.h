#pragma once

#include <map>
#include <memory>

#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/passes/tile/tile_space.h"

/// How the chains of a Program can be cut, each question answered once.
///
/// One choice of tiles is asked for again and again: for chains and for their parts, beside each
/// set of values that may stay, for plans of smaller devices. Most answers follow from others. What
/// a smaller memory has room for, a larger one has too: so the best tiling for a room is the best
/// one for every smaller room that it fits.
namespace candela::program::passes::tile {

/// What makes a chain of a Program: instructions, and which of their results leave.
using ChainKey = std::vector<std::pair<uint32_t, bool>>;

/// A chain, its ports, and the tiles that there are, by the rows and columns of the array.
struct KnownChain {
  Chain chain;
  std::vector<Port> ports;
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<TileSpace>> spaces;
};
/// Of one Program, for machines that differ in sizes alone.
using KnownChains = std::map<ChainKey, KnownChain>;

/// The tilings of one chain, for one memory.
class ChainTilings {
public:
  /// `setting`: without what is reserved and what stays.
  ChainTilings(const KnownChain& known, TileSpace& space, Setting setting, const TileCosts& costs)
      : known_(known), space_(space), setting_(std::move(setting)), costs_(costs) {}

  const Chain& chain() const { return known_.chain; }
  const std::vector<Port>& ports() const { return known_.ports; }
  /// The setting, with this reserved and these staying.
  Setting settingWith(uint64_t reserved, const std::vector<Stay>& stays) const;
  /// The cheapest tiling, as long as this object is there; null where none fits.
  const Tiling* find(uint64_t reserved, const std::vector<Stay>& stays);
  /// As `find`, with the failure.
  Result<Tiling> get(uint64_t reserved, const std::vector<Stay>& stays);

private:
  using Found = std::shared_ptr<const Tiling>; ///< null where none fits
  size_t smallOperands(uint64_t room) const;
  bool isBestToo(uint64_t larger, const Found& found, uint64_t room) const;

  const KnownChain& known_;
  TileSpace& space_;
  const Setting setting_;
  const TileCosts& costs_;
  std::map<std::vector<Stay>, std::map<uint64_t, Found>> found_; ///< by what stays, and by room
};

/// The chains of a Program for one memory. Keeps references to all that it is given.
class Cuts {
public:
  /// `isDone`: as chainsOf(). `known`: of that Program, from other machines.
  Cuts(const Program& program, const std::vector<bool>& isDone, const LocalMemory& memory,
       const LocalMemory* sums, const Machine& machine, const TileOptions& options,
       KnownChains& known);

  const std::vector<ChainTilings*>& chains() const { return chains_; }
  const std::vector<bool>& isDone() const { return isDone_; }
  const LocalMemory& memory() const { return memory_; }

private:
  ChainTilings& tilingsOf(const Chain& chain);
  double costOf(const Chain& chain);
  std::vector<Chain> bestChains();

  const Program& program_;
  const std::vector<bool>& isDone_;
  const LocalMemory& memory_;
  const LocalMemory* const sums_;
  const Machine& machine_;
  const TileOptions& options_;
  KnownChains& known_;
  std::map<ChainKey, ChainTilings> tilings_;
  std::vector<ChainTilings*> chains_;
};

} // namespace candela::program::passes::tile
