#pragma once

#include <memory>

#include "core/compiler/program/passes/tile/device_costs.h"
#include "core/runtime/plugin/plugin.h"

namespace candela::pipeline {

/// What the device's cost_batch says; null where its plugin has none. A failure of that counts as
/// not knowing. Keeps the device.
std::shared_ptr<plan::DeviceCosts> costsOf(const std::shared_ptr<runtime::Device>& device);

} // namespace candela::pipeline
