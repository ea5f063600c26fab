#include <algorithm>

#include "simulator/error.h"
#include "simulator/func/machine.h"
#include "simulator/func/stepped_device.h"

namespace candela::npu {
namespace {

class FunctionalDevice : public SteppedDevice {
public:
  FunctionalDevice(Configuration configuration, FunctionalOptions options, bool isStepped)
      : configuration_(std::move(configuration)), options_(std::move(options)),
        memory_(configuration_, options_.checks), isStepped_(isStepped) {}

  const Configuration& configuration() const override { return configuration_; }
  const Binary& program() const override { return binary_; }

  Outcome load(Binary binary) override {
    isLoaded_ = false;
    if (binary.configurationHash != configuration_.hash())
      return error("made for configuration '{}' {:016x}, this is '{}' {:016x}",
                   binary.configurationName, binary.configurationHash, configuration_.name,
                   configuration_.hash());
    if (binary.regions.size() > kMaxRegions)
      return error("{} regions, there may be {}", binary.regions.size(), kMaxRegions);
    uint64_t bytes = 0, second = 0;
    for (const Region& region : binary.regions)
      (memoryOf(configuration_, region.kind) == MemoryId::kSecond ? second : bytes) += region.bytes;
    if (second > static_cast<uint64_t>(configuration_[key::kSecondBytes]))
      return error("the regions have {} bytes in second, which has {} of '{}'", second,
                   configuration_[key::kSecondBytes], configuration_.name);
    if (bytes > static_cast<uint64_t>(configuration_[key::kDramBytes]))
      return error("the regions have {} bytes, the memory of '{}' {}", bytes, configuration_.name,
                   configuration_[key::kDramBytes]);
    std::vector<Insn> code;
    code.reserve(binary.code.size());
    for (uint32_t i = 0; i < binary.code.size(); ++i) {
      Result<Insn> insn = decode(binary.code[i]);
      if (!insn) return error("instruction {}: {}{}", i, binary.origin(i), insn.message());
      if (Outcome bad = check(*insn))
        return error("instruction {}: {}{}", i, binary.origin(i), bad->message);
      code.push_back(*insn);
    }
    binary_ = std::move(binary);
    code_ = std::move(code);
    memory_.setRegions(binary_.regions);
    for (uint32_t i = 0; i < binary_.regions.size(); ++i)
      if (binary_.regions[i].kind == RegionClass::kConstants &&
          !(isStepped_ && binary_.constants.empty())) {
        if (binary_.constants.size() < binary_.regions[i].bytes)
          return error("region '{}': {} bytes, the constants have {}", binary_.regions[i].name,
                       binary_.regions[i].bytes, binary_.constants.size());
        memory_.bind(i, binary_.constants);
      }
    isLoaded_ = true;
    return {};
  }

  Outcome bind(uint32_t region, std::span<std::byte> memory) override {
    if (!isLoaded_) return error("no program is loaded");
    if (region >= binary_.regions.size())
      return error("region {}: the program has {}", region, binary_.regions.size());
    const Region& record = binary_.regions[region];
    if (record.kind == RegionClass::kConstants && !(isStepped_ && binary_.constants.empty()))
      return error("region '{}': its contents are the binary's", record.name);
    if (memory.size() < record.bytes)
      return error("region '{}': {} bytes are bound, it has {}", record.name, memory.size(),
                   record.bytes);
    memory_.bind(region, memory);
    return {};
  }

  Result<RunReport> run() override {
    if (Outcome bad = begin(true)) return *bad;
    RunReport report = machine_->run();
    machine_.reset(); // what it remembers of accesses is large
    return report;
  }

  Outcome begin(bool isCounting) override {
    if (!isLoaded_) return error("no program is loaded");
    for (uint32_t i = 0; i < binary_.regions.size(); ++i)
      if (!memory_.isBound(i)) return error("region '{}' is not bound", binary_.regions[i].name);
    memory_.reset();
    machine_.emplace(configuration_, options_, binary_, code_, memory_, isCounting);
    return {};
  }
  bool word() override { return machine_->word(); }
  bool advance(int engine) override { return machine_->advance(engine); }
  const RunReport& report() const override { return machine_->report(); }
  uint32_t semaphore(int index) const override { return machine_->semaphore(index); }

private:
  /// What one instruction alone shows to be wrong on this configuration.
  Outcome check(const Insn& insn) const {
    const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
    if (!(configuration_.engines() >> insn.engine & 1))
      return error("{}: '{}' has no engine {}", info.name, configuration_.name,
                   engineName(insn.engine));
    if ((insn.op == Op::kMovi || insn.op == Op::kAddi) && insn.values[field::movi::kX] == 0)
      return error("{}: x0 is always 0", info.name);
    if (insn.op == Op::kConfig) {
      const auto offset = static_cast<uint32_t>(insn.values[field::config::kOffset]);
      const bool known =
          std::any_of(std::begin(kRegisters), std::end(kRegisters), [&](const RegisterInfo& r) {
            return r.isProgram && offset >= r.offset && offset < r.offset + 4 * r.count &&
                   offset % 4 == 0;
          });
      if (!known) return error("config: {:#x} is no register that programs may write", offset);
    }
    return {};
  }

  Configuration configuration_;
  FunctionalOptions options_;
  Memory memory_;
  Binary binary_;
  std::vector<Insn> code_;
  std::optional<Machine> machine_; ///< of the run
  bool isLoaded_ = false, isStepped_;
};

} // namespace

std::string_view faultName(FaultKind kind) { return kFaultNames[static_cast<int>(kind)]; }

std::unique_ptr<Device> makeFunctionalDevice(Configuration configuration,
                                             FunctionalOptions options) {
  return std::make_unique<FunctionalDevice>(std::move(configuration), std::move(options), false);
}
std::unique_ptr<SteppedDevice> makeSteppedDevice(Configuration configuration,
                                                 FunctionalOptions options) {
  return std::make_unique<FunctionalDevice>(std::move(configuration), std::move(options), true);
}

} // namespace candela::npu
