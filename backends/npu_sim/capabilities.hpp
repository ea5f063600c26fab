#pragma once

#include <candela/backend.hpp>

#include "simulator/config/configuration.h"

namespace npu_sim {

namespace npu = candela::npu;

/// Claims all rows of a device; `localBytes`: of the scratchpad as core sees it.
void claimAll(cdl::Capabilities& c, int64_t localBytes, const npu::Configuration& configuration);

} // namespace npu_sim
