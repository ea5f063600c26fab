#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::join_parts {

/// Removes COPYs between a whole TEMP buffer and a contiguous part of another buffer: the TEMP
/// buffer becomes that part. Concatenations and splits along the outermost dim that is not 1 are
/// such copies; so are those between the insides of two borders that hold the same, of which the
/// inner one goes. Not done where the part would not be aligned as the buffer was, where loops or
/// groups touch either buffer, where bytes are read or written otherwise in between, and where more
/// memory would be live at once than before, in the order that came. The meaning is unchanged, the
/// waits are out of date. TEMP buffers must be unplaced. Returns how many copies are gone.
int joinParts(Program& program);

/// Lets a FILL of contiguous elements leave out contiguous parts that are written again before
/// anybody may read them: of padding the border stays. One becomes at most three, or stays as it
/// is. Waits must be empty. In fills.cpp.
void narrowFills(Program& program);

} // namespace candela::program::passes::join_parts
