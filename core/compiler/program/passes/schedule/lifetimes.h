#pragma once

#include "core/compiler/program/passes/schedule/lives.h"
#include "core/compiler/solvers/memory/memory.h"

namespace candela::program::passes::schedule {

/// TEMP buffers that lie at one place, and the instructions first .. last during which that place
/// is taken.
struct Share {
  std::vector<uint32_t> buffers;
  uint32_t space = 0, first = 0, last = 0;
  uint64_t bytes = 0, alignment = 1;
};

/// One share per TEMP buffer; with `inPlace` an elementwise result joins the
/// operand that dies there. A buffer that a loop touches is taken for the whole loop.
std::vector<Share> sharesOf(const Program& program, bool inPlace);

/// Operands whose place the result of instruction i may take where they die with it and the result
/// begins there; empty where it may take none.
std::vector<uint32_t> operandsInPlace(const Program& program, uint32_t i);

/// A RESCALE that alone reads the sums of a product may be done by the same kernel, and so may a
/// second one behind it: what they write must not lie on what that product reads. Per buffer: the
/// latest such product, or kNone.
std::vector<uint32_t> productsBehind(const Program& program, const std::vector<Life>& lives);

/// The shares of one space, in their order.
solvers::memory::MemoryProblem problemOf(const Program& program, uint32_t space,
                                         const std::vector<Share>& shares);

/// The most bytes taken at once, per space.
std::vector<uint64_t> peakBytes(const Program& program, const std::vector<Share>& shares);

} // namespace candela::program::passes::schedule
