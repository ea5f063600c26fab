#include "platform.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

namespace platform {

using namespace candela::npu;

// ---- Bus

Bus::Bus(sc_core::sc_module_name name)
    : sc_module(name), masters("masters"), registers("registers"), memory("memory") {
  masters.register_b_transport(this, &Bus::transport);
  masters.register_transport_dbg(this, &Bus::debug);
}

Bus::Slave Bus::slaveAt(uint64_t address) {
  if (address >= kMemory) return Slave::kMemory;
  return address >= kRegisters && address < kRegisters + kRegistersBytes ? Slave::kRegisters
                                                                         : Slave::kNone;
}

/// Addresses of the memory are those of the bus, those of registers begin at 0.
void Bus::transport(int, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const uint64_t address = payload.get_address();
  // see AccessExtension
  if (payload.get_command() == tlm::TLM_IGNORE_COMMAND) return memory->b_transport(payload, delay);
  switch (slaveAt(address)) {
  case Slave::kNone: return payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  case Slave::kMemory: return memory->b_transport(payload, delay);
  case Slave::kRegisters: break;
  }
  payload.set_address(address - kRegisters);
  registers->b_transport(payload, delay);
  payload.set_address(address);
}

unsigned Bus::debug(int, tlm::tlm_generic_payload& payload) {
  return slaveAt(payload.get_address()) == Slave::kMemory ? memory->transport_dbg(payload) : 0;
}

// ---- Masters

sc_core::sc_time Master::send(tlm::tlm_command command, uint64_t address, void* data,
                              uint64_t bytes) {
  tlm::tlm_generic_payload payload;
  sc_core::sc_time delay;
  payload.set_command(command);
  payload.set_address(address);
  payload.set_data_ptr(static_cast<unsigned char*>(data));
  payload.set_data_length(static_cast<unsigned>(bytes));
  payload.set_streaming_width(static_cast<unsigned>(bytes));
  socket->b_transport(payload, delay);
  if (payload.is_response_error()) SC_REPORT_ERROR(name(), payload.get_response_string().c_str());
  return delay;
}

Driver::Driver(sc_core::sc_module_name name, const Binary& binary, Regions& regions)
    : Master(name), interrupt("interrupt"), binary_(binary), regions_(regions),
      placement_(placementOf(binary)) {
  for (uint64_t& base : placement_.bases) base += kMemory;
  placement_.program += kMemory;
  placement_.end += kMemory;
  SC_HAS_PROCESS(Driver);
  SC_THREAD(main);
}

uint32_t Driver::read(uint32_t offset) {
  uint32_t value = 0;
  access(tlm::TLM_READ_COMMAND, kRegisters + offset, &value, sizeof value);
  return value;
}
uint64_t Driver::readPair(uint32_t low) { return read(low) | uint64_t{read(low + 4)} << 32; }
void Driver::write(uint32_t offset, uint32_t value) {
  access(tlm::TLM_WRITE_COMMAND, kRegisters + offset, &value, sizeof value);
}

void Driver::copy(tlm::tlm_command command, uint64_t address, std::span<std::byte> bytes) {
  constexpr size_t kPiece = 4096;
  for (size_t at = 0; at < bytes.size(); at += kPiece)
    access(command, address + at, bytes.data() + at, std::min(kPiece, bytes.size() - at));
}

void Driver::main() {
  hasPassed_ = run();
  hasEnded_ = true;
}

bool Driver::isForThisNpu() {
  if (read(registerOffset("ID")) == kDeviceId &&
      readPair(registerOffset("SPEC_HASH_LO")) == kSpecHash &&
      readPair(registerOffset("CONFIG_HASH_LO")) == binary_.configurationHash)
    return true;
  std::fprintf(stderr, "virtual_platform: the program was made for another NPU: '%s'\n",
               binary_.configurationName.c_str());
  return false;
}

void Driver::load() {
  for (size_t i = 0; i < regions_.size(); ++i)
    copy(tlm::TLM_WRITE_COMMAND, placement_.bases[i], regions_[i]);
  std::vector<Word> code = binary_.code;
  copy(tlm::TLM_WRITE_COMMAND, placement_.program, std::as_writable_bytes(std::span(code)));
  for (const auto& [offset, value] : registersOf(binary_, placement_)) write(offset, value);
}

void Driver::printCounters() {
  for (const CounterInfo& counter : kCounters)
    if (const uint64_t value = readPair(kPmuOffset + 8 * static_cast<uint32_t>(counter.id)))
      std::printf("%20llu  %s\n", static_cast<unsigned long long>(value),
                  std::string(counter.name).c_str());
}

bool Driver::run() {
  if (!isForThisNpu()) return false;
  load();
  hasLoaded_ = true;
  const sc_core::sc_time started = sc_core::sc_time_stamp();
  write(registerOffset("CONTROL"), kStart);
  wait(interrupt.posedge_event());
  const sc_core::sc_time ended = sc_core::sc_time_stamp();

  const uint32_t status = read(registerOffset("STATUS"));
  std::printf("started at %.3f us, interrupt at %.3f us: ran for %.3f us\n",
              started.to_seconds() * 1e6, ended.to_seconds() * 1e6,
              (ended - started).to_seconds() * 1e6);
  printCounters();
  if (status & kFaulted)
    std::printf("fault %u at instruction %u\n", read(registerOffset("FAULT_CODE")),
                read(registerOffset("FAULT_PC")));
  for (size_t i = 0; i < regions_.size(); ++i)
    copy(tlm::TLM_READ_COMMAND, placement_.bases[i], regions_[i]);
  return status == kHalted;
}

Traffic::Traffic(sc_core::sc_module_name name, double megabytesPerSecond, const Driver& driver)
    : Master(name), megabytesPerSecond_(megabytesPerSecond), driver_(driver) {
  SC_HAS_PROCESS(Traffic);
  if (megabytesPerSecond_ > 0) SC_THREAD(main);
}

void Traffic::main() {
  std::array<std::byte, 64> line;
  std::array<sc_core::sc_time, 16> served; // of the last ones
  const sc_core::sc_time step(static_cast<double>(line.size()) / megabytesPerSecond_,
                              sc_core::SC_US);
  const uint64_t lines = std::max<uint64_t>(1, driver_.memoryBytes() / line.size());
  for (uint64_t i = 0; !driver_.hasEnded(); ++i) {
    sc_core::sc_time& slot = served[i % served.size()];
    if (slot > sc_core::sc_time_stamp()) wait(slot - sc_core::sc_time_stamp());
    slot = sc_core::sc_time_stamp();
    slot +=
        send(tlm::TLM_READ_COMMAND, kMemory + i % lines * line.size(), line.data(), line.size());
    wait(step);
  }
}

} // namespace platform
