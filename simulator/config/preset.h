#pragma once

#include "simulator/config/configuration.h"

namespace candela::npu {

/// The preset that a file names: of a binary, of a program's text. What a file says is never a
/// path. Errors: there is no such preset.
Result<Configuration> findPreset(const std::string& name);

} // namespace candela::npu
