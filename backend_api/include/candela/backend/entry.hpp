// Entry<B>: the slots of cdl_plugin_t over a Backend class, and the negotiation before them.
#pragma once

#include "candela/backend/custom.hpp"

namespace cdl::detail {

// OverridesMatMul<B> and so on: an inherited function keeps the type of the class that declared it.
// A function that cannot be named from here (private, or overloaded) was declared by B or one of
// its own bases.
#define CDL_X(Struct, function, NAME)                                                              \
  template <class B, class = void> struct Overrides##Struct : std::true_type {};                   \
  template <class B>                                                                               \
  struct Overrides##Struct<B, std::void_t<decltype(&B::function)>>                                 \
      : std::bool_constant<                                                                        \
            !std::is_same_v<decltype(&B::function), decltype(&PrimitiveBackend::function)>> {};
CDL_OPS(CDL_X)
#undef CDL_X

// Keeps_memoryMap<B> and so on: B has the default of that hook.
#define CDL_X(hook)                                                                                \
  template <class B, class = void> struct Keeps_##hook : std::false_type {};                       \
  template <class B>                                                                               \
  struct Keeps_##hook<B, std::void_t<decltype(&B::hook)>>                                          \
      : std::is_same<decltype(&B::hook), decltype(&Backend::hook)> {};
CDL_X(memoryCreate)
CDL_X(memoryDestroy)
CDL_X(memoryMappable)
CDL_X(memoryMap)
CDL_X(memoryUnmap)
CDL_X(memoryImport)
CDL_X(memoryWrite)
CDL_X(memoryRead)
CDL_X(memoryCopy)
CDL_X(address)
CDL_X(queueCreate)
CDL_X(packConstant)
#undef CDL_X

/// Memory of B is the host's, as it is.
template <class B> constexpr bool isHostMemory() {
  return Keeps_memoryCreate<B>::value && Keeps_memoryDestroy<B>::value &&
         Keeps_memoryMappable<B>::value && Keeps_memoryMap<B>::value &&
         Keeps_memoryUnmap<B>::value && Keeps_memoryWrite<B>::value && Keeps_memoryRead<B>::value &&
         Keeps_memoryCopy<B>::value && Keeps_address<B>::value;
}

/// Bit k: B has its own function of kind k.
template <class B> constexpr uint64_t overriddenKinds() {
  uint64_t mask = 0;
  if constexpr (std::is_base_of_v<PrimitiveBackend, B>) {
#define CDL_X(Struct, function, NAME)                                                              \
  if (Overrides##Struct<B>::value) mask |= uint64_t(1) << static_cast<uint16_t>(Kind::Struct);
    CDL_OPS(CDL_X)
#undef CDL_X
  } else {
    mask = ~uint64_t(0); // whoever compiles Programs says with support() what he does not do
  }
  return mask;
}

struct LoadedExecutable {
  Backend* backend;
  const cdl_image_t* image;
  std::unique_ptr<Executable> executable;
};

/// The slot over a function that takes the slot's arguments but the error and returns a Status.
template <auto Function> struct Slot;
template <class... Args, Status (*Function)(Args...)> struct Slot<Function> {
  static cdl_code_t call(Args... args, cdl_error_t* e) noexcept {
    return guard(e, [&] { return Function(args...); });
  }
};

/// What stands behind the slots that are the same for every backend.
struct Slots {
  static Backend* of(cdl_device_t* device) { return reinterpret_cast<Backend*>(device); }
  static Queue* of(cdl_queue_t* queue) { return reinterpret_cast<Queue*>(queue); }
  static Memory* of(cdl_memory_t* memory) { return reinterpret_cast<Memory*>(memory); }
  static LoadedExecutable* of(cdl_executable_t* e) {
    return reinterpret_cast<LoadedExecutable*>(e);
  }

  static Status outside(const Memory* memory, uint64_t offset, uint64_t bytes) {
    if (!memory) return error(CDL_INVALID_ARGUMENT, "no memory was given");
    if (offset <= memory->bytes && bytes <= memory->bytes - offset) return ok();
    return error(CDL_INVALID_ARGUMENT, text(bytes, " bytes at offset ", offset,
                                            " leave a memory of ", memory->bytes, " bytes"));
  }

  static void deviceClose(cdl_device_t* device) noexcept { delete of(device); }
  static const char* deviceName(cdl_device_t* device) noexcept {
    return of(device)->deviceName().c_str();
  }

  static Status memoryCreate(cdl_device_t* device, uint32_t space, uint64_t bytes,
                             uint64_t alignment, cdl_memory_t** memory) {
    if (Status lost = of(device)->lost(); !lost.isOk()) return lost;
    const uint32_t spaces = of(device)->capabilities().build(0)->space_count;
    if (space >= spaces) return error(CDL_INVALID_ARGUMENT, text("space ", space, " of ", spaces));
    if (alignment == 0 || (alignment & (alignment - 1)))
      return error(CDL_INVALID_ARGUMENT, text("alignment ", alignment, " is not a power of two"));
    auto made = std::make_unique<Memory>();
    made->bytes = bytes;
    made->space = space;
    Status status = of(device)->memoryCreate(alignment, *made);
    if (status.isOk()) *memory = reinterpret_cast<cdl_memory_t*>(made.release());
    return status;
  }
  static void memoryDestroy(cdl_device_t* device, cdl_memory_t* memory) noexcept {
    if (!memory) return;
    guard(nullptr, [&] { return of(device)->memoryDestroy(*of(memory)), ok(); });
    delete of(memory);
  }
  static Status memoryMap(cdl_device_t* device, cdl_memory_t* memory, uint64_t offset,
                          uint64_t bytes, void** pointer) {
    Status status = outside(of(memory), offset, bytes);
    return status.isOk() ? of(device)->memoryMap(*of(memory), offset, bytes, pointer) : status;
  }
  static Status memoryUnmap(cdl_device_t* device, cdl_memory_t* memory, void* pointer) {
    return of(device)->memoryUnmap(*of(memory), pointer);
  }

  static Status memoryImport(cdl_device_t* device, uint32_t space, void* data, uint64_t bytes,
                             cdl_memory_t** memory) {
    const uint32_t spaces = of(device)->capabilities().build(0)->space_count;
    if (space >= spaces) return error(CDL_INVALID_ARGUMENT, text("space ", space, " of ", spaces));
    if (!data || bytes == 0)
      return error(CDL_INVALID_ARGUMENT, text("an import of ", bytes, " bytes"));
    std::unique_ptr<Memory> made;
    Memory* target = of(*memory);
    if (!target) {
      made = std::make_unique<Memory>();
      target = made.get();
      target->space = space;
    }
    Status status = of(device)->memoryImport(data, bytes, *target);
    if (!status.isOk()) return status;
    target->bytes = bytes;
    if (made) *memory = reinterpret_cast<cdl_memory_t*>(made.release());
    return status;
  }

  static Status packConstant(cdl_device_t* device, const char* layout, const void* data,
                             const cdl_view_t* view, const cdl_writer_t* writer) {
    if (Status lost = of(device)->lost(); !lost.isOk()) return lost;
    Operand constant;
    constant.rank = view->rank;
    std::copy_n(view->dims, view->rank, constant.dims.begin());
    std::copy_n(view->strides, view->rank, constant.strides.begin());
    constant.elem = view->elem;
    constant.role = CDL_ROLE_CONSTANT;
    const int64_t bit = view->offset * cdl_elem_bits(view->elem);
    constant.data = const_cast<char*>(static_cast<const char*>(data) + bit / 8);
    return of(device)->packConstant(layout, constant, Writer(*writer));
  }

  static Status queueCreate(cdl_device_t* device, cdl_queue_t** queue) {
    if (Status lost = of(device)->lost(); !lost.isOk()) return lost;
    *queue = reinterpret_cast<cdl_queue_t*>(of(device)->queueCreate().release());
    return ok();
  }
  /// First waits for its work: the memory may go next, and whoever wrote there would write into
  /// what is another's by then.
  static void queueDestroy(cdl_device_t*, cdl_queue_t* queue) noexcept {
    if (!queue) return;
    guard(nullptr, [&] { return of(queue)->finish(); });
    delete of(queue);
  }

  /// Whether a queue is only destroyed after a call on it returned this.
  static bool isFinal(cdl_code_t code) {
    return code != CDL_OK && code != CDL_INVALID_ARGUMENT && code != CDL_UNSUPPORTED &&
           code != CDL_TIMEOUT;
  }
  /// Submits to a queue, unless its work failed. If this fails, whoever waits there is told.
  template <class Work> static Status submit(Queue& queue, Work&& work) {
    if (Status failed = queue.failure(); !failed.isOk()) return failed;
    queue.beginWork();
    Status status = caught(work);
    if (isFinal(status.code())) queue.fail(status);
    return status;
  }
  /// The same of a call after which all work of the queue is done, unless it was cancelled
  /// meanwhile.
  template <class Work> static Status submitLast(Queue& queue, Work&& work) {
    Status status = submit(queue, work);
    return status.isOk() ? queue.endWork() : status;
  }
  static Status queueWrite(cdl_queue_t* queue, cdl_memory_t* to, uint64_t offset, const void* from,
                           uint64_t bytes) {
    Status status = outside(of(to), offset, bytes);
    return status.isOk()
               ? submit(*of(queue), [&] { return of(queue)->write(*of(to), offset, from, bytes); })
               : status;
  }
  static Status queueRead(cdl_queue_t* queue, cdl_memory_t* from, uint64_t offset, void* to,
                          uint64_t bytes) {
    Status status = outside(of(from), offset, bytes);
    if (!status.isOk()) return status;
    return submitLast(*of(queue), [&] { return of(queue)->read(*of(from), offset, to, bytes); });
  }
  static Status queueCopy(cdl_queue_t* queue, cdl_memory_t* to, uint64_t toOffset,
                          cdl_memory_t* from, uint64_t fromOffset, uint64_t bytes) {
    Status status = outside(of(to), toOffset, bytes);
    if (status.isOk()) status = outside(of(from), fromOffset, bytes);
    if (!status.isOk()) return status;
    return submit(*of(queue),
                  [&] { return of(queue)->copy(*of(to), toOffset, *of(from), fromOffset, bytes); });
  }
  static Status queueSignal(cdl_queue_t* queue, uint64_t value) {
    Status status = submitLast(*of(queue), [&] { return of(queue)->finish(); });
    if (status.isOk()) of(queue)->signal(value);
    return status;
  }
  static Status queueWait(cdl_queue_t* queue, uint64_t value, uint64_t timeoutNs) {
    return of(queue)->wait(value, timeoutNs);
  }
  static Status cancel(cdl_queue_t* queue) { return of(queue)->cancel(); }

  static Status located(const Op& op, const Status& status) {
    if (status.isOk()) return status;
    return error(status.code(),
                 text(kindName(op.instr().kind), " at instruction ", op.index(), " ('", op.node(),
                      "'): ", status.text()),
                 status.vendorCode());
  }
  static Status run(cdl_queue_t* queue, const cdl_image_t* image, uint32_t first, uint32_t count,
                    const int64_t loops[CDL_MAX_LOOP_NESTING], const cdl_bindings_t* bindings) {
    auto* backend = static_cast<PrimitiveBackend*>(of(queue)->backend());
    if (Status status = checkInstrs(image, first, count); !status.isOk()) return status;
    Timings* timings = of(queue)->timings.get();
    const Bindings buffers(*backend, image, bindings, timings, of(queue));
    return submit(*of(queue), [&] {
      for (uint32_t i = first; i - first < count; ++i) {
        const Op op(image, i, loops, &buffers);
        const uint64_t start = timings ? Timings::now() : 0,
                       records = timings ? timings->records().size() : 0;
        Status status = located(op, caught([&] { return backend->dispatch(op); }));
        if (timings && status.isOk()) status = of(queue)->finish();
        if (!status.isOk()) return status;
        if (timings && timings->records().size() == records) timings->add(i, start, Timings::now());
      }
      return ok();
    });
  }

  static Status compile(cdl_device_t* device, const cdl_image_t* image,
                        const void* const* constants, cdl_executable_t** executable,
                        cdl_refusal_t* refusal) {
    auto made = std::make_unique<LoadedExecutable>(LoadedExecutable{of(device), image, nullptr});
    Status status = checkImage(image);
    if (status.isOk())
      status =
          static_cast<ProgramBackend*>(of(device))->compile(image, constants, made->executable);
    if (status.code() == CDL_REFUSED && refusal) {
      if (CDL_HAS(refusal, instr)) refusal->instr = status.instr();
      if (CDL_HAS(refusal, reason)) refusal->reason = status.reason();
    }
    return handOver(status, std::move(made), executable);
  }
  static Status handOver(const Status& status, std::unique_ptr<LoadedExecutable> made,
                         cdl_executable_t** executable) {
    if (status.isOk() && !made->executable)
      return error(CDL_INTERNAL, "success, but no executable");
    if (status.isOk()) *executable = reinterpret_cast<cdl_executable_t*>(made.release());
    return status;
  }
  static Status executableSave(cdl_executable_t* executable, const cdl_writer_t* writer) {
    return of(executable)->executable->save(Writer(*writer));
  }
  static Status emit(cdl_device_t*, cdl_executable_t* executable, const cdl_writer_t* writer) {
    return of(executable)->executable->emit(Writer(*writer));
  }
  static Status executableLoad(cdl_device_t* device, const cdl_image_t* image, const void* blob,
                               uint64_t size, cdl_executable_t** executable) {
    auto made = std::make_unique<LoadedExecutable>(LoadedExecutable{of(device), image, nullptr});
    Status status = checkImage(image);
    if (status.isOk())
      status = static_cast<ProgramBackend*>(of(device))->load(image, blob, size, made->executable);
    return handOver(status, std::move(made), executable);
  }
  static Status costBatch(cdl_device_t* device, const cdl_cost_query_t* queries, uint32_t count,
                          cdl_cost_t* costs) {
    auto* backend = static_cast<ProgramBackend*>(of(device));
    for (uint32_t i = 0; i < count; ++i) {
      costs[i] = {};
      if (Status status = backend->cost(queries[i].image, queries[i].instr, costs[i]);
          !status.isOk())
        return status;
    }
    return ok();
  }
  static void executableDestroy(cdl_device_t*, cdl_executable_t* executable) noexcept {
    delete of(executable);
  }
  static Status execute(cdl_queue_t* queue, cdl_executable_t* executable,
                        const cdl_bindings_t* bindings, const cdl_timeline_t* wait,
                        uint32_t waitCount, cdl_timeline_t signal) {
    const LoadedExecutable& loaded = *of(executable);
    const Bindings buffers(*of(queue)->backend(), loaded.image, bindings, of(queue)->timings.get(),
                           of(queue));
    Status status = submitLast(*of(queue), [&] {
      Status done;
      for (uint32_t i = 0; i < waitCount && done.isOk(); ++i)
        done = of(wait[i].queue)->waitFor(*of(queue), wait[i].value);
      if (done.isOk()) done = loaded.executable->execute(buffers);
      return done.isOk() ? of(queue)->finish() : done;
    });
    if (!signal.queue) return status;
    if (status.isOk())
      of(signal.queue)->signal(signal.value);
    else if (isFinal(status.code()))
      of(signal.queue)->fail(status);
    return status;
  }
  static Status profileBegin(cdl_queue_t* queue) {
    of(queue)->timings = std::make_unique<Timings>();
    return ok();
  }
  static Status profileEnd(cdl_queue_t* queue, cdl_profile_record_t* records, uint32_t capacity,
                           uint32_t* count) {
    const std::unique_ptr<Timings> timings = std::move(of(queue)->timings);
    if (!timings) return error(CDL_INVALID_ARGUMENT, "no profile was begun on this queue");
    *count = static_cast<uint32_t>(timings->records().size());
    std::copy_n(timings->records().begin(), std::min(*count, capacity), records);
    return ok();
  }
  static uint64_t executableScratch(cdl_executable_t* executable) noexcept {
    return of(executable)->executable->scratchBytes();
  }
  static Status executableSupport(cdl_executable_t* executable, uint8_t* support, uint32_t count) {
    for (uint32_t i = 1; i < count; ++i)
      support[i] = static_cast<uint8_t>(of(executable)->executable->support(i));
    return ok();
  }
};

template <class B> struct Entry : Slots {
  static constexpr bool kPrograms = std::is_base_of_v<ProgramBackend, B>;
  static constexpr bool kImports = isHostMemory<B>() || !Keeps_memoryImport<B>::value;
  static_assert(kPrograms || std::is_base_of_v<PrimitiveBackend, B>,
                "a backend derives from cdl::PrimitiveBackend or cdl::ProgramBackend");

  /// The object that names and options are read from; lives as long as the plugin, which is never
  /// unloaded.
  static B& prototype() {
    static B* object = new B();
    return *object;
  }

  static Status deviceOpen(const cdl_host_t* host, uint32_t index, const cdl_option_t* options,
                           uint32_t optionCount, cdl_device_t** device) {
    if (const uint32_t count = prototype().deviceCount(); index >= count)
      return error(CDL_NOT_FOUND, text("device ", index, " of ", count));
    auto backend = std::make_unique<B>();
    for (uint32_t i = 0; i < optionCount; ++i) {
      bool known = false;
      for (const cdl_option_schema_t& option : backend->schema())
        known |= std::strcmp(option.name, options[i].name) == 0;
      if (!known)
        return error(CDL_INVALID_ARGUMENT,
                     backend->name() + " has no option '" + options[i].name + "'");
      backend->options().set(options[i].name, options[i].value);
    }
    if (host) {
      cdl_host_t known{};
      std::memcpy(&known, host,
                  host->header.struct_size < sizeof known ? host->header.struct_size
                                                          : sizeof known);
      backend->setHost(known);
    }
    Status status = backend->open(index);
    if (!status.isOk()) return status;
    backend->capabilities().build(overriddenKinds<B>());
    *device = reinterpret_cast<cdl_device_t*>(static_cast<Backend*>(backend.release()));
    return ok();
  }
  static const cdl_capabilities_t* deviceCapabilities(cdl_device_t* device) noexcept {
    return of(device)->capabilities().build(0); // built when it was opened
  }

  static cdl_plugin_t table() {
    B& b = prototype();
    cdl_plugin_t t{};
    t.header = CDL_HEADER(cdl_plugin_t);
    t.min_host_major = b.minHost().first;
    t.min_host_minor = b.minHost().second;
    t.device_count = b.deviceCount();
    t.name = b.name().c_str();
    t.version = b.version().c_str();
    t.description = b.description().empty() ? nullptr : b.description().c_str();
    t.options = b.schema().data();
    t.option_count = static_cast<uint32_t>(b.schema().size());
    t.device_open = Slot<deviceOpen>::call;
    t.device_close = deviceClose;
    t.device_capabilities = deviceCapabilities;
    t.device_name = deviceName;
    t.memory_create = Slot<memoryCreate>::call;
    t.memory_destroy = memoryDestroy;
    t.memory_map = b.memoryMappable() ? Slot<memoryMap>::call : nullptr;
    t.memory_unmap = b.memoryMappable() ? Slot<memoryUnmap>::call : nullptr;
    t.memory_import = kImports ? Slot<memoryImport>::call : nullptr;
    t.queue_create = Slot<queueCreate>::call;
    t.queue_destroy = queueDestroy;
    t.queue_write = Slot<queueWrite>::call;
    t.queue_read = Slot<queueRead>::call;
    t.queue_copy = Slot<queueCopy>::call;
    t.queue_signal = Slot<queueSignal>::call;
    t.queue_wait = Slot<queueWait>::call;
    t.pack_constant = Keeps_packConstant<B>::value ? nullptr : Slot<packConstant>::call;
    t.cancel = Keeps_queueCreate<B>::value ? nullptr : Slot<cancel>::call;
    t.profile_begin = Slot<profileBegin>::call;
    t.profile_end = Slot<profileEnd>::call;
    if constexpr (kPrograms) {
      t.compile = Slot<compile>::call;
      t.executable_destroy = executableDestroy;
      t.execute = Slot<execute>::call;
      t.executable_scratch = executableScratch;
      t.executable_support = Slot<executableSupport>::call;
      if constexpr (!std::is_same_v<decltype(&B::load), decltype(&ProgramBackend::load)>) {
        t.executable_save = Slot<executableSave>::call;
        t.executable_load = Slot<executableLoad>::call;
      }
      t.emit = static_cast<ProgramBackend&>(b).emits() ? Slot<emit>::call : nullptr;
      if constexpr (!std::is_same_v<decltype(&B::cost), decltype(&ProgramBackend::cost)>)
        t.cost_batch = Slot<costBatch>::call;
    } else {
      t.run = Slot<run>::call;
    }
    if constexpr (std::is_base_of_v<CustomOps, B>) {
      t.custom_op = Slot<CustomSlots<B>::claim>::call;
      t.custom_op_decompose = Slot<CustomSlots<B>::decompose>::call;
    }
    return t;
  }

  /// Compares versions before it writes anything, then copies as much of the table as the host
  /// knows.
  static cdl_code_t query(const cdl_host_t* host, cdl_plugin_t* out, cdl_error_t* e) noexcept {
    return guard(e, [&]() -> Status {
      if (!host || !out || host->header.struct_size < sizeof(cdl_header_t) ||
          out->header.struct_size < sizeof(cdl_header_t))
        return error(CDL_INVALID_ARGUMENT,
                     "the host or the table is null or shorter than its header");
      const auto has = std::make_pair(host->header.major, host->header.minor);
      const auto needs = prototype().minHost();
      if (has < needs || has.first > CDL_ABI_MAJOR)
        return error(
            CDL_INCOMPATIBLE,
            text(prototype().name(), " needs host ABI ", needs.first, ".", needs.second,
                 needs.first > CDL_ABI_MAJOR ? "" : text(" or a later ", CDL_ABI_MAJOR, ".x"),
                 ", the host has ", has.first, ".", has.second));
      const size_t required = kPrograms ? offsetof(cdl_plugin_t, execute) + sizeof(out->execute)
                                        : offsetof(cdl_plugin_t, run) + sizeof(out->run);
      const size_t known =
          out->header.struct_size < sizeof *out ? out->header.struct_size : sizeof *out;
      if (known < required)
        return error(CDL_INCOMPATIBLE, text(prototype().name(), " needs ", required,
                                            " bytes of the plugin table, the host knows ", known));
      cdl_plugin_t filled = table();
      filled.header.struct_size = static_cast<uint16_t>(known);
      std::memcpy(out, &filled, known);
      return ok();
    });
  }
};

} // namespace cdl::detail
