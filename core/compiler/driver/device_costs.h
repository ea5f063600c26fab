#pragma once

#include <memory>

#include "core/compiler/program/passes/tile/device_costs.h"
#include "core/runtime/plugin/plugin.h"

namespace candela::driver {

/// What the device's cost_batch says; null where its plugin has none. A failure of that counts as
/// not knowing. Keeps the device.
std::shared_ptr<program::passes::tile::DeviceCosts>
costsOf(const std::shared_ptr<runtime::plugin::Device>& device);

} // namespace candela::driver
