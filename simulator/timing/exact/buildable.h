#pragma once

#include "simulator/config/configuration.h"
#include "simulator/result.h"

namespace candela::npu {

/// Whether rtl/top can be built for a configuration. Errors: the key that is in the way.
Outcome checkBuildable(const Configuration& configuration);

} // namespace candela::npu
