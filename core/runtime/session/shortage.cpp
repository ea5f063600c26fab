#include "core/runtime/session/shortage.h"

#include <fmt/format.h>

namespace candela::runtime::session {
namespace {

/// Of the first instruction that writes the buffer; "" where nobody knows.
std::string originOf(const cdl_image_t* image, uint32_t buffer) {
  for (uint32_t i = 1; i < image->instrs.count; ++i) {
    const cdl_instr_t* instr = cdl_get_instr(image, i);
    for (uint32_t v = 0; v < instr->outputs; ++v)
      if (cdl_get_view(image, instr->first_view + instr->inputs + v)->buffer == buffer &&
          instr->provenance)
        return cdl_get_string(image, cdl_get_provenance(image, instr->provenance)->node);
  }
  return "";
}

} // namespace

std::string valuesText(const cdl_image_t* image, uint32_t space) {
  uint32_t largest = 0;
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t* buffer = cdl_get_buffer(image, b);
    if (buffer->role == CDL_ROLE_TEMP && buffer->space == space &&
        (!largest || buffer->bytes > cdl_get_buffer(image, largest)->bytes))
      largest = b;
  }
  const std::string what = "the values of its instructions";
  if (!largest) return what;
  const cdl_buffer_t* buffer = cdl_get_buffer(image, largest);
  const std::string origin = originOf(image, largest);
  return fmt::format("{}, the largest '{}'{} with {} bytes", what,
                     cdl_get_string(image, buffer->name),
                     origin.empty() ? "" : fmt::format(" of node '{}'", origin), buffer->bytes);
}

} // namespace candela::runtime::session
