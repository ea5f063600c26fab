#include <algorithm>
#include <cstring>
#include <set>

#include "core/compiler/capabilities/refusal.h"
#include "core/runtime/session/image_runner.h"
#include "core/runtime/session/shortage.h"
#include "core/runtime/session/workers.h"

namespace candela::runtime::session {
namespace {

using MemoryPtr = std::shared_ptr<plugin::DeviceMemory>;
using capabilities::Support;

/// What one execution needs on the device; kept for the next one.
struct Context {
  std::vector<MemoryPtr> memory; ///< per image buffer; TEMP buffers of a space share its arena
  /// of inputs and outputs, for what the device cannot use where it lies
  std::vector<MemoryPtr> own;
  std::vector<MemoryPtr> imported; ///< of inputs and outputs: stands for the caller's bytes
  /// of inputs and outputs of the run in progress: not in memory of its own
  std::vector<bool> inPlace;
  std::vector<void*> addresses; ///< per image buffer, null where the host sees none
  std::vector<cdl_binding_t> bindings;
  MemoryPtr scratch;
  /// goes first, with what it has not done: then nothing uses the memory
  std::shared_ptr<plugin::Queue> queue;
};

/// What a row calls NATIVE may not be refused once it runs: that is the backend's failure, and says
/// nothing of the model.
Status promised(const Status& status) {
  const bool refuses = status.code() == Code::unsupported || status.code() == Code::refused;
  return refuses ? failure(Code::internal, "{}, which its rows call native", status.message())
                 : status;
}

/// Runs a Program on a device through either interface.
class DeviceRunner : public ImageRunner<Context> {
public:
  DeviceRunner(const bundle::BundlePartition& partition, std::shared_ptr<plugin::Device> device)
      : ImageRunner(partition), device_(std::move(device)), name_(device_->name()) {}

  ~DeviceRunner() override {
    if (!executable_) return;
    const cdl_plugin_t& table = device_->table();
    plugin::endBySlot(table.name, CDL_SLOT(table, executable_destroy), device_->handle(),
                      executable_);
  }

  Status prepare(const bundle::Bundle& bundle, const bundle::BundlePartition& partition,
                 Refusal* refusal) {
    const size_t spaces = device_->target().spaces().size();
    if (image_->spaces.count - 1 > spaces)
      return failure(Code::incompatible, "the program uses {} memory spaces, {} has {}",
                     image_->spaces.count - 1, name_, spaces);
    holdsConstants_ = device_->compiles() && device_->table().executable_load;
    const bool isStored = partition.executable.size() != 0;
    if (isStored && !holdsConstants_)
      return failure(Code::incompatible,
                     "{}: the bundle holds an executable of {} {}, which it cannot load", name_,
                     partition.backend, partition.backendVersion);
    if (!isStored) CDL_TRY(readConstants(bundle, partition));
    CDL_TRY(makeFixed());
    const Span span("compile for", name_);
    support_.assign(image_->instrs.count, Support::none);
    const std::vector<bool> constants = plugin::constantBuffers(image_);
    for (uint32_t i = 1; i < image_->instrs.count; ++i) {
      const capabilities::Answer answer =
          device_->target().query(plugin::describe(image_, i, constants));
      support_[i] = answer.support;
      if (answer.support != Support::none) continue;
      if (refusal) *refusal = {i, answer.reason, answer.detail};
      return failure(Code::refused, "{}: instruction {} of kind {} is in no row: {}", name_, i,
                     cdl_get_instr(image_, i)->kind, answer.detail);
    }
    if (!device_->compiles()) return Status::ok();
    CDL_TRY(isStored ? load(partition) : compile(refusal));
    if (holdsConstants_) constants_.clear();
    return readSupport();
  }

  Result<Bytes> save() override {
    if (!executable_ || !device_->table().executable_save) return Bytes();
    if (stored_.size()) return stored_;
    const auto blob = std::make_shared<std::string>();
    const cdl_writer_t writer{
        blob.get(), [](void* context, const void* data, uint64_t size) -> int {
          static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
          return 1;
        }};
    CDL_TRY(
        plugin::callSlot(name_, CDL_SLOT(device_->table(), executable_save), executable_, &writer));
    return Bytes::wrap(blob->data(), blob->size(), blob);
  }

private:
  /// Constants, and states that are zero before the first execution.
  Status makeFixed() {
    const Span span("upload constants to", name_);
    fixed_.resize(image_->buffers.count);
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_CONSTANT && !holdsConstants_) {
        CDL_ASSIGN(fixed_[b], device_->upload(constants_[buffer.constant], buffer.space - 1,
                                              buffer.alignment));
      } else if (buffer.role == CDL_ROLE_STATE) {
        hasState_ = true;
        CDL_ASSIGN(const Bytes zero, Bytes::allocate(buffer.bytes));
        CDL_ASSIGN(fixed_[b], device_->allocateWith(zero, buffer.space - 1, buffer.alignment));
      }
    }
    return Status::ok();
  }

  Status load(const bundle::BundlePartition& partition) {
    stored_ = partition.executable;
    const Status status =
        plugin::callSlot(name_, CDL_SLOT(device_->table(), executable_load), device_->handle(),
                         image_, stored_.data(), stored_.size(), &executable_);
    if (!status) executable_ = nullptr;
    return status && !executable_ ? noExecutable("executable_load") : status;
  }

  Status compile(Refusal* refusal) {
    std::vector<const void*> payloads;
    for (const Bytes& bytes : constants_) payloads.push_back(bytes.data());
    cdl_refusal_t refused{};
    refused.header = CDL_HEADER(cdl_refusal_t);
    if (Status status =
            plugin::callSlot(name_, CDL_SLOT(device_->table(), compile), device_->handle(), image_,
                             payloads.data(), &executable_, &refused);
        !status) {
      executable_ = nullptr;
      const auto reason = static_cast<uint16_t>(refused.reason);
      if (refusal)
        *refusal = {refused.instr, reason, capabilities::refusalText(reason, status.message())};
      return status;
    }
    return executable_ ? Status::ok() : noExecutable("compile");
  }

  Status noExecutable(const char* slot) const {
    return failure(Code::internal, "{}: {} succeeded without an executable", name_, slot);
  }

  Status readSupport() {
    if (!device_->table().executable_support) return Status::ok();
    std::vector<uint8_t> support(support_.size(), CDL_SUPPORT_NONE);
    CDL_TRY(plugin::callSlot(name_, CDL_SLOT(device_->table(), executable_support), executable_,
                             support.data(), static_cast<uint32_t>(support.size())));
    for (size_t i = 1; i < support.size(); ++i)
      if (support[i] != CDL_SUPPORT_NATIVE) support_[i] = Support::emulated;
    return Status::ok();
  }

  /// What an executable has of local memories is its own affair.
  bool isLocal(uint32_t space) const {
    return cdl_get_space(image_, space)->flags & CDL_SPACE_LOCAL;
  }

  Result<std::unique_ptr<Context>> makeContext() override {
    auto context = std::make_unique<Context>();
    CDL_ASSIGN(context->queue, device_->createQueue());
    std::vector<MemoryPtr> arenas(image_->spaces.count);
    for (uint32_t s = 1; s < image_->spaces.count; ++s)
      if (const uint64_t bytes = arenaBytes(s); bytes && !(executable_ && isLocal(s))) {
        CDL_ASSIGN(arenas[s], device_->allocate(s - 1, bytes, cdl_get_space(image_, s)->alignment)
                                  .context(valuesText(image_, s)));
      }
    const size_t buffers = image_->buffers.count;
    context->memory.resize(buffers);
    context->own.resize(buffers);
    context->imported.resize(buffers);
    context->inPlace.resize(buffers);
    context->addresses.resize(buffers);
    context->bindings.resize(buffers);
    for (uint32_t b = 1; b < buffers; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_TEMP)
        bind(*context, b, arenas[buffer.space], buffer.offset);
      else
        bind(*context, b, fixed_[b], 0); // or by place(), where nothing is fixed
    }
    if (executable_ && device_->table().executable_scratch) CDL_TRY(allocateScratch(*context));
    return context;
  }

  /// That buffer `b` lies there.
  void bind(Context& context, uint32_t b, const MemoryPtr& memory, uint64_t offset) const {
    context.memory[b] = memory;
    context.bindings[b] = {memory ? memory->handle() : nullptr, offset,
                           cdl_get_buffer(image_, b)->bytes};
    void* mapped = memory ? memory->mapped() : nullptr;
    context.addresses[b] = mapped ? static_cast<char*>(mapped) + offset : nullptr;
  }

  Status allocateScratch(Context& context) {
    CDL_ASSIGN(const uint64_t bytes,
               plugin::askSlot(name_, CDL_SLOT(device_->table(), executable_scratch), executable_));
    if (!bytes) return Status::ok();
    CDL_ASSIGN(context.scratch, device_->allocate(0, bytes, 64));
    context.bindings.push_back({context.scratch->handle(), 0, bytes});
    return Status::ok();
  }

  Result<Bytes> allocateRoom(const cdl_buffer_t& buffer, Resident& resident) override {
    CDL_ASSIGN(const Bytes zero, Bytes::allocate(buffer.bytes));
    const uint64_t alignment = std::max<uint64_t>(buffer.alignment, 64);
    CDL_ASSIGN(MemoryPtr memory, device_->allocateWith(zero, buffer.space - 1, alignment));
    if (!memory->mapped()) return zero;
    resident = {memory, device_.get(), buffer.space};
    return Bytes::wrap(memory->mapped(), buffer.bytes, memory);
  }

  /// Memory of the device that `data` lies in, or that stands for it; null where it has none and
  /// the host must copy.
  Result<MemoryPtr> memoryOf(Context& context, const Port& port, std::byte* data, RunStats& stats) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
    const bool isBoth = port.isInput() && port.isOutput();
    const Resident* resident = nullptr;
    if (stats.residents && !isBoth)
      if (const auto at = stats.residents->find(data); at != stats.residents->end())
        resident = &at->second;
    if (resident && resident->device == device_.get() && resident->space == buffer.space &&
        reinterpret_cast<uintptr_t>(data) % std::max<uint64_t>(buffer.alignment, 1) == 0)
      return resident->memory;
    MemoryPtr& imported = context.imported[port.buffer];
    CDL_ASSIGN(const bool isImported,
               device_->import(imported, buffer.space - 1, data, buffer.bytes));
    if (isImported) return imported;
    if (resident) stats.stateBytes += buffer.bytes;
    return MemoryPtr();
  }

  /// Binds an input or output: where the caller has it, or in the context's own memory.
  Status place(Context& context, const Port& port, std::byte* data, RunStats& stats) {
    const uint32_t b = port.buffer;
    CDL_ASSIGN(MemoryPtr memory, memoryOf(context, port, data, stats));
    context.inPlace[b] = memory != nullptr;
    if (!memory) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (!context.own[b]) {
        CDL_ASSIGN(context.own[b],
                   device_->allocate(buffer.space - 1, buffer.bytes, buffer.alignment)
                       .context(fmt::format("value '{}'", cdl_get_string(image_, buffer.name))));
      }
      memory = context.own[b];
    }
    bind(context, b, memory, 0);
    return Status::ok();
  }

  Status upload(Context& context, const Port& port, const std::byte* from, std::byte* placed) {
    const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
    if (context.inPlace[port.buffer]) {
      if (from != placed && buffer.bytes) std::memcpy(placed, from, buffer.bytes);
      return Status::ok();
    }
    const Span span("upload", cdl_get_string(image_, buffer.name), buffer.bytes);
    return context.queue->write(*context.memory[port.buffer], 0, from, buffer.bytes);
  }

  /// What lies in memory of the context's own goes to the caller.
  Status download(Context& context, std::span<std::byte* const> outputs) {
    bool copies = false;
    for (const Port& port : ports_) {
      if (!port.isOutput() || context.inPlace[port.buffer]) continue;
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, port.buffer);
      const Span span("download", cdl_get_string(image_, buffer.name), buffer.bytes);
      CDL_TRY(
          context.queue->read(*context.memory[port.buffer], 0, outputs[port.output], buffer.bytes));
      copies = true;
    }
    if (executable_ && !copies) return Status::ok(); // which was waited for
    const Span span("wait");
    return context.queue->drain();
  }

  Status runWith(Context& context, std::span<const std::byte* const> inputs,
                 std::span<std::byte* const> outputs, RunStats& stats) override {
    for (const Port& port : ports_) {
      const std::byte* given = port.isInput() ? inputs[port.input] : nullptr;
      // which is only read
      std::byte* data = port.isOutput() ? outputs[port.output] : const_cast<std::byte*>(given);
      CDL_TRY(place(context, port, data, stats));
      if (port.isInput()) CDL_TRY(upload(context, port, given, data));
    }
    cdl_bindings_t bindings{};
    bindings.header = CDL_HEADER(cdl_bindings_t);
    bindings.count = static_cast<uint32_t>(context.bindings.size());
    bindings.buffers = context.bindings.data();
    CDL_TRY(executable_ ? execute(context, bindings, stats) : interpret(context, bindings, stats));
    return download(context, outputs);
  }

  Status execute(Context& context, const cdl_bindings_t& bindings, RunStats& stats) {
    const cdl_plugin_t& table = device_->table();
    cdl_queue_t* queue = context.queue->handle();
    if (keepsProfile()) CDL_TRY(plugin::callSlot(name_, CDL_SLOT(table, profile_begin), queue));
    const uint64_t start = nowNs(), done = context.queue->next();
    const cdl_timeline_t signal{queue, done};
    {
      const Span span("execute");
      CDL_TRY(promised(plugin::callSlot(name_, CDL_SLOT(table, execute), queue, executable_,
                                        &bindings, nullptr, uint32_t{0}, signal)));
    }
    for (size_t i = 1; i < support_.size(); ++i)
      ++(support_[i] == Support::native ? stats.nativeInstrs : stats.emulatedInstrs);
    const Span span("wait");
    CDL_TRY(context.queue->wait(done));
    return keepsProfile() ? endProfile(queue, start, bundle::executions(image_)) : Status::ok();
  }

  /// Whether instructions are asked for, and the device itself tells of them.
  bool keepsProfile() const {
    return tracesInstrs() && device_->table().profile_begin && device_->table().profile_end;
  }

  /// Takes the records of `most` instructions that began at `start`; those by another clock than
  /// the host's are moved there, the first one to `start`.
  Status endProfile(cdl_queue_t* queue, uint64_t start, uint64_t most) {
    const uint64_t end = nowNs();
    std::vector<cdl_profile_record_t> records(std::min<uint64_t>(most, 1 << 20));
    uint32_t count = 0;
    CDL_TRY(plugin::callSlot(name_, CDL_SLOT(device_->table(), profile_end), queue, records.data(),
                             static_cast<uint32_t>(records.size()), &count));
    // Of a long loop the first million is kept; more than there were executions is no profile.
    if (count > std::max<uint64_t>(records.size(), most))
      return failure(Code::unsupported, "{}: a profile of {} records, there is room for {}", name_,
                     count, records.size());
    records.resize(std::min<size_t>(count, records.size()));
    // Of several engines the one that is told first need not have begun first.
    uint64_t first = records.empty() ? start : UINT64_MAX;
    for (const cdl_profile_record_t& r : records) first = std::min(first, r.start_ns);
    const uint64_t shift = first >= start && first <= end ? 0 : start - first;
    for (const cdl_profile_record_t& r : records)
      if (r.instr > 0 && r.instr < image_->instrs.count && r.end_ns >= r.start_ns)
        Trace::current()->add({.startNs = r.start_ns + shift,
                               .endNs = r.end_ns + shift,
                               .instr = r.instr,
                               .engine = r.engine,
                               .support = Support::native,
                               .deviceClock = shift != 0});
    return Status::ok();
  }

  /// The primitive API: runs of native instructions of one block go to the backend, what lies
  /// between runs in soft.
  Status interpret(Context& context, const cdl_bindings_t& bindings, RunStats& stats) {
    const uint32_t end = image_->instrs.count;
    int64_t loops[CDL_MAX_LOOP_NESTING] = {};
    for (uint32_t first = 1, last; first < end; first = cdl_next_instr(image_, last, loops)) {
      last = first;
      if (support_[first] == Support::emulated) {
        ++stats.emulatedInstrs;
        CDL_TRY(
            timed(first, Support::emulated, [&] { return emulate(context, first, loops, stats); }));
        continue;
      }
      const uint32_t block = cdl_get_instr(image_, first)->loop;
      const bool alone = tracesInstrs() && !keepsProfile();
      while (!alone && last + 1 < end && support_[last + 1] == Support::native &&
             cdl_get_instr(image_, last + 1)->loop == block)
        ++last;
      stats.nativeInstrs += last - first + 1;
      const auto runNative = [&] {
        return submit(context, first, last - first + 1, loops, bindings);
      };
      CDL_TRY(alone ? timed(first, Support::native, runNative) : runNative());
    }
    return Status::ok();
  }

  /// Runs of native instructions; where they are traced, to their end.
  Status submit(Context& context, uint32_t first, uint32_t count, const int64_t* loops,
                const cdl_bindings_t& bindings) {
    const cdl_plugin_t& table = device_->table();
    cdl_queue_t* queue = context.queue->handle();
    const Span span("execute", "instructions");
    if (keepsProfile()) CDL_TRY(plugin::callSlot(name_, CDL_SLOT(table, profile_begin), queue));
    const uint64_t start = nowNs();
    CDL_TRY(promised(plugin::callSlot(name_, CDL_SLOT(table, run), queue, image_, first, count,
                                      loops, &bindings)));
    if (tracesInstrs()) CDL_TRY(context.queue->drain());
    return keepsProfile() ? endProfile(queue, start, count) : Status::ok();
  }

  Status emulate(Context& context, uint32_t index, const int64_t* loops, RunStats& stats) {
    const cdl_instr_t* instr = cdl_get_instr(image_, index);
    {
      const Span span("wait");
      CDL_TRY(context.queue->drain());
    }
    const auto bufferOf = [&](uint32_t v) {
      return cdl_get_view(image_, instr->first_view + v)->buffer;
    };
    const uint32_t views = uint32_t(instr->inputs) + instr->outputs;
    bool isMapped = true;
    for (uint32_t v = 0; v < views; ++v) isMapped = isMapped && context.addresses[bufferOf(v)];
    const host_executor::Workers workers = processWorkers();
    if (isMapped)
      return plugin::callSlot("soft", host_executor::run, image_, index, loops,
                              context.addresses.data(), &workers);

    std::vector<void*> addresses = context.addresses;
    std::map<uint32_t, Bytes> staged;
    std::set<uint32_t> written;
    for (uint32_t v = 0; v < views; ++v) {
      const uint32_t b = bufferOf(v);
      if (v >= instr->inputs) written.insert(b);
      if (addresses[b]) continue;
      const cdl_binding_t& binding = context.bindings[b];
      const plugin::DeviceMemory* memory = context.memory[b].get();
      if (!memory) return failure(Code::internal, "buffer {} has no memory", b);
      const Span span("stage in", {}, binding.bytes);
      CDL_ASSIGN(Bytes bytes, Bytes::allocate(binding.bytes));
      CDL_TRY(context.queue->read(*memory, binding.offset, bytes.mutableData(), binding.bytes));
      stats.stagedBytes += binding.bytes;
      addresses[b] = bytes.mutableData();
      staged[b] = std::move(bytes);
    }
    CDL_TRY(plugin::callSlot("soft", host_executor::run, image_, index, loops, addresses.data(),
                             &workers));
    for (auto& [b, bytes] : staged) {
      if (!written.count(b)) continue;
      const Span span("stage out", {}, bytes.size());
      CDL_TRY(context.queue->write(*context.memory[b], context.bindings[b].offset, bytes.data(),
                                   bytes.size()));
      stats.stagedBytes += bytes.size();
    }
    return Status::ok();
  }

  std::shared_ptr<plugin::Device> device_;
  std::string name_;
  cdl_executable_t* executable_ = nullptr;
  /// where a stored executable was loaded from; it goes on to use it
  Bytes stored_;
  /// executables have their constants: CONSTANT buffers have no memory
  bool holdsConstants_ = false;
  /// per image buffer: constants and states, shared by all executions
  std::vector<MemoryPtr> fixed_;
};

} // namespace

Result<std::unique_ptr<Runner>> makeDeviceRunner(const bundle::Bundle& bundle,
                                                 const bundle::BundlePartition& partition,
                                                 std::shared_ptr<plugin::Device> device,
                                                 Refusal* refusal) {
  auto runner = std::make_unique<DeviceRunner>(partition, std::move(device));
  CDL_TRY(runner->prepare(bundle, partition, refusal));
  return std::unique_ptr<Runner>(std::move(runner));
}

} // namespace candela::runtime::session
