#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::tile {

/// Tiles bring their own padding: borders of TEMP buffers go, and with them the fills that write
/// nothing else. The bytes stay where they are.
void dropBorders(Program& program);

} // namespace candela::program::passes::tile
