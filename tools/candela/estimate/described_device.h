#pragma once

#include "tools/candela/support/model.h"

/// A backend of this process for a device that is a file alone: what it takes and what that costs,
/// and nothing that computes. Commands that compile and never run take it like any other.
namespace candela::tool {

inline constexpr const char* kDescribedBackend = "described";

/// Makes the device that the file describes the one of --backend. Throws Failure with file, line
/// and key where it describes none.
void useDescribedDevice(ModelOptions& options, const std::string& file);

} // namespace candela::tool
