#include "core/runtime/session/device_context.h"

#include <cstring>

namespace candela::runtime::session {

DeviceContext::~DeviceContext() {
  if (control) control->leave(*queue);
}

void DeviceContext::bind(const cdl_image_t* image, uint32_t b, const MemoryPtr& at,
                         uint64_t offset) {
  memory[b] = at;
  bindings[b] = {at ? at->handle() : nullptr, offset, cdl_get_buffer(image, b)->bytes};
  void* const mapped = at ? at->mapped() : nullptr;
  addresses[b] = mapped ? static_cast<char*>(mapped) + offset : nullptr;
}

namespace {

/// Whether a buffer may lie there as far as alignment goes.
bool isAligned(const BufferRef& at, uint64_t alignment) {
  if (alignment <= 1) return true;
  if (at.host) return reinterpret_cast<uintptr_t>(at.host) % alignment == 0;
  return at.memory->alignment() % alignment == 0 && at.offset % alignment == 0;
}

} // namespace

/// Memory that the device executes on as it is, or that it imports.
Result<bool> PortMover::bindInPlace(DeviceContext& context, const Port& port,
                                    RunContext& run) const {
  BoundPort& bound = context.ports[port.buffer];
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
  const BufferRef& at = port.isOutput() ? bound.wanted : bound.given;
  const bool isOwn = at.isOn(&device_) && at.space == buffer.space && !port.isBoth();
  if (isOwn && isAligned(at, buffer.alignment)) {
    context.bind(image_, port.buffer, at.memory, at.offset);
    return true;
  }
  // Of both, the input's bytes are written to where the output is wanted.
  const bool isSeen = at.host && (!port.isBoth() || bound.given.host);
  if (!isSeen) return false;
  CDL_ASSIGN(const bool isImported,
             device_.import(bound.imported, buffer.space - 1, at.host, buffer.bytes));
  if (isImported) context.bind(image_, port.buffer, bound.imported, 0);
  if (!isImported && at.isState) run.stats.stateBytes += buffer.bytes;
  return isImported;
}

Status PortMover::place(DeviceContext& context, const Port& port, BufferRef given, BufferRef wanted,
                        RunContext& run) const {
  BoundPort& bound = context.ports[port.buffer];
  bound.given = std::move(given);
  bound.wanted = std::move(wanted);
  CDL_ASSIGN(bound.inPlace, bindInPlace(context, port, run));
  if (bound.inPlace) return Status::ok();
  CDL_TRY(makeOwn(context, port.buffer));
  context.bind(image_, port.buffer, bound.own, 0);
  return Status::ok();
}

Status PortMover::makeOwn(DeviceContext& context, uint32_t b) const {
  MemoryPtr& own = context.ports[b].own;
  if (own) return Status::ok();
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
  CDL_ASSIGN(own, device_.allocate(buffer.space - 1, buffer.bytes, buffer.alignment)
                      .context(fmt::format("value '{}'", cdl_get_string(image_, buffer.name))));
  return Status::ok();
}

/// Memory by which queue_copy reaches the bytes at `other`; null where there is none.
Result<MemoryPtr> PortMover::windowTo(BoundPort& bound, uint32_t space, const BufferRef& other,
                                      uint64_t bytes) const {
  if (other.isOn(&device_)) return other.memory;
  const auto& spaces = device_.target().spaces();
  for (uint32_t s = 0; other.host && s < spaces.size(); ++s) {
    const bool isOrdinary = !(spaces[s].space.flags & (CDL_SPACE_LOCAL | CDL_SPACE_CONSTANTS));
    if (s + 1 == space || !isOrdinary) continue;
    CDL_ASSIGN(const bool isImported, device_.import(bound.window, s, other.host, bytes));
    if (isImported) return bound.window;
  }
  return MemoryPtr();
}

/// Submits a copy between the context's own memory of a port and another place; false where the
/// device cannot reach that.
Result<bool> PortMover::copyByDevice(DeviceContext& context, const Port& port,
                                     const BufferRef& other, bool toOther, RunContext& run) const {
  BoundPort& bound = context.ports[port.buffer];
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
  CDL_ASSIGN(const MemoryPtr window, windowTo(bound, buffer.space, other, buffer.bytes));
  if (!window) return false;
  const uint64_t offset = window == other.memory ? other.offset : 0;
  const Span span("device copy", cdl_get_string(image_, buffer.name), buffer.bytes);
  if (toOther)
    CDL_TRY(context.queue->copy(*window, offset, *bound.own, 0, buffer.bytes));
  else
    CDL_TRY(context.queue->copy(*bound.own, 0, *window, offset, buffer.bytes));
  ++run.stats.deviceCopies;
  run.stats.deviceCopiedBytes += buffer.bytes;
  return true;
}

Status PortMover::upload(DeviceContext& context, const Port& port, RunContext& run) const {
  BoundPort& bound = context.ports[port.buffer];
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
  if (bound.inPlace) {
    std::byte* const to = port.isBoth() ? bound.wanted.host : bound.given.host;
    if (bound.given.host != to && buffer.bytes) std::memcpy(to, bound.given.host, buffer.bytes);
    return Status::ok();
  }
  CDL_ASSIGN(const bool isCopied, copyByDevice(context, port, bound.given, false, run));
  if (isCopied) return Status::ok();
  const char* const name = cdl_get_string(image_, buffer.name);
  if (!bound.given.host && buffer.bytes)
    return failure(Code::internal, "value '{}' lies where neither device nor host sees it", name);
  const Span span("upload", name, buffer.bytes);
  return context.queue->write(*context.memory[port.buffer], 0, bound.given.host, buffer.bytes);
}

Result<bool> PortMover::download(DeviceContext& context, const Port& port, RunContext& run) const {
  BoundPort& bound = context.ports[port.buffer];
  if (bound.inPlace) return false;
  const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
  CDL_ASSIGN(const bool isCopied, copyByDevice(context, port, bound.wanted, true, run));
  if (isCopied) return true;
  const char* const name = cdl_get_string(image_, buffer.name);
  if (!bound.wanted.host && buffer.bytes)
    return failure(Code::internal, "value '{}' goes where neither device nor host sees it", name);
  const Span span("download", name, buffer.bytes);
  CDL_TRY(context.queue->read(*context.memory[port.buffer], 0, bound.wanted.host, buffer.bytes));
  return false;
}

} // namespace candela::runtime::session
