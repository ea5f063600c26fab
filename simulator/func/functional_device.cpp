#include <algorithm>

#include "simulator/error.h"
#include "simulator/func/machine.h"
#include "simulator/func/stepped_device.h"

namespace candela::npu {
namespace {

/// What one instruction alone shows to be wrong on this configuration.
Outcome check(const Insn& insn, const Configuration& configuration) {
  const OpInfo& info = *opInfo(static_cast<uint64_t>(insn.op));
  if (!(configuration.engines() >> insn.engine & 1))
    return error("{}: '{}' has no engine {}", info.name, configuration.name,
                 engineName(insn.engine));
  if (Outcome bad = checkCores(insn, configuration)) return bad;
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

/// The instructions of a program that the configuration takes.
Result<std::vector<Insn>> decodeFor(const Configuration& configuration, const Binary& binary) {
  if (binary.configurationHash != configuration.hash())
    return error("made for configuration '{}' {:016x}, this is '{}' {:016x}",
                 binary.configurationName, binary.configurationHash, configuration.name,
                 configuration.hash());
  if (Outcome bad = checkCores(binary, configuration)) return *bad;
  if (binary.regions.size() > kMaxRegions)
    return error("{} regions, there may be {}", binary.regions.size(), kMaxRegions);
  uint64_t bytes = 0;
  uint64_t second = 0;
  for (const Region& region : binary.regions)
    (memoryOf(configuration, region.kind) == MemoryId::kSecond ? second : bytes) += region.bytes;
  if (second > static_cast<uint64_t>(configuration[key::kSecondBytes]))
    return error("the regions have {} bytes in second, which has {} of '{}'", second,
                 configuration[key::kSecondBytes], configuration.name);
  if (bytes > static_cast<uint64_t>(configuration[key::kDramBytes]))
    return error("the regions have {} bytes, the memory of '{}' {}", bytes, configuration.name,
                 configuration[key::kDramBytes]);
  std::vector<Insn> code;
  code.reserve(binary.code.size());
  for (uint32_t i = 0; i < binary.code.size(); ++i) {
    Result<Insn> insn = decode(binary.code[i]);
    if (!insn) return error("instruction {}: {}{}", i, binary.origin(i), insn.message());
    if (Outcome bad = check(*insn, configuration))
      return error("instruction {}: {}{}", i, binary.origin(i), bad->message);
    code.push_back(*insn);
  }
  return code;
}

/// What lacks of the constants that the program has a region for.
Outcome checkConstants(const Binary& binary) {
  for (const Region& region : binary.regions)
    if (region.kind == RegionClass::kConstants && binary.constants.size() < region.bytes)
      return error("region '{}': {} bytes, the constants have {}", region.name, region.bytes,
                   binary.constants.size());
  return {};
}

class FunctionalDevice : public SteppedDevice {
public:
  FunctionalDevice(Configuration configuration, FunctionalOptions options, bool isStepped)
      : configuration_(std::move(configuration)), options_(std::move(options)),
        isStepped_(isStepped) {
    for (size_t core = 0; core < configuration_.cores(); ++core)
      memories_.push_back(std::make_unique<Memory>(configuration_, options_.checks, core, dram_));
  }

  const Configuration& configuration() const override { return configuration_; }
  const Binary& program() const override { return binary_; }

  Outcome load(Binary binary) override {
    isLoaded_ = false;
    if (isStepped_ && configuration_.cores() > 1)
      return error("'{}' has {} cores (cores.count), here is one", configuration_.name,
                   configuration_.cores());
    Result<std::vector<Insn>> code = decodeFor(configuration_, binary);
    if (!code) return Error{code.message()};
    const bool bindsConstants = !(isStepped_ && binary.constants.empty());
    if (bindsConstants)
      if (Outcome bad = checkConstants(binary)) return bad;
    binary_ = std::move(binary);
    code_ = std::move(*code);
    dram_.regions = binary_.regions;
    dram_.bound = {};
    for (uint32_t i = 0; i < binary_.regions.size(); ++i)
      if (bindsConstants && binary_.regions[i].kind == RegionClass::kConstants)
        dram_.bound[i] = std::span(binary_.constants).first(binary_.regions[i].bytes);
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
    dram_.bound[region] = memory.first(record.bytes);
    return {};
  }

  Result<RunReport> run() override {
    if (Outcome bad = begin(true)) return *bad;
    bool moved = true;
    while (moved && !fault()) {
      moved = false;
      for (const auto& machine : machines_) moved |= machine->goOn();
    }
    const auto stuck =
        std::ranges::find_if(machines_, [](const auto& each) { return !each->hasHalted(); });
    if (!fault() && stuck != machines_.end()) (*stuck)->stopStuck(standing());
    RunReport report = gathered();
    machines_.clear(); // what they remember of accesses is large
    shared_.reset();
    return report;
  }

  Outcome begin(bool isCounting) override {
    if (!isLoaded_) return error("no program is loaded");
    for (uint32_t i = 0; i < binary_.regions.size(); ++i)
      if (!dram_.bound[i]) return error("region '{}' is not bound", binary_.regions[i].name);
    if (options_.checks) dram_.reset(configuration_);
    machines_.clear();
    shared_.emplace(configuration_, options_);
    for (size_t core = 0; core < binary_.coreCount(); ++core) {
      memories_[core]->reset();
      machines_.push_back(std::make_unique<Machine>(configuration_, options_, binary_, code_, core,
                                                    *memories_[core], *shared_, isCounting));
    }
    return {};
  }
  bool word() override { return machines_[0]->word(); }
  bool advance(int engine) override { return machines_[0]->advance(engine); }
  const RunReport& report() const override { return machines_[0]->report(); }
  uint32_t semaphore(int index) const override { return machines_[0]->semaphore(index); }

private:
  bool fault() const {
    return std::ranges::any_of(machines_,
                               [](const auto& m) { return m->report().fault.has_value(); });
  }
  /// What all engines of all cores stand at.
  std::string standing() const {
    if (machines_.size() == 1) return machines_[0]->standing();
    std::string text;
    for (size_t core = 0; core < machines_.size(); ++core)
      text += fmt::format("{}core {}: {}", core ? "; " : "", core, machines_[core]->standing());
    return text;
  }
  /// Of all cores: counters are sums, snapshots are those of core 0.
  RunReport gathered() const {
    RunReport all = machines_[0]->report();
    for (size_t core = 1; core < machines_.size(); ++core) {
      const RunReport& other = machines_[core]->report();
      for (size_t i = 0; i < all.counters.size(); ++i) all.counters[i] += other.counters[i];
      if (!all.fault) all.fault = other.fault;
    }
    return all;
  }

  Configuration configuration_;
  FunctionalOptions options_;
  DramRegions dram_;
  std::vector<std::unique_ptr<Memory>> memories_; ///< by core
  Binary binary_;
  std::vector<Insn> code_;
  std::optional<SharedRun> shared_;                ///< of the run
  std::vector<std::unique_ptr<Machine>> machines_; ///< of the run, by core
  bool isLoaded_ = false, isStepped_;
};

} // namespace

std::string_view faultName(FaultKind kind) { return kFaultNames[static_cast<int>(kind)]; }

Outcome checkProgram(const Configuration& configuration, const Binary& binary) {
  const Result<std::vector<Insn>> code = decodeFor(configuration, binary);
  return code ? checkConstants(binary) : Error{code.message()};
}

std::unique_ptr<Device> makeFunctionalDevice(Configuration configuration,
                                             FunctionalOptions options) {
  return std::make_unique<FunctionalDevice>(std::move(configuration), std::move(options), false);
}
std::unique_ptr<SteppedDevice> makeSteppedDevice(Configuration configuration,
                                                 FunctionalOptions options) {
  return std::make_unique<FunctionalDevice>(std::move(configuration), std::move(options), true);
}

} // namespace candela::npu
