#pragma once

#include "core/compiler/program/passes/tile/machine.h"
#include "core/compiler/program/program.h"

/// Programs for devices that compute on local memories.
namespace candela::program::passes::tile {

struct TileOptions {
  bool fuse = true; ///< elementwise instructions follow what they read, tile by tile
  bool keep = true; ///< values stay in local memory between instructions where that costs less
  /// constants of the next instruction are copied while the last tile of this one is computed
  bool prefetch = true;
  bool splitSums = true;     ///< float sums may be taken in parts where nothing else fits
  uint32_t buffers = 2;      ///< of each tile at most, 1 .. 3
  uint32_t instrs = 1 << 17; ///< that the result may have at most
};

/// A value that a step copies. What must move whatever the tiles: constants, inputs and outputs at
/// the first step that touches them, and what is larger than the memory once where it is written
/// and once where it is read first.
struct MovedValue {
  std::string name; ///< of the buffer
  uint64_t loadedBytes = 0, storedBytes = 0, leastBytes = 0;
};

/// One instruction with those that go tile by tile behind it, for one memory.
struct TiledStep {
  std::string memory;
  std::vector<std::string> nodes;     ///< names of the model
  std::vector<uint16_t> kinds;        ///< of the instructions
  std::vector<int64_t> extents, tile; ///< by axis
  uint32_t buffers = 1;
  uint64_t boxes = 0;
  uint64_t loadedBytes = 0, storedBytes = 0, localBytes = 0;
  std::vector<std::string> kept; ///< buffers that it finds or leaves in local memory
  std::vector<MovedValue> moved; ///< each buffer once; no leastBytes but for the first memory
};
struct TileReport {
  std::vector<TiledStep> steps;
  uint64_t arenaBytes = 0, maxLiveBytes = 0; ///< of the default space
  /// MovedValue::leastBytes of all steps of the first memory
  uint64_t boundBytes = 0;
};

/// Every instruction computes on buffers of the last memory (sums in the memory for sums); copies
/// bring what it reads and take away what it leaves. Loops are unrolled, groups dissolved. Waits
/// are the direct dependences on bytes, and every TEMP buffer gets its offset, validated. The
/// meaning is unchanged: integers bit by bit, floats too where no sum is split. Failures:
/// invalid_argument of a machine; out_of_memory naming the instruction, the memory and both numbers
/// where the smallest tiles do not fit; limit of the instruction budget alike; bad_model.
Result<TileReport> tile(Program& program, const Machine& machine, const TileOptions& options = {});

/// Bytes that a Program's copies move between memories, by what they are.
struct CopiedBytes {
  uint64_t weights = 0; ///< constants that a product takes as its second operand
  uint64_t tables = 0;  ///< all other constants
  uint64_t loaded = 0;  ///< values, from memory
  uint64_t stored = 0;  ///< values, to memory
  uint64_t inner = 0;   ///< between local memories
  uint64_t copies = 0;  ///< how many there are
  uint64_t memory() const { return weights + tables + loaded + stored; }
};
/// All copies with one end in local memory, every element of a view once. Per instruction: zero for
/// all others.
struct CopiesOfProgram {
  CopiedBytes total;
  std::vector<CopiedBytes> instrs;
};
CopiesOfProgram copiesOf(const Program& program);

} // namespace candela::program::passes::tile
