#include <array>
#include <deque>

#include "simulator/npu_device.h"
#include "simulator/timing/schedule.h"

namespace candela::npu {
namespace {

/// Values by the functional model, time by a schedule of the same words.
class TimedDevice : public Device {
public:
  TimedDevice(const Configuration& configuration, TimedOptions options) : options_(std::move(options)) {
    FunctionalOptions functional = options_.functional;
    if (functional.onRetire)
      functional.onRetire = [this](const RetireRecord& record) { records_[record[trace::kEngine]].push_back(record); };
    values_ = makeFunctionalDevice(configuration, std::move(functional));
  }

  const Configuration& configuration() const override { return values_->configuration(); }
  const Binary& program() const override { return values_->program(); }
  Outcome load(Binary binary) override { return values_->load(std::move(binary)); }
  Outcome bind(uint32_t region, std::span<std::byte> memory) override { return values_->bind(region, memory); }

  Result<RunReport> run() override {
    RunReport report;
    for (auto& records : records_) records.clear();
    if (options_.hasValues) {
      Result<RunReport> values = values_->run();
      if (!values) return values;
      report = *std::move(values);
      if (report.fault) return report; // it has no end, and so no time
    }
    ScheduleOptions schedule;
    schedule.fidelity = options_.fidelity;
    schedule.counts = !options_.hasValues;
    schedule.onCounted = options_.functional.onCounted;
    const bool isRecording = options_.hasValues && options_.functional.onRetire;
    if (isRecording || options_.onTime)
      schedule.onRetire = [&](const InstructionTime& time) {
        if (isRecording) record(time);
        if (options_.onTime) options_.onTime(time);
      };
    const Result<TimeReport> time = timeOf(configuration(), program(), schedule);
    if (!time) return error("{}", time.message());
    report.hasTime = true;
    if (schedule.counts) {
      report.counters = time->counters;
      report.snapshots = time->snapshots;
    }
    constexpr auto kCycles = static_cast<size_t>(Counter::kCycles);
    report.counters[kCycles] = time->counters[kCycles];
    for (size_t slot = 0; slot < report.snapshots.size(); ++slot)
      report.snapshots[slot][kCycles] = time->snapshots[slot][kCycles];
    report.time = *time;
    return report;
  }

private:
  /// Instructions of one engine end in the same order with and without time.
  void record(const InstructionTime& time) {
    std::deque<RetireRecord>& waiting = records_[time.engine];
    RetireRecord record = waiting.front();
    waiting.pop_front();
    record[trace::kSequence] = time.sequence;
    record[trace::kStart] = static_cast<uint64_t>(time.start);
    record[trace::kDone] = static_cast<uint64_t>(time.done);
    options_.functional.onRetire(record);
  }

  TimedOptions options_;
  std::unique_ptr<Device> values_;
  std::array<std::deque<RetireRecord>, kEngineCount> records_;
};

} // namespace

std::unique_ptr<Device> makeTimedDevice(Configuration configuration, TimedOptions options) {
  return std::make_unique<TimedDevice>(configuration, std::move(options));
}

} // namespace candela::npu
