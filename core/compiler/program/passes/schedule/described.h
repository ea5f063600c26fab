#pragma once

#include "core/compiler/capabilities/target.h"
#include "core/compiler/program/program.h"

namespace candela::program::passes::schedule {

/// The question that emit asked of an instruction, of the views that it has now: row-major ones.
capabilities::InstrDesc described(const Program& program, const Instr& instr);

/// Adds to what described() says the layouts on which the operands and results lie.
void describeLayouts(const Instr& instr, capabilities::InstrDesc& desc);

} // namespace candela::program::passes::schedule
