#pragma once

#include "tools/candela/debug/tape.h"
#include "tools/candela/debug/trial.h"

namespace candela::tool {

/// One execution of an instruction as a Program of its own: its buffers are inout, those that it
/// only reads too, with what they hold on the tape, and some bytes more behind each. Nothing else
/// may change.
Trial isolate(const program::Program& whole, const Tape& tape, size_t execution);

/// Some instructions of a Program, in their order, with what they hold on the tape before the first
/// of them that needs it. What nobody but they read and they write first, whole, stays in the arena
/// where it lies; the rest is bound. `contiguous`: none between them is missing, so that the tape
/// knows the results.
Trial slice(const program::Program& whole, const Tape& tape, const std::vector<uint32_t>& instrs,
            bool contiguous);

/// A Program without those of its instructions for which `keeps` is false. Buffers stay.
program::Program without(const program::Program& whole, const std::vector<bool>& keeps);
/// Removes buffers and constants that no view names, and their inputs.
void dropUnused(Trial& trial);

} // namespace candela::tool
