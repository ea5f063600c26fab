#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>
#include <vector>

#include "simulator/npu_device.h"
#include "simulator/systemc/memory.h"
#include "simulator/systemc/registers.h"

namespace candela::npu {

/// The NPU as a module of a virtual platform. The driver writes addresses of regions and program
/// into `registers` (docs/reference/npu_registers.md) and then CONTROL; `done`, its interrupt, is
/// high from halt or fault to the next start or reset.
///
/// As all of SystemC it belongs to the thread that runs the kernel. The kernel's resolution must
/// be 1 ps, its default. What a platform does wrong is an sc_report of severity SC_ERROR, which the
/// kernel throws unless it is told otherwise; what a program does wrong is a fault of report().
///
/// Time is that of simulator/timing. With Fidelity::kAccurate each burst and each fetch is a
/// blocking transport of `memory` with its data, at the time of its request: the delay that comes
/// back is when it is served, so a target annotates and does not wait (one that waits holds up all
/// engines). With kFast transfers take the closed form of the configuration's memory, and data goes
/// by debug transport. The program is read at the start, by debug transport, up to the end of its
/// last burst: memory must reach as far as the page (4 KiB) that it ends in.
class Npu : public sc_core::sc_module {
public:
  /// Registers of 32 bits from byte address 0 on: whole ones, aligned, one or several of an access,
  /// without byte enables; anything else is answered by TLM_ADDRESS_ERROR_RESPONSE. An access takes
  /// no time. Debug transport reads.
  tlm_utils::simple_target_socket<Npu, 32> registers;
  /// DRAM at the addresses that the driver wrote: reads and writes of a burst's bytes, each with an
  /// AccessExtension, and TLM_IGNORE_COMMAND for a drain. A response that is none of success is a
  /// fault of the program, FaultKind::kBus.
  tlm_utils::simple_initiator_socket<Npu, 64> memory;
  /// The interrupt, high active.
  sc_core::sc_out<bool> done;

  /// During elaboration. Of `options` hasValues and what is of the RTL is not looked at: values are
  /// always there. What the callbacks of `options` refer to must outlive the module. Reports an
  /// error: Fidelity::kExact, which is no fidelity of this module; another resolution than 1 ps.
  Npu(sc_core::sc_module_name name, Configuration configuration, TimedOptions options = {});
  ~Npu() override;

  /// As CONTROL's reset bit, and another configuration. Reports an error, and changes nothing:
  /// while a program runs, Fidelity::kExact.
  void reset(Configuration configuration, TimedOptions options);
  /// Names of nodes and regions for faults, of the program that is started next; they are copied.
  void setNames(const Binary& program);
  const Configuration& configuration() const { return configuration_; }
  /// Of the last run, when `done` is high; stands until the next start. Errors: the program could
  /// not be loaded, or its time has no end.
  const Result<RunReport>& report() const { return report_; }
  /// The instruction that each engine runs, and -1, as variables of a trace file, which stays the
  /// caller's. Before the simulation starts.
  void trace(sc_core::sc_trace_file* file) const;

private:
  class Run;

  void main();
  void control(uint32_t value, const sc_core::sc_time& delay);
  void accessRegisters(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned debugRegisters(tlm::tlm_generic_payload& payload);
  bool transferRegisters(tlm::tlm_generic_payload& payload, const sc_core::sc_time& delay);
  uint32_t readRegister(uint32_t offset) const;

  Configuration configuration_;
  TimedOptions options_;
  Registers written_;
  std::vector<Symbol> symbols_;
  std::vector<std::string> regionNames_;
  std::unique_ptr<Run> run_;
  Result<RunReport> report_ = RunReport{};
  uint32_t status_ = 0, faultPc_ = 0, faultCode_ = 0;
  bool stops_ = false, isRunning_ = false;
  sc_core::sc_event control_;
  std::array<int32_t, kEngineCount> running_;
};

} // namespace candela::npu
