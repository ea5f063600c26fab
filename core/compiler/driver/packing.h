#pragma once

#include <memory>

#include "core/compiler/program/passes/pack/pack.h"
#include "core/runtime/plugin/plugin.h"

namespace candela::driver {

/// Packs by the device's pack_constant; null where its plugin has none. Keeps the device.
program::passes::pack::Packer packerOf(const std::shared_ptr<runtime::plugin::Device>& device);

/// The same at once. `most`: a write that would make it more bytes fails.
Result<Bytes> pack(const runtime::plugin::Device& device, const std::string& layout,
                   const Bytes& content, const program::View& view, uint64_t most = UINT64_MAX);

} // namespace candela::driver
