#pragma once

#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include "simulator/func/stepped_device.h"
#include "simulator/systemc/memory.h"
#include "simulator/systemc/registers.h"
#include "simulator/timing/timed_records.h"

namespace candela::npu {

/// The NPU as a module of a virtual platform. The driver writes addresses of regions and program
/// into `registers` (docs/reference/npu_registers.md) and then CONTROL; `done` is high from halt or
/// fault to the next start or reset.
///
/// Time is that of simulator/timing. With Fidelity::kAccurate each burst and each fetch is a
/// blocking transport of `memory` with its data, at the time of its request: the delay that comes
/// back is when it is served, so a target annotates and does not wait (one that waits holds up all
/// engines). With kFast transfers take the closed form of the configuration's memory, and data goes
/// by debug transport. The program is read at the start, by debug transport, up to the end of its
/// last burst: memory must reach as far as the page (4 KiB) that it ends in.
class Npu : public sc_core::sc_module {
public:
  tlm_utils::simple_target_socket<Npu, 32> registers;
  tlm_utils::simple_initiator_socket<Npu, 64> memory;
  sc_core::sc_out<bool> done;

  /// Of `options` hasValues is not looked at: values are always there.
  Npu(sc_core::sc_module_name name, Configuration configuration, TimedOptions options = {});
  ~Npu() override;

  /// As CONTROL's reset bit, and another configuration. Reports an error while it runs.
  void reset(Configuration configuration, TimedOptions options);
  /// Names of nodes and regions for faults, of the program that is started next.
  void setNames(const Binary& program);
  const Configuration& configuration() const { return configuration_; }
  /// Of the last run, when `done` is high. Errors: the program could not be loaded, or its time has
  /// no end.
  const Result<RunReport>& report() const { return report_; }
  /// The instruction that each engine runs, and -1, as variables of a trace file.
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
