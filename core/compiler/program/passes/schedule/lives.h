#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::schedule {

/// Instructions first .. last; first is kNone for what nothing touches.
struct Life {
  uint32_t first = kNone, last = 0;
};

/// When the content of each buffer is needed. What every run of a loop writes anew lives from there
/// to its last use in that run; all else that a loop touches lives through the outermost loop
/// around it. What a group in several bands touches lives through all of it: its bands come back to
/// it.
std::vector<Life> livesOf(const Program& program);

} // namespace candela::program::passes::schedule
