#include "tools/candela/support/large_pages.h"

#include <climits>
#include <cstdint>
#include <cstdlib>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#endif

namespace candela::tool {

void useLargePages(size_t bytes) {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  static bool isDone = false;
  if (std::exchange(isDone, true)) return;
  // Large blocks come from the heap too, and what is freed stays there.
  mallopt(M_MMAP_THRESHOLD, INT_MAX);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 16 << 20);
  void* const block = std::malloc(bytes);
  if (!block) return;
  constexpr uintptr_t kPage = uintptr_t{2} << 20;
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + kPage - 1) / kPage * kPage;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes) / kPage * kPage;
  // Advice: without it, pages are small ones.
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  std::free(block);
#else
  (void)bytes;
#endif
}

} // namespace candela::tool
