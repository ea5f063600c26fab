#pragma once

#include "tools/candela/support/planned.h"

namespace candela::tool {

/// What lies in the scratchpad while the tiled Programs of a model run: {name, capacity in bytes,
/// instructions, begins, blocks} for each Program; `begins`: instruction and about its cycle, in
/// turn, of the first instruction of each layer, and of the end. A block is five numbers: offset,
/// bytes, first and last instruction, index of the one of `layers` (with `name` and `program`) that
/// is there when it begins, -1 for none.
Json scratchpadMaps(const PlannedModel& model, const Json& layers);

} // namespace candela::tool
