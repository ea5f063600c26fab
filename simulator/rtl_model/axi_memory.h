#pragma once

#include <span>

#include "simulator/rtl_model/pins.h"
#include "simulator/timing/exact/memory_side.h"

namespace candela::npu {

/// The memory at the NPU's AXI port: transactions in the time of the exact schedule, with their
/// data.
class AxiMemory {
public:
  AxiMemory(const Configuration& configuration, MemoryPort& port);

  /// What lies at address 0 and on; it stays the caller's.
  void setMemory(std::span<std::byte> memory) { memory_ = memory; }
  /// Every access to an address from here on is refused.
  void setRefused(uint64_t from) { refusedFrom_ = from; }

  /// Before settle(): what it offers in cycle `now`.
  void drive(RtlPins& pins, int64_t now);
  /// Behind settle(): what it takes.
  void take(const RtlPins& pins, int64_t now);

private:
  bool isRefused(uint64_t address) const { return address >= refusedFrom_; }
  void read(RtlPins& pins, const exact::Transactions::Read& read) const;
  void write(const RtlPins& pins, const exact::Transactions::Write& write);

  exact::Transactions transactions_;
  uint64_t beatBytes_;
  std::span<std::byte> memory_;
  uint64_t refusedFrom_ = UINT64_MAX;
};

} // namespace candela::npu
