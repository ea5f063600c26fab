#include "simulator/rtl_model/rtl_run.h"

#include <algorithm>
#include <cstring>

#include "simulator/error.h"
#include "simulator/rtl_model/profile.h"

namespace candela::npu {
namespace {

constexpr uint32_t kStart = 1, kReset = 2;

constexpr uint32_t offsetOf(std::string_view name) {
  for (const RegisterInfo& info : kRegisters)
    if (info.name == name) return info.offset;
  return 0;
}

/// Answers as the memory of a configuration does.
class DramPort : public MemoryPort {
public:
  explicit DramPort(const Configuration& configuration) : dram_(configuration) {}
  int64_t access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                 int requester) override {
    return dram_.access(cycle, address, bytes, isWrite, requester);
  }
  int64_t drain(int64_t cycle) override { return dram_.drain(cycle); }

private:
  Dram dram_;
};

class Driver {
public:
  Driver(RtlTop& top, const Configuration& configuration, MemoryPort& port,
         std::span<std::byte> memory, const RtlRunOptions& options)
      : top_(top), pins_(top.pins()), memory_(configuration, port), port_(port), options_(options) {
    memory_.setMemory(memory);
    memory_.setRefused(options.refusedFrom);
    beats_.fill(false);
  }

  void reset() {
    pins_ = {};
    cycle();
    cycle();
    pins_.rst_n = 1;
    cycle();
  }

  void write(uint32_t offset, uint32_t value) {
    pins_.s_axil_awaddr = static_cast<uint16_t>(offset);
    pins_.s_axil_wdata = value;
    pins_.s_axil_wstrb = 0xf;
    pins_.s_axil_awvalid = pins_.s_axil_wvalid = pins_.s_axil_bready = 1;
    cycle();
    while (!pins_.s_axil_awready) cycle();
    pins_.s_axil_awvalid = pins_.s_axil_wvalid = 0;
    cycle();
  }

  uint32_t read(uint32_t offset) {
    pins_.s_axil_araddr = static_cast<uint16_t>(offset);
    pins_.s_axil_arvalid = pins_.s_axil_rready = 1;
    cycle();
    while (!pins_.s_axil_arready) cycle();
    pins_.s_axil_arvalid = 0;
    cycle();
    while (!pins_.s_axil_rvalid) cycle();
    return pins_.s_axil_rdata;
  }

  /// Of the PMU, or of a snapshot.
  Counters readCounters(uint32_t offset) {
    Counters counters{};
    for (const CounterInfo& counter : kCounters) {
      const auto id = static_cast<uint32_t>(counter.id);
      const uint64_t low = read(offset + 8 * id);
      counters[id] = low | uint64_t{read(offset + 8 * id + 4)} << 32;
    }
    return counters;
  }

  /// Places of the regions and of the program.
  void writePlaces(const Binary& binary, const Placement& placement) {
    const auto writePair = [&](uint32_t low, uint32_t high, uint64_t value) {
      write(low, static_cast<uint32_t>(value));
      write(high, static_cast<uint32_t>(value >> 32));
    };
    for (uint32_t i = 0; i < binary.regions.size(); ++i) {
      writePair(offsetOf("REGION_BASE_LO") + 4 * i, offsetOf("REGION_BASE_HI") + 4 * i,
                placement.bases[i]);
      write(offsetOf("REGION_BYTES") + 4 * i, static_cast<uint32_t>(binary.regions[i].bytes));
      write(offsetOf("REGION_FLAGS") + 4 * i, static_cast<uint32_t>(binary.regions[i].kind) << 1);
    }
    writePair(offsetOf("PROGRAM_LO"), offsetOf("PROGRAM_HI"), placement.program);
    write(offsetOf("PROGRAM_WORDS"), static_cast<uint32_t>(binary.code.size()));
  }

  /// Where profile records go; none: marks write none.
  void writeProfile(const std::optional<ProfileBuffer>& profile) {
    const uint64_t address = profile ? profile->address() : 0;
    write(offsetOf("PROFILE_LO"), static_cast<uint32_t>(address));
    write(offsetOf("PROFILE_HI"), static_cast<uint32_t>(address >> 32));
    write(offsetOf("PROFILE_BYTES"), profile ? profile->bytes() : 0);
  }

  Outcome run() {
    const RtlWaves& waves = options_.waves;
    if (waves.sink && !top_.openWaves(*waves.sink)) return error("it was built without waves");
    const Outcome bad = runToEnd();
    if (waves.sink) top_.closeWaves();
    hasEnded_ = true;
    return bad;
  }
  bool isIdle() { return (read(offsetOf("STATUS")) & kRtlRunning) == 0; }
  bool isStopped() const { return isStopped_; }
  int64_t end() const { return port_.drain(end_); }

private:
  Outcome runToEnd() {
    write(offsetOf("CONTROL"), kStart);
    while (!pins_.irq && !isStopped_) {
      if (now_ > options_.maxCycles) return error("it runs for more than {} cycles", now_);
      if (options_.resetAt && !isReset_ && now_ >= *options_.resetAt) {
        isReset_ = true;
        write(offsetOf("CONTROL"), kReset);
        while (!isIdle() && now_ <= options_.maxCycles) cycle();
        return {};
      }
      cycle();
    }
    return {};
  }

  /// The program's cycle 0 is the first one in which the control processor runs.
  void cycle() {
    memory_.drive(pins_, now_);
    if (hasBegun_ && !hasEnded_ && options_.waves.has(now_)) top_.beginWave(now_);
    top_.settle();
    if (pins_.rst_n && pins_.event_running) hasBegun_ = true; // before, registers are random
    if (hasBegun_ && !pins_.event_running && end_ < 0) end_ = now_;
    if (pins_.rst_n) memory_.take(pins_, now_);
    if (options_.onCycle) options_.onCycle(now_);
    if (hasBegun_ && options_.onEvent) report();
    top_.edge();
    if (hasBegun_) ++now_;
  }

  void emit(RtlEvent::Kind kind, int engine, uint32_t instruction) {
    const RtlEvent event{kind, static_cast<uint8_t>(engine), instruction, now_};
    if (!isStopped_ && !options_.onEvent(event)) isStopped_ = true;
  }
  void report() {
    if (!(pins_.event_begin | pins_.event_beat | pins_.event_retire)) return;
    for (int engine = 0; engine < kRtlEngines; ++engine) {
      const auto e = static_cast<size_t>(engine);
      if (pins_.event_retire >> engine & 1)
        emit(RtlEvent::Kind::kRetire, engine, pins_.event_retire_pc[engine]);
      if (pins_.event_begin >> engine & 1) {
        emit(RtlEvent::Kind::kBegin, engine, pins_.event_begin_pc[engine]);
        running_[e] = pins_.event_begin_pc[engine];
        beats_[e] = true;
      } else if ((pins_.event_beat >> engine & 1) && beats_[e]) {
        emit(RtlEvent::Kind::kFirstBeat, engine, running_[e]);
        beats_[e] = false;
      }
    }
  }

  RtlTop& top_;
  RtlPins& pins_;
  AxiMemory memory_;
  MemoryPort& port_;
  const RtlRunOptions& options_;
  int64_t now_ = 0, end_ = -1;
  bool hasBegun_ = false, hasEnded_ = false, isStopped_ = false, isReset_ = false;
  std::array<bool, kRtlEngines> beats_{}; ///< its instruction has moved nothing yet
  std::array<uint32_t, kRtlEngines> running_{};
};

} // namespace

std::vector<std::byte> memoryOf(const Binary& binary, const Placement& placement,
                                std::span<const std::span<std::byte>> regions) {
  std::vector<std::byte> memory(placement.end);
  for (size_t i = 0; i < binary.regions.size(); ++i)
    if (regions[i].data())
      std::copy_n(regions[i].begin(), binary.regions[i].bytes,
                  memory.begin() + static_cast<std::ptrdiff_t>(placement.bases[i]));
  std::memcpy(memory.data() + placement.program, binary.code.data(),
              binary.code.size() * sizeof(Word));
  return memory;
}

Result<RtlResult> runRtl(RtlTop& top, const Configuration& configuration, const Binary& binary,
                         const Placement& placement, std::span<std::byte> memory,
                         const RtlRunOptions& options) {
  DramPort dram(configuration);
  MemoryPort& port = options.memory ? *options.memory : dram;
  std::optional<ProfileBuffer> profile;
  if (options.profileRecords) profile.emplace(memory, options.profileRecords);
  Driver driver(top, configuration, port, profile ? profile->memory() : memory, options);
  if (options.resetsFirst) driver.reset();
  driver.writePlaces(binary, placement);
  driver.writeProfile(profile);
  if (Outcome bad = driver.run()) return *bad;
  if (profile) std::copy_n(profile->memory().begin(), memory.size(), memory.begin());
  RtlResult result;
  result.isStopped = driver.isStopped();
  if (result.isStopped) return result;
  result.cycles = driver.end();
  result.status = driver.read(offsetOf("STATUS"));
  result.faultPc = driver.read(offsetOf("FAULT_PC"));
  result.faultCode = driver.read(offsetOf("FAULT_CODE"));
  result.profileLost = driver.read(offsetOf("PROFILE_LOST"));
  if (profile) result.profile = profile->records(driver.read(offsetOf("PROFILE_RECORDS")));
  if (!options.readsCounters) return result;
  result.counters = driver.readCounters(kPmuOffset);
  for (uint32_t slot = 0; slot < kSnapshotSlots; ++slot)
    result.snapshots[slot] = driver.readCounters(kSnapshotOffset + 8 * kCounterSlots * slot);
  return result;
}

} // namespace candela::npu
