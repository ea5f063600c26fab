#ifndef CANDELA_CORE_PLAN_SCHEDULE_SIMPLIFY_H
#define CANDELA_CORE_PLAN_SCHEDULE_SIMPLIFY_H

#include "core/program/program.h"

namespace candela::plan {

/// Removes dead stores, copies whose target can be their source, and TEMP buffers that nothing
/// touches any more. TEMP buffers must be unplaced. Waits are left empty.
void simplify(program::Program& program);

} // namespace candela::plan

#endif
