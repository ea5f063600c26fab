// A whole image on soft, as the runtime walks it.
#pragma once

#include "core/runtime/image_walk.h"
#include "core/soft/soft.h"

namespace candela::testing {

/// Stops at the first error, whose text is in `error`. buffers: as for soft::run.
inline cdl_code_t runImage(const cdl_image_t* image, void* const* buffers, cdl_error_t* error) {
  cdl_code_t code = CDL_OK;
  const Status status = runtime::walkImage(
      image, [](uint32_t) { return true; },
      [&](uint32_t instr, uint32_t, const runtime::LoopValues& loops) {
        code = soft::run(image, instr, loops.values, buffers, error);
        return code == CDL_OK ? Status::ok() : badModel("instruction {}", instr);
      });
  if (!status && code == CDL_OK) code = CDL_BAD_MODEL;
  return code;
}

} // namespace candela::testing
