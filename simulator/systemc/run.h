#pragma once

#include "simulator/func/stepped_device.h"
#include "simulator/systemc/npu.h"
#include "simulator/timing/schedule.h"
#include "simulator/timing/timed_records.h"

namespace candela::npu {

/// One run of a program, from CONTROL's start bit to its end: a schedule in step with the kernel's
/// time, the functional model in step with the schedule. Regions are kept beside the platform's
/// memory: loads bring their bytes before the model reads them, stores send what it wrote.
class Npu::Run : MemoryPort, Follower {
public:
  explicit Run(Npu& npu) : npu_(npu), clock_(npu.configuration_[key::kClockMhz]) {}
  /// Within the module's process. A run that is stopped by a reset has a report that means nothing.
  Result<RunReport> run();

  struct Counts {
    Counters counters{};
    std::array<Counters, kSnapshotSlots> snapshots{};
  };
  /// Up to now.
  Counts counters() const;
  uint32_t semaphore(int index) const { return device_ ? device_->semaphore(index) : 0; }

private:
  Outcome load();
  void explain(int last);
  Outcome readProgram(uint64_t address, uint64_t words, std::vector<Word>& code);
  bool transport(bool isWrite, uint64_t address, std::byte* data, uint64_t bytes, int requester,
                 sc_core::sc_time& delay);
  bool debug(bool isWrite, uint64_t address, std::byte* data, uint64_t bytes);
  void moveAtOnce(const Operation& operation);
  void refused(std::string_view what, bool isWrite, uint64_t address, uint64_t bytes);

  // MemoryPort
  int64_t access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                 int requester) override;
  int64_t drain(int64_t cycle) override;
  // Follower
  void word() override;
  void begin(int engine, uint32_t instruction, const Operation& operation) override;
  void end(int engine, uint32_t instruction, const Operation& operation) override;

  Npu& npu_;
  CycleClock clock_;
  Binary binary_;
  ScheduleOptions options_;
  std::unique_ptr<SteppedDevice> device_;
  std::optional<Schedule> schedule_;
  TimedRecords records_;
  std::vector<std::vector<std::byte>> regions_;
  MemoryMap map_;
  std::vector<std::byte> fetched_;
  tlm::tlm_generic_payload payload_;
  AccessExtension* extension_ = nullptr; ///< the payload's
  std::array<uint32_t, kEngineCount> instructions_{};
  std::optional<Fault> busFault_;
  uint64_t bursts_ = 0, bytes_ = 0;
  std::optional<int64_t> end_; ///< the cycle of a halt or fault
};

} // namespace candela::npu
