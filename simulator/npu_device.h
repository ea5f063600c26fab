// The NPU as a device that runs programs: the functional model, the one with time, the module of
// SystemC and the hardware description behind one interface. Problems of a program, a file or the
// machine are a Result or an Outcome; memory that the system does not give is a std::bad_alloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/binary/binary.h"
#include "simulator/config/configuration.h"
#include "simulator/isa/trace.h"
#include "simulator/result.h"
#include "simulator/timing/report.h"

namespace candela::npu {

/// Why a program stopped before halt.
enum class FaultKind : uint8_t {
  /// a word that is no instruction, a descriptor that is none, a value that the hardware has not
  kInstruction,
  kRange,         ///< an address outside of its memory or region
  kPort,          ///< an engine, alignment or direction that the port does not have
  kUninitialised, ///< bytes or accumulators that nothing wrote
  kRace,          ///< two accesses without an order
  /// a count above its maximum, or two engines that wait on one semaphore without an order
  kSemaphore,
  kDeadlock, ///< nobody can go on
  kLimit,    ///< more instructions than the caller allowed
  kBus,      ///< the memory refused an access; with SystemC and RTL alone
};
/// As messages have it: "race".
std::string_view faultName(FaultKind kind);

/// Where and why.
struct Fault {
  FaultKind kind;
  uint32_t instruction; ///< index in the code
  std::string message;  ///< names the ONNX node and tile, the instruction and the value
};

/// What the hardware writes of a marked instruction (docs/reference/npu_trace.md).
struct ProfileRecord {
  uint32_t instruction = 0; ///< index in the code
  uint32_t tag = 0;         ///< what the program wrote to TAG last
  uint8_t engine = 0;       ///< an Engine
  // Cycles of the NPU from the start of the program.
  int64_t start = 0;
  int64_t done = 0;
};

/// What one run did.
struct RunReport {
  std::optional<Fault> fault; ///< none: the program came to its halt
  Counters counters{};        ///< of the PMU when it ended; see hasTime
  /// Of the PMU when the program asked for them, by slot; 0 in slots that it did not name.
  std::array<Counters, kSnapshotSlots> snapshots{};
  bool hasTime = false;           ///< counters of kind timing mean something
  std::optional<TimeReport> time; ///< where hasTime
  /// Of the RTL, where they were asked for: of marked instructions, in the order of their writing.
  std::vector<ProfileRecord> profile;
  uint32_t profileLost = 0; ///< marked instructions that have none
};

/// A device that runs one binary at a time. One thread at a time; devices of their own may run on
/// threads of their own.
class Device {
public:
  virtual ~Device() = default;
  virtual const Configuration& configuration() const = 0;

  /// Takes a program, which it keeps. Errors: it was made for another configuration, an instruction
  /// is none or asks for an engine that this configuration has not. Forgets the program and the
  /// bindings before.
  virtual Outcome load(Binary binary) = 0;
  /// The one that was loaded last; an empty one before.
  virtual const Binary& program() const = 0;

  /// The memory of a region, by its index in the binary, of at least its bytes; stays the caller's
  /// and must outlive the runs. Regions of class constants are bound by load, to the binary's.
  /// Errors: nothing is loaded, there is no such region, it is one of constants, too few bytes.
  virtual Outcome bind(uint32_t region, std::span<std::byte> memory) = 0;

  /// From the first instruction to halt, with scratchpad and accumulators uninitialised; as often
  /// as is wanted, on the memory as it stands. Returns when the program has ended. Errors: nothing
  /// is loaded, a region is not bound. A fault of the program stands in the report; memory then
  /// holds what was written so far.
  virtual Result<RunReport> run() = 0;
};

/// What a device of the functional model would refuse to load, without a device.
Outcome checkProgram(const Configuration& configuration, const Binary& binary);

/// Callbacks are called on the thread of run(), and must outlive the device.
struct FunctionalOptions {
  bool checks = true;        ///< races and uninitialised reads; ranges are always checked
  bool plainKernels = false; ///< no AVX2 even where there is
  /// Products and elements, and 4,096 for each instruction, in a run: loops could otherwise run for
  /// years, and what the checks remember of each instruction fill the memory.
  uint64_t maxOperations = uint64_t{1} << 38;
  /// Called for each instruction that ends, within run(); none: no trace, which is faster.
  std::function<void(const RetireRecord&)> onRetire;
  /// Called for each instruction that ends but nops and those of control, with what it counted
  /// alone.
  std::function<void(uint32_t instruction, const Counters&)> onCounted;
};

/// The model without time (simulator/func).
std::unique_ptr<Device> makeFunctionalDevice(Configuration configuration,
                                             FunctionalOptions options = {});

/// All signals of the RTL in a range of cycles of a run, both ends included, as VCD.
struct WaveOptions {
  std::string file; ///< a path; empty: none
  // Cycles of the NPU from the start of the program.
  int64_t from = 0;
  int64_t to = INT64_MAX;
};

/// Options of a device that has time. What is said to be of the RTL is that of makeRtlDevice.
struct TimedOptions {
  /// onRetire: records with time, in the order of ends, when the program has ended.
  FunctionalOptions functional;
  Fidelity fidelity = Fidelity::kAccurate;
  /// false: time and counters alone, which do not depend on data; memory stays as it is, and no
  /// fault is looked for.
  bool hasValues = true;
  /// Called for each instruction that ends, in the order of ends.
  std::function<void(const InstructionTime&)> onTime{};
  /// Of the RTL: stops at the first instruction that the exact schedule has begin, move its first
  /// data or end in another cycle; run() then says which.
  bool isLockstep = false;
  /// Of the RTL: what each run() writes, over what the run before wrote. What cannot be written is
  /// an error of run().
  WaveOptions waves{};
  /// Of the RTL: profile records that it has room for. Their bursts take turns on the port of the
  /// memory, which the exact schedule does not have; 0: none are written.
  size_t profileRecords = 0;
};

/// The functional model and time (simulator/timing) together: memory and faults are those of the
/// functional model.
std::unique_ptr<Device> makeTimedDevice(Configuration configuration, TimedOptions options = {});

/// Both in one SystemC simulation (simulator/systemc), whose every burst carries its data. The same
/// memory, faults and cycles; hasValues must be set. Runs of all devices of a process take turns.
/// Where SystemC was found alone; of an installation: in Candela::systemc. It drives the kernel
/// itself: a platform takes the module (simulator/systemc/npu.h) instead. Errors of run():
/// Fidelity::kExact, and what the kernel reports.
std::unique_ptr<Device> makeSystemcDevice(Configuration configuration, TimedOptions options = {});

/// The hardware description (rtl/top), verilated for the configuration when it is first asked for
/// and kept in a cache: memory, faults, counters and cycles are the hardware's. Records
/// carry no checksums; hasValues must be set. Its sources lie beside the program,
/// in ../share/candela/npu_rtl, or where the environment's CANDELA_NPU_RTL says; the cache is
/// CANDELA_CACHE_DIR, or candela in XDG_CACHE_HOME or ~/.cache. Errors of run(): a configuration
/// that cannot be built, no sources, no Verilator.
std::unique_ptr<Device> makeRtlDevice(Configuration configuration, TimedOptions options = {});

} // namespace candela::npu
