#pragma once

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "simulator/rtl_model/pins.h"
#include "simulator/timing/schedule.h"

namespace candela::npu {

/// The memory at the NPU's AXI port. It takes a request in the cycle in which it is offered, and
/// answers when a MemoryPort says, there and back over the fabric: a burst's first beat comes in
/// the cycle before the one in which the schedule has it. A beat, and an answer to a write, in a
/// cycle.
class AxiMemory {
public:
  /// Which engine a transaction's ID stands for, 0 for the fetch of the program.
  using EngineOf = std::vector<int>;

  AxiMemory(const Configuration& configuration, MemoryPort& port);

  /// What lies at address 0 and on; it stays the caller's.
  void setMemory(std::span<std::byte> memory) { memory_ = memory; }
  /// Every access to an address from here on is refused.
  void setRefused(uint64_t from) { refusedFrom_ = from; }

  /// Before settle(): what it offers in cycle `now`.
  void drive(RtlPins& pins, int64_t now);
  /// Behind settle(): what it takes.
  void take(const RtlPins& pins, int64_t now);
  bool isIdle() const { return reads_.empty() && writes_.empty(); }

private:
  struct Read {
    uint64_t address;
    int id, beats;
    int64_t due;
  };
  struct Write {
    uint64_t address;
    int id, beats, left, bytes;
    std::optional<int64_t> due; ///< of its answer, once it is known
    bool isRefused;
  };
  int64_t answerTo(int64_t now, uint64_t address, int64_t bytes, bool isWrite, int id);
  bool isRefused(uint64_t address) const { return address >= refusedFrom_; }
  void takeData(const RtlPins& pins, int64_t now);

  MemoryPort& port_;
  EngineOf engines_;
  int beatBytes_;
  std::span<std::byte> memory_;
  uint64_t refusedFrom_ = UINT64_MAX;
  std::deque<Read> reads_;   ///< in the order of requests
  std::deque<Write> writes_; ///< the same
  size_t offeredRead_ = SIZE_MAX, offeredWrite_ = SIZE_MAX;
};

} // namespace candela::npu
