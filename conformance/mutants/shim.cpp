#include "conformance/mutants/shim.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace candela::conformance::mutants {
namespace {

std::atomic<cdl_backend_query_fn> theBase = nullptr;
cdl_plugin_t theTable{}; ///< the base's, as it was last asked for
std::mutex theMutex;     ///< of the table and of the schema
std::atomic<uint64_t> openDevices, liveMemory, liveQueues, liveExecutables, countedCalls;

struct ShimQueue;

struct ShimDevice {
  cdl_plugin_t base{};
  cdl_device_t* handle = nullptr;
  std::string fault = "none";
  uint64_t at = 0;
  std::atomic<uint64_t> calls = 0, creates = 0, waits = 0;
  std::recursive_mutex mutex; ///< of what follows, and of what queues have not done yet
  std::map<cdl_memory_t*, uint64_t> sizes;
  std::vector<cdl_memory_t*> leaked;
  std::vector<ShimQueue*> queues;

  bool has(const char* name) const { return fault == name; }
  bool isTurn(uint64_t count) const { return at == 0 || count == at; }
  bool defers() const { return has("late") || has("unordered") || has("reversed"); }
  bool holds(cdl_memory_t* memory, uint64_t offset, uint64_t bytes) {
    const std::lock_guard lock(mutex);
    const auto size = sizes.find(memory);
    return size != sizes.end() && offset <= size->second && bytes <= size->second - offset;
  }
};

struct ShimQueue {
  ShimDevice* device = nullptr;
  cdl_queue_t* handle = nullptr;
  std::vector<std::function<void()>> pending;
  size_t waitedFor = 0; ///< how many of them a wait has called done

  void submit(std::function<void()> work) {
    const std::lock_guard lock(device->mutex);
    pending.push_back(std::move(work));
  }
  void flush(size_t count) {
    const std::lock_guard lock(device->mutex);
    std::vector<std::function<void()>> due(pending.begin(),
                                           pending.begin() + static_cast<ptrdiff_t>(count));
    pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(count));
    waitedFor -= std::min(waitedFor, count);
    if (device->has("reversed")) std::reverse(due.begin(), due.end());
    for (const auto& work : due) work();
  }
  void flush() {
    const std::lock_guard lock(device->mutex);
    flush(pending.size());
  }
};

ShimDevice* of(cdl_device_t* device) { return reinterpret_cast<ShimDevice*>(device); }
ShimQueue* of(cdl_queue_t* queue) { return reinterpret_cast<ShimQueue*>(queue); }

/// What a refusal becomes.
cdl_code_t told(const ShimDevice& device, cdl_code_t code, cdl_error_t* error) {
  if (code == CDL_OK) return code;
  if (device.has("lost_code")) return CDL_OK;
  if (device.has("wrong_code")) return code == CDL_INTERNAL ? CDL_IO : CDL_INTERNAL;
  if (device.has("no_message") && error && error->capacity) error->text[0] = '\0';
  if (device.has("long_message") && error && error->text) {
    std::memset(error->text, 'x', error->capacity);
    std::strcpy(error->text + error->capacity, "and more");
  }
  return code;
}

/// Every slot that can be refused goes through here.
template <typename Body> cdl_code_t counted(ShimDevice& device, cdl_error_t* error, Body&& body) {
  ++countedCalls;
  const uint64_t call = ++device.calls;
  if (device.has("device_lost") && call >= device.at)
    return cdl_set_error(error, CDL_DEVICE_LOST, "the device is gone");
  if (device.has("error") && device.isTurn(call))
    return cdl_set_error(error, CDL_INTERNAL, "a fault was asked for");
  if (device.has("unknown_code") && device.isTurn(call)) return cdl_set_error(error, 999, "");
  return told(device, body(), error);
}

void close(cdl_device_t* handle) {
  const std::unique_ptr<ShimDevice> device(of(handle));
  for (cdl_memory_t* memory : device->leaked) device->base.memory_destroy(device->handle, memory);
  device->base.device_close(device->handle);
  --openDevices;
}

cdl_code_t open(const cdl_host_t* host, uint32_t index, const cdl_option_t* options, uint32_t count,
                cdl_device_t** device, cdl_error_t* error) {
  auto made = std::make_unique<ShimDevice>();
  {
    const std::lock_guard lock(theMutex);
    made->base = theTable;
  }
  std::vector<cdl_option_t> others;
  for (uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(options[i].name, "shim") == 0)
      made->fault = options[i].value;
    else if (std::strcmp(options[i].name, "shim_at") == 0)
      made->at = std::strtoull(options[i].value, nullptr, 10);
    else
      others.push_back(options[i]);
  }
  return counted(*made, error, [&] {
    const cdl_code_t code = made->base.device_open(
        host, index, others.data(), static_cast<uint32_t>(others.size()), &made->handle, error);
    if (code != CDL_OK) return code;
    ++openDevices;
    *device = reinterpret_cast<cdl_device_t*>(made.release());
    return code;
  });
}

const cdl_capabilities_t* capabilities(cdl_device_t* device) {
  return of(device)->base.device_capabilities(of(device)->handle);
}

cdl_code_t memoryCreate(cdl_device_t* handle, uint32_t space, uint64_t bytes, uint64_t alignment,
                        cdl_memory_t** memory, cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  return counted(device, error, [&] {
    if (device.has("out_of_memory") && device.isTurn(++device.creates))
      return cdl_set_error(error, CDL_OUT_OF_MEMORY, "no memory is left");
    if (device.has("null_memory")) return cdl_code_t(CDL_OK);
    const cdl_code_t code =
        device.base.memory_create(device.handle, space, bytes, alignment, memory, error);
    if (code != CDL_OK) return code;
    ++liveMemory;
    const std::lock_guard lock(device.mutex);
    device.sizes[*memory] = bytes;
    return code;
  });
}

void memoryDestroy(cdl_device_t* handle, cdl_memory_t* memory) {
  ShimDevice& device = *of(handle);
  if (!memory) return;
  const std::lock_guard lock(device.mutex);
  for (ShimQueue* queue : device.queues) queue->flush();
  device.sizes.erase(memory);
  --liveMemory;
  if (device.has("leak"))
    device.leaked.push_back(memory);
  else
    device.base.memory_destroy(device.handle, memory);
}

cdl_code_t memoryMap(cdl_device_t* handle, cdl_memory_t* memory, uint64_t offset, uint64_t bytes,
                     void** pointer, cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  return counted(device, error, [&] {
    const cdl_code_t code =
        device.base.memory_map(device.handle, memory, offset, bytes, pointer, error);
    if (code != CDL_OK || !device.has("map_copy")) return code;
    void* copy = std::malloc(bytes + 1);
    std::memcpy(copy, *pointer, bytes);
    (void)device.base.memory_unmap(device.handle, memory, *pointer, nullptr);
    *pointer = copy;
    return code;
  });
}

cdl_code_t memoryUnmap(cdl_device_t* handle, cdl_memory_t* memory, void* pointer,
                       cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  if (device.has("map_copy")) return std::free(pointer), cdl_code_t(CDL_OK);
  return device.base.memory_unmap(device.handle, memory, pointer, error);
}

cdl_code_t queueCreate(cdl_device_t* handle, cdl_queue_t** queue, cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  return counted(device, error, [&] {
    if (device.has("null_queue")) return cdl_code_t(CDL_OK);
    auto made = std::make_unique<ShimQueue>();
    made->device = &device;
    const cdl_code_t code = device.base.queue_create(device.handle, &made->handle, error);
    if (code != CDL_OK) return code;
    ++liveQueues;
    const std::lock_guard lock(device.mutex);
    device.queues.push_back(made.get());
    *queue = reinterpret_cast<cdl_queue_t*>(made.release());
    return code;
  });
}

void queueDestroy(cdl_device_t* handle, cdl_queue_t* queue) {
  ShimDevice& device = *of(handle);
  const std::unique_ptr<ShimQueue> owned(of(queue));
  if (!owned) return;
  owned->flush();
  device.base.queue_destroy(device.handle, owned->handle);
  const std::lock_guard lock(device.mutex);
  std::erase(device.queues, owned.get());
  --liveQueues;
}

cdl_code_t queueWrite(cdl_queue_t* handle, cdl_memory_t* to, uint64_t offset, const void* from,
                      uint64_t bytes, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    if (!device.holds(to, offset, bytes) || bytes == 0)
      return device.base.queue_write(queue.handle, to, offset, from, bytes, error);
    if (!device.defers())
      return device.base.queue_write(queue.handle, to, offset, from,
                                     bytes - device.has("partial_write"), error);
    const std::string kept(static_cast<const char*>(from), bytes);
    queue.submit([&device, &queue, to, offset, kept] {
      (void)device.base.queue_write(queue.handle, to, offset, kept.data(), kept.size(), nullptr);
    });
    return cdl_code_t(CDL_OK);
  });
}

cdl_code_t queueRead(cdl_queue_t* handle, cdl_memory_t* from, uint64_t offset, void* to,
                     uint64_t bytes, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    if (!device.has("unordered")) queue.flush();
    const bool partial = device.has("partial_read") && bytes && device.holds(from, offset, bytes);
    return device.base.queue_read(queue.handle, from, offset, to, bytes - partial, error);
  });
}

cdl_code_t queueCopy(cdl_queue_t* handle, cdl_memory_t* to, uint64_t toOffset, cdl_memory_t* from,
                     uint64_t fromOffset, uint64_t bytes, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    const bool holds = device.holds(to, toOffset, bytes) && device.holds(from, fromOffset, bytes);
    const uint64_t count = bytes - (holds && bytes && device.has("partial_copy"));
    if (!holds || !device.defers())
      return device.base.queue_copy(queue.handle, to, toOffset, from, fromOffset, count, error);
    queue.submit([&device, &queue, to, toOffset, from, fromOffset, bytes] {
      (void)device.base.queue_copy(queue.handle, to, toOffset, from, fromOffset, bytes, nullptr);
    });
    return cdl_code_t(CDL_OK);
  });
}

cdl_code_t queueSignal(cdl_queue_t* handle, uint64_t value, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    if (!device.has("late")) queue.flush();
    return device.base.queue_signal(queue.handle, value, error);
  });
}

cdl_code_t queueWait(cdl_queue_t* handle, uint64_t value, uint64_t timeoutNs, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    if (device.has("timeout") && device.isTurn(++device.waits))
      return cdl_set_error(error, CDL_TIMEOUT, "no answer in time");
    {
      const std::lock_guard lock(device.mutex);
      queue.flush(queue.waitedFor);
      queue.waitedFor = queue.pending.size();
    }
    const cdl_code_t code =
        device.base.queue_wait(queue.handle, value, device.has("wait_lies") ? 0 : timeoutNs, error);
    return device.has("wait_lies") && code == CDL_TIMEOUT ? cdl_code_t(CDL_OK) : code;
  });
}

cdl_code_t run(cdl_queue_t* handle, const cdl_image_t* image, uint32_t first, uint32_t count,
               const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings,
               cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    if (!device.defers())
      return device.base.run(queue.handle, image, first, count, loops, bindings, error);
    // it need not outlive the call
    const std::string kept(reinterpret_cast<const char*>(image), image->size);
    const std::vector<cdl_binding_t> buffers(bindings->buffers,
                                             bindings->buffers + bindings->count);
    const std::vector<int64_t> values(loops, loops + CDL_MAX_LOOP_NESTING);
    queue.submit([&device, &queue, kept, first, count, values, buffers] {
      const cdl_bindings_t all{CDL_HEADER(cdl_bindings_t), static_cast<uint32_t>(buffers.size()), 0,
                               buffers.data()};
      (void)device.base.run(queue.handle, reinterpret_cast<const cdl_image_t*>(kept.data()), first,
                            count, values.data(), &all, nullptr);
    });
    return cdl_code_t(CDL_OK);
  });
}

cdl_code_t compile(cdl_device_t* handle, const cdl_image_t* image, const void* const* constants,
                   cdl_executable_t** executable, cdl_refusal_t* refusal, cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  return counted(device, error, [&] {
    const cdl_code_t code =
        device.base.compile(device.handle, image, constants, executable, refusal, error);
    liveExecutables += code == CDL_OK;
    return code;
  });
}

cdl_code_t load(cdl_device_t* handle, const cdl_image_t* image, const void* blob, uint64_t size,
                cdl_executable_t** executable, cdl_error_t* error) {
  ShimDevice& device = *of(handle);
  return counted(device, error, [&] {
    const cdl_code_t code =
        device.base.executable_load(device.handle, image, blob, size, executable, error);
    liveExecutables += code == CDL_OK;
    return code;
  });
}

void executableDestroy(cdl_device_t* device, cdl_executable_t* executable) {
  of(device)->base.executable_destroy(of(device)->handle, executable);
  --liveExecutables;
}

cdl_code_t execute(cdl_queue_t* handle, cdl_executable_t* executable,
                   const cdl_bindings_t* bindings, const cdl_timeline_t* wait, uint32_t waitCount,
                   cdl_timeline_t signal, cdl_error_t* error) {
  ShimQueue& queue = *of(handle);
  ShimDevice& device = *queue.device;
  return counted(device, error, [&] {
    queue.flush();
    std::vector<cdl_timeline_t> waits;
    for (uint32_t i = 0; i < waitCount; ++i)
      waits.push_back({of(wait[i].queue)->handle, wait[i].value});
    if (signal.queue) signal.queue = of(signal.queue)->handle;
    return device.base.execute(queue.handle, executable, bindings, waits.data(), waitCount, signal,
                               error);
  });
}

/// Beside the base's own options. Lives as long as the process, as the table does.
const std::vector<cdl_option_schema_t>& schemaOf(const cdl_plugin_t& base) {
  static std::map<const cdl_option_schema_t*, std::vector<cdl_option_schema_t>> known;
  std::vector<cdl_option_schema_t>& schema = known[base.options];
  if (schema.empty()) {
    schema.assign(base.options, base.options + base.option_count);
    schema.push_back({"shim", "what goes wrong at the slots",
                      "none|out_of_memory|device_lost|timeout|error|unknown_code|null_memory|null_"
                      "queue|late|unordered|"
                      "reversed|partial_write|partial_read|partial_copy|wait_lies|lost_code|wrong_"
                      "code|no_message|"
                      "long_message|map_copy|leak",
                      "none"});
    schema.push_back({"shim_at", "which call, from 1; 0: each", "int", "0"});
  }
  return schema;
}

} // namespace

void setShimBase(cdl_backend_query_fn base) { theBase = base; }

cdl_code_t shimQuery(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* error) {
  const cdl_backend_query_fn base = theBase;
  if (!base) return cdl_set_error(error, CDL_INTERNAL, "the shim has no backend behind it");
  cdl_plugin_t table{};
  table.header = CDL_HEADER(cdl_plugin_t);
  if (out->header.struct_size < sizeof table)
    return cdl_set_error(error, CDL_INCOMPATIBLE, "the host's table is short");
  if (const cdl_code_t code = base(host, &table, error); code != CDL_OK) return code;
  const std::lock_guard lock(theMutex);
  theTable = table;
  const std::vector<cdl_option_schema_t>& schema = schemaOf(table);
  *out = table;
  out->options = schema.data();
  out->option_count = static_cast<uint32_t>(schema.size());
  out->device_open = open;
  out->device_close = close;
  out->device_capabilities = capabilities;
  out->memory_create = memoryCreate;
  out->memory_destroy = memoryDestroy;
  out->memory_map = table.memory_map ? memoryMap : nullptr;
  out->memory_unmap = table.memory_unmap ? memoryUnmap : nullptr;
  out->queue_create = queueCreate;
  out->queue_destroy = queueDestroy;
  out->queue_write = queueWrite;
  out->queue_read = queueRead;
  out->queue_copy = queueCopy;
  out->queue_signal = queueSignal;
  out->queue_wait = queueWait;
  out->run = table.run ? run : nullptr;
  out->compile = table.compile ? compile : nullptr;
  out->executable_destroy = table.executable_destroy ? executableDestroy : nullptr;
  out->execute = table.execute ? execute : nullptr;
  out->executable_load = table.executable_load ? load : nullptr;
  // What takes a device or a queue as the base knows it is left out.
  out->device_name = nullptr;
  out->pack_constant = nullptr;
  out->cost_batch = nullptr;
  out->emit = nullptr;
  out->memory_import = nullptr;
  out->profile_begin = nullptr;
  out->profile_end = nullptr;
  out->cancel = nullptr;
  return CDL_OK;
}

ShimObjects shimObjects() { return {openDevices, liveMemory, liveQueues, liveExecutables}; }
uint64_t shimCalls() { return countedCalls; }

} // namespace candela::conformance::mutants
