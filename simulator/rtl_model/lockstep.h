#pragma once

#include <array>
#include <deque>
#include <string>
#include <vector>

#include "simulator/rtl_model/rtl_run.h"

namespace candela::npu {

/// What the schedule says of each instruction, by engine in the order of ends.
using ScheduledTimes = std::array<std::vector<InstructionTime>, kEngineCount>;

/// Follows the events of the hardware beside the times of the schedule. It keeps references.
class Lockstep {
public:
  Lockstep(const Binary& binary, const ScheduledTimes& times) : binary_(binary), times_(times) {}

  /// False for the first event that is none of the schedule's, or in another cycle.
  bool take(const RtlEvent& event);
  /// Of that event: the instruction, its engine and layer, both cycles, and the last ten events.
  const std::string& difference() const { return difference_; }

private:
  static constexpr size_t kShown = 10;
  std::string textOf(const RtlEvent& event) const;
  bool differ(const RtlEvent& event, const std::string& expected);

  const Binary& binary_;
  const ScheduledTimes& times_;
  std::array<size_t, kEngineCount> begun_{}, ended_{};
  std::deque<RtlEvent> last_;
  std::string difference_;
};

} // namespace candela::npu
