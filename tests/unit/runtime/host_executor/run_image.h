// A whole image on soft.
#pragma once

#include "core/runtime/host_executor/soft.h"

namespace candela::testing {

/// Stops at the first error, whose text is in `error`. buffers: as for runtime::host_executor::run.
inline cdl_code_t runImage(const cdl_image_t* image, void* const* buffers, cdl_error_t* error) {
  return runtime::host_executor::runAll(image, buffers, nullptr, error);
}

} // namespace candela::testing
