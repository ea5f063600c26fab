// The entry, the options, and the device as data.
#include <algorithm>
#include <atomic>
#include <charconv>

#include "capabilities.hpp"
#include "executable.hpp"
#include "reuse.hpp"
#include "simulator/timing/exact/buildable.h"

namespace npu_sim {

namespace {

constexpr const char* kVersion = "0.1.0";
/// Programs of at most so many bytes of constants, inputs and outputs are priced by bursts.
constexpr uint64_t kTimedByBursts = 2'000'000;

/// The same for all plans of a Program.
uint64_t bytesWithoutTemporaries(const cdl_image_t* image) {
  uint64_t bytes = 0;
  for (uint32_t b = 1; b < image->buffers.count; ++b)
    if (const cdl_buffer_t* buffer = cdl_get_buffer(image, b); buffer->role != CDL_ROLE_TEMP)
      bytes += buffer->bytes;
  return bytes;
}

#ifdef NPU_SIM_WITH_SYSTEMC
constexpr const char* kEngines = "func|fast|accurate|exact|systemc|systemc_fast|rtl|rtl_lockstep";
#else
constexpr const char* kEngines =
    "func|fast|accurate|exact|rtl|rtl_lockstep"; // built where there was no SystemC
#endif

class NpuSim final : public cdl::ProgramBackend {
public:
  NpuSim() : ProgramBackend("npu_sim", kVersion) {
    describe("the simulated NPU: programs of its instruction set on a model of the hardware");
    option("npu", "the configuration: tiny, nv_small, gem16, edge4t, edge8t, tpu1, or a .toml file",
           "string", "gem16");
    option("checks", "look for races and for bytes that nothing wrote", "on|off", "on");
    option("report", "file that takes a line of counts for each execution", "string", "");
    option(
        "engine",
        "func: without time; fast: closed forms; accurate: bursts, banks and rows of the memory "
        "too; exact: each cycle of the hardware; systemc, systemc_fast: fast and accurate as one "
        "simulation of SystemC, whose bursts carry the data; rtl: the hardware description, which "
        "Verilator builds when it is first asked for; rtl_lockstep: it stops where its cycles are "
        "not those of exact",
        kEngines, "func");
    option("data",
           "off: counts and time alone, by engine=fast unless it is accurate or exact; outputs are "
           "zero",
           "on|off", "on");
    option(
        "binary",
        "folder that takes each program as NAME.npubin, a network's second one as NAME.2.npubin, "
        "which `candela npu` and platforms read",
        "string", "");
    option("waves",
           "file that takes all signals of the hardware, with engine=rtl, as VCD; of a network's "
           "second program on: FILE.2, FILE.3, ...",
           "string", "");
    option("waves_from", "the first cycle of a program that waves have", "int", "0");
    option("waves_to", "the last cycle of a program that waves have; -1: its last", "int", "-1");
    option(
        "reuse",
        "on: programs that this process compiles stay in memory, for devices whose configuration "
        "differs in what only time reads",
        "on|off", "off");
    option("timeline",
           "file that takes a line for each instruction of each execution, with an engine that has "
           "time",
           "string", "");
  }

  cdl::Status open(uint32_t) override {
    npu::Result<npu::Configuration> configuration = npu::findConfiguration(options().get("npu"));
    if (!configuration)
      return cdl::error(CDL_INVALID_ARGUMENT,
                        "npu=" + options().get("npu") + ": " + configuration.message());
    configuration_ = *configuration;
    // What no hardware can be has no time: its banks would never limit anything.
    if (const npu::Outcome bad = npu::checkBuildable(configuration_))
      return cdl::error(CDL_INVALID_ARGUMENT, "npu=" + options().get("npu") + ": " + bad->message);
    const int64_t reserved = reservedBytes(configuration_);
    if (configuration_.scratchpadBytes() <= reserved + 64)
      return cdl::error(CDL_INVALID_ARGUMENT,
                        cdl::text("npu=", options().get("npu"), ": a scratchpad of ",
                                  configuration_.scratchpadBytes(), " bytes, of which ", reserved,
                                  " are the compiler's"));
    nameDevice("NPU " + configuration_.name);
    // Core sees one memory; what lies where, and whether it fits there, is the compiler's.
    const int64_t second = configuration_.hasSecond() ? configuration_[npu::key::kSecondBytes] : 0;
    capacity_ = {static_cast<uint64_t>(configuration_[npu::key::kDramBytes] + second),
                 static_cast<uint64_t>(configuration_.scratchpadBytes() - reserved)};
    space("dram", CDL_SPACE_HOST_MAPPED, capacity_[0], 64);
    space("scratchpad", CDL_SPACE_LOCAL, capacity_[1], 64);
    claimAll(capabilities(), static_cast<int64_t>(capacity_[1]), configuration_);
    engines(3); // computes, loads, stores
    declareTiling();
    run_.functional.checks = options().get("checks") == "on";
    reuses_ = options().get("reuse") == "on";
    for (const auto& [name, file] : {std::pair("report", &run_.report),
                                     {"timeline", &run_.timeline},
                                     {"binary", &run_.binary},
                                     {"waves", &run_.waves.file}}) {
      *file = options().get(name);
      // The host lets no path with a slash through from a bundle, whose maker must not choose what
      // is written.
      if (!file->empty() && file->find('/') == file->npos)
        return cdl::error(CDL_INVALID_ARGUMENT,
                          cdl::text(name, "=", *file, ": a path has a slash: ./", *file));
    }
    return readEngine();
  }

  cdl::Status compile(const cdl_image_t* image, const void* const* payloads,
                      std::unique_ptr<cdl::Executable>& executable) override {
    Compiled compiled;
    cdl::Status status = compileFor(image, payloads, compiled);
    return status.isOk() ? make(image, std::move(compiled), executable) : status;
  }

  cdl::Status load(const cdl_image_t* image, const void* blob, uint64_t size,
                   std::unique_ptr<cdl::Executable>& executable) override {
    Compiled compiled;
    cdl::Status status = loadCompiled(image, blob, size, madeBy(), configuration_, compiled);
    return status.isOk() ? make(image, std::move(compiled), executable) : status;
  }

  /// Of whole programs. Small ones are timed by bursts, large ones in closed form, which ranks
  /// plans alike (docs/adr/0050) in a tenth of the time.
  cdl::Status cost(const cdl_image_t* image, uint32_t instr, cdl_cost_t& cost) override {
    if (instr) return cdl::error(CDL_UNSUPPORTED, "instructions alone: whole programs are timed");
    Compiled compiled;
    if (cdl::Status status = compileFor(image, nullptr, compiled); !status.isOk())
      return cdl::error(CDL_UNSUPPORTED, status.text());
    npu::ScheduleOptions options;
    if (bytesWithoutTemporaries(image) > kTimedByBursts) options.fidelity = npu::Fidelity::kFast;
    const npu::Result<npu::TimeReport> time = npu::timeOf(configuration_, compiled.binary, options);
    if (!time) return cdl::error(CDL_UNSUPPORTED, time.message());
    cost.latency_cycles = static_cast<uint64_t>(time->cycles);
    cost.bytes[0] = time->dramBytes;
    for (size_t e = 1; e < time->engines.size(); ++e) {
      const auto engine = static_cast<npu::Engine>(e);
      size_t at = 0; // computes, loads, stores
      if (engine >= npu::Engine::kLoad0) at = 1;
      if (engine >= npu::Engine::kStore0) at = 2;
      cost.busy_cycles[at] =
          std::max(cost.busy_cycles[at], static_cast<uint64_t>(time->engines[e].busy));
    }
    return cdl::ok();
  }

  /// Spaces are as large as the device's memories.
  cdl::Status memoryCreate(uint64_t alignment, cdl::Memory& memory) override {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t capacity = capacity_[memory.space], taken = taken_[memory.space];
    if (memory.bytes > capacity - taken)
      return cdl::error(CDL_OUT_OF_MEMORY,
                        cdl::text(memory.bytes, " bytes, ", capacity - taken, " of the ", capacity,
                                  " of the memory are free"));
    cdl::Status status = ProgramBackend::memoryCreate(alignment, memory);
    if (status.isOk()) taken_[memory.space] += memory.bytes;
    return status;
  }
  void memoryDestroy(cdl::Memory& memory) override {
    std::lock_guard<std::mutex> lock(mutex_);
    taken_[memory.space] -= memory.bytes;
    ProgramBackend::memoryDestroy(memory);
  }

private:
  std::string madeBy() const { return name() + " " + version(); }

  cdl::Status compileFor(const cdl_image_t* image, const void* const* payloads,
                         Compiled& compiled) const {
    return reuses_ ? compileOnce(image, payloads, configuration_, compiled)
                   : compileFastest(image, payloads, configuration_, compiled);
  }

  cdl::Status make(const cdl_image_t* image, Compiled compiled,
                   std::unique_ptr<cdl::Executable>& executable) {
    RunOptions run = run_;
    run.number = ++programs_;
    if (!run.waves.file.empty() && run.number > 1)
      run.waves.file += "." + std::to_string(run.number);
    auto made = std::make_unique<NpuExecutable>(image, std::move(compiled), configuration_,
                                                std::move(run), madeBy());
    cdl::Status status = made->prepare();
    if (status.isOk()) executable = std::move(made);
    return status;
  }

  /// The options engine, data and timeline, and what they need of the configuration.
  cdl::Status readEngine() {
    const std::string engine = options().get("engine");
    run_.hasTime = engine != "func";
    run_.isSystemc = engine.starts_with("systemc");
    run_.isRtl = engine.starts_with("rtl");
    run_.isLockstep = engine == "rtl_lockstep";
    if (cdl::Status status = readWaves(); !status.isOk()) return status;
    run_.fidelity = engine.ends_with("fast") ? npu::Fidelity::kFast : npu::Fidelity::kAccurate;
    if (engine == "exact") run_.fidelity = npu::Fidelity::kExact;
    if (run_.isRtl || run_.fidelity == npu::Fidelity::kExact)
      if (const npu::Outcome bad =
              npu::needHardware(configuration_, "engine=func, fast and accurate are the model's"))
        return cdl::error(CDL_INVALID_ARGUMENT, cdl::text("engine=", engine, ": ", bad->message));
    if (run_.isSystemc)
      if (const npu::Outcome bad = npu::needOneCoreAndMemory(configuration_, "SystemC's NPU has"))
        return cdl::error(CDL_INVALID_ARGUMENT, cdl::text("engine=", engine, ": ", bad->message));
    run_.hasData = options().get("data") == "on";
    if (!run_.hasData && (run_.isSystemc || run_.isRtl))
      return cdl::error(CDL_INVALID_ARGUMENT,
                        "engine=" + engine +
                            ": it runs with data; data=off has fast, accurate and exact");
    if (!run_.hasData && !run_.hasTime) {
      run_.hasTime = true;
      run_.fidelity = npu::Fidelity::kFast;
    }
    if (!run_.hasTime && !run_.timeline.empty())
      return cdl::error(CDL_INVALID_ARGUMENT,
                        "timeline=" + run_.timeline +
                            ": engine=func has no time; fast, accurate and exact have");
    return cdl::ok();
  }

  /// The options waves, waves_from and waves_to.
  cdl::Status readWaves() {
    if (run_.waves.file.empty()) return cdl::ok();
    if (!run_.isRtl)
      return cdl::error(CDL_INVALID_ARGUMENT,
                        "waves=" + run_.waves.file + ": engine=rtl alone has signals");
    int64_t to = -1;
    for (const auto& [name, value] :
         {std::pair("waves_from", &run_.waves.from), {"waves_to", &to}}) {
      const std::string text = options().get(name);
      const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), *value);
      if (failure != std::errc() || stop != text.data() + text.size() || *value < -1)
        return cdl::error(CDL_INVALID_ARGUMENT, cdl::text(name, "=", text, ": a cycle, from 0 on"));
    }
    if (to >= 0) run_.waves.to = to;
    if (run_.waves.from < 0 || run_.waves.from > run_.waves.to)
      return cdl::error(CDL_INVALID_ARGUMENT,
                        cdl::text("waves_from=", run_.waves.from, ", waves_to=", to,
                                  ": the last cycle is not behind the first one"));
    return cdl::ok();
  }

  /// What core chooses tiles by: the array, the lanes, and what the memory brings in a cycle of the
  /// array at best.
  void declareTiling() {
    // "DDR4-2400": transfers per microsecond
    const std::string type = configuration_.valueText(npu::key::kDramType);
    const double megaTransfers = std::stod(type.substr(type.find('-') + 1));
    const double bytesPerSecond =
        megaTransfers * 1e6 * static_cast<double>(configuration_[npu::key::kDramWidthBits]) / 8;
    const double cyclesPerSecond = static_cast<double>(configuration_[npu::key::kClockMhz]) * 1e6;
    cdl_tiling_t costs{};
    costs.load_engine = 1;
    costs.store_engine = 2;
    costs.rows = static_cast<uint32_t>(configuration_.rows());
    costs.columns = static_cast<uint32_t>(configuration_.columns());
    costs.lanes = static_cast<uint32_t>(configuration_[npu::key::kVectorLanes]);
    const double bytesPerCycle =
        std::min(bytesPerSecond / cyclesPerSecond,
                 static_cast<double>(configuration_[npu::key::kDmaBeatBytes]));
    costs.bytes_per_kilocycle = static_cast<uint32_t>(1000 * bytesPerCycle);
    // What goes before the first byte and the first product, by the timing model.
    costs.copy_cycles = static_cast<uint32_t>(npu::transferOverhead(configuration_));
    costs.instr_cycles = static_cast<uint32_t>(npu::productOverhead(configuration_));
    tiling(costs);
  }

  npu::Configuration configuration_;
  RunOptions run_;
  bool reuses_ = false;
  std::atomic<int> programs_ = 0; ///< made so far, each with files of its own
  std::mutex mutex_;
  std::array<uint64_t, 2> capacity_{}, taken_{}; ///< bytes, by space
};

} // namespace

} // namespace npu_sim

using npu_sim::NpuSim;
CDL_BACKEND(NpuSim)
