#pragma once

#include "core/support/tensor.h"

namespace candela {

/// Zeroed memory by the page, which the system gives when it is first touched. Failure: out_of_memory, at once where
/// the machine has less.
Result<Bytes> zeroPages(uint64_t size);

} // namespace candela
