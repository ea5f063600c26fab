#include "image.hpp"

namespace program {

namespace {

bool hasChannelsLast(const cdl_layout_t& layout) {
  constexpr uint8_t kOrder[] = {0, 2, 3, 1};
  if (layout.opaque || layout.count != 4) return false;
  for (int d = 0; d < 4; ++d)
    if (layout.dim[d] != kOrder[d] || layout.factor[d] != 0) return false;
  return true;
}

} // namespace

bool imageOf(const Instruction& instr, const cdl_view_t& view, Image& image) {
  const bool isLast = hasChannelsLast(*cdl_get_layout(instr.image(), view.layout));
  const int64_t *dims = view.dims, *strides = view.strides;
  if (view.rank == 4 && isLast)
    image = {dims[0],    dims[3],    dims[1],   dims[2], strides[0], kLanes * strides[3],
             strides[3], strides[1], strides[2]};
  else if (view.rank == 4)
    image = {dims[0],    dims[1],    dims[2],   dims[3], strides[0], kLanes * strides[1],
             strides[1], strides[2], strides[3]};
  else if (view.rank == 5 && dims[4] == kLanes)
    image = {dims[0],    dims[1] * kLanes, dims[2],    dims[3],   strides[0],
             strides[1], strides[4],       strides[2], strides[3]};
  else
    return false;
  return true;
}

} // namespace program
