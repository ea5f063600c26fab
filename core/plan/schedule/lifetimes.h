#pragma once

#include "core/plan/memory/memory.h"
#include "core/program/program.h"

namespace candela::plan {

/// TEMP buffers that lie at one place, and the instructions first .. last during which that place
/// is taken.
struct Share {
  std::vector<uint32_t> buffers;
  uint32_t space = 0, first = 0, last = 0;
  uint64_t bytes = 0, alignment = 1;
};

/// One share per TEMP buffer; with `inPlace` an elementwise result joins the
/// operand that dies there. A buffer that a loop touches is taken for the whole loop.
std::vector<Share> sharesOf(const program::Program& program, bool inPlace);

/// The shares of one space, in their order.
MemoryProblem problemOf(const program::Program& program, uint32_t space, const std::vector<Share>& shares);

/// The most bytes taken at once, per space.
std::vector<uint64_t> peakBytes(const program::Program& program, const std::vector<Share>& shares);

} // namespace candela::plan
