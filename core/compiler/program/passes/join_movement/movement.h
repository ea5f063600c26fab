#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/program.h"

namespace candela::program::passes::join_movement {

/// Removes COPYs of a whole TEMP buffer, from it or to it, whose order of elements the writer or
/// all readers of that buffer can walk by strides, as far as the target's rows take the instruction
/// then as they did before. The meaning is unchanged, the waits are out of date. TEMP buffers must
/// be unplaced. Returns how many copies are gone.
int joinMovement(Program& program, const capabilities::Target& target);

} // namespace candela::program::passes::join_movement
