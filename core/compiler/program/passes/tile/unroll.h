#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::tile {

/// Every run of every loop as instructions of its own; groups dissolve, waits go. Failure: limit,
/// where that makes more than `most` instructions.
Status unroll(Program& program, uint64_t most);

} // namespace candela::program::passes::tile
