#pragma once

#include "core/compiler/import/custom.h"
#include "core/runtime/plugin/plugin.h"

namespace candela::driver {

/// Asks these devices, in their order, who claims a node. What a plugin answers is checked: what it
/// says wrong is refused by its name. besideReference: they do nothing else; failure where one of
/// them claims no ops at all.
Result<import::ClaimOp> claimBy(std::vector<std::shared_ptr<runtime::plugin::Device>> devices,
                                bool besideReference = false);

} // namespace candela::driver
