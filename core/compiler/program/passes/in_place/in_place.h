#pragma once

#include <string>
#include <utility>

#include "core/compiler/program/program.h"

namespace candela::program::passes::in_place {

/// An input and an output by their names.
using State = std::pair<std::string, std::string>;

/// Joins buffers of states: where nobody reads an input but a COPY of all of it into the output of
/// the same state, which nobody touched before, both become one INOUT buffer, and the COPY goes.
/// Who runs the Program then binds one memory for both, and what is scattered into a cache is all
/// that moves. The meaning is unchanged, the waits are out of date; TEMP buffers must be unplaced.
/// Returns the outputs that the Program has now, INOUT buffers among them, by their former numbers.
std::vector<size_t> updateInPlace(Program& program, const std::vector<State>& states);

} // namespace candela::program::passes::in_place
