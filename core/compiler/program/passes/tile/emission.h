#pragma once

#include "core/compiler/program/passes/tile/tile.h"
#include "core/compiler/program/passes/tile/tiling.h"

/// A chain with its tiling as instructions.
namespace candela::program::passes::tile {

/// The instructions of one chain, tile by tile.
struct Emitted {
  struct Part {
    std::vector<Instr> loads, computes,
        stores; ///< stores of all tiles in the last one where Tiling::storesLast
  };
  std::vector<Instr> ahead;         ///< copies of constants for the first tile: may stand earlier
  std::vector<uint64_t> aheadBytes; ///< of the buffer that each of them fills
  std::vector<Part> parts;          ///< by tile
  TiledStep step;
};

/// The local buffer, of the same size, of a value that stays in local memory.
struct Kept {
  uint32_t buffer = kNone;
};

/// Adds the local buffers to the Program and returns the instructions. `kept[p]`: of ports that
/// stay.
Emitted emitChain(Program& program, const Chain& chain, const std::vector<Port>& ports,
                  const Setting& setting, const Tiling& tiling, const std::vector<Kept>& kept,
                  uint32_t space, uint32_t sumsSpace, const Machine& machine);

/// What a link computes for the box, its views packed, in buffers that are still those of the whole
/// Program.
Instr tileOf(const Chain& chain, size_t link, const Box& box);

/// A copy between two views of the same extents, in the fewest dims. What they only repeat is
/// copied once.
Instr copyBetween(const View& from, const View& to, uint16_t engine, std::vector<Origin> origins);

} // namespace candela::program::passes::tile
