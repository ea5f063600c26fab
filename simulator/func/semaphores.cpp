#include "simulator/func/semaphores.h"

#include <algorithm>

namespace candela::npu {

void Semaphore::signal(const Clock& clock, int tokens) {
  count_ += tokens;
  behind_.resize(clock.size());
  for (size_t slot = 0; slot < clock.size(); ++slot) {
    std::vector<uint32_t>& values = behind_[slot];
    const auto at = std::upper_bound(values.begin(), values.end(), clock[slot]);
    values.insert(at, static_cast<size_t>(tokens), clock[slot]);
  }
}

Clock Semaphore::take(int tokens) {
  count_ -= tokens;
  Clock clock(behind_.size());
  for (size_t slot = 0; slot < clock.size(); ++slot) {
    std::vector<uint32_t>& values = behind_[slot];
    clock[slot] = values[static_cast<size_t>(tokens - 1)];
    values.erase(values.begin(), values.begin() + tokens);
  }
  return clock;
}

} // namespace candela::npu
