#pragma once

#include <tlm>
#include <tlm_utils/simple_target_socket.h>

#include "simulator/systemc/cycle_clock.h"
#include "simulator/systemc/memory_map.h"
#include "simulator/timing/dram.h"

namespace candela::npu {

/// What the NPU says of an access beside the generic payload; a target may ignore it.
struct AccessExtension : tlm::tlm_extension<AccessExtension> {
  int requester = 0; ///< an Engine as a number; 0: the control processor
  /// TLM_IGNORE_COMMAND: the delay is to last until all writes are in the memory
  bool isDrain = false;

  tlm_extension_base* clone() const override { return new AccessExtension(*this); }
  void copy_from(const tlm_extension_base& other) override {
    *this = static_cast<const AccessExtension&>(other);
  }
};

/// The DRAM of a configuration (simulator/timing/dram.h) as a target: blocking transport that adds
/// an access's time to the delay and does not wait, and debug transport. Accesses should come in
/// the order of their times. No byte enables, no DMI, since who bypasses it takes no time. An
/// access has to lie within one span of memory; one that does not is answered by
/// TLM_ADDRESS_ERROR_RESPONSE, by 0 bytes where it is debug transport.
class DramMemory : public sc_core::sc_module {
public:
  tlm_utils::simple_target_socket<DramMemory, 64> socket;

  DramMemory(sc_core::sc_module_name name, const Configuration& configuration);
  /// Another configuration, no bytes, all rows closed; its time begins now.
  void reset(const Configuration& configuration);
  /// Bytes at an address, beside those that were added before, which it must not meet. They stay
  /// the caller's, and must outlive the simulation or last until reset.
  void add(uint64_t address, std::span<std::byte> memory) { map_.add(address, memory); }
  /// What the channels did so far.
  const Dram& dram() const { return dram_; }

private:
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned debug(tlm::tlm_generic_payload& payload);

  CycleClock clock_;
  Dram dram_;
  MemoryMap map_;
};

} // namespace candela::npu
