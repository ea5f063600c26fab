// What a caller may hand over: images, instructions and bindings, with the codes that cdl.h
// documents.
#pragma once

#include "candela/backend/status.hpp"

namespace cdl {

/// The whole image, by cdl_image_check.
inline Status checkImage(const cdl_image_t* image) {
  char words[256] = "";
  cdl_error_t error{words, sizeof words, 0};
  const bool isReadable = image && reinterpret_cast<uintptr_t>(image) % 8 == 0;
  const cdl_code_t code = cdl_image_check(image, isReadable ? image->size : 0, &error);
  return Status(code, words);
}

/// That these are instructions of an image that this plugin can read, of kinds and functions that
/// it knows. The rest of the image may hold kinds that it does not know: the host runs those.
inline Status checkInstrs(const cdl_image_t* image, uint32_t first, uint32_t count) {
  if (!image || reinterpret_cast<uintptr_t>(image) % 8 != 0)
    return error(CDL_INVALID_ARGUMENT, "image: data is null or not aligned to 8 bytes");
  char words[256] = "";
  cdl_error_t said{words, sizeof words, 0};
  cdl_check_t check = {image, &said, "", 0, nullptr, 0, CDL_OK, 0};
  if (!cdl_check_header(&check, image->size)) return Status(check.code, words);
  if (first == 0 || uint64_t(first) + count > image->instrs.count)
    return error(CDL_INVALID_ARGUMENT,
                 text("instructions ", first, " .. +", count, " of ", image->instrs.count));
  for (uint32_t i = first; i - first < count; ++i) {
    const cdl_instr_t& instr = *cdl_get_instr(image, i);
    if (!cdl_kind_facts(instr.kind))
      return error(CDL_INCOMPATIBLE, text("instruction ", i, ": kind ", instr.kind, " is unknown"));
    if (!cdl_fn_known(instr.kind, instr.fn))
      return error(CDL_INCOMPATIBLE, text("instruction ", i, ": function ", instr.fn, " of ",
                                          kindName(instr.kind), " is unknown"));
  }
  return ok();
}

/// That there are bindings, one for each buffer.
inline void checkBindings(const cdl_image_t* image, const cdl_bindings_t* bindings) {
  if (!bindings || !image || bindings->count < image->buffers.count || !bindings->buffers)
    throw BadBinding(text("bindings: ", bindings ? bindings->count : 0, " for ",
                          image ? image->buffers.count : 0, " buffers"));
}

/// That a binding holds `bytes`, inside of its memory, where the buffer may begin.
inline void checkBinding(const cdl_image_t* image, uint32_t buffer, const cdl_binding_t& binding,
                         uint64_t memoryBytes, uint64_t bytes) {
  const auto where = [&] {
    return text("binding of buffer ", buffer, ": ", binding.bytes, " bytes at ", binding.offset);
  };
  if (!binding.memory || binding.bytes < bytes || binding.offset > memoryBytes ||
      binding.bytes > memoryBytes - binding.offset)
    throw BadBinding(text(where(), " of a memory of ", memoryBytes, ", need ", bytes));
  const bool isScratch = buffer == image->buffers.count; // behind the last buffer
  const uint64_t alignment = isScratch ? 64 : cdl_get_buffer(image, buffer)->alignment;
  if (alignment && binding.offset % alignment != 0)
    throw BadBinding(text(where(), ", which is not aligned to ", alignment));
}

} // namespace cdl
