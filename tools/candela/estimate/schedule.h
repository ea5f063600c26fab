#pragma once

#include <optional>
#include <vector>

#include "tools/candela/estimate/instr_costs.h"

/// When the instructions of an image run on a device whose engines each do one after the other.
namespace candela::tool {

struct ScheduledInstr {
  uint32_t instr = 0; ///< counts from 1
  uint64_t start = 0; ///< cycle
  uint64_t done = 0;  ///< cycle
};

struct Schedule {
  uint64_t cycles = 0;
  std::vector<ScheduledInstr> order; ///< of the program, every round of a loop
  /// By instruction, [0] unused: the moments that are its own, in all rounds. A moment belongs to
  /// what computes then, else to what loads, else to what stores. They sum to `cycles`.
  std::vector<uint64_t> own;
  std::vector<uint64_t> runs; ///< by instruction: how often it is executed
};

/// `costs` by instruction, [0] unused. Engines take instructions in the order of the program, each
/// once what it waits for is done; of what moves bytes from or to memory, one moves at a time.
/// nullopt: loops make millions of instructions of it.
std::optional<Schedule> scheduleOf(const cdl_image_t* image, const std::vector<InstrCost>& costs);

} // namespace candela::tool
