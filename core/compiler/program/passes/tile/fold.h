#pragma once

#include "core/compiler/program/program.h"

namespace candela::program::passes::tile {

/// An input of the Program that a COPY only lays out anew for one reader is read as it lies: the
/// copies of that reader's tiles do both.
void foldInputCopies(Program& program);

} // namespace candela::program::passes::tile
