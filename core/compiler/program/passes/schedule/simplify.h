#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::schedule {

/// Puts the instructions into this order and drops those that are not in it; loops and groups,
/// which must stay contiguous, follow theirs. So do waits; those on what is dropped go.
void reorder(Program& program, const std::vector<uint32_t>& order);

/// Removes dead stores, copies whose target can be their source, and TEMP buffers that nothing
/// touches any more. TEMP buffers must be unplaced, waits empty.
void simplify(Program& program);

/// Moves what every run of a loop computes alike before the loop. Waits must be empty. In
/// hoist.cpp.
void hoistInvariants(Program& program);

/// The view when the first element of its buffer lies where `there` begins.
View moved(View view, const View& there);

/// Lets loops read contiguous parts of buffers where they lie; returns as carryInPlace(). In
/// parts.cpp.
std::vector<bool> readParts(Program& program);

/// Lets what loops carry be computed in place; returns which copies are no longer needed, and have
/// no views. In carry.cpp.
std::vector<bool> carryInPlace(Program& program);

/// Computes cheap values again before late readers, where that lowers the peak; whether it did. In
/// rematerialize.cpp.
bool rematerialize(Program& program);

} // namespace candela::program::passes::schedule
