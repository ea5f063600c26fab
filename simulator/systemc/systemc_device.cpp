#include <mutex>

#include "simulator/systemc/npu.h"

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

class SystemcDevice : public Device {
public:
  SystemcDevice(Configuration configuration, TimedOptions options)
      : options_(std::move(options)), configuration_(std::move(configuration)),
        loader_(makeFunctionalDevice(configuration_)) {}

  const Configuration& configuration() const override { return configuration_; }
  const Binary& program() const override { return loader_->program(); }

  Outcome load(Binary binary) override {
    regions_.clear();
    if (Outcome bad = loader_->load(std::move(binary))) return bad;
    constants_ = program().constants;
    regions_.resize(program().regions.size());
    for (size_t i = 0; i < regions_.size(); ++i)
      if (const Region& region = program().regions[i]; region.kind == RegionClass::kConstants)
        regions_[i] = std::span(constants_).first(region.bytes);
    return {};
  }

  Outcome bind(uint32_t region, std::span<std::byte> memory) override {
    if (Outcome bad = loader_->bind(region, memory)) return bad;
    regions_[region] = memory.first(program().regions[region].bytes);
    return {};
  }

  Result<RunReport> run() override {
    if (program().code.empty()) return error("no program is loaded");
    for (size_t i = 0; i < regions_.size(); ++i)
      if (!regions_[i].data() && program().regions[i].bytes)
        return error("region '{}' is not bound", program().regions[i].name);
    static std::mutex mutex; // the kernel is one of the process
    std::lock_guard<std::mutex> lock(mutex);
    try {
      // the kernel never lets go of modules
      static Platform& platform = *new Platform("candela", configuration_);
      return platform.run(configuration_, options_, program(), regions_);
    } catch (const std::exception& thrown) { // an sc_report is one
      return error("SystemC: {}", thrown.what());
    }
  }

private:
  TimedOptions options_;
  Configuration configuration_;
  std::unique_ptr<Device> loader_;
  std::vector<std::byte> constants_;
  std::vector<std::span<std::byte>> regions_;
};

} // namespace

std::unique_ptr<Device> makeSystemcDevice(Configuration configuration, TimedOptions options) {
  return std::make_unique<SystemcDevice>(std::move(configuration), std::move(options));
}

} // namespace candela::npu
