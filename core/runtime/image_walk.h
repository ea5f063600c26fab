#ifndef CANDELA_CORE_RUNTIME_IMAGE_WALK_H
#define CANDELA_CORE_RUNTIME_IMAGE_WALK_H

#include <functional>

#include "core/support/status.h"

namespace candela::runtime {

/// The loop variables' values around an instruction, outer first.
struct LoopValues {
  int64_t values[CDL_MAX_LOOP_NESTING] = {0, 0};
};

/// Calls `visit` for runs of instructions first .. first + count - 1 of a checked image in execution order: each run
/// lies in one block, and `split(i)` says that a run ends before instruction i.
Status walkImage(const cdl_image_t* image, const std::function<bool(uint32_t)>& split,
                 const std::function<Status(uint32_t first, uint32_t count, const LoopValues&)>& visit);

/// The content of a splat constant.
std::vector<std::byte> splatBytes(const cdl_constant_t& constant);

/// Bytes of arena that the TEMP buffers of a space need.
uint64_t arenaBytes(const cdl_image_t* image, uint32_t space);

} // namespace candela::runtime

#endif
