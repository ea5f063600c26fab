#include "simulator/func/semaphores.h"

#include <algorithm>

namespace candela::npu {

void Semaphore::signal(const Clock& clock, int tokens) {
  count_ += tokens;
  for (int engine = 0; engine < kEngineCount; ++engine) {
    std::deque<uint32_t>& values = behind_[engine];
    const auto at = std::upper_bound(values.begin(), values.end(), clock[engine]);
    values.insert(at, static_cast<size_t>(tokens), clock[engine]);
  }
}

Clock Semaphore::take(int tokens) {
  count_ -= tokens;
  Clock clock;
  for (int engine = 0; engine < kEngineCount; ++engine) {
    std::deque<uint32_t>& values = behind_[engine];
    clock[engine] = values[static_cast<size_t>(tokens - 1)];
    values.erase(values.begin(), values.begin() + tokens);
  }
  return clock;
}

} // namespace candela::npu
