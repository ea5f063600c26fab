#pragma once

#include "core/runtime/session/image_runner.h"

namespace candela::runtime::session {

using MemoryPtr = std::shared_ptr<plugin::DeviceMemory>;

/// Where an input or output of one execution lies for the device, and from or to where its bytes
/// are moved.
struct BoundPort {
  MemoryPtr own;      ///< for what the device cannot use where it lies; made when first needed
  MemoryPtr imported; ///< stands for the caller's bytes in the buffer's own space
  MemoryPtr window;   ///< stands for them in another space, for copies alone
  bool inPlace = false;
  BufferRef given, wanted; ///< of an input, of an output
};

/// What one execution needs on the device; kept for the next one.
struct DeviceContext : InFlight {
  ~DeviceContext() override;

  std::unique_lock<std::mutex> turn;       ///< of a Program with state
  std::unique_lock<std::mutex> deviceTurn; ///< of one that the device has no room to keep
  std::shared_ptr<void> executable;        ///< that the device does not hold between runs
  RunControl* control = nullptr;           ///< that knows the queue
  std::vector<MemoryPtr> memory; ///< per image buffer; TEMP buffers of a space share its arena
  std::vector<BoundPort> ports;  ///< per image buffer
  std::vector<void*> addresses;  ///< per image buffer, null where the host sees none
  std::vector<cdl_binding_t> bindings;
  MemoryPtr scratch;
  uint64_t startNs = 0; ///< of the run in progress
  /// goes first, with what it has not done: then nothing uses the memory
  std::shared_ptr<plugin::Queue> queue;

  /// That buffer `b` of the image lies there.
  void bind(const cdl_image_t* image, uint32_t b, const MemoryPtr& at, uint64_t offset);
};

/// Takes inputs and outputs to where a device can use them. What lies in memory that it executes on
/// is bound as it is; what it can import is bound there too; the rest goes through memory of the
/// context's own: by queue_copy from memory of the same device, or from bytes of the host that one
/// of its other spaces can stand for, else by queue_write and queue_read.
class PortMover {
public:
  PortMover(const cdl_image_t* image, plugin::Device& device) : image_(image), device_(device) {}

  /// Binds a port; `given` and `wanted` are nowhere where it is no input or no output.
  Status place(DeviceContext& context, const Port& port, BufferRef given, BufferRef wanted,
               RunContext& run) const;
  /// Memory of the context's own for a port, where there is none yet.
  Status makeOwn(DeviceContext& context, uint32_t b) const;
  Status upload(DeviceContext& context, const Port& port, RunContext& run) const;
  /// False: nothing was submitted, what it moved is there.
  Result<bool> download(DeviceContext& context, const Port& port, RunContext& run) const;

private:
  Result<bool> bindInPlace(DeviceContext& context, const Port& port, RunContext& run) const;
  Result<bool> copyByDevice(DeviceContext& context, const Port& port, const BufferRef& other,
                            bool toOther, RunContext& run) const;
  Result<MemoryPtr> windowTo(BoundPort& bound, uint32_t space, const BufferRef& other,
                             uint64_t bytes) const;

  const cdl_image_t* image_;
  plugin::Device& device_;
};

} // namespace candela::runtime::session
