#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::group {

/// Marks groups along dim 2, the rows of images, wherever that keeps TEMP buffers inside whose rows
/// then hold at most `bandBytes` bytes at once; 0 marks none. The Program is scheduled and
/// unplaced; one that has groups keeps those. The order changes only by fills of borders, which
/// move before the group that they stood in.
void markGroups(Program& program, uint64_t bandBytes);

} // namespace candela::program::passes::group
