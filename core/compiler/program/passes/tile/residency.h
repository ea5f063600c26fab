#pragma once

#include "core/compiler/program/passes/tile/cuts.h"

/// Which values stay in local memory between chains, and how each chain is cut beside them.
///
/// Local memory is a knapsack over time: what stays saves its copies, and takes room from the tiles
/// of every chain that it lives through. Values are decided one by one, in the order of their
/// writers. What a value saves is exact: the chains that it lives through are cut anew beside it,
/// and their costs compared. That no decision is taken back is the heuristic.
///
/// Scratchpads as knapsacks: S. Steinke, L. Wehmeyer, B. Lee, P. Marwedel, "Assigning Program and
/// Data Objects to Scratchpad for Energy Reduction", DATE 2002.
namespace candela::program::passes::tile {

/// A buffer that is in local memory from the chain that writes it to the last one of these that
/// reads it there. Constants and inputs come by one copy, before the first chain.
struct Stayer {
  uint32_t buffer = kNone;
  size_t first = 0, last = 0; ///< chains
  bool stored = false;        ///< later ones read it from memory
  bool fetched = false;       ///< a constant or an input
  uint64_t bytes = 0;         ///< aligned
};

struct Settled {
  std::vector<std::vector<Port>> ports; ///< by chain
  std::vector<Setting> settings;
  std::vector<Tiling> tilings;
  std::vector<Stayer> stayers;
};

/// Decides value by value in the order of their writers: each stays as long as that saves most, by
/// the costs of the chains that it takes room from. `mostStayers`: the first so many of them alone.
/// Failure: as whyNoTiling(), naming the instruction.
Result<Settled> settle(const Program& program, const Cuts& cuts, const TileCosts& costs,
                       size_t mostStayers);

} // namespace candela::program::passes::tile
