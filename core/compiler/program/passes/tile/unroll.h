#pragma once

#include "core/compiler/program/program.h"

namespace candela::plan {

/// Every run of every loop as instructions of its own; groups dissolve, waits go. Failure: limit,
/// where that makes more than `most` instructions.
Status unroll(program::Program& program, uint64_t most);

} // namespace candela::plan
