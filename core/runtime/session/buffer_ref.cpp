#include "core/runtime/session/buffer_ref.h"

namespace candela::runtime::session {

bool overlap(const BufferRef& a, uint64_t aBytes, const BufferRef& b, uint64_t bBytes) {
  if (!aBytes || !bBytes) return false;
  if (a.host && b.host) return a.host < b.host + bBytes && b.host < a.host + aBytes;
  const bool isOneMemory = a.memory && a.memory == b.memory;
  return isOneMemory && a.offset < b.offset + bBytes && b.offset < a.offset + aBytes;
}

} // namespace candela::runtime::session
