#pragma once

#include "tools/candela/planned.h"

namespace candela::tool {

/// What lies in the scratchpad while the tiled Programs of a model run. To each of `layers` (with `name` and `program`)
/// it adds `scratchpad_peak`: the most bytes alive at one of its instructions.
/// Returns {name, capacity in bytes, instructions, blocks} for each Program; a block is five numbers: offset, bytes, first
/// and last instruction, index of the layer that is there when it begins, -1 for none.
Json scratchpadMaps(const PlannedModel& model, Json& layers);

} // namespace candela::tool
