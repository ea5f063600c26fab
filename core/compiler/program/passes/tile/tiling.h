#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/passes/tile/chain.h"
#include "core/compiler/program/passes/tile/machine.h"

/// How a chain is cut, chosen by what it costs.
namespace candela::program::passes::tile {

/// A value that a chain reads from or leaves outside of itself.
struct Port {
  View view;
  ViewMap map;
  /// Link and operand; several where one value is read twice. Outputs: link and result.
  std::vector<std::pair<size_t, size_t>> uses;
  bool output = false;
  bool inout = false; ///< an output that is read too
  bool sums = false;  ///< an output that lies in the memory for sums while it is computed
  /// The right factor of a product, whose columns lie side by side: parts of it are copied so too.
  bool byColumns = false;
  std::vector<size_t> order{}; ///< of the view's dims, as dimsInOrder says
  /// The widest class that rows take of a part of it, where that lies among the rest.
  capabilities::OperandClass widest = capabilities::OperandClass::affine;
};
/// Whether the operand is the right factor of a product with its columns side by side, as a device
/// that was asked for the product takes it.
bool liesByColumns(const Instr& instr, size_t operand);
/// The dims from the outermost to the innermost, as they lie in memory.
std::vector<size_t> dimsInOrder(size_t rank, bool byColumns);
/// Inputs first, those with the same view once.
std::vector<Port> portsOf(const Program& program, const Chain& chain, const Machine& machine,
                          bool hasSums);

/// Where a whole buffer stays for several chains.
enum class Stay : uint8_t {
  no,     ///< copied tile by tile
  local,  ///< the buffer is in local memory
  stored, ///< of an output: in local memory, and copied out too
};

/// The room and the surroundings that a chain has.
struct Setting {
  const LocalMemory* memory = nullptr;
  const LocalMemory* sums = nullptr; ///< null: sums lie in `memory`
  uint64_t reserved = 0;             ///< bytes of `memory` that are taken
  std::vector<Stay> stays;           ///< by port
  uint32_t mostBuffers = 2;          ///< for each tile: 1 waits for copies, 2 or 3 copy ahead
  bool splitSums = true;             ///< floats too may be summed in parts
  uint16_t engine = 0;               ///< that computes
};

struct Tiling {
  std::vector<int64_t> tile; ///< by axis
  std::vector<size_t> order; ///< axes, the outermost first; sums last
  std::vector<bool> held;    ///< by port: all of it is copied in once
  uint32_t buffers = 1;
  /// each tile's results have a buffer of their own, and go when all is loaded
  bool storesLast = false;
  /// cycles, and those that copy once more: memory is shared, and costs energy
  double cost = 0;
  double computing = 0, copying = 0; ///< cycles of the engines and of the copies, each for itself
  uint64_t bytes = 0;                ///< copied in and out
  uint64_t instrs = 0;
  uint64_t localBytes = 0; ///< of the memory, what is reserved not counted
};

class TileSpace; // tile_space.h

/// The cheapest tiling by the declared costs; of equal ones the first by its tiles, larger tiles
/// first. Sums are cut only where nothing else fits. Nothing where the smallest tiles do not fit.
std::optional<Tiling> chooseTiling(TileSpace& space, const Setting& setting,
                                   const TileCosts& costs);
/// Why there is none: out_of_memory with the bytes that the smallest tiles need and those that
/// there are.
Status whyNoTiling(TileSpace& space, const Setting& setting, const TileCosts& costs);

/// Bytes of the view without the dims that it only repeats, all of `region`.
uint64_t compactBytes(const View& view, const std::vector<Range>& region);

} // namespace candela::program::passes::tile
