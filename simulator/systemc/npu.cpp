#include "simulator/systemc/npu.h"

#include "simulator/error.h"
#include "simulator/systemc/run.h"

namespace candela::npu {
namespace {

/// Half of a counter of 64 bits.
uint32_t half(uint64_t value, uint32_t offset) {
  return static_cast<uint32_t>(offset & 4 ? value >> 32 : value);
}

/// False, and reported: the module follows no schedule of that fidelity.
bool hasFidelity(const TimedOptions& options, const char* module) {
  if (options.fidelity != Fidelity::kExact) return true;
  SC_REPORT_ERROR(module, "the fidelity is exact; the module of SystemC has fast and accurate");
  return false;
}

} // namespace

Npu::Npu(sc_core::sc_module_name name, Configuration configuration, TimedOptions options)
    : sc_module(name), registers("registers"), memory("memory"), done("done"),
      configuration_(std::move(configuration)), options_(std::move(options)) {
  if (sc_core::sc_get_time_resolution() != sc_core::sc_time(1, sc_core::SC_PS))
    SC_REPORT_ERROR("candela::npu::Npu", "the time resolution must be 1 ps");
  if (!hasFidelity(options_, this->name())) options_.fidelity = Fidelity::kAccurate;
  registers.register_b_transport(this, &Npu::accessRegisters);
  registers.register_transport_dbg(this, &Npu::debugRegisters);
  running_.fill(-1);
  SC_HAS_PROCESS(Npu);
  SC_THREAD(main);
  set_stack_size(1 << 20);
}

Npu::~Npu() = default;

void Npu::reset(Configuration configuration, TimedOptions options) {
  if (isRunning_)
    return SC_REPORT_ERROR(name(), "a reset from outside while a program runs; CONTROL has one");
  if (!hasFidelity(options, name())) return;
  configuration_ = std::move(configuration);
  options_ = std::move(options);
  run_.reset();
  report_ = RunReport{};
  written_ = {};
  status_ = faultPc_ = faultCode_ = 0;
  control_.notify(sc_core::SC_ZERO_TIME); // `done` falls
}

void Npu::setNames(const Binary& program) {
  symbols_ = program.symbols;
  regionNames_.clear();
  for (const Region& region : program.regions) regionNames_.push_back(region.name);
}

void Npu::main() {
  for (;;) {
    while (!(status_ & kRunning)) {
      done.write(status_ != 0);
      wait(control_);
    }
    done.write(false);
    wait(sc_core::SC_ZERO_TIME); // who waits for an edge sees one, however short the run
    if (!(status_ & kRunning)) continue;
    stops_ = false;
    run_ = std::make_unique<Run>(*this);
    isRunning_ = true;
    try {
      report_ = run_->run();
    } catch (const sc_core::sc_unwind_exception&) {
      throw; // the kernel's own
    } catch (const sc_core::sc_report&) {
      throw; // the platform's
    } catch (const std::exception& thrown) {
      report_ = error("{}", thrown.what());
    }
    isRunning_ = false;
    running_.fill(-1);
    if (stops_) {
      run_.reset();
      continue;
    }
    if (report_ && !report_->fault) {
      status_ = kHalted;
      continue;
    }
    status_ = kFaulted;
    faultPc_ = report_ ? report_->fault->instruction : 0;
    faultCode_ =
        1 + static_cast<uint32_t>(report_ ? report_->fault->kind : FaultKind::kInstruction);
  }
}

/// `delay`: how far the initiator's time is ahead.
void Npu::control(uint32_t value, const sc_core::sc_time& delay) {
  if (value & kReset) {
    stops_ = true;
    status_ = faultPc_ = faultCode_ = 0;
    written_ = {};
    if (!isRunning_) run_.reset();
  } else if ((value & kStart) && !(status_ & kRunning)) {
    status_ = kRunning;
    faultPc_ = faultCode_ = 0;
  }
  control_.notify(delay);
}

uint32_t Npu::readRegister(uint32_t offset) const {
  constexpr uint32_t kSlot = 8 * kCounterSlots;
  if (offset >= kPmuOffset) {
    const auto [counters, snapshots] = run_ ? run_->counters() : Run::Counts{};
    const bool isSnapshot = offset >= kSnapshotOffset;
    const uint32_t at = offset - (isSnapshot ? kSnapshotOffset : kPmuOffset);
    if (isSnapshot) return half(snapshots[at / kSlot][at % kSlot / 8], offset);
    return at < kSlot ? half(counters[at / 8], offset) : 0;
  }
  switch (offset) {
  case registerOffset("ID"): return kDeviceId;
  case registerOffset("SPEC_HASH_LO"): return half(kSpecHash, 0);
  case registerOffset("SPEC_HASH_HI"): return half(kSpecHash, 4);
  case registerOffset("CONFIG_HASH_LO"): return half(configuration_.hash(), 0);
  case registerOffset("CONFIG_HASH_HI"): return half(configuration_.hash(), 4);
  case registerOffset("CONTROL"): return 0;
  case registerOffset("STATUS"): return status_;
  case registerOffset("FAULT_PC"): return faultPc_;
  case registerOffset("FAULT_CODE"): return faultCode_;
  default: break;
  }
  constexpr uint32_t kSemaphore = registerOffset("SEMAPHORE");
  if (offset >= kSemaphore && offset < kSemaphore + 4 * kSemaphores)
    return run_ ? run_->semaphore(static_cast<int>(offset - kSemaphore) / 4) : 0;
  return written_[offset];
}

/// Whole registers of 32 bits, one after the other. False: not so.
bool Npu::transferRegisters(tlm::tlm_generic_payload& payload, const sc_core::sc_time& delay) {
  const uint64_t address = payload.get_address();
  const unsigned bytes = payload.get_data_length();
  constexpr uint64_t kEnd = kSnapshotOffset + kSnapshotSlots * 8 * kCounterSlots;
  if (address % 4 || bytes % 4 || bytes == 0 || address >= kEnd || bytes > kEnd - address)
    return false;
  if (payload.get_byte_enable_ptr() || payload.get_streaming_width() < bytes) return false;
  if (!payload.is_read() && !payload.is_write()) return false;
  for (unsigned i = 0; i < bytes; i += 4) {
    const auto offset = static_cast<uint32_t>(address) + i;
    uint32_t value = 0;
    if (payload.is_read()) {
      value = readRegister(offset);
      std::memcpy(payload.get_data_ptr() + i, &value, sizeof value);
      continue;
    }
    std::memcpy(&value, payload.get_data_ptr() + i, sizeof value);
    if (!written_.write(offset, value)) return false;
    if (offset == registerOffset("CONTROL")) control(value, delay);
  }
  return true;
}

void Npu::accessRegisters(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const bool isDone = transferRegisters(payload, delay);
  payload.set_response_status(isDone ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

unsigned Npu::debugRegisters(tlm::tlm_generic_payload& payload) {
  return payload.is_read() && transferRegisters(payload, sc_core::SC_ZERO_TIME)
             ? payload.get_data_length()
             : 0;
}

void Npu::trace(sc_core::sc_trace_file* file) const {
  for (int engine = 1; engine < kEngineCount; ++engine)
    if (configuration_.engines() >> engine & 1)
      sc_core::sc_trace(file, running_[static_cast<size_t>(engine)],
                        std::string(name()) + "." + std::string(engineName(engine)));
}

} // namespace candela::npu
