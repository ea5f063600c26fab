#pragma once

#include <cstdint>
#include <span>

namespace candela::npu {

/// What a random program draws the value of a field from, both ends included.
struct Draw {
  int64_t low, high;
  bool isFree; ///< drawn by itself; else it follows from the others, or is a member of an enum
};

#include "simulator/isa/generated/grammar.inc"

} // namespace candela::npu
