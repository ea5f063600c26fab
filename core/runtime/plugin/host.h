#pragma once

#include "candela/cdl.h"

namespace candela::runtime::plugin {

/// What plugins are offered: a log for people, the threads of WorkerPool, and a cache where
/// CANDELA_CACHE_DIR names an absolute folder that exists and that others cannot write to.
const cdl_host_t& host();

} // namespace candela::runtime::plugin
