#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::report {

/// What the arena of one space holds while the instructions run. Instructions count from 0.
struct MemoryMap {
  /// A TEMP buffer's life: instructions first .. last, at bytes offset .. offset + bytes.
  struct Block {
    uint32_t buffer = kNone, first = 0, last = 0;
    uint64_t offset = 0, bytes = 0;
    bool takesOver = false; ///< the place of an operand that dies at `first`
    bool handsOver = false; ///< the place to a result that is born at `last`
  };
  uint32_t space = 0;
  uint64_t capacityBytes = 0; ///< 0: unlimited
  uint64_t arenaBytes = 0;
  /// no placement is smaller; results count in the place of the operand that they may take
  uint64_t maxLiveBytes = 0;
  /// the first instruction with the most bytes live; kNone: there are no TEMP buffers
  uint32_t peak = kNone;
  std::vector<uint64_t> live; ///< bytes, per instruction
  std::vector<Block> blocks;  ///< by first, then offset

  /// What lives at an instruction, the largest first.
  std::vector<Block> at(uint32_t instr) const;
};

/// One map for each space of a Program whose TEMP buffers are placed.
std::vector<MemoryMap> memoryMaps(const Program& program);

/// The ONNX nodes of the first instruction that writes a buffer; empty for what nothing writes.
std::vector<std::string> nodesBehind(const Program& program, uint32_t buffer);

} // namespace candela::program::report
