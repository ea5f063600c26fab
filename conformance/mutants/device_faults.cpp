// Faults of backends that have several devices open, or several memory spaces.
#include <candela/backend.hpp>

#include <map>
#include <mutex>
#include <set>

#include "conformance/mutants/catalogue.h"

namespace candela::conformance::mutants {
namespace {

cdl_plugin_t original;  ///< of the table whose slots were replaced
std::mutex deviceMutex; ///< of what the faults below keep

cdl::Memory* of(cdl_memory_t* memory) { return reinterpret_cast<cdl::Memory*>(memory); }
cdl::Queue* of(cdl_queue_t* queue) { return reinterpret_cast<cdl::Queue*>(queue); }

// ---- Devices that share what each should have

/// One memory, which each device divides for itself, from its begin.
struct SharedMemory {
  struct Share {
    uint64_t used = 0, buffers = 0;
  };
  static constexpr uint64_t kBytes = 1 << 22, kAlignment = 4096;
  alignas(kAlignment) char bytes[kBytes];
  std::map<cdl_device_t*, Share> shares;

  bool holds(const void* at) const { return at >= bytes && at < bytes + kBytes; }
};
SharedMemory& sharedMemory() {
  static SharedMemory memory;
  return memory;
}
cdl_code_t createInShared(cdl_device_t* device, uint32_t space, uint64_t bytes, uint64_t alignment,
                          cdl_memory_t** memory, cdl_error_t* error) {
  const cdl_code_t code = original.memory_create(device, space, bytes, alignment, memory, error);
  if (code != CDL_OK || alignment > SharedMemory::kAlignment) return code;
  const std::lock_guard lock(deviceMutex);
  SharedMemory& all = sharedMemory();
  SharedMemory::Share& share = all.shares[device];
  const uint64_t at = (share.used + alignment - 1) / alignment * alignment;
  if (bytes > SharedMemory::kBytes || at > SharedMemory::kBytes - bytes) return code;
  of(*memory)->data = all.bytes + at;
  share.used = at + bytes;
  ++share.buffers;
  return code;
}
void destroyInShared(cdl_device_t* device, cdl_memory_t* memory) {
  {
    const std::lock_guard lock(deviceMutex);
    SharedMemory::Share& share = sharedMemory().shares[device];
    const bool isLast = sharedMemory().holds(of(memory)->data) && --share.buffers == 0;
    if (isLast) share.used = 0;
  }
  original.memory_destroy(device, memory);
}

/// The first queue of each device has the same timeline, and so has the second.
struct SharedTimelines {
  struct Timeline {
    uint64_t reached = 0;
    std::set<cdl_queue_t*> queues;
  };
  std::vector<Timeline> timelines;

  Timeline* of(cdl_queue_t* queue) {
    for (Timeline& timeline : timelines)
      if (timeline.queues.contains(queue)) return &timeline;
    return nullptr;
  }
};
SharedTimelines sharedTimelines;
cdl_code_t createWithShared(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error) {
  const cdl_code_t code = original.queue_create(device, queue, error);
  if (code != CDL_OK) return code;
  const std::lock_guard lock(deviceMutex);
  std::vector<SharedTimelines::Timeline>& all = sharedTimelines.timelines;
  const auto isFree = [&](const SharedTimelines::Timeline& timeline) {
    return std::ranges::none_of(timeline.queues, [&](cdl_queue_t* other) {
      return of(other)->backend() == of(*queue)->backend();
    });
  };
  auto at = std::ranges::find_if(all, isFree);
  if (at == all.end()) at = all.insert(all.end(), SharedTimelines::Timeline{});
  at->queues.insert(*queue);
  return code;
}
void destroyWithShared(cdl_device_t* device, cdl_queue_t* queue) {
  {
    const std::lock_guard lock(deviceMutex);
    SharedTimelines::Timeline& timeline = *sharedTimelines.of(queue);
    timeline.queues.erase(queue);
    if (timeline.queues.empty()) timeline.reached = 0;
  }
  original.queue_destroy(device, queue);
}
cdl_code_t signalShared(cdl_queue_t* queue, uint64_t value, cdl_error_t* error) {
  {
    const std::lock_guard lock(deviceMutex);
    SharedTimelines::Timeline& timeline = *sharedTimelines.of(queue);
    timeline.reached = std::max(timeline.reached, value);
  }
  return original.queue_signal(queue, value, error);
}
cdl_code_t waitForShared(cdl_queue_t* queue, uint64_t value, uint64_t timeout, cdl_error_t* error) {
  {
    const std::lock_guard lock(deviceMutex);
    if (value <= sharedTimelines.of(queue)->reached) return CDL_OK;
  }
  return original.queue_wait(queue, value, timeout, error);
}

/// Once somebody asked for two spaces, all devices that are opened have them.
cdl_code_t openWithOldOptions(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                              uint32_t count, cdl_device_t** device, cdl_error_t* error) {
  static bool wantsTwo = false;
  const std::string name = "spaces";
  std::vector<cdl_option_t> kept;
  for (uint32_t i = 0; i < count; ++i) {
    if (options[i].name != name) kept.push_back(options[i]);
    wantsTwo |= options[i].name == name && options[i].value == std::string("2");
  }
  if (wantsTwo) kept.push_back({name.c_str(), "2"});
  return original.device_open(host, index, kept.data(), static_cast<uint32_t>(kept.size()), device,
                              error);
}

/// Who imports bytes that another device has imported gets a copy, which nobody brings back.
cdl_code_t importForOne(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                        cdl_memory_t** memory, cdl_error_t* error) {
  static std::map<void*, cdl_device_t*> owners;
  const std::lock_guard lock(deviceMutex);
  if (owners.try_emplace(data, device).first->second == device)
    return original.memory_import(device, space, data, bytes, memory, error);
  constexpr uint64_t kAlignment = 64;
  void* copy = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memcpy(copy, data, bytes);
  return original.memory_import(device, space, copy, bytes, memory, error);
}

// ---- Copies between memory spaces; within one they are right

template <class Alter>
cdl_code_t copyBetween(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from,
                       uint64_t fromOffset, uint64_t bytes, cdl_error_t* error) {
  if (of(to)->space == of(from)->space)
    return original.queue_copy(queue, to, toOffset, from, fromOffset, bytes, error);
  return Alter::copy(queue, to, toOffset, from, fromOffset, bytes, error);
}
template <int kWhich> struct FromStart {
  static cdl_code_t copy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
    return original.queue_copy(queue, to, kWhich == 0 ? 0 : toOffset, from,
                               kWhich == 1 ? 0 : fromOffset, bytes, error);
  }
};
struct Backwards {
  static cdl_code_t copy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
    return original.queue_copy(queue, from, fromOffset, to, toOffset, bytes, error);
  }
};
struct AllButOne {
  static cdl_code_t copy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
    return original.queue_copy(queue, to, toOffset, from, fromOffset, bytes ? bytes - 1 : 0, error);
  }
};
/// Into the other space, and not out of it.
struct OneWay {
  static cdl_code_t copy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
    if (of(to)->space == 0) return CDL_OK;
    return original.queue_copy(queue, to, toOffset, from, fromOffset, bytes, error);
  }
};
/// Some take "no bytes" for "all of them".
struct NothingIsAll {
  static cdl_code_t copy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                         cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes,
                         cdl_error_t* error) {
    const uint64_t all = std::min(of(to)->bytes - toOffset, of(from)->bytes - fromOffset);
    return original.queue_copy(queue, to, toOffset, from, fromOffset, bytes ? bytes : all, error);
  }
};

} // namespace

void addDeviceFaults(Catalogue& catalogue) {
  const auto device = [&](const char* faultClass, const char* variant,
                          void (*alter)(cdl_plugin_t&)) {
    catalogue.add(faultClass, "device", {}, variant).table = alter;
  };
  device("not_there", "", [](cdl_plugin_t& table) { ++table.device_count; });
  device("aliased", "", [](cdl_plugin_t& table) {
    original = table;
    table.memory_create = createInShared;
    table.memory_destroy = destroyInShared;
  });
  device("shared_timeline", "", [](cdl_plugin_t& table) {
    original = table;
    table.queue_create = createWithShared;
    table.queue_destroy = destroyWithShared;
    table.queue_signal = signalShared;
    table.queue_wait = waitForShared;
  });
  device("options_kept", "", [](cdl_plugin_t& table) {
    original = table;
    table.device_open = openWithOldOptions;
  });
  device("never_writes_back", "import", [](cdl_plugin_t& table) {
    original = table;
    table.memory_import = importForOne;
  });
  const auto space = [&](const char* faultClass, const char* variant,
                         void (*alter)(cdl_plugin_t&)) {
    Fault& fault = catalogue.add(faultClass, "space", {}, variant);
    fault.hasTwoSpaces = true;
    fault.table = alter;
  };
#define CDL_COPY(faultClass, variant, Alter)                                                       \
  space(faultClass, variant,                                                                       \
        [](cdl_plugin_t& table) { original = table, table.queue_copy = copyBetween<Alter>; })
  CDL_COPY("offset_ignored", "to", FromStart<0>);
  CDL_COPY("offset_ignored", "from", FromStart<1>);
  CDL_COPY("swapped_operands", "", Backwards);
  CDL_COPY("one_too_few", "", AllButOne);
  CDL_COPY("one_way", "", OneWay);
  CDL_COPY("nothing_is_all", "", NothingIsAll);
#undef CDL_COPY
}

} // namespace candela::conformance::mutants
