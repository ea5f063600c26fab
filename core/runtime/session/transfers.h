#pragma once

#include <map>

#include "core/runtime/session/pool.h"
#include "core/runtime/session/runner.h"

namespace candela::runtime::session {

/// Moves bytes between places that one look at memory does not reach: from and to devices, and
/// from one to another. Its queues stay for later moves. Any thread.
class Transfers {
public:
  /// Blocks until `bytes` bytes of `from` are at `to`. Both are on the host, or on a device.
  Status move(const BufferRef& from, const BufferRef& to, uint64_t bytes, RunStats& stats);

private:
  using Queues = Pool<std::shared_ptr<plugin::Queue>>;

  Status moveBy(const std::shared_ptr<plugin::Device>& device, const BufferRef& from,
                const BufferRef& to, uint64_t bytes, RunStats& stats);
  Queues& queuesOf(const plugin::Device* device);

  std::mutex mutex_;
  std::map<const plugin::Device*, std::unique_ptr<Queues>> queues_;
};

} // namespace candela::runtime::session
