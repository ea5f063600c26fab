#pragma once

#include "core/runtime/host_executor/soft.h"
#include "core/runtime/plugin/host.h"
#include "core/support/worker_pool.h"

namespace candela::runtime::session {

/// The process's threads for the portable executor, through what plugins are lent.
inline host_executor::Workers processWorkers() {
  return {&plugin::host(), WorkerPool::ofProcess().threads()};
}

} // namespace candela::runtime::session
