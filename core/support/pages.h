#pragma once

#include "core/support/tensor.h"

namespace candela {

/// How much memory this process may still take, and what sets the bound: the machine, its control
/// group, or its limit of addresses.
struct AvailableMemory {
  uint64_t bytes = 0;
  const char* of = "";
};
AvailableMemory availableMemory();

/// Zeroed memory by the page, which the system gives when it is first touched. Failure:
/// out_of_memory, at once where less is available.
Result<Bytes> zeroPages(uint64_t size);

} // namespace candela
