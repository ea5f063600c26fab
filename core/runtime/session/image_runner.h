#pragma once

#include "core/runtime/session/pool.h"
#include "core/runtime/session/runner.h"
#include "core/runtime/session/trace.h"
#include "core/support/payload.h"

namespace candela::runtime::session {

/// A buffer that each run binds: which of its inputs and outputs. An INOUT buffer is both.
struct Port {
  static constexpr size_t kNone = SIZE_MAX;
  uint32_t buffer;
  size_t input = kNone, output = kNone;
  bool isInput() const { return input != kNone; }
  bool isOutput() const { return output != kNone; }
  bool isBoth() const { return isInput() && isOutput(); }
};

/// In the order of the buffers, which is that of a step's inputs and outputs.
inline std::vector<Port> portsOf(const cdl_image_t* image) {
  std::vector<Port> ports;
  size_t inputs = 0;
  size_t outputs = 0;
  for (uint32_t b = 1; b < image->buffers.count; ++b) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image, b);
    Port port{b};
    if (buffer.role == CDL_ROLE_INPUT || buffer.role == CDL_ROLE_INOUT) port.input = inputs++;
    if (buffer.role == CDL_ROLE_OUTPUT || buffer.role == CDL_ROLE_INOUT) port.output = outputs++;
    if (port.isInput() || port.isOutput()) ports.push_back(port);
  }
  return ports;
}

/// What the runners of an image share: its constants on the host, and contexts that executions
/// leave for the next ones. `Context` is an InFlight.
template <class Context> class ImageRunner : public Runner {
public:
  Result<std::unique_ptr<InFlight>> start(BufferRefs inputs, BufferRefs outputs, Waits waits,
                                          RunContext& run) final {
    // State persists across executions, so executions of such a program take turns.
    std::unique_lock<std::mutex> turn(stateMutex_, std::defer_lock);
    if (hasState_) turn.lock();
    std::unique_lock<std::mutex> deviceTurn = takeDeviceTurn();
    std::unique_ptr<Context> context = contexts_.take();
    if (!context) {
      CDL_ASSIGN(context, makeContext());
    }
    // After a failure a queue may be in any state: its context is not used again.
    CDL_TRY(begin(*context, inputs, outputs, waits, run));
    context->turn = std::move(turn);
    context->deviceTurn = std::move(deviceTurn);
    return std::unique_ptr<InFlight>(std::move(context));
  }
  Status finish(std::unique_ptr<InFlight> started, RunContext& run) final {
    std::unique_ptr<Context> context(static_cast<Context*>(started.release()));
    const std::unique_lock<std::mutex> turn = std::move(context->turn);
    const std::unique_lock<std::mutex> deviceTurn = std::move(context->deviceTurn);
    const Status status = end(*context, run);
    if (status && holdsEverything()) contexts_.put(std::move(context));
    context = nullptr; // before the turns end
    return status;
  }
  bool holdsEverything() const final { return holding_ == bundle::Holding::everything; }
  const std::vector<capabilities::Support>& support() const final { return support_; }
  Result<Room> allocateOutput(size_t output, Visibility visibility) final {
    for (const Port& port : ports_) {
      if (port.output != output) continue;
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
      return buffer.role == CDL_ROLE_OUTPUT ? allocateRoom(buffer, visibility)
                                            : roomOnHost(buffer.bytes);
    }
    return failure(Code::internal, "a program without output {}", output);
  }

  /// Finds the payloads of the constants. Failure: out_of_memory.
  Status readConstants(const bundle::Bundle& bundle, const bundle::BundlePartition& partition) {
    constants_.resize(image_->constants.count);
    for (uint32_t c = 1; c < image_->constants.count; ++c) {
      const cdl_constant_t& constant = *cdl_get_constant(image_, c);
      if (constant.form == 1) {
        const Elem elem = static_cast<Elem>(constant.elem);
        const auto count = static_cast<int64_t>(constant.bytes * 8 / elemBits(elem));
        CDL_ASSIGN(
            const Tensor splat,
            Payload::splat(elem, count, constant.bits)
                .materialize({count})
                .context(fmt::format("constant '{}'", cdl_get_string(image_, constant.name))));
        constants_[c] = splat.bytes;
        continue;
      }
      const Bytes& payload = bundle.constants[partition.constants[c - 1]].bytes;
      // Elements are read in place, so a mapped payload must be aligned for them.
      const bool isAligned = reinterpret_cast<uintptr_t>(payload.data()) % 16 == 0;
      constants_[c] = isAligned ? payload : Bytes::copyOf(payload.data(), payload.size());
    }
    return Status::ok();
  }

protected:
  explicit ImageRunner(const bundle::BundlePartition& partition)
      : bytes_(partition.image), image_(reinterpret_cast<const cdl_image_t*>(bytes_.data())),
        holding_(partition.holding), ports_(portsOf(image_)) {}

  virtual Result<std::unique_ptr<Context>> makeContext() = 0;
  /// Held until the context of the run is gone, by partitions that do not hold everything.
  virtual std::unique_lock<std::mutex> takeDeviceTurn() { return {}; }
  /// For the next run.
  void keep(std::unique_ptr<Context> context) { contexts_.put(std::move(context)); }
  virtual Result<Room> allocateRoom(const cdl_buffer_t& buffer, Visibility) {
    return roomOnHost(buffer.bytes);
  }
  virtual Status begin(Context& context, BufferRefs inputs, BufferRefs outputs, Waits waits,
                       RunContext& run) = 0;
  virtual Status end(Context& context, RunContext& run) = 0;

  static Result<Room> roomOnHost(uint64_t bytes) {
    CDL_ASSIGN(Bytes zero, Bytes::allocate(bytes));
    const BufferRef at = BufferRef::onHost(zero.data());
    return Room{std::move(zero), at};
  }

  /// Bytes of arena that the TEMP buffers of a space need.
  uint64_t arenaBytes(uint32_t space) const {
    uint64_t bytes = 0;
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_TEMP && buffer.space == space && buffer.offset != CDL_UNPLACED)
        bytes = std::max(bytes, buffer.offset + buffer.bytes);
    }
    return bytes;
  }

  /// Runs one instruction, here or on the device; records how long it took when that is asked.
  template <typename F>
  static Status timed(uint32_t instr, capabilities::Support support, F&& run) {
    const uint64_t start = nowNs();
    CDL_TRY(run());
    if (tracesInstrs())
      Trace::current()->add(
          {.startNs = start, .endNs = nowNs(), .instr = instr, .support = support});
    return Status::ok();
  }
  static bool tracesInstrs() { return Trace::current() && Trace::current()->wantsInstrs(); }

  Bytes bytes_;
  const cdl_image_t* image_;
  const bundle::Holding holding_;
  std::vector<Port> ports_; ///< in the order of their buffers
  std::vector<capabilities::Support> support_;
  std::vector<Bytes> constants_; ///< per image constant
  bool hasState_ = false;

private:
  std::mutex stateMutex_;
  Pool<Context> contexts_;
};

Result<std::unique_ptr<Runner>> makeSoftRunner(const bundle::Bundle& bundle,
                                               const bundle::BundlePartition& partition);
Result<std::unique_ptr<Runner>> makeDeviceRunner(const bundle::Bundle& bundle,
                                                 const bundle::BundlePartition& partition,
                                                 std::shared_ptr<plugin::Device> device,
                                                 Refusal* refusal);

} // namespace candela::runtime::session
