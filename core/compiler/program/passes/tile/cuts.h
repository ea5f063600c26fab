#pragma once

#include <map>
#include <memory>
#include <string>

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

/// The tiles that there are for chains of one form, by the rows and columns of the array. Layers of
/// a network are often the same but for their buffers: they have one form.
struct ChainForm {
  std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<TileSpace>> spaces;
};
struct KnownChain {
  Chain chain;
  std::vector<Port> ports;
  ChainForm* form = nullptr;
};
/// Of one Program, for machines that differ in sizes alone.
struct KnownChains {
  std::map<ChainKey, KnownChain> chains;
  std::map<std::string, ChainForm> forms; ///< by formOf()
};

/// All that tilings of the chain follow from: equal for chains whose instructions differ in names,
/// payloads and the buffers that they are of.
std::string formOf(const Program& program, const Chain& chain);

/// The cheapest tilings of one form by what stays and by room; null where none fits.
using FoundTiling = std::shared_ptr<const Tiling>;
using FoundTilings = std::map<std::vector<Stay>, std::map<uint64_t, FoundTiling>>;

/// The tilings of one chain, for one memory.
class ChainTilings {
public:
  /// `setting`: without what is reserved and what stays. `found`: of all chains of its form.
  ChainTilings(const KnownChain& known, TileSpace& space, Setting setting, const TileCosts& costs,
               FoundTilings& found)
      : known_(known), space_(space), setting_(std::move(setting)), costs_(costs), found_(found) {}

  const Chain& chain() const { return known_.chain; }
  const std::vector<Port>& ports() const { return known_.ports; }
  /// The setting, with this reserved and these staying.
  Setting settingWith(uint64_t reserved, const std::vector<Stay>& stays) const;
  /// The cheapest tiling, as long as this object is there; null where none fits.
  const Tiling* find(uint64_t reserved, const std::vector<Stay>& stays);
  /// As `find`, with the failure.
  Result<Tiling> get(uint64_t reserved, const std::vector<Stay>& stays);

private:
  size_t smallOperands(uint64_t room) const;
  bool isBestToo(uint64_t larger, const FoundTiling& found, uint64_t room) const;

  const KnownChain& known_;
  TileSpace& space_;
  const Setting setting_;
  const TileCosts& costs_;
  FoundTilings& found_;
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
  std::map<const ChainForm*, FoundTilings> found_;
  std::map<ChainKey, ChainTilings> tilings_;
  std::vector<ChainTilings*> chains_;
};

} // namespace candela::program::passes::tile
