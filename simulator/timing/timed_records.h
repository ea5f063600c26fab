#pragma once

#include <array>
#include <cassert>
#include <deque>

#include "simulator/npu_device.h"
#include "simulator/timing/schedule.h"

namespace candela::npu {

/// A report of the functional model with the time of the same run.
inline void addTime(RunReport& report, const TimeReport& time) {
  constexpr auto kCycles = static_cast<size_t>(Counter::kCycles);
  report.hasTime = true;
  report.counters[kCycles] = time.counters[kCycles];
  for (size_t slot = 0; slot < report.snapshots.size(); ++slot)
    report.snapshots[slot][kCycles] = time.snapshots[slot][kCycles];
  report.time = time;
}

/// Records of the functional model, which get their time later: instructions of one engine end in
/// the same order with and without time.
class TimedRecords {
public:
  void clear() {
    for (auto& records : waiting_) records.clear();
  }
  void add(const RetireRecord& record) { waiting_[record[trace::kEngine]].push_back(record); }
  RetireRecord take(const InstructionTime& time) {
    std::deque<RetireRecord>& waiting = waiting_[time.engine];
    assert(!waiting.empty());
    RetireRecord record = waiting.front();
    waiting.pop_front();
    record[trace::kSequence] = time.sequence;
    record[trace::kStart] = static_cast<uint64_t>(time.start);
    record[trace::kDone] = static_cast<uint64_t>(time.done);
    return record;
  }

private:
  std::array<std::deque<RetireRecord>, kEngineCount> waiting_;
};

} // namespace candela::npu
