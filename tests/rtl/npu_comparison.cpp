#include "tests/rtl/npu_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "simulator/error.h"
#include "simulator/rtl_model/lockstep.h"

namespace candela::rtl {
namespace {
using namespace npu;

/// What a run may take: so many times what the model says, and cycles more.
constexpr int64_t kMostTimes = 4, kMostCycles = 100000;

/// Answers in a random time, in the order of asking of each requester.
class RandomMemory : public MemoryPort {
public:
  explicit RandomMemory(uint32_t seed) : engine_(seed) {}
  int64_t access(int64_t cycle, uint64_t, int64_t, bool, int requester) override {
    int64_t& last = last_[static_cast<size_t>(requester)];
    last = std::max(last, cycle + 1 + static_cast<int64_t>(engine_() % 200));
    return last;
  }
  int64_t drain(int64_t cycle) override { return cycle; }

private:
  std::mt19937 engine_;
  std::array<int64_t, kEngineCount> last_{};
};

std::vector<std::vector<std::byte>> regionsOf(const Binary& binary, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<std::vector<std::byte>> regions;
  for (const Region& region : binary.regions) {
    std::vector<std::byte> bytes(region.bytes);
    if (region.kind == RegionClass::kConstants)
      std::copy_n(binary.constants.begin(), region.bytes, bytes.begin());
    else
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
    regions.push_back(std::move(bytes));
  }
  return regions;
}

/// Runs it without time, on the regions.
Result<RunReport> runFunctional(const Configuration& configuration, const Binary& binary,
                                std::vector<std::vector<std::byte>>& regions) {
  const std::unique_ptr<Device> device = makeFunctionalDevice(configuration);
  if (const npu::Outcome bad = device->load(binary)) return *bad;
  for (uint32_t i = 0; i < binary.regions.size(); ++i)
    if (binary.regions[i].kind != RegionClass::kConstants)
      if (const npu::Outcome bad = device->bind(i, regions[i])) return *bad;
  Result<RunReport> report = device->run();
  if (report && report->fault) return error("{}", report->fault->message);
  return report;
}

std::string differenceOf(const Binary& binary, const Placement& placement,
                         const std::vector<std::byte>& memory,
                         const std::vector<std::vector<std::byte>>& regions) {
  for (size_t i = 0; i < binary.regions.size(); ++i) {
    const auto* const mine = memory.data() + placement.bases[i];
    const auto [at, other] = std::mismatch(regions[i].begin(), regions[i].end(), mine);
    if (at != regions[i].end())
      return fmt::format("byte {} of region '{}' is {}, the model has {}", at - regions[i].begin(),
                         binary.regions[i].name, static_cast<int>(*other), static_cast<int>(*at));
  }
  return {};
}
std::string differenceOf(const RtlResult& result, const RunReport& report) {
  if (result.status != kRtlHalted)
    return fmt::format("status {:#x}, fault {} at instruction {}", result.status, result.faultCode,
                       result.faultPc);
  for (const CounterInfo& counter : kCounters) {
    const auto id = static_cast<size_t>(counter.id);
    if (!counter.isTiming && result.counters[id] != report.counters[id])
      return fmt::format("counter {} is {}, the model has {}", counter.name, result.counters[id],
                         report.counters[id]);
  }
  return {};
}

} // namespace

Result<std::shared_ptr<RtlLibrary>> rtlLibraryOf(const Configuration& configuration) {
  const Result<RtlLibrary::Places> places = RtlLibrary::findPlaces();
  if (!places) return error("{}", places.message());
  const bool counts = std::getenv("CANDELA_RTL_COVERAGE") != nullptr;
  return RtlLibrary::of(configuration, *places,
                        counts ? RtlLibrary::Kind::kCounts : RtlLibrary::Kind::kPlain);
}

Result<NpuComparison> compareNpu(const Configuration& configuration, const Binary& binary,
                                 const RtlLibrary& library, const NpuComparisonOptions& options) {
  NpuComparison comparison;
  const Placement placement = placementOf(binary);
  std::vector<std::vector<std::byte>> regions = regionsOf(binary, options.seed);
  const std::vector<std::span<std::byte>> spans(regions.begin(), regions.end());
  std::vector<std::byte> memory = memoryOf(binary, placement, spans);
  const Result<RunReport> values = runFunctional(configuration, binary, regions);
  if (!values) return error("{}", values.message());
  ScheduleOptions bursts;
  bursts.onRetire = [&](const InstructionTime& time) {
    comparison.accurateTimes[time.engine].push_back(time);
  };
  const Result<TimeReport> accurate = timeOf(configuration, binary, bursts);
  if (!accurate) return error("{}", accurate.message());
  comparison.accurateCycles = accurate->cycles;

  RandomMemory modelMemory(options.seed), rtlMemory(options.seed);
  ScheduledTimes& times = comparison.times;
  ScheduleOptions schedule;
  schedule.fidelity = Fidelity::kExact;
  if (options.hasRandomMemory) schedule.memory = &modelMemory;
  schedule.onRetire = [&](const InstructionTime& time) {
    times[time.engine].push_back(time);
    ++comparison.instructions;
  };
  const Result<TimeReport> time = timeOf(configuration, binary, schedule);
  if (!time) return error("{}", time.message());

  Lockstep lockstep(binary, times);
  RtlRunOptions rtl;
  rtl.maxCycles = kMostTimes * time->cycles + kMostCycles; // hardware with a fault may never end
  if (options.hasRandomMemory) rtl.memory = &rtlMemory;
  rtl.onEvent = [&](const RtlEvent& event) { return lockstep.take(event); };
  const std::unique_ptr<RtlTop> top = library.make(static_cast<int>(options.seed));
  const auto begin = std::chrono::steady_clock::now();
  const Result<RtlResult> result = runRtl(*top, configuration, binary, placement, memory, rtl);
  if (!result) return error("{}", result.message());
  comparison.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  comparison.cycles = result->cycles;
  if (result->isStopped)
    comparison.difference = lockstep.difference();
  else if (result->cycles != time->cycles)
    comparison.difference =
        fmt::format("{} cycles, the model has {}", result->cycles, time->cycles);
  else if (comparison.difference = differenceOf(*result, *values); comparison.difference.empty())
    comparison.difference = differenceOf(binary, placement, memory, regions);
  return comparison;
}

} // namespace candela::rtl
