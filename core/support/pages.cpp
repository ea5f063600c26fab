#include "core/support/pages.h"

#include <sys/mman.h>
#include <unistd.h>

namespace candela {

Result<Bytes> zeroPages(uint64_t size) {
  const auto machine = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (size > machine)
    return failure(Code::out_of_memory, "cannot allocate {} bytes: the machine has {}", size, machine);
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return failure(Code::out_of_memory, "cannot allocate {} bytes", size);
  return Bytes::wrap(data, size,
                     std::shared_ptr<const void>(data, [size](const void* p) { munmap(const_cast<void*>(p), size); }));
}

} // namespace candela
