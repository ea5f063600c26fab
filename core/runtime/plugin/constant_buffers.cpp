#include "core/runtime/plugin/plugin.h"

namespace candela::runtime::plugin {

std::vector<bool> constantBuffers(const cdl_image_t* image) {
  std::vector<bool> isConstant(image->buffers.count, false);
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image, b);
    const bool isLocal = cdl_get_space(image, buffer->space)->flags & CDL_SPACE_LOCAL;
    isConstant[b] = buffer->role == CDL_ROLE_CONSTANT || (buffer->role == CDL_ROLE_TEMP && isLocal);
  }
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl_instr_t* instr = cdl_get_instr(image, i);
    const bool isCopy =
        instr->kind == CDL_KIND_COPY && isConstant[cdl_get_input(image, instr, 0)->buffer];
    for (uint32_t o = 0; o < instr->outputs && !isCopy; ++o)
      isConstant[cdl_get_output(image, instr, o)->buffer] = false;
  }
  return isConstant;
}

} // namespace candela::runtime::plugin
