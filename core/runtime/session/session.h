#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/session/pool.h"
#include "core/runtime/session/runner.h"
#include "core/runtime/session/states.h"
#include "core/runtime/session/trace.h"
#include "core/runtime/session/transfers.h"

/// Loading, binding and running a bundle. Carries no compiler.
namespace candela::runtime::session {

/// Consecutive steps on one device, or on the host: what runs without another one in between.
struct Stage {
  size_t first = 0, end = 0;              ///< steps; it has no part in copies among them
  std::shared_ptr<plugin::Device> device; ///< null: the host
  std::vector<uint32_t> after;            ///< earlier stages whose values it reads, each once
};

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
  /// The object code of a partition, of a device that was opened for a build ahead of time: an
  /// archive as candela/cdl_object.h says. Failure: unsupported, or the backend's.
  Result<Bytes> emitted(size_t partition) const { return runners_[partition]->emit(); }

  /// Outputs are inputs of the next run, by "INPUT=OUTPUT". Before the first run.
  Status bindStates(const std::vector<std::string>& texts);

  /// inputs in the bundle's order; checked against its types. A state's may have no type: it is as
  /// the last run left it, or zero. Returns the outputs. Runs of a model with states take turns.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, RunStats* stats = nullptr);
  /// The same on memory of the caller, of the sizes that the bundle says: inputs are read and
  /// outputs written where they lie, unless an output overlaps something else or the device cannot;
  /// what is copied is kept for the next run, which then allocates nothing. An input that is
  /// nowhere is a state that goes on, or has no bytes; an output that is nowhere is left where it
  /// is. After a failure outputs hold anything, states what they held; those that a Program updates
  /// in place what it had written by then.
  Status runAt(BufferRefs inputs, BufferRefs outputs, RunControl* control = nullptr,
               RunStats* stats = nullptr);

  /// Copies what states hold now, in the order of bundle().states, each to memory of its size; a
  /// run takes its turn first. Failure: invalid_argument for another number of places; a device's.
  Status readStates(BufferRefs to);

  // ---- The same stage by stage, for who has threads for the devices

  class Run;
  /// In their order each comes behind those that it reads from.
  const std::vector<Stage>& stages() const { return stages_; }
  /// Runs of a session with states take turns, and belong to one thread from begin() to end().
  bool hasStates() const { return !states_.empty(); }
  Result<std::unique_ptr<Run>> begin(BufferRefs inputs, BufferRefs outputs, RunControl* control);
  /// When the stages that it comes after are done. Different stages on different threads.
  Status runStage(Run& run, size_t stage);
  /// When all stages are done: everything is where it was wanted. Adds what the run did to *stats.
  Status end(std::unique_ptr<Run> run, RunStats* stats = nullptr);

private:
  /// Who computes a value: a step, and which of its outputs it is.
  struct Producer {
    uint32_t step = 0, output = 0;
  };

  void findStages();
  void findReaders();
  bool isInPlace(const bundle::BundleState& state) const;
  Status initStates();
  Runner& runnerOf(size_t step) const { return *runners_[bundle_.steps[step].partition]; }
  Result<std::unique_ptr<Run>> place(std::unique_lock<std::mutex> turn, BufferRefs inputs,
                                     BufferRefs outputs, RunControl* control);
  Status runPlaced(std::unique_lock<std::mutex> turn, BufferRefs inputs, BufferRefs outputs,
                   RunControl* control, RunStats* stats);
  std::unique_ptr<Run> takeRun();
  uint32_t rootOf(size_t output) const { return source_[bundle_.outputs[output]]; }
  bool isFree(size_t output, BufferRefs inputs, BufferRefs outputs) const;
  bool isWithinReach(uint32_t value, const BufferRef& at) const;
  Result<BufferRef> roomOf(Run& run, uint32_t value) const;
  Result<BufferRef> roomOnHost(Run& run, uint32_t value) const;
  Status placeInputs(Run& run, BufferRefs inputs);
  Status placeValues(Run& run, BufferRefs inputs, BufferRefs outputs) const;
  Status startStep(Run& run, size_t step);
  Status finishStep(Run& run, size_t step);
  Status handOver(Run& run);

  bundle::Bundle bundle_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Stage> stages_;
  std::vector<std::string> stepNames_; ///< "0 on cpu", for traces and messages
  std::vector<uint32_t> source_;       ///< per value: what it is a copy of, or itself
  std::vector<bool> isComputed_;       ///< per value: a runner writes it
  std::vector<Producer> producer_;     ///< per value that is computed
  /// per value: the device that alone reads it, where there is one
  std::vector<std::shared_ptr<plugin::Device>> reader_;
  std::vector<bool> isReadElsewhere_; ///< per value: by the host, or by several devices
  std::vector<uint64_t> valueBytes_;
  States states_;
  Transfers transfers_;
  Pool<Run> runs_;
};

/// One run in progress. What it made is kept for the next one.
class Session::Run {
private:
  friend class Session;
  /// What a step needs while it runs, kept for its next run.
  struct StepState {
    std::vector<BufferRef> in, out;
    std::vector<cdl_timeline_t> waits;
    std::unique_ptr<InFlight> inFlight;
    RunContext context;
  };
  std::unique_lock<std::mutex> turn; ///< of a session with states
  std::vector<Room> rooms;           ///< per value: the session's own, made when first needed
  std::vector<Room> hostRooms;       ///< the same where the host must see it
  std::vector<BufferRef> at;         ///< per value that is no copy: where it lies in this run
  std::vector<StepState> steps;
  std::vector<BufferRef> outputs; ///< where they are wanted
  RunControl* control = nullptr;
  RunStats stats; ///< of what belongs to no step
};

} // namespace candela::runtime::session
