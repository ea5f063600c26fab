#pragma once

#include <candela/async.h>

#include "core/runtime/requests/timeline.h"
#include "core/runtime/session/transfers.h"

/// What stands behind the handles of async.h.
struct candela_device {
  std::shared_ptr<candela::runtime::plugin::Device> device;
  /// by which buffers of the device are read, written and copied
  std::shared_ptr<candela::runtime::session::Transfers> transfers;
  std::string id, name, backend, version, profiles;
};

struct candela_buffer {
  candela::runtime::session::BufferRef at;
  uint64_t bytes = 0;
  std::shared_ptr<const void> host; ///< keeps memory of the host
  std::shared_ptr<candela::runtime::session::Transfers> transfers;

  candela::runtime::session::BufferRef from(uint64_t offset) const {
    candela::runtime::session::BufferRef ref = at;
    if (ref.host) ref.host += offset;
    ref.offset += offset;
    return ref;
  }
};

struct candela_timeline {
  std::shared_ptr<candela::runtime::requests::Timeline> timeline;
};
