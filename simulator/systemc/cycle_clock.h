#pragma once

#include <cstdint>
#include <systemc>

namespace candela::npu {

/// Cycles of the NPU's clock as time of the simulation, from a beginning on. A cycle rounds down to
/// a picosecond and time rounds up to a cycle, so that a cycle stays the same there and back. The
/// kernel's resolution must be 1 ps, its default.
class CycleClock {
public:
  explicit CycleClock(int64_t mhz) : mhz_(mhz) {}
  void beginAt(const sc_core::sc_time& begin) { begin_ = picoseconds(begin); }

  sc_core::sc_time timeOf(int64_t cycle) const {
    return sc_core::sc_time::from_value(begin_ +
                                        static_cast<uint64_t>(cycle * kPicoseconds / mhz_));
  }
  /// 0 before the beginning.
  int64_t cycleOf(const sc_core::sc_time& time) const {
    const uint64_t at = picoseconds(time);
    return at <= begin_
               ? 0
               : (static_cast<int64_t>(at - begin_) * mhz_ + kPicoseconds - 1) / kPicoseconds;
  }

private:
  static constexpr int64_t kPicoseconds = 1'000'000; ///< of a cycle of 1 MHz
  static uint64_t picoseconds(const sc_core::sc_time& time) { return time.value(); }

  int64_t mhz_;
  uint64_t begin_ = 0;
};

} // namespace candela::npu
