#include "simulator/systemc/run.h"

#include <algorithm>

#include "simulator/error.h"

namespace candela::npu {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int64_t kAtOnce = 2048; ///< bytes of one access by debug transport, at most

} // namespace

Outcome Npu::Run::readProgram(uint64_t address, uint64_t words, std::vector<Word>& code) {
  if (words > static_cast<uint64_t>(npu_.configuration_[key::kDramBytes]) / sizeof(Word))
    return error("PROGRAM_WORDS: {}, the memory of '{}' has {} bytes", words,
                 npu_.configuration_.name, npu_.configuration_[key::kDramBytes]);
  code.resize(words);
  const auto bytes = std::as_writable_bytes(std::span(code));
  for (uint64_t at = 0; at < bytes.size(); at += kPage) {
    const uint64_t count = std::min<uint64_t>(kPage, bytes.size() - at);
    if (!debug(false, address + at, bytes.data() + at, count))
      return error("PROGRAM: the platform has no {} bytes at {:#x}", count, address + at);
  }
  return {};
}

/// What the registers name.
Outcome Npu::Run::load() {
  const Registers& r = npu_.written_;
  const Result<std::vector<Registers::Window>> windows = r.regions();
  if (!windows) return error("{}", windows.message());
  binary_.configurationName = npu_.configuration_.name;
  binary_.configurationHash = npu_.configuration_.hash();
  binary_.symbols = std::exchange(npu_.symbols_, {});
  const std::vector<std::string> names = std::exchange(npu_.regionNames_, {});
  options_.placement.emplace();
  for (const Registers::Window& window : *windows) {
    Region region = window.region;
    if (binary_.regions.size() < names.size()) region.name = names[binary_.regions.size()];
    binary_.regions.push_back(std::move(region));
    options_.placement->bases.push_back(window.base);
  }
  options_.placement->program = r.pair(registerOffset("PROGRAM_LO"), registerOffset("PROGRAM_HI"));
  if (Outcome bad = readProgram(options_.placement->program, r[registerOffset("PROGRAM_WORDS")],
                                binary_.code))
    return bad;
  FunctionalOptions functional = npu_.options_.functional;
  if (functional.onRetire)
    functional.onRetire = [this](const RetireRecord& record) { records_.add(record); };
  std::unique_ptr<SteppedDevice> device =
      makeSteppedDevice(npu_.configuration_, std::move(functional));
  if (Outcome bad = device->load(binary_)) return bad;
  for (uint32_t i = 0; i < binary_.regions.size(); ++i) {
    regions_.emplace_back(binary_.regions[i].bytes);
    map_.add(options_.placement->bases[i], regions_[i]);
    if (Outcome bad = device->bind(i, regions_[i])) return bad;
  }
  const bool isCounting = r[registerOffset("PMU_CONTROL")] & 1;
  if (Outcome bad = device->begin(isCounting)) return bad;
  device_ = std::move(device);
  options_.fidelity = npu_.options_.fidelity;
  options_.isCounting = isCounting;
  options_.memory = this;
  options_.follower = this;
  options_.onRetire = [this](const InstructionTime& time) {
    if (device_->report().fault) return; // what faulted has not ended
    if (npu_.options_.functional.onRetire) npu_.options_.functional.onRetire(records_.take(time));
    if (npu_.options_.onTime) npu_.options_.onTime(time);
  };
  schedule_.emplace(npu_.configuration_, binary_, options_);
  return {};
}

Result<RunReport> Npu::Run::run() {
  payload_.set_extension(extension_ = new AccessExtension);
  clock_.beginAt(sc_core::sc_time_stamp());
  if (Outcome bad = load()) return *bad;
  int engine = schedule_->next(), last = 0;
  for (; engine >= 0 && !busFault_ && !device_->report().fault; engine = schedule_->next()) {
    const sc_core::sc_time at = clock_.timeOf(schedule_->eventOf(engine));
    if (at > sc_core::sc_time_stamp()) sc_core::wait(at - sc_core::sc_time_stamp(), npu_.control_);
    if (npu_.stops_) return RunReport{};
    if (at > sc_core::sc_time_stamp()) continue; // somebody wrote CONTROL to no effect
    schedule_->step(last = engine);
  }
  Result<TimeReport> time = error("it was stopped");
  if (!busFault_ && !device_->report().fault) {
    time = schedule_->finish();
    if (!time) explain(last);
  }
  RunReport report = device_->report();
  if (!report.fault) report.fault = busFault_;
  end_ = clock_.cycleOf(sc_core::sc_time_stamp());
  if (report.fault) return report;
  if (!time) return error("{}", time.message());
  if (options_.fidelity == Fidelity::kAccurate) {
    time->dramBursts = bursts_;
    time->dramBytes = bytes_;
  }
  const sc_core::sc_time end = clock_.timeOf(time->cycles);
  while (end > sc_core::sc_time_stamp() && !npu_.stops_)
    sc_core::wait(end - sc_core::sc_time_stamp(), npu_.control_);
  end_ = time->cycles;
  addTime(report, *time);
  return report;
}

/// Why a schedule has no end: the functional model comes to the same, and says it with names.
void Npu::Run::explain(int last) {
  if (schedule_->hasFailed() && last)
    device_->advance(last);
  else
    device_->word();
}

Npu::Run::Counts Npu::Run::counters() const {
  if (!device_) return {};
  Counts counts{device_->report().counters, device_->report().snapshots};
  const int64_t now = end_ ? *end_ : clock_.cycleOf(sc_core::sc_time_stamp());
  counts.counters[static_cast<size_t>(Counter::kCycles)] = schedule_->counted(now);
  for (size_t slot = 0; slot < counts.snapshots.size(); ++slot)
    counts.snapshots[slot][static_cast<size_t>(Counter::kCycles)] = schedule_->snapshotCycles(slot);
  return counts;
}

// ---- The platform's memory

void Npu::Run::refused(std::string_view what, bool isWrite, uint64_t address, uint64_t bytes) {
  if (busFault_) return;
  const int requester = extension_->requester;
  const uint32_t instruction =
      requester ? instructions_[static_cast<size_t>(requester)]
                : static_cast<uint32_t>((address - options_.placement->program) / sizeof(Word));
  busFault_ =
      Fault{FaultKind::kBus, instruction,
            fmt::format("instruction {}: {}the platform answered {} to a {} of {} bytes at {:#x}",
                        instruction, binary_.origin(instruction), what, isWrite ? "write" : "read",
                        bytes, address)};
}

bool Npu::Run::transport(bool isWrite, uint64_t address, std::byte* data, uint64_t bytes,
                         int requester, sc_core::sc_time& delay) {
  if (data)
    payload_.set_command(isWrite ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  else
    payload_.set_command(tlm::TLM_IGNORE_COMMAND);
  payload_.set_address(address);
  payload_.set_data_ptr(reinterpret_cast<unsigned char*>(data));
  payload_.set_data_length(static_cast<unsigned>(bytes));
  payload_.set_streaming_width(static_cast<unsigned>(bytes));
  payload_.set_byte_enable_ptr(nullptr);
  payload_.set_dmi_allowed(false);
  payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  extension_->requester = requester;
  extension_->isDrain = !data;
  npu_.memory->b_transport(payload_, delay);
  return payload_.is_response_ok();
}

bool Npu::Run::debug(bool isWrite, uint64_t address, std::byte* data, uint64_t bytes) {
  payload_.set_command(isWrite ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  payload_.set_address(address);
  payload_.set_data_ptr(reinterpret_cast<unsigned char*>(data));
  payload_.set_data_length(static_cast<unsigned>(bytes));
  return npu_.memory->transport_dbg(payload_) == bytes;
}

int64_t Npu::Run::access(int64_t cycle, uint64_t address, int64_t bytes, bool isWrite,
                         int requester) {
  if (busFault_) return cycle;
  const auto count = static_cast<uint64_t>(bytes);
  std::byte* data = map_.find(address, count);
  if (requester == 0) { // the words are known already
    fetched_.resize(count);
    data = fetched_.data();
  }
  const sc_core::sc_time now = sc_core::sc_time_stamp(), at = clock_.timeOf(cycle);
  sc_core::sc_time delay = at > now ? at - now : sc_core::SC_ZERO_TIME;
  ++bursts_;
  bytes_ += count;
  if (!transport(isWrite, address, data, count, requester, delay))
    refused(payload_.get_response_string(), isWrite, address, count);
  return clock_.cycleOf(sc_core::sc_time_stamp() + delay);
}

int64_t Npu::Run::drain(int64_t cycle) {
  const sc_core::sc_time now = sc_core::sc_time_stamp(), at = clock_.timeOf(cycle);
  sc_core::sc_time delay = at > now ? at - now : sc_core::SC_ZERO_TIME;
  transport(true, 0, nullptr, 0, 0, delay); // a target that knows no drain has nothing to add
  return std::max(cycle, clock_.cycleOf(sc_core::sc_time_stamp() + delay));
}

/// All bytes of a transfer, where its time is a closed form.
void Npu::Run::moveAtOnce(const Operation& operation) {
  if (operation.insn.op == Op::kNop) return;
  Result<Movement> movement =
      Movement::of(npu_.configuration_, operation, binary_, options_.placement->bases);
  if (!movement || !movement->isDram()) return; // the schedule says what is wrong
  while (!movement->isDone()) {
    const Movement::Burst burst = movement->next(kAtOnce);
    const auto bytes = static_cast<uint64_t>(burst.bytes);
    extension_->requester = operation.insn.engine;
    if (!debug(movement->isStore(), burst.address, map_.find(burst.address, bytes), bytes))
      return refused("nothing", movement->isStore(), burst.address, bytes);
  }
}

// ---- In the order of time

void Npu::Run::word() { device_->word(); }

/// What a store writes is there before its first burst: what it reads was ordered before it.
void Npu::Run::begin(int engine, uint32_t instruction, const Operation& operation) {
  instructions_[static_cast<size_t>(engine)] = instruction;
  npu_.running_[static_cast<size_t>(engine)] = static_cast<int32_t>(instruction);
  if (isStore(engine) && device_->advance(engine) && options_.fidelity == Fidelity::kFast)
    moveAtOnce(operation);
}

void Npu::Run::end(int engine, uint32_t, const Operation& operation) {
  npu_.running_[static_cast<size_t>(engine)] = -1;
  if (isLoad(engine) && options_.fidelity == Fidelity::kFast) moveAtOnce(operation);
  if (!isStore(engine)) device_->advance(engine);
}

} // namespace candela::npu
