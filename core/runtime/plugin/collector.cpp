#include "core/runtime/plugin/collector.h"

#include <exception>

namespace candela::runtime::plugin {

int Collector::write(const void* data, uint64_t size) noexcept {
  if (size > most_ - text_->size() || (size && !data)) return 0;
  try {
    text_->append(static_cast<const char*>(data), size);
  } catch (const std::exception&) { // bad_alloc or length_error, which no plugin may see
    return 0;
  }
  return 1;
}

} // namespace candela::runtime::plugin
