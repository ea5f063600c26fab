#pragma once

#include "core/runtime/bundle/bundle.h"
#include "core/runtime/session/buffer_ref.h"
#include "core/runtime/session/control.h"

namespace candela::runtime::session {

/// What one run did; the SDK counts, so that a report cannot flatter.
struct RunStats {
  /// executed, loop iterations counted
  uint64_t nativeInstrs = 0, emulatedInstrs = 0, hostInstrs = 0;
  /// copied to and from the host for emulated instructions on memory that cannot be mapped, and for
  /// values that go from one device to another which sees neither its memory nor the host's
  uint64_t stagedBytes = 0;
  /// of states, copied to be kept: 0 where they lie in memory that the host sees
  uint64_t stateBytes = 0;
  /// by queue_copy, from and to memory of the device that copies
  uint64_t deviceCopies = 0, deviceCopiedBytes = 0;
  /// constants that devices did not hold, uploaded for this run
  uint64_t streamedBytes = 0;

  void add(const RunStats& other);
};

/// What a run is given beside its values.
struct RunContext {
  RunStats stats;
  RunControl* control = nullptr; ///< null: nobody ends it
  Status cancelled() const { return control ? control->status() : Status::ok(); }
};

/// A run of a Program that was begun. Who destroys it without Runner::finish gives it up: then its
/// outputs hold anything, and nothing touches its memory any more.
class InFlight {
public:
  virtual ~InFlight() = default;
  /// When its outputs are there; `queue` null: they are.
  cdl_timeline_t done{};
};

using BufferRefs = std::span<const BufferRef>;
using Waits = std::span<const cdl_timeline_t>;

enum class Visibility { host, device };

/// A partition that is ready to run. Implementations: soft_runner.cpp, device_runner.cpp.
class Runner {
public:
  virtual ~Runner() = default;
  /// Begins when `waits` are reached, which are of queues of the same device. Inputs and outputs
  /// lie dense, in the order of the image's bound buffers, where the host or this device sees
  /// them; they are used there where they can be. No output overlaps another one or an input. Any
  /// thread.
  virtual Result<std::unique_ptr<InFlight>> start(BufferRefs inputs, BufferRefs outputs,
                                                  Waits waits, RunContext& run) = 0;
  /// Returns when the outputs are where they were wanted. On the thread that started it.
  virtual Status finish(std::unique_ptr<InFlight> started, RunContext& run) = 0;

  /// Where it runs; null: on the host.
  virtual std::shared_ptr<plugin::Device> device() const { return nullptr; }
  /// Zeroed room for an output, which runs then write into: memory of the device, where the host
  /// sees it or need not.
  virtual Result<Room> allocateOutput(size_t output, Visibility visibility) = 0;
  /// Support per instruction, [0] unused.
  virtual const std::vector<capabilities::Support>& support() const = 0;
  /// Makes what a run needs of the device's memory, and keeps it where the partition holds it: so
  /// that a lack shows before the first run. Failure: out_of_memory.
  virtual Status reserve() { return Status::ok(); }
  /// What each run uploads of constants.
  virtual uint64_t streamedBytes() const { return 0; }
  /// False: it keeps others of its device from running until it is finished, as there is no room
  /// for both.
  virtual bool holdsEverything() const { return true; }
  /// The backend's blob for the bundle; empty when it has none.
  virtual Result<Bytes> save() { return Bytes(); }
  /// Object code for a build ahead of time, as candela/cdl_object.h says. Failure: unsupported
  /// where the host runs it, or the backend emits none.
  virtual Result<Bytes> emit() {
    return failure(Code::unsupported, "the host's executor has no object code");
  }
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

} // namespace candela::runtime::session
