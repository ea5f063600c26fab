#pragma once

#include "core/compiler/program/program.h"

namespace candela::plan {

/// An input of the Program that a COPY only lays out anew for one reader is read as it lies: the
/// copies of that reader's tiles do both.
void foldInputCopies(program::Program& program);

} // namespace candela::plan
