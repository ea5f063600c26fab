#pragma once

#include "core/support/status.h"

namespace candela::runtime::plugin {

/// What must hold of a plugin's options before one is looked up: an array that is there, names that
/// differ. Failure: incompatible.
Status checkSchema(const cdl_plugin_t& table);

} // namespace candela::runtime::plugin
