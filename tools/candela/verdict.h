#pragma once

#include "tools/candela/stepper.h"

namespace candela::tool {

/// Compares what a backend gave with what the reference gave, by the bounds that Stepper says. Fills all but the place
/// and the name.
Verdict judge(const LoneInstr& lone);

} // namespace candela::tool
