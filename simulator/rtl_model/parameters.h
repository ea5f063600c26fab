#pragma once

#include <string>
#include <vector>

#include "simulator/config/configuration.h"
#include "simulator/result.h"

namespace candela::npu {

/// Verilator's arguments for the parameters of `rtl/top/cdl_npu.sv`. Errors: a configuration that
/// the hardware description cannot be built as, by the key that is in the way.
Result<std::vector<std::string>> rtlParameters(const Configuration& configuration);

} // namespace candela::npu
