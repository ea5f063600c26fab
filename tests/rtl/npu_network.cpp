// A compiled program on the RTL of a configuration, on the functional model and on the timed one:
// the same bytes in the memory, and how many cycles each takes.
//
//   rtl_npu_network CONFIGURATION PROGRAM.npubin [LISTED]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "simulator/rtl_model/library.h"
#include "simulator/rtl_model/rtl_run.h"

namespace {
using namespace candela::npu;

constexpr int kSeed = 20261126;

struct Regions {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::span<std::byte>> spans() {
    std::vector<std::span<std::byte>> all;
    for (std::vector<std::byte>& region : bytes) all.emplace_back(region);
    return all;
  }
};

/// Constants of the program, random bytes elsewhere.
Regions regionsOf(const Binary& binary) {
  std::mt19937 engine(kSeed);
  Regions regions;
  for (const Region& region : binary.regions) {
    std::vector<std::byte> bytes(region.bytes);
    if (region.kind == RegionClass::kConstants)
      std::copy_n(binary.constants.begin(), region.bytes, bytes.begin());
    else
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
    regions.bytes.push_back(std::move(bytes));
  }
  return regions;
}

template <typename T> T orExit(Result<T> result, const char* what) {
  if (result) return *std::move(result);
  fmt::print(stderr, "{}: {}\n", what, result.message());
  std::exit(2);
}

Binary readProgram(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
  return orExit(readBinary(std::as_bytes(std::span(text))), path);
}

/// What the timed model says of each instruction, by engine in the order of ends.
using Times = std::array<std::vector<InstructionTime>, kEngineCount>;

struct Difference {
  int64_t start = 0, done = 0; ///< cycles that the hardware is later
};

/// Compares the hardware's events with the model's, and adds up by operation how much longer each
/// took.
class Comparison {
public:
  Comparison(const Binary& binary, Times times, int listed)
      : binary_(binary), times_(std::move(times)), listed_(listed) {}

  bool operator()(const RtlEvent& event) {
    if (event.kind == RtlEvent::Kind::kFirstBeat) return true;
    const size_t e = event.engine;
    std::vector<InstructionTime>& expected = times_[e];
    size_t& at = event.kind == RtlEvent::Kind::kBegin ? begun_[e] : ended_[e];
    if (at >= expected.size()) {
      ++unexpected_;
      return true;
    }
    const InstructionTime& time = expected[at++];
    if (time.instruction != event.instruction) ++unexpected_;
    if (event.kind == RtlEvent::Kind::kBegin) {
      starts_[e] = event.cycle;
      if (event.cycle != time.start && firstDifferent_.empty())
        firstDifferent_ = text("starts", time, event.cycle, time.start);
      return true;
    }
    const int64_t took = event.cycle - starts_[e], wanted = time.done - time.start;
    Sums& sums = sums_[std::string(opInfo(static_cast<uint64_t>(time.op))->name)];
    ++sums.count;
    sums.took += took;
    sums.wanted += wanted;
    sums.different += took != wanted;
    if (took != wanted && listed_-- > 0) fmt::print("  {}\n", text("takes", time, took, wanted));
    return true;
  }

  void print() const {
    fmt::print("  {:<10} {:>8} {:>10} {:>10} {:>10}\n", "operation", "count", "model", "rtl",
               "different");
    for (const auto& [name, s] : sums_)
      fmt::print("  {:<10} {:>8} {:>10} {:>10} {:>10}\n", name, s.count, s.wanted, s.took,
                 s.different);
    if (!firstDifferent_.empty()) fmt::print("  first: {}\n", firstDifferent_);
  }
  int unexpected() const { return unexpected_; }

private:
  struct Sums {
    int64_t count = 0, took = 0, wanted = 0, different = 0;
  };
  std::string text(const char* what, const InstructionTime& time, int64_t rtl,
                   int64_t model) const {
    return fmt::format("{}instruction {}, {} {} {} at {}, the model at {} (begins at {})",
                       binary_.origin(time.instruction), time.instruction, engineName(time.engine),
                       opInfo(static_cast<uint64_t>(time.op))->name, what, rtl, model, time.start);
  }

  const Binary& binary_;
  Times times_;
  int listed_, unexpected_ = 0;
  std::array<size_t, kEngineCount> begun_{}, ended_{};
  std::array<int64_t, kEngineCount> starts_{};
  std::map<std::string, Sums> sums_;
  std::string firstDifferent_;
};

/// The index of the first region that differs, or -1.
int differentRegion(const Binary& binary, const Placement& placement,
                    const std::vector<std::byte>& memory, const Regions& regions) {
  for (size_t i = 0; i < binary.regions.size(); ++i)
    if (!std::equal(regions.bytes[i].begin(), regions.bytes[i].end(),
                    memory.begin() + static_cast<std::ptrdiff_t>(placement.bases[i])))
      return static_cast<int>(i);
  return -1;
}

/// The first counter that is not that of the functional model, or nothing.
std::optional<Counter> differentCounter(const RtlResult& result, const RunReport& report) {
  for (const Counter counter : rtlCounters())
    if (result.counters[static_cast<size_t>(counter)] !=
        report.counters[static_cast<size_t>(counter)])
      return counter;
  return std::nullopt;
}

int run(const char* configurationPath, const char* programPath, int listed) {
  const Configuration configuration =
      orExit(findConfiguration(configurationPath), configurationPath);
  const Binary binary = readProgram(programPath);
  const Placement placement = placementOf(binary);
  Regions regions = regionsOf(binary);
  std::vector<std::byte> memory = memoryOf(binary, placement, regions.spans());

  const std::unique_ptr<Device> functional = makeFunctionalDevice(configuration);
  if (Outcome bad = functional->load(binary)) return fmt::print("{}\n", bad->message), 2;
  for (uint32_t i = 0; i < binary.regions.size(); ++i)
    if (binary.regions[i].kind != RegionClass::kConstants)
      (void)functional->bind(i, regions.bytes[i]);
  const RunReport report = orExit(functional->run(), "functional model");
  if (report.fault) return fmt::print("{}\n", report.fault->message), 2;

  Times times;
  ScheduleOptions schedule;
  schedule.onRetire = [&](const InstructionTime& time) { times[time.engine].push_back(time); };
  const TimeReport time = orExit(timeOf(configuration, binary, schedule), "timed model");

  Comparison comparison(binary, std::move(times), listed);
  RtlRunOptions options;
  options.onEvent = [&](const RtlEvent& event) { return comparison(event); };
  const auto places = orExit(RtlLibrary::findPlaces(), "sources");
  const auto library = orExit(RtlLibrary::of(configuration, places), "library");
  const std::unique_ptr<RtlTop> top = library->make(kSeed);
  const auto begin = std::chrono::steady_clock::now();
  const RtlResult result =
      orExit(runRtl(*top, configuration, binary, placement, memory, options), "RTL");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const int different = differentRegion(binary, placement, memory, regions);

  fmt::print("{} {}: {} words, seed {}\n", configuration.name, programPath, binary.code.size(),
             kSeed);
  fmt::print("  cycles {} in the model, {} in the RTL ({:+.3f} %), {:.1f} kcycles/s\n", time.cycles,
             result.cycles,
             100.0 * static_cast<double>(result.cycles - time.cycles) /
                 static_cast<double>(time.cycles),
             static_cast<double>(result.cycles) / seconds.count() / 1000);
  comparison.print();
  if (result.status != kRtlHalted)
    return fmt::print("status {:#x}, fault {} at instruction {}\n", result.status, result.faultCode,
                      result.faultPc),
           1;
  if (different >= 0)
    return fmt::print("region '{}' differs\n", binary.regions[static_cast<size_t>(different)].name),
           1;
  if (const std::optional<Counter> counter = differentCounter(result, report))
    return fmt::print("counter {} differs\n", static_cast<int>(*counter)), 1;
  if (comparison.unexpected())
    return fmt::print("{} events of other instructions\n", comparison.unexpected()), 1;
  fmt::print("  memory and counters are the same\n");
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) return fmt::print(stderr, "CONFIGURATION PROGRAM.npubin [LISTED]\n"), 2;
  return run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 0);
}
