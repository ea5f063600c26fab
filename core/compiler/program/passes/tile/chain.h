#pragma once

#include "core/compiler/program/passes/tile/regions.h"

/// Instructions that go tile by tile together: values between them never leave local memory.
///
/// Chains are found greedily, from each instruction that is in none yet: the first reader of its
/// result joins it while it can follow tile by tile, nothing else needs the value in memory, and
/// the links before may wait until that reader runs.
namespace candela::program::passes::tile {

/// One instruction of a chain, its views over the chain's index space.
struct Link {
  uint32_t instr = kNone; ///< in the Program
  Instr work;
  std::vector<ViewMap> inputs, outputs; ///< by the chain's axes
  /// Which input is what the link before it wrote; empty for the first one.
  std::vector<size_t> fromBefore;
  bool reshapes = false; ///< follows by pixel, window or row, not element by element
  bool leaves = false;   ///< others read its result too: it goes to memory as the last one's does
};

/// The first link decides how it is cut; the others follow it.
struct Chain {
  std::vector<Link> links;
  Work work; ///< of the first link, whose axes are the chain's
  /// Set where a pool's places are the chain's axes: the first link over its own axes, and the map
  /// of each of those over the chain's.
  Work head;
  std::vector<DimMap> headAxes;

  const Link& last() const { return links.back(); }
  /// Its place among the instructions: that of its last link.
  uint32_t place() const { return last().instr; }
};

/// Which instructions go together.
struct ChainOptions {
  bool fuse = true;              ///< any at all
  uint64_t largeBytes = 0;       ///< other than element by element, only for values above
  std::vector<bool> mayNotShape; ///< by instruction: never other than element by element
};

/// The Program as chains in an order that runs. `isDone[i]`: instruction i is a copy of an outer
/// level and stays as it is: it is in no chain. Instructions without elements are in none either.
std::vector<Chain> chainsOf(const Program& program, const std::vector<bool>& isDone,
                            const ChainOptions& options);

} // namespace candela::program::passes::tile
