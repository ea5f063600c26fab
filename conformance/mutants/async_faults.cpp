// Faults of backends whose queues wait for each other: executions that wait and signal, cancelled
// queues, profiles of queues that work at the same time.
#include <candela/backend.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "conformance/mutants/catalogue.h"

namespace candela::conformance::mutants {
namespace {

cdl_plugin_t original; ///< of the table whose slots were replaced
std::mutex asyncMutex; ///< of what the faults below keep

cdl::Queue* queueOf(cdl_queue_t* queue) { return reinterpret_cast<cdl::Queue*>(queue); }

/// The queues that an execution is on its way on, waits and all.
std::multiset<cdl_queue_t*> busyQueues;
bool isBusy(cdl_queue_t* queue) {
  const std::lock_guard lock(asyncMutex);
  return busyQueues.contains(queue);
}
class Busy {
public:
  explicit Busy(cdl_queue_t* queue) : queue_(queue) {
    const std::lock_guard lock(asyncMutex);
    busyQueues.insert(queue_);
  }
  ~Busy() {
    const std::lock_guard lock(asyncMutex);
    busyQueues.extract(queue_);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

private:
  cdl_queue_t* queue_;
};
cdl_code_t executeCounted(cdl_queue_t* queue, cdl_executable_t* executable,
                          const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                          uint32_t waits, cdl_timeline_t signal, cdl_error_t* error) {
  const Busy busy(queue);
  return original.execute(queue, executable, bindings, wait, waits, signal, error);
}

// ---- What an execution waits for

template <uint32_t kMost>
cdl_code_t executeSoon(cdl_queue_t* queue, cdl_executable_t* executable,
                       const cdl_bindings_t* bindings, const cdl_timeline_t* wait, uint32_t waits,
                       cdl_timeline_t signal, cdl_error_t* error) {
  return original.execute(queue, executable, bindings, wait, std::min(waits, kMost), signal, error);
}
cdl_code_t executeAfterFirstValue(cdl_queue_t* queue, cdl_executable_t* executable,
                                  const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                                  uint32_t waits, cdl_timeline_t signal, cdl_error_t* error) {
  std::vector<cdl_timeline_t> first(wait, wait + waits);
  for (cdl_timeline_t& one : first) one.value = std::min<uint64_t>(one.value, 1);
  return original.execute(queue, executable, bindings, first.data(), waits, signal, error);
}
/// One that is too short for the work ends with it.
cdl_code_t waitForWork(cdl_queue_t* queue, uint64_t value, uint64_t timeout, cdl_error_t* error) {
  return original.queue_wait(queue, value, isBusy(queue) ? UINT64_MAX : timeout, error);
}

// ---- What it leaves behind

cdl_code_t signalFirst(cdl_queue_t* queue, cdl_executable_t* executable,
                       const cdl_bindings_t* bindings, const cdl_timeline_t* wait, uint32_t waits,
                       cdl_timeline_t signal, cdl_error_t* error) {
  if (signal.queue) queueOf(signal.queue)->signal(signal.value);
  return original.execute(queue, executable, bindings, wait, waits, {nullptr, 0}, error);
}

cdl_code_t waitForAll(const cdl_timeline_t* wait, uint32_t waits, cdl_error_t* error) {
  for (uint32_t i = 0; i < waits; ++i)
    if (const cdl_code_t code =
            original.queue_wait(wait[i].queue, wait[i].value, UINT64_MAX, error))
      return code;
  return CDL_OK;
}

/// The executable keeps one set of bindings, the last one.
cdl_code_t executeLastBindings(cdl_queue_t* queue, cdl_executable_t* executable,
                               const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                               uint32_t waits, cdl_timeline_t signal, cdl_error_t* error) {
  static std::map<cdl_executable_t*, std::vector<cdl_binding_t>> kept;
  {
    const std::lock_guard lock(asyncMutex);
    kept[executable].assign(bindings->buffers, bindings->buffers + bindings->count);
  }
  if (const cdl_code_t code = waitForAll(wait, waits, error)) return code;
  std::vector<cdl_binding_t> last;
  {
    const std::lock_guard lock(asyncMutex);
    last = kept[executable];
  }
  const cdl_bindings_t all{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(last.size()), 0,
                           last.data()};
  return original.execute(queue, executable, &all, nullptr, 0, signal, error);
}

/// Work that waits goes to a thread, which nobody waits for when the queue goes.
struct Detached {
  cdl_queue_t* queue;
  cdl_executable_t* executable;
  std::vector<cdl_binding_t> buffers;
  std::vector<cdl_timeline_t> waits;
  cdl_timeline_t signal;
};
std::set<cdl_queue_t*> liveQueues;
void runDetached(const Detached& work) {
  // The queue that it came by may be gone when it runs.
  auto* const device =
      reinterpret_cast<cdl_device_t*>(queueOf(work.waits.front().queue)->backend());
  cdl_queue_t* own = nullptr;
  if (waitForAll(work.waits.data(), static_cast<uint32_t>(work.waits.size()), nullptr)) return;
  if (original.queue_create(device, &own, nullptr)) return;
  const cdl_bindings_t all{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(work.buffers.size()),
                           0, work.buffers.data()};
  (void)original.execute(own, work.executable, &all, nullptr, 0, {nullptr, 0}, nullptr);
  original.queue_destroy(device, own);
  const std::lock_guard lock(asyncMutex);
  if (liveQueues.contains(work.signal.queue)) queueOf(work.signal.queue)->signal(work.signal.value);
}
cdl_code_t executeDetached(cdl_queue_t* queue, cdl_executable_t* executable,
                           const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                           uint32_t waits, cdl_timeline_t signal, cdl_error_t* error) {
  if (waits == 0) return original.execute(queue, executable, bindings, wait, waits, signal, error);
  Detached work{queue,
                executable,
                {bindings->buffers, bindings->buffers + bindings->count},
                {wait, wait + waits},
                signal};
  std::thread([work = std::move(work)] { runDetached(work); }).detach();
  return CDL_OK;
}
cdl_code_t createLive(cdl_device_t* device, cdl_queue_t** queue, cdl_error_t* error) {
  const cdl_code_t code = original.queue_create(device, queue, error);
  const std::lock_guard lock(asyncMutex);
  if (code == CDL_OK) liveQueues.insert(*queue);
  return code;
}
void destroyLive(cdl_device_t* device, cdl_queue_t* queue) {
  {
    const std::lock_guard lock(asyncMutex);
    liveQueues.erase(queue);
  }
  original.queue_destroy(device, queue);
}

// ---- Cancelled queues

/// Waits for the work that it is to give up.
cdl_code_t cancelLater(cdl_queue_t* queue, cdl_error_t*) {
  while (isBusy(queue)) std::this_thread::yield();
  return CDL_OK;
}
cdl_code_t cancelNothing(cdl_queue_t*, cdl_error_t*) { return CDL_OK; }
/// What is given up counts as done.
cdl_code_t cancelAsDone(cdl_queue_t* queue, cdl_error_t*) {
  if (isBusy(queue)) queueOf(queue)->signal(UINT64_MAX);
  return CDL_OK;
}
cdl_code_t cancelIdle(cdl_queue_t* queue, cdl_error_t*) {
  queueOf(queue)->fail(cdl::error(CDL_CANCELLED, "the queue was cancelled"));
  return CDL_OK;
}
cdl_code_t cancelAll(cdl_queue_t*, cdl_error_t* error) {
  std::vector<cdl_queue_t*> queues;
  {
    const std::lock_guard lock(asyncMutex);
    queues.assign(busyQueues.begin(), busyQueues.end());
  }
  for (cdl_queue_t* queue : queues)
    if (const cdl_code_t code = original.cancel(queue, error)) return code;
  return CDL_OK;
}
/// Says it once.
cdl_code_t waitAndForget(cdl_queue_t* queue, uint64_t value, uint64_t timeout, cdl_error_t* error) {
  static std::set<cdl_queue_t*> told;
  const cdl_code_t code = original.queue_wait(queue, value, timeout, error);
  if (code != CDL_CANCELLED) return code;
  const std::lock_guard lock(asyncMutex);
  if (told.insert(queue).second) return code;
  return cdl_set_error(error, CDL_TIMEOUT, "the timeline does not move");
}

// ---- Profiles

/// Executions of all queues while a profile is recorded stand in it.
std::atomic<uint32_t> executions;
std::map<cdl_queue_t*, uint32_t> profiles; ///< how many there were when it began
std::map<cdl_queue_t*, uint32_t> ownExecutions;
cdl_code_t executeForAll(cdl_queue_t* queue, cdl_executable_t* executable,
                         const cdl_bindings_t* bindings, const cdl_timeline_t* wait, uint32_t waits,
                         cdl_timeline_t signal, cdl_error_t* error) {
  {
    const std::lock_guard lock(asyncMutex);
    ++executions;
    ++ownExecutions[queue];
  }
  return original.execute(queue, executable, bindings, wait, waits, signal, error);
}
cdl_code_t beginForAll(cdl_queue_t* queue, cdl_error_t* error) {
  const std::lock_guard lock(asyncMutex);
  ownExecutions[queue] = 0;
  profiles[queue] = executions;
  return original.profile_begin(queue, error);
}
cdl_code_t endForAll(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity,
                     uint32_t* count, cdl_error_t* error) {
  const cdl_code_t code = original.profile_end(queue, records, capacity, count, error);
  if (code != CDL_OK) return code;
  const std::lock_guard lock(asyncMutex);
  const uint32_t strays = executions - profiles[queue] - ownExecutions[queue];
  for (uint32_t i = 0; i < strays && *count < capacity; ++i) records[(*count)++] = {};
  return code;
}

} // namespace

void addAsyncFaults(Catalogue& catalogue) {
  const auto add = [&](const char* faultClass, const char* subject, const char* variant,
                       void (*alter)(cdl_plugin_t&)) -> Fault& {
    Fault& fault = catalogue.add(faultClass, subject, {}, variant);
    fault.compiles = true;
    fault.table = alter;
    return fault;
  };
#define CDL_EXECUTE(faultClass, variant, function)                                                 \
  add(faultClass, "execution", variant,                                                            \
      [](cdl_plugin_t& table) { original = table, table.execute = function; })
  CDL_EXECUTE("wait_ignored", "all", executeSoon<0>);
  CDL_EXECUTE("wait_ignored", "but_first", executeSoon<1>);
  CDL_EXECUTE("any_value", "", executeAfterFirstValue);
  CDL_EXECUTE("signal_early", "", signalFirst);
  CDL_EXECUTE("bindings_kept", "", executeLastBindings);
#undef CDL_EXECUTE
  add("timeout_ignored", "execution", "", [](cdl_plugin_t& table) {
    original = table;
    table.execute = executeCounted;
    table.queue_wait = waitForWork;
  }).hangs = true;
  add("outlives_queue", "execution", "", [](cdl_plugin_t& table) {
    original = table;
    table.execute = executeDetached;
    table.queue_create = createLive;
    table.queue_destroy = destroyLive;
  });
  add("stray_records", "execution", "", [](cdl_plugin_t& table) {
    original = table;
    table.execute = executeForAll;
    table.profile_begin = beginForAll;
    table.profile_end = endForAll;
  });
#define CDL_CANCEL(faultClass, function)                                                           \
  add(faultClass, "cancel", "", [](cdl_plugin_t& table) {                                          \
    original = table;                                                                              \
    table.execute = executeCounted;                                                                \
    table.cancel = function;                                                                       \
  })
  CDL_CANCEL("waits_for_work", cancelLater).hangs = true;
  CDL_CANCEL("does_nothing", cancelNothing);
  CDL_CANCEL("lies", cancelAsDone);
  CDL_CANCEL("takes_idle", cancelIdle);
  CDL_CANCEL("takes_others", cancelAll);
#undef CDL_CANCEL
  add("said_once", "cancel", "", [](cdl_plugin_t& table) {
    original = table;
    table.queue_wait = waitAndForget;
  });
}

} // namespace candela::conformance::mutants
