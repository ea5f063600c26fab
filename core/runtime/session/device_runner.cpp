#include <algorithm>
#include <cstring>
#include <set>

#include "core/compiler/capabilities/refusal.h"
#include "core/runtime/plugin/collector.h"
#include "core/runtime/session/device_context.h"
#include "core/runtime/session/shortage.h"
#include "core/runtime/session/workers.h"

namespace candela::runtime::session {
namespace {

using capabilities::Support;

/// What a row calls NATIVE may not be refused once it runs: that is the backend's failure, and says
/// nothing of the model.
Status promised(const Status& status) {
  const bool refuses = status.code() == Code::unsupported || status.code() == Code::refused;
  return refuses ? failure(Code::internal, "{}, which its rows call native", status.message())
                 : status;
}

/// Runs a Program on a device through either interface.
class DeviceRunner : public ImageRunner<DeviceContext> {
public:
  DeviceRunner(const bundle::BundlePartition& partition, std::shared_ptr<plugin::Device> device)
      : ImageRunner(partition), device_(std::move(device)), name_(device_->name()),
        mover_(image_, *device_) {}

  ~DeviceRunner() override { dropExecutable(); }

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
    // A stored executable first: where it was made for another processor, rows may differ too, and
    // that is not what to tell.
    if (isStored) CDL_TRY(load(partition));
    CDL_TRY(queryRows(refusal));
    if (!device_->compiles()) return Status::ok();
    if (!isStored) CDL_TRY(compile(refusal));
    CDL_TRY(readSupport());
    if (holdsConstants_ && streams()) return leaveExecutable();
    if (holdsConstants_) constants_.clear();
    return Status::ok();
  }

  std::shared_ptr<plugin::Device> device() const override { return device_; }

  Status reserve() override {
    const auto turn = takeDeviceTurn();
    CDL_ASSIGN(std::unique_ptr<DeviceContext> context, makeContext());
    for (const Port& port : ports_)
      if (!device_->table().memory_import) CDL_TRY(mover_.makeOwn(*context, port.buffer));
    if (holding_ == bundle::Holding::everything) keep(std::move(context));
    return Status::ok();
  }

  uint64_t streamedBytes() const override { return streamedBytes_; }

  Result<Bytes> save() override {
    if (stored_.size()) return stored_;
    if (!executable_ || !device_->table().executable_save) return Bytes();
    const plugin::Collector blob;
    CDL_TRY(plugin::callSlot(name_, CDL_SLOT(device_->table(), executable_save), executable_,
                             blob.writer()));
    return blob.bytes();
  }

  Result<Bytes> emit() override {
    if (!executable_ || !device_->table().emit)
      return failure(Code::unsupported, "{}: it emits no object code", name_);
    const plugin::Collector objects;
    CDL_TRY(plugin::callSlot(name_, CDL_SLOT(device_->table(), emit), device_->handle(),
                             executable_, objects.writer()));
    return objects.bytes();
  }

private:
  /// Constants, and states that are zero before the first execution.
  Status makeFixed() {
    const Span span("upload constants to", name_);
    fixed_.resize(image_->buffers.count);
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_CONSTANT && !holdsConstants_ && streams()) {
        streamedBytes_ += buffer.bytes;
      } else if (buffer.role == CDL_ROLE_CONSTANT && !holdsConstants_) {
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

  /// Asks how the device supports each instruction; fails for the first one that is in no row.
  Status queryRows(Refusal* refusal) {
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
    return Status::ok();
  }

  Status load(const bundle::BundlePartition& partition) {
    stored_ = partition.executable;
    return loadStored();
  }

  Status loadStored() {
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

  bool streams() const { return holding_ == bundle::Holding::nothing; }

  void dropExecutable() {
    if (!executable_) return;
    const cdl_plugin_t& table = device_->table();
    plugin::endBySlot(table.name, CDL_SLOT(table, executable_destroy), device_->handle(),
                      executable_);
    executable_ = nullptr;
  }

  /// Frees an executable and the constants in it until the next run, which makes it of its blob, or
  /// of the Program where the backend stores none.
  Status leaveExecutable() {
    if (stored_.size() == 0) {
      CDL_ASSIGN(const Bytes saved, save());
      stored_ = Bytes::copyOf(saved.data(), saved.size()); // aligned, as executable_load wants it
    }
    streamedBytes_ = stored_.size();
    for (const Bytes& constant : constants_)
      if (stored_.size() == 0) streamedBytes_ += constant.size();
    if (stored_.size()) constants_.clear();
    dropExecutable();
    return Status::ok();
  }

  std::unique_lock<std::mutex> takeDeviceTurn() override {
    if (holding_ == bundle::Holding::everything) return {};
    return std::unique_lock(device_->turn());
  }

  /// What the device does not hold between runs, for the context of one.
  Status stream(DeviceContext& context, std::vector<MemoryPtr>& fixed) {
    if (!streams()) return Status::ok();
    const Span span("stream to", name_, streamedBytes_);
    if (holdsConstants_) {
      CDL_TRY(stored_.size() ? loadStored() : compile(nullptr));
      context.executable = {executable_, [this](void*) { dropExecutable(); }};
      return Status::ok();
    }
    for (uint32_t b = 1; b < image_->buffers.count; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role != CDL_ROLE_CONSTANT) continue;
      const uint64_t alignment =
          std::max<uint64_t>(buffer.alignment, device_->target().alignment());
      CDL_ASSIGN(fixed[b],
                 device_->allocateWith(constants_[buffer.constant], buffer.space - 1, alignment));
    }
    return Status::ok();
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

  Result<std::unique_ptr<DeviceContext>> makeContext() override {
    auto context = std::make_unique<DeviceContext>();
    std::vector<MemoryPtr> fixed = fixed_;
    CDL_TRY(stream(*context, fixed));
    CDL_ASSIGN(context->queue, device_->createQueue());
    std::vector<MemoryPtr> arenas(image_->spaces.count);
    for (uint32_t s = 1; s < image_->spaces.count; ++s)
      if (const uint64_t bytes = arenaBytes(s); bytes && !(executable_ && isLocal(s))) {
        CDL_ASSIGN(arenas[s], device_->allocate(s - 1, bytes, cdl_get_space(image_, s)->alignment)
                                  .context(valuesText(image_, s)));
      }
    const size_t buffers = image_->buffers.count;
    context->memory.resize(buffers);
    context->ports.resize(buffers);
    context->addresses.resize(buffers);
    context->bindings.resize(buffers);
    for (uint32_t b = 1; b < buffers; ++b) {
      const cdl_buffer_t& buffer = *cdl_get_buffer(image_, b);
      if (buffer.role == CDL_ROLE_TEMP)
        context->bind(image_, b, arenas[buffer.space], buffer.offset);
      else
        context->bind(image_, b, fixed[b], 0); // or by mover_, where nothing is fixed
    }
    if (executable_ && device_->table().executable_scratch) CDL_TRY(allocateScratch(*context));
    return context;
  }

  Status allocateScratch(DeviceContext& context) {
    CDL_ASSIGN(const uint64_t bytes,
               plugin::askSlot(name_, CDL_SLOT(device_->table(), executable_scratch), executable_));
    if (!bytes) return Status::ok();
    CDL_ASSIGN(context.scratch, device_->allocate(0, bytes, 64));
    context.bindings.push_back({context.scratch->handle(), 0, bytes});
    return Status::ok();
  }

  Result<Room> allocateRoom(const cdl_buffer_t& buffer, Visibility visibility) override {
    CDL_ASSIGN(Room onHost, roomOnHost(buffer.bytes));
    const uint64_t alignment = std::max<uint64_t>(buffer.alignment, 64);
    CDL_ASSIGN(MemoryPtr memory, device_->allocateWith(onHost.bytes, buffer.space - 1, alignment));
    if (!memory->mapped() && visibility == Visibility::host) return onHost;
    Room room;
    room.at.host = static_cast<std::byte*>(memory->mapped());
    room.at.memory = memory;
    room.at.device = device_;
    room.at.space = buffer.space;
    if (room.at.host) room.bytes = Bytes::wrap(room.at.host, buffer.bytes, memory);
    return room;
  }

  Status begin(DeviceContext& context, BufferRefs inputs, BufferRefs outputs, Waits waits,
               RunContext& run) override {
    context.done = {};
    run.stats.streamedBytes += streamedBytes_;
    if (run.control) CDL_TRY(run.control->enter(*context.queue));
    context.control = run.control;
    for (const Port& port : ports_) {
      const BufferRef given = port.isInput() ? inputs[port.input] : BufferRef();
      const BufferRef wanted = port.isOutput() ? outputs[port.output] : BufferRef();
      CDL_TRY(mover_.place(context, port, given, wanted, run));
      if (port.isInput()) CDL_TRY(mover_.upload(context, port, run));
    }
    cdl_bindings_t bindings{};
    bindings.header = CDL_HEADER(cdl_bindings_t);
    bindings.count = static_cast<uint32_t>(context.bindings.size());
    bindings.buffers = context.bindings.data();
    return executable_ ? execute(context, bindings, waits, run.stats)
                       : interpret(context, bindings, waits, run.stats);
  }

  Status end(DeviceContext& context, RunContext& run) override {
    const Status status = await(context, run);
    RunControl* const control = std::exchange(context.control, nullptr);
    const bool isGivenUp = control && control->leave(*context.queue);
    return isGivenUp ? control->status() : status;
  }

  /// Waits for the execution, then takes what lies in memory of the context's own to the caller.
  Status await(DeviceContext& context, RunContext& run) {
    if (context.done.queue) {
      const Span span("wait");
      CDL_TRY(context.queue->wait(context.done.value));
    }
    if (executable_ && keepsProfile())
      CDL_TRY(endProfile(context.queue->handle(), context.startNs, bundle::executions(image_)));
    bool isCopying = false;
    for (const Port& port : ports_) {
      if (!port.isOutput()) continue;
      CDL_ASSIGN(const bool isSubmitted, mover_.download(context, port, run));
      isCopying |= isSubmitted;
    }
    if (isCopying) {
      const Span span("wait");
      CDL_TRY(context.queue->drain());
    }
    for (const Port& port : ports_) release(context, port);
    return Status::ok();
  }

  /// What the caller gave is his again.
  static void release(DeviceContext& context, const Port& port) {
    BoundPort& bound = context.ports[port.buffer];
    bound.given = {};
    bound.wanted = {};
    if (bound.inPlace) context.memory[port.buffer] = nullptr;
  }

  Status execute(DeviceContext& context, const cdl_bindings_t& bindings, Waits waits,
                 RunStats& stats) {
    const cdl_plugin_t& table = device_->table();
    cdl_queue_t* queue = context.queue->handle();
    if (keepsProfile()) CDL_TRY(plugin::callSlot(name_, CDL_SLOT(table, profile_begin), queue));
    context.startNs = nowNs();
    const cdl_timeline_t signal{queue, context.queue->next()};
    const Span span("execute");
    CDL_TRY(
        promised(plugin::callSlot(name_, CDL_SLOT(table, execute), queue, executable_, &bindings,
                                  waits.data(), static_cast<uint32_t>(waits.size()), signal)));
    for (size_t i = 1; i < support_.size(); ++i)
      ++(support_[i] == Support::native ? stats.nativeInstrs : stats.emulatedInstrs);
    context.done = signal;
    return Status::ok();
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
  Status interpret(DeviceContext& context, const cdl_bindings_t& bindings, Waits waits,
                   RunStats& stats) {
    for (const cdl_timeline_t& wait : waits) // instructions know no waits for other queues
      CDL_TRY(plugin::callSlot(name_, CDL_SLOT(device_->table(), queue_wait), wait.queue,
                               wait.value, UINT64_MAX));
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
        return runInstrs(context, first, last - first + 1, loops, bindings);
      };
      CDL_TRY(alone ? timed(first, Support::native, runNative) : runNative());
    }
    CDL_ASSIGN(const uint64_t done, context.queue->signal());
    context.done = {context.queue->handle(), done};
    return Status::ok();
  }

  /// Runs of native instructions; where they are traced, to their end.
  Status runInstrs(DeviceContext& context, uint32_t first, uint32_t count, const int64_t* loops,
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

  Status emulate(DeviceContext& context, uint32_t index, const int64_t* loops, RunStats& stats) {
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
  uint64_t streamedBytes_ = 0; ///< by each run
  /// per image buffer: constants and states, shared by all executions
  std::vector<MemoryPtr> fixed_;
  PortMover mover_;
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
