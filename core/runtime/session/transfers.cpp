#include "core/runtime/session/transfers.h"

#include <cstring>

namespace candela::runtime::session {
namespace {

/// Submits the move to a queue of a device that one side lies on, and waits for it.
Status submit(plugin::Queue& queue, bool isWithin, const BufferRef& from, const BufferRef& to,
              uint64_t bytes, RunStats& stats) {
  if (isWithin) {
    CDL_TRY(queue.copy(*to.memory, to.offset, *from.memory, from.offset, bytes));
    ++stats.deviceCopies;
    stats.deviceCopiedBytes += bytes;
    return queue.drain();
  }
  if (from.host) {
    CDL_TRY(queue.write(*to.memory, to.offset, from.host, bytes));
    return queue.drain();
  }
  return queue.read(*from.memory, from.offset, to.host, bytes);
}

} // namespace

Transfers::Queues& Transfers::queuesOf(const plugin::Device* device) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Queues>& queues = queues_[device];
  if (!queues) queues = std::make_unique<Queues>();
  return *queues;
}

Status Transfers::moveBy(const std::shared_ptr<plugin::Device>& device, const BufferRef& from,
                         const BufferRef& to, uint64_t bytes, RunStats& stats) {
  Queues& queues = queuesOf(device.get());
  std::unique_ptr<std::shared_ptr<plugin::Queue>> queue = queues.take();
  if (!queue) {
    CDL_ASSIGN(std::shared_ptr<plugin::Queue> made, device->createQueue());
    queue = std::make_unique<std::shared_ptr<plugin::Queue>>(std::move(made));
  }
  const bool isWithin = from.isOn(device.get()) && to.isOn(device.get());
  CDL_TRY(submit(**queue, isWithin, from, to, bytes, stats));
  queues.put(std::move(queue)); // after a failure it is only destroyed
  return Status::ok();
}

Status Transfers::move(const BufferRef& from, const BufferRef& to, uint64_t bytes,
                       RunStats& stats) {
  if (bytes == 0 || from.isSame(to)) return Status::ok();
  if (from.memory && to.isOn(from.device.get())) return moveBy(from.device, from, to, bytes, stats);
  if (from.host && to.host) {
    std::memmove(to.host, from.host, bytes);
    return Status::ok();
  }
  if (from.host) return moveBy(to.device, from, to, bytes, stats);
  if (to.host) return moveBy(from.device, from, to, bytes, stats);
  CDL_ASSIGN(Bytes staged, Bytes::allocate(bytes));
  stats.stagedBytes += bytes;
  const BufferRef between = BufferRef::onHost(staged.data());
  CDL_TRY(moveBy(from.device, from, between, bytes, stats));
  return moveBy(to.device, between, to, bytes, stats);
}

} // namespace candela::runtime::session
