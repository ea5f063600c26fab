#pragma once

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/plugin/plugin.h"
#include "core/runtime/session/pool.h"
#include "core/runtime/session/states.h"
#include "core/runtime/session/trace.h"

/// Loading, binding and running a bundle. Carries no compiler.
namespace candela::runtime::session {

/// What one run did; the SDK counts, so that a report cannot flatter.
struct RunStats {
  /// executed, loop iterations counted
  uint64_t nativeInstrs = 0, emulatedInstrs = 0, hostInstrs = 0;
  /// copied to and from the host for emulated instructions on memory that cannot be mapped
  uint64_t stagedBytes = 0;
  /// of states, copied to be kept: 0 where they lie in memory that the host sees
  uint64_t stateBytes = 0;
  const Residents* residents = nullptr; ///< for runners: where states lie
};

/// A partition that is ready to run. Implementations: soft_runner.cpp, device_runner.cpp.
class Runner {
public:
  virtual ~Runner() = default;
  /// Where inputs and outputs lie, dense, in the order of the image's bound buffers. They are used
  /// there where they can be; no output overlaps another one or an input. Any thread.
  virtual Status run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                     RunStats& stats) = 0;
  /// Zeroed room for an output, which runs then write into; the memory of a device that the host
  /// sees, where there is one, which `resident` gets to know.
  virtual Result<Bytes> allocateOutput(size_t output, Resident& resident) = 0;
  /// Support per instruction, [0] unused.
  virtual const std::vector<capabilities::Support>& support() const = 0;
  /// The backend's blob for the bundle; empty when it has none.
  virtual Result<Bytes> save() { return Bytes(); }
};

/// A late refusal by a backend: which instruction, and why.
struct Refusal {
  uint32_t instr = 0;
  uint16_t reason = CDL_REASON_NONE;
  std::string text;
};

/// Compiles (program API) or checks (primitive API) for a device; without one the host runs the
/// Program. On Code::refused, *refusal says which instruction.
Result<std::unique_ptr<Runner>> makeRunner(const bundle::Bundle& bundle,
                                           const bundle::BundlePartition& partition,
                                           std::shared_ptr<plugin::Device> device,
                                           Refusal* refusal = nullptr);

/// A bundle with its devices open. run() may be called by many threads at once; where a thread has
/// a Trace, it tells what it does. With instructions in it, a device that keeps no profile shows
/// steps alone; one that takes instructions one by one gets each alone.
class Session {
public:
  /// `devices`: what to use for partitions of these backends; others are found by name and opened
  /// with the bundle's options.
  static Result<std::unique_ptr<Session>>
  create(bundle::Bundle bundle, std::span<const std::shared_ptr<plugin::Device>> devices = {});
  /// The same with runners that were made already, one per partition.
  static std::unique_ptr<Session> adopt(bundle::Bundle bundle,
                                        std::vector<std::unique_ptr<Runner>> runners);

  const bundle::Bundle& bundle() const { return bundle_; }
  /// Stores the bundle with the executables of backends that can store them, which hold their
  /// constants, and the constants of the others. Failure: io, or a backend's.
  Status save(const std::string& path) const;
  /// What save() stores.
  Result<bundle::Bundle> stored() const;

  /// Outputs are inputs of the next run, by "INPUT=OUTPUT". Before the first run.
  Status bindStates(const std::vector<std::string>& texts);

  /// inputs in the bundle's order; checked against its types. A state's may have no type: it is as
  /// the last run left it, or zero. Returns the outputs. Runs of a model with states take turns.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, RunStats* stats = nullptr);
  /// The same on memory of the caller, of the sizes that the bundle says: inputs are read and
  /// outputs written where they lie, unless an output overlaps something else or the device cannot;
  /// what is copied is kept for the next run, which then allocates nothing. An input that is null
  /// is a state that goes on, or has no bytes; an output that is null is left where it is. After a
  /// failure outputs hold anything, states what they held.
  Status runAt(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
               RunStats* stats = nullptr);

private:
  /// What one run needs, kept for the next one.
  struct Frame {
    /// per value: memory of the session's own, made when it is first needed
    std::vector<Bytes> rooms;
    /// per value that is no copy of another: where it lies in the run in progress
    std::vector<std::byte*> at;
    std::vector<const std::byte*> in;
    std::vector<std::byte*> out; ///< both of one step
  };
  using Inputs = std::span<const std::byte* const>;
  using Outputs = std::span<std::byte* const>;

  Status initStates();
  std::unique_ptr<Frame> takeFrame();
  Result<std::byte*> roomOf(Frame& frame, uint32_t value) const;
  uint32_t rootOf(size_t output) const { return source_[bundle_.outputs[output]]; }
  bool isFree(size_t output, Inputs inputs, Outputs outputs) const;
  Status placeValues(Frame& frame, Inputs inputs, Outputs outputs) const;
  Status runStep(Frame& frame, size_t step, RunStats& stats);
  Status handOver(Frame& frame, Outputs outputs, RunStats& stats);
  Status runPlaced(Inputs inputs, Outputs outputs, RunStats* stats);

  bundle::Bundle bundle_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::string> stepNames_; ///< "0 on cpu", for traces and messages
  std::vector<uint32_t> source_;       ///< per value: what it is a copy of, or itself
  std::vector<bool> isComputed_;       ///< per value: a runner writes it
  std::vector<uint64_t> valueBytes_;
  Residents residents_;
  States states_;
  Pool<Frame> frames_;
};

} // namespace candela::runtime::session
