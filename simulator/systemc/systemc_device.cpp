#include <mutex>

#include "simulator/error.h"
#include "simulator/func/bound_device.h"
#include "simulator/systemc/npu.h"
#include "simulator/timing/schedule.h"

namespace candela::npu {
namespace {

/// The NPU, its memory and a driver. SystemC elaborates once in a process, so there is one, and
/// each run configures it.
class Platform : public sc_core::sc_module {
public:
  Platform(sc_core::sc_module_name name, const Configuration& configuration)
      : sc_module(name), npu_("npu", configuration), memory_("memory", configuration),
        driver_("driver") {
    npu_.memory.bind(memory_.socket);
    driver_.bind(npu_.registers);
    npu_.done(done_);
  }

  Result<RunReport> run(const Configuration& configuration, const TimedOptions& options,
                        const Binary& binary, std::span<const std::span<std::byte>> regions) {
    npu_.reset(configuration, options);
    memory_.reset(configuration);
    const Placement placement = placementOf(binary);
    for (size_t i = 0; i < regions.size(); ++i) memory_.add(placement.bases[i], regions[i]);
    program_.assign(binary.code.begin(), binary.code.end());
    program_.resize((placement.end - placement.program) / sizeof(Word));
    memory_.add(placement.program, std::as_writable_bytes(std::span(program_)));
    for (const auto& [offset, value] : registersOf(binary, placement)) write(offset, value);
    npu_.setNames(binary);
    write(registerOffset("CONTROL"), kStart);
    sc_core::sc_start(); // until nothing is left to do
    Result<RunReport> report = npu_.report();
    if (report && report->time && options.fidelity == Fidelity::kAccurate)
      addMemory(*report->time, memory_.dram());
    npu_.reset(configuration, {}); // the caller's memory is not touched after this
    memory_.reset(configuration);
    return report;
  }

private:
  void write(uint32_t offset, uint32_t value) {
    tlm::tlm_generic_payload payload;
    sc_core::sc_time delay;
    payload.set_command(tlm::TLM_WRITE_COMMAND);
    payload.set_address(offset);
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&value));
    payload.set_data_length(sizeof value);
    payload.set_streaming_width(sizeof value);
    driver_->b_transport(payload, delay);
  }

  Npu npu_;
  DramMemory memory_;
  tlm_utils::simple_initiator_socket<Platform> driver_;
  sc_core::sc_signal<bool> done_;
  std::vector<Word> program_;
};

class SystemcDevice : public BoundDevice {
public:
  SystemcDevice(const Configuration& configuration, TimedOptions options)
      : BoundDevice(configuration), options_(std::move(options)) {}

  Result<RunReport> run() override {
    if (Outcome bad = checkBound()) return *bad;
    if (Outcome bad = needOneCoreAndMemory(configuration(), "engine systemc has")) return *bad;
    static std::mutex mutex; // the kernel is one of the process
    std::lock_guard<std::mutex> lock(mutex);
    try {
      // the kernel never lets go of modules
      static Platform& platform = *new Platform("candela", configuration());
      return platform.run(configuration(), options_, program(), regions());
    } catch (const std::exception& thrown) { // an sc_report is one
      return error("SystemC: {}", thrown.what());
    }
  }

private:
  TimedOptions options_;
};

} // namespace

std::unique_ptr<Device> makeSystemcDevice(Configuration configuration, TimedOptions options) {
  return std::make_unique<SystemcDevice>(std::move(configuration), std::move(options));
}

} // namespace candela::npu
