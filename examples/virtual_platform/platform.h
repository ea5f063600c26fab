// Modules of the platform: a bus, the driver of the NPU, a master that is in its way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <vector>

#include "simulator/systemc/npu.h"

namespace platform {

/// Addresses on the bus, in bytes.
inline constexpr uint64_t kRegisters = 0x1000'0000, kRegistersBytes = 0x1000;
inline constexpr uint64_t kMemory = 0x8000'0000;

/// The contents of a program's regions, by their index in its binary.
using Regions = std::vector<std::vector<std::byte>>;

/// From any master to the registers of the NPU or the memory, by address; takes no time.
class Bus : public sc_core::sc_module {
public:
  tlm_utils::multi_passthrough_target_socket<Bus, 64> masters;
  tlm_utils::simple_initiator_socket<Bus, 32> registers;
  tlm_utils::simple_initiator_socket<Bus, 64> memory;
  explicit Bus(sc_core::sc_module_name name);

private:
  void transport(int master, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned debug(int master, tlm::tlm_generic_payload& payload);
  enum class Slave { kNone, kRegisters, kMemory };
  static Slave slaveAt(uint64_t address);
};

/// A master's blocking accesses.
class Master : public sc_core::sc_module {
public:
  tlm_utils::simple_initiator_socket<Master, 64> socket;

protected:
  explicit Master(sc_core::sc_module_name name) : sc_module(name), socket("socket") {}
  /// Returns when it will be served, from now on.
  sc_core::sc_time send(tlm::tlm_command command, uint64_t address, void* data, uint64_t bytes);
  /// And waits for that.
  void access(tlm::tlm_command command, uint64_t address, void* data, uint64_t bytes) {
    wait(send(command, address, data, bytes));
  }
};

/// What runs on a CPU: loads one program, starts it, waits for the interrupt, and reads what came
/// out.
class Driver : public Master {
public:
  sc_core::sc_in<bool> interrupt;
  /// `regions`: what it writes to memory, and in the end what it read there. Both stay the
  /// caller's.
  Driver(sc_core::sc_module_name name, const candela::npu::Binary& binary, Regions& regions);
  /// Bytes of memory that the program needs.
  uint64_t memoryBytes() const { return placement_.end - kMemory; }
  /// The NPU took the program; the program has ended; and as it should.
  bool hasLoaded() const { return hasLoaded_; }
  bool hasEnded() const { return hasEnded_; }
  bool hasPassed() const { return hasPassed_; }

private:
  void main();
  bool run();
  bool isForThisNpu();
  void load();
  void printCounters();
  uint32_t read(uint32_t offset);
  uint64_t readPair(uint32_t low);
  void write(uint32_t offset, uint32_t value);
  void copy(tlm::tlm_command command, uint64_t address, std::span<std::byte> bytes);

  const candela::npu::Binary& binary_;
  Regions& regions_;
  candela::npu::Placement placement_; ///< on the bus
  bool hasLoaded_ = false, hasEnded_ = false, hasPassed_ = false;
};

/// Reads 64 bytes at a time at a rate, up to 16 of them before the first one is served, until the
/// driver has ended: from the memory's beginning to its end and again.
class Traffic : public Master {
public:
  Traffic(sc_core::sc_module_name name, double megabytesPerSecond, const Driver& driver);

private:
  void main();
  double megabytesPerSecond_;
  const Driver& driver_;
};

} // namespace platform
