#pragma once

#include "core/compiler/program/program.h"
#include "core/compiler/solvers/order/order.h"

namespace candela::program::passes::schedule {

/// Instructions first .. first + count that move as a whole.
struct Unit {
  uint32_t first = 0, count = 1;
};

/// A Program cut into what moves as a whole: single instructions, outermost loops, groups, and what
/// fills a border together with what fills the content; and who must stay behind whom: by bytes, by
/// waits, and custom instructions among themselves, since what those do is not all seen in views.
struct Units {
  std::vector<Unit> units;
  std::vector<std::vector<uint32_t>> after; ///< by unit: earlier ones, ascending
};
Units unitsOf(const Program& program);

/// The units as tasks on the TEMP buffers of one space; a task's peak is what peakBytes() counts
/// with shares in place, but for a RESCALE of two products, which counts from the later one in the
/// Program's own order.
solvers::order::OrderProblem problemOf(const Program& program, const Units& units, uint32_t space);

} // namespace candela::program::passes::schedule
