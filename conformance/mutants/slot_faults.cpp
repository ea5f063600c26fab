// Faults of memory, queues and errors: slots of the table that do something else than they should.
#include <candela/backend.hpp>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "conformance/mutants/catalogue.h"

namespace candela::conformance::mutants {
namespace {

cdl_plugin_t original; ///< of the table whose slots were replaced

cdl::Memory* of(cdl_memory_t* memory) { return reinterpret_cast<cdl::Memory*>(memory); }

// ---- A slot with something around it

template <auto Slot, class Around> struct Wrapped;
template <class... Args, cdl_code_t (*cdl_plugin_t::*Slot)(Args...), class Around>
struct Wrapped<Slot, Around> {
  static cdl_code_t call(Args... args) { return Around::call(original.*Slot, args...); }
};
template <class Around, auto... Slots> void wrap(cdl_plugin_t& table) {
  original = table;
  ((table.*Slots = Wrapped<Slots, Around>::call), ...);
}
template <class Around> void wrapMemory(cdl_plugin_t& table) {
  using T = cdl_plugin_t;
  wrap<Around, &T::memory_create, &T::memory_map, &T::queue_write, &T::queue_read, &T::queue_copy>(
      table);
}

cdl_error_t* errorOf(cdl_error_t* error) { return error; }
template <class First, class... Rest> cdl_error_t* errorOf(First, Rest... rest) {
  return errorOf(rest...);
}

struct LoseError {
  template <class Slot, class... Args> static cdl_code_t call(Slot slot, Args... args) {
    (void)slot(args...);
    return CDL_OK;
  }
};
template <cdl_code_t kCode> struct RenameError {
  template <class Slot, class... Args> static cdl_code_t call(Slot slot, Args... args) {
    const cdl_code_t code = slot(args...);
    if (code != CDL_OK) return kCode;
    return CDL_OK;
  }
};
struct SayNothing {
  template <class Slot, class... Args> static cdl_code_t call(Slot slot, Args... args) {
    const cdl_code_t code = slot(args...);
    if (cdl_error_t* error = errorOf(args...); error && error->capacity) error->text[0] = '\0';
    return code;
  }
};
/// As long as it likes, whatever the room.
struct SayTooMuch {
  template <class Slot, class... Args> static cdl_code_t call(Slot slot, Args... args) {
    const cdl_code_t code = slot(args...);
    cdl_error_t* error = errorOf(args...);
    if (code != CDL_OK && error && error->capacity) {
      std::fill_n(error->text, error->capacity, 'x');
      error->text[error->capacity] = '\0';
    }
    return code;
  }
};
/// After one error nothing works any more.
struct StayBroken {
  static inline std::atomic<bool> broken = false;
  template <class Slot, class... Args> static cdl_code_t call(Slot slot, Args... args) {
    if (broken) return CDL_DEVICE_LOST;
    const cdl_code_t code = slot(args...);
    broken = code != CDL_OK;
    return code;
  }
};

// ---- Memory

template <int kWhich>
cdl_code_t copyAtStart(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from,
                       uint64_t fromOffset, uint64_t bytes, cdl_error_t* error) {
  return original.queue_copy(queue, to, kWhich == 0 ? 0 : toOffset, from,
                             kWhich == 1 ? 0 : fromOffset, bytes, error);
}
cdl_code_t writeAtStart(cdl_queue_t* queue, cdl_memory_t* to, uint64_t, const void* from,
                        uint64_t bytes, cdl_error_t* error) {
  return original.queue_write(queue, to, 0, from, bytes, error);
}
cdl_code_t readAtStart(cdl_queue_t* queue, cdl_memory_t* from, uint64_t, void* to, uint64_t bytes,
                       cdl_error_t* error) {
  return original.queue_read(queue, from, 0, to, bytes, error);
}
cdl_code_t mapAtStart(cdl_device_t* device, cdl_memory_t* memory, uint64_t, uint64_t bytes,
                      void** pointer, cdl_error_t* error) {
  return original.memory_map(device, memory, 0, bytes, pointer, error);
}

/// One byte more or less than asked for, where there is one.
template <int kMore> uint64_t about(uint64_t bytes, const cdl::Memory& memory, uint64_t offset) {
  if (kMore < 0) return bytes ? bytes - 1 : 0;
  return bytes && offset + bytes < memory.bytes ? bytes + 1 : bytes;
}
template <int kMore>
cdl_code_t writeAbout(cdl_queue_t* queue, cdl_memory_t* to, uint64_t offset, const void* from,
                      uint64_t bytes, cdl_error_t* error) {
  const uint64_t wanted = about<kMore>(bytes, *of(to), offset);
  std::vector<char> content(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  content.resize(wanted, '#');
  return original.queue_write(queue, to, offset, content.data(), wanted, error);
}
template <int kMore>
cdl_code_t copyAbout(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from,
                     uint64_t fromOffset, uint64_t bytes, cdl_error_t* error) {
  const uint64_t wanted = about<kMore>(bytes, *of(to), toOffset);
  return original.queue_copy(queue, to, toOffset, from, fromOffset,
                             std::min(wanted, about<kMore>(bytes, *of(from), fromOffset)), error);
}
cdl_code_t readLess(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to,
                    uint64_t bytes, cdl_error_t* error) {
  return original.queue_read(queue, from, offset, to, bytes ? bytes - 1 : 0, error);
}

cdl_code_t createAskew(cdl_device_t* device, uint32_t space, uint64_t bytes, uint64_t alignment,
                       cdl_memory_t** memory, cdl_error_t* error) {
  if (bytes > UINT64_MAX - 8)
    return original.memory_create(device, space, bytes, alignment, memory, error);
  const cdl_code_t code =
      original.memory_create(device, space, bytes + 8, alignment, memory, error);
  if (code != CDL_OK) return code;
  of(*memory)->data = static_cast<char*>(of(*memory)->data) + 8;
  of(*memory)->bytes = bytes;
  return code;
}

/// Small buffers all lie in one place.
cdl_code_t createAlike(cdl_device_t* device, uint32_t space, uint64_t bytes, uint64_t alignment,
                       cdl_memory_t** memory, cdl_error_t* error) {
  alignas(4096) static char place[1 << 16];
  const cdl_code_t code = original.memory_create(device, space, bytes, alignment, memory, error);
  if (code == CDL_OK && bytes <= sizeof place && alignment <= 4096) of(*memory)->data = place;
  return code;
}
void keepForEver(cdl_device_t*, cdl_memory_t*) {}

/// The host gets a copy, which nobody brings back.
cdl_code_t mapCopy(cdl_device_t* device, cdl_memory_t* memory, uint64_t offset, uint64_t bytes,
                   void** pointer, cdl_error_t* error) {
  const cdl_code_t code = original.memory_map(device, memory, offset, bytes, pointer, error);
  if (code != CDL_OK) return code;
  void* copy = std::malloc(bytes ? bytes : 1);
  if (bytes) std::memcpy(copy, *pointer, bytes);
  *pointer = copy;
  return CDL_OK;
}
cdl_code_t unmapCopy(cdl_device_t*, cdl_memory_t*, void* pointer, cdl_error_t*) {
  std::free(pointer);
  return CDL_OK;
}

// ---- Bytes of the host

/// Of a copy of them, which nobody brings back.
cdl_code_t importCopy(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                      cdl_memory_t** memory, cdl_error_t* error) {
  constexpr uint64_t kAlignment = 64;
  void* copy = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memcpy(copy, data, bytes);
  return original.memory_import(device, space, copy, bytes, memory, error);
}
cdl_code_t importOnce(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                      cdl_memory_t** memory, cdl_error_t* error) {
  if (*memory) return CDL_OK;
  return original.memory_import(device, space, data, bytes, memory, error);
}
cdl_code_t importLess(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                      cdl_memory_t** memory, cdl_error_t* error) {
  return original.memory_import(device, space, data, bytes > 1 ? bytes - 1 : bytes, memory, error);
}
/// As if whatever a host has lay as buffers of the device do.
cdl_code_t importAligned(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                         cdl_memory_t** memory, cdl_error_t* error) {
  const uint64_t behind = reinterpret_cast<uintptr_t>(data) % 64;
  return original.memory_import(device, space, static_cast<char*>(data) - behind, bytes, memory,
                                error);
}

// ---- Queues

cdl_code_t waitForNothing(cdl_queue_t*, uint64_t, uint64_t, cdl_error_t*) { return CDL_OK; }
cdl_code_t waitWithoutLimit(cdl_queue_t* queue, uint64_t value, uint64_t, cdl_error_t* error) {
  return original.queue_wait(queue, value, UINT64_MAX, error);
}
cdl_code_t giveUp(cdl_queue_t* queue, uint64_t value, uint64_t, cdl_error_t* error) {
  return original.queue_wait(queue, value, 0, error);
}
cdl_code_t signalNothing(cdl_queue_t*, uint64_t, cdl_error_t*) { return CDL_OK; }
cdl_code_t signalLess(cdl_queue_t* queue, uint64_t value, cdl_error_t* error) {
  return original.queue_signal(queue, value - 1, error);
}

/// One timeline for all queues.
std::atomic<uint64_t> highest = 0;
cdl_code_t signalAll(cdl_queue_t* queue, uint64_t value, cdl_error_t* error) {
  highest = std::max(highest.load(), value);
  return original.queue_signal(queue, value, error);
}
cdl_code_t waitForAny(cdl_queue_t* queue, uint64_t value, uint64_t timeout, cdl_error_t* error) {
  if (value <= highest) return CDL_OK;
  return original.queue_wait(queue, value, timeout, error);
}

cdl_code_t copyBackwards(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
  return original.queue_copy(queue, from, fromOffset, to, toOffset, bytes, error);
}

} // namespace

void addSlotFaults(Catalogue& catalogue) {
  const auto add = [&](const char* faultClass, const char* subject, const char* variant,
                       void (*alter)(cdl_plugin_t&)) {
    catalogue.add(faultClass, subject, {}, variant).table = alter;
  };
#define CDL_SLOT(faultClass, subject, variant, slot, function)                                     \
  add(faultClass, subject, variant,                                                                \
      [](cdl_plugin_t& table) { original = table, table.slot = function; })
  CDL_SLOT("offset_ignored", "memory", "map", memory_map, mapAtStart);
  CDL_SLOT("offset_ignored", "memory", "write", queue_write, writeAtStart);
  CDL_SLOT("offset_ignored", "memory", "read", queue_read, readAtStart);
  CDL_SLOT("offset_ignored", "memory", "copy_to", queue_copy, copyAtStart<0>);
  CDL_SLOT("offset_ignored", "memory", "copy_from", queue_copy, copyAtStart<1>);
  CDL_SLOT("one_too_many", "memory", "write", queue_write, writeAbout<1>);
  CDL_SLOT("one_too_many", "memory", "copy", queue_copy, copyAbout<1>);
  CDL_SLOT("one_too_few", "memory", "write", queue_write, writeAbout<-1>);
  CDL_SLOT("one_too_few", "memory", "copy", queue_copy, copyAbout<-1>);
  CDL_SLOT("one_too_few", "memory", "read", queue_read, readLess);
  CDL_SLOT("swapped_operands", "memory", "copy", queue_copy, copyBackwards);
  CDL_SLOT("misaligned", "memory", "", memory_create, createAskew);
  CDL_SLOT("aliased", "memory", "", memory_create, createAlike);
  CDL_SLOT("leak", "memory", "", memory_destroy, keepForEver);
  add("never_writes_back", "memory", "map", [](cdl_plugin_t& table) {
    original = table;
    table.memory_map = mapCopy;
    table.memory_unmap = unmapCopy;
  });
  CDL_SLOT("never_writes_back", "memory", "import", memory_import, importCopy);
  CDL_SLOT("import_kept", "memory", "", memory_import, importOnce);
  CDL_SLOT("one_too_few", "memory", "import", memory_import, importLess);
  CDL_SLOT("misaligned", "memory", "import", memory_import, importAligned);
  CDL_SLOT("wait_ignored", "queue", "", queue_wait, waitForNothing);
  CDL_SLOT("timeout_ignored", "queue", "", queue_wait, waitWithoutLimit);
  CDL_SLOT("gives_up", "queue", "", queue_wait, giveUp);
  CDL_SLOT("signal_lost", "queue", "", queue_signal, signalNothing);
  CDL_SLOT("signal_too_low", "queue", "", queue_signal, signalLess);
  add("shared_timeline", "queue", "", [](cdl_plugin_t& table) {
    original = table;
    table.queue_signal = signalAll;
    table.queue_wait = waitForAny;
  });
#undef CDL_SLOT
  for (const char* name : {"queue.timeout_ignored", "queue.signal_lost", "queue.signal_too_low"})
    catalogue.fault(name).hangs = true;
  using T = cdl_plugin_t;
  add("error_lost", "memory", "create", wrap<LoseError, &T::memory_create>);
  add("error_lost", "memory", "import", wrap<LoseError, &T::memory_import>);
  add("error_lost", "memory", "map", wrap<LoseError, &T::memory_map>);
  add("error_lost", "memory", "write", wrap<LoseError, &T::queue_write>);
  add("error_lost", "memory", "read", wrap<LoseError, &T::queue_read>);
  add("error_lost", "memory", "copy", wrap<LoseError, &T::queue_copy>);
  add("error_lost", "queue", "wait", wrap<LoseError, &T::queue_wait>);
  add("stays_broken", "memory", "", wrapMemory<StayBroken>);
  add("stays_broken", "queue", "", wrap<StayBroken, &T::queue_wait, &T::queue_signal>);
  add("wrong_code", "error", "", wrapMemory<RenameError<CDL_INTERNAL>>);
  add("unknown_code", "error", "", wrapMemory<RenameError<999>>);
  add("no_message", "error", "", wrapMemory<SayNothing>);
  add("message_overrun", "error", "", wrapMemory<SayTooMuch>);
}

} // namespace candela::conformance::mutants
