#include "simulator/error.h"
#include "simulator/timing/timed_records.h"

namespace candela::npu {
namespace {

/// Values by the functional model, time by a schedule of the same words.
class TimedDevice : public Device {
public:
  TimedDevice(const Configuration& configuration, TimedOptions options)
      : options_(std::move(options)) {
    FunctionalOptions functional = options_.functional;
    if (functional.onRetire)
      functional.onRetire = [this](const RetireRecord& record) { records_.add(record); };
    values_ = makeFunctionalDevice(configuration, std::move(functional));
  }

  const Configuration& configuration() const override { return values_->configuration(); }
  const Binary& program() const override { return values_->program(); }
  Outcome load(Binary binary) override { return values_->load(std::move(binary)); }
  Outcome bind(uint32_t region, std::span<std::byte> memory) override {
    return values_->bind(region, memory);
  }

  Result<RunReport> run() override {
    RunReport report;
    records_.clear();
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
        if (isRecording) options_.functional.onRetire(records_.take(time));
        if (options_.onTime) options_.onTime(time);
      };
    const Result<TimeReport> time = timeOf(configuration(), program(), schedule);
    if (!time) return error("{}", time.message());
    if (schedule.counts) {
      report.counters = time->counters;
      report.snapshots = time->snapshots;
    }
    addTime(report, *time);
    return report;
  }

private:
  TimedOptions options_;
  std::unique_ptr<Device> values_;
  TimedRecords records_;
};

} // namespace

std::unique_ptr<Device> makeTimedDevice(Configuration configuration, TimedOptions options) {
  return std::make_unique<TimedDevice>(configuration, std::move(options));
}

} // namespace candela::npu
