#pragma once

#include "core/compiler/capabilities/target.h"

namespace candela::capabilities {

/// A row that never answers, and why.
struct IdleRow {
  size_t row = 0;   ///< by index, as in refusals
  std::string text; ///< "matmul f32,f32,f32"
  /// "rank of operand 0 = 2 contradicts rank of operand 0 >= 3", "row 4 takes all of it"
  std::string why;
};
/// Rows of products whose types no Program has, rows whose atoms contradict each other, and native
/// ones of which another row takes everything. Of two equal rows the later one is idle. Other rules
/// of a kind's own that a row contradicts are not found.
std::vector<IdleRow> idleRows(const Target& target);

} // namespace candela::capabilities
