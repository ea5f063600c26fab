#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/program.h"

namespace candela::plan {

/// The question that emit asked of an instruction, of the views that it has now: row-major ones.
target::InstrDesc described(const program::Program& program, const program::Instr& instr);

} // namespace candela::plan
