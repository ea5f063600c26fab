#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "simulator/error.h"
#include "simulator/func/bound_device.h"
#include "simulator/rtl_model/library.h"
#include "simulator/rtl_model/lockstep.h"
#include "simulator/rtl_model/rtl_run.h"

namespace candela::npu {
namespace {

constexpr int kSeed = 20261126; ///< of registers without a reset: nothing may depend on them

/// The instructions of a run as the hardware has them: what the schedule knows of each, with other
/// cycles.
class EventTimes {
public:
  EventTimes(const ScheduledTimes& times, TimeReport& report) : times_(times), report_(report) {
    for (EngineTime& engine : report_.engines) engine = {};
    report_.tagged = {};
  }

  /// The instruction that ended, if the event is an end.
  std::optional<InstructionTime> take(const RtlEvent& event) {
    const size_t e = event.engine;
    if (event.kind == RtlEvent::Kind::kBegin) {
      starts_[e] = event.cycle;
      return std::nullopt;
    }
    if (event.kind == RtlEvent::Kind::kFirstBeat) {
      beats_[e] = event.cycle;
      return std::nullopt;
    }
    InstructionTime time;
    if (ended_[e] < times_[e].size()) time = times_[e][ended_[e]++];
    time.sequence = sequence_++;
    time.instruction = event.instruction;
    time.engine = event.engine;
    time.start = starts_[e];
    time.done = event.cycle;
    time.firstBeat = beats_[e] >= time.start ? beats_[e] : -1;
    time.stalls = {};
    time.waitCount = 0; // whose tokens it took, the hardware does not say
    report_.engines[e].busy += time.done - time.start;
    report_.tagged[static_cast<size_t>(Tag::kRtl)] += time.done - time.start;
    return time;
  }

private:
  const ScheduledTimes& times_;
  TimeReport& report_;
  std::array<size_t, kEngineCount> ended_{};
  std::array<int64_t, kEngineCount> starts_{}, beats_{};
  uint32_t sequence_ = 0;
};

RetireRecord recordOf(const InstructionTime& time) {
  RetireRecord record{};
  record[trace::kSequence] = time.sequence;
  record[trace::kInstruction] = time.instruction;
  record[trace::kEngine] = time.engine;
  record[trace::kOpcode] = static_cast<uint64_t>(time.op);
  record[trace::kStart] = static_cast<uint64_t>(time.start);
  record[trace::kDone] = static_cast<uint64_t>(time.done);
  record[trace::kBytes] = static_cast<uint64_t>(time.bytes);
  return record;
}

/// The file of waves.
class WaveSink : public RtlWaveSink {
public:
  explicit WaveSink(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "wb")) {
    if (!file_) note();
  }
  ~WaveSink() override { close(); }
  WaveSink(const WaveSink&) = delete;
  WaveSink& operator=(const WaveSink&) = delete;

  void write(const char* bytes, size_t count) override {
    if (!failure_ && std::fwrite(bytes, 1, count, file_) != count) note();
  }
  Outcome close() {
    if (file_ && std::fclose(std::exchange(file_, nullptr)) != 0) note();
    return failure_;
  }
  const Outcome& failure() const { return failure_; }

private:
  void note() {
    if (!failure_) failure_ = error("waves: {}: {}", path_, std::strerror(errno));
  }

  std::string path_;
  std::FILE* file_;
  Outcome failure_;
};

class RtlDevice : public BoundDevice {
public:
  RtlDevice(const Configuration& configuration, TimedOptions options)
      : BoundDevice(configuration), options_(std::move(options)) {}

  Result<RunReport> run() override {
    if (Outcome bad = checkBound()) return *bad;
    if (Outcome bad = makeLibrary()) return *bad;
    ScheduledTimes times;
    const Result<TimeReport> scheduled = schedule(times);
    if (!scheduled) { // the hardware says what is wrong with it, if it is not the time alone
      TimeReport none;
      return runOnce(times, none);
    }
    return runOnce(times, *scheduled);
  }

private:
  Outcome makeLibrary() {
    if (library_) return {};
    const Result<RtlLibrary::Places> places = RtlLibrary::findPlaces();
    if (!places) return error("engine rtl: {}", places.message());
    const auto kind =
        options_.waves.file.empty() ? RtlLibrary::Kind::kPlain : RtlLibrary::Kind::kWaves;
    Result<std::shared_ptr<RtlLibrary>> library = RtlLibrary::of(configuration(), *places, kind);
    if (!library) return error("engine rtl: {}", library.message());
    library_ = *std::move(library);
    return {};
  }

  Result<TimeReport> schedule(ScheduledTimes& times) const {
    ScheduleOptions options;
    options.fidelity = Fidelity::kExact;
    options.counts = true;
    options.onCounted = options_.functional.onCounted;
    options.onRetire = [&](const InstructionTime& time) { times[time.engine].push_back(time); };
    return timeOf(configuration(), program(), options);
  }

  Result<RunReport> runOnce(const ScheduledTimes& times, TimeReport time) {
    const Placement placement = placementOf(program());
    std::vector<std::byte> memory = memoryOf(program(), placement, regions());
    Lockstep lockstep(program(), times);
    EventTimes followed(times, time);
    RtlRunOptions options;
    options.profileRecords = options_.profileRecords;
    options.onEvent = [&](const RtlEvent& event) {
      if (options_.isLockstep && !lockstep.take(event)) return false;
      const std::optional<InstructionTime> ended = followed.take(event);
      if (ended && options_.functional.onRetire) options_.functional.onRetire(recordOf(*ended));
      if (ended && options_.onTime) options_.onTime(*ended);
      return true;
    };
    std::optional<WaveSink> waves;
    if (const WaveOptions& wanted = options_.waves; !wanted.file.empty()) {
      waves.emplace(wanted.file);
      if (waves->failure()) return *waves->failure();
      options.waves = {&*waves, wanted.from, wanted.to};
    }
    const std::unique_ptr<RtlTop> top = library_->make(kSeed);
    if (!top) return error("engine rtl: the system gives no memory or no threads for the hardware");
    const Result<RtlResult> result =
        runRtl(*top, configuration(), program(), placement, memory, options);
    if (!result) return error("{}", result.message());
    if (waves)
      if (Outcome bad = waves->close()) return *bad;
    if (result->isStopped) return error("lockstep: {}", lockstep.difference());
    for (size_t i = 0; i < regions().size(); ++i)
      if (program().regions[i].kind != RegionClass::kConstants)
        std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(placement.bases[i]),
                    regions()[i].size(), regions()[i].begin());
    return reportOf(*result, std::move(time));
  }

  RunReport reportOf(const RtlResult& result, TimeReport time) const {
    RunReport report;
    if (result.status & kRtlFaulted) {
      const auto kind = static_cast<FaultKind>(result.faultCode - 1);
      report.fault = Fault{kind, result.faultPc,
                           fmt::format("instruction {}: {}the hardware stopped", result.faultPc,
                                       program().origin(result.faultPc))};
      return report;
    }
    report.snapshots = result.snapshots;
    report.profile = result.profile;
    report.profileLost = result.profileLost;
    report.counters = result.counters;
    report.counters[static_cast<size_t>(Counter::kCycles)] = static_cast<uint64_t>(result.cycles);
    time.cycles = result.cycles;
    time.counters = report.counters;
    report.hasTime = true;
    report.time = std::move(time);
    return report;
  }

  TimedOptions options_;
  std::shared_ptr<RtlLibrary> library_;
};

} // namespace

std::unique_ptr<Device> makeRtlDevice(Configuration configuration, TimedOptions options) {
  return std::make_unique<RtlDevice>(configuration, std::move(options));
}

} // namespace candela::npu
